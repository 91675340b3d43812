//! A figure as SVG. The style of all figures is here: colours of Okabe & Ito (Color Universal Design, 2008), which colour-blind people tell
//! apart; each line has a marker and a dash of its own as well, so that it is known in grey, too.

use crate::figures::{Line, Spot, Table};
use crate::study::{Figure, Measure};
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const SIZE: (u32, u32) = (760, 440);
const TEXT: (&str, u32) = ("sans-serif", 15);
const TITLE: (&str, u32) = ("sans-serif", 18);
const GREY: RGBColor = RGBColor(225, 225, 225);
const DARK: RGBColor = RGBColor(60, 60, 60);

const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(0, 0, 0),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// Lengths of dash and gap, in pixels; the first is solid.
const DASHES: [(u32, u32); 5] = [(0, 0), (10, 4), (4, 3), (14, 3), (2, 3)];

/// Corners in pixels from the middle.
const MARKERS: [&[(i32, i32)]; 5] = [
    &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
    &[(0, -6), (5, 4), (-5, 4)],
    &[(0, -6), (6, 0), (0, 6), (-6, 0)],
    &[(0, 6), (5, -4), (-5, -4)],
    &[
        (-2, -6),
        (2, -6),
        (2, -2),
        (6, -2),
        (6, 2),
        (2, 2),
        (2, 6),
        (-2, 6),
        (-2, 2),
        (-6, 2),
        (-6, -2),
        (-2, -2),
    ],
];

/// How a line looks.
struct Look {
    colour: RGBColor,
    dash: (u32, u32),
    marker: &'static [(i32, i32)],
}

impl Look {
    fn of(line: usize) -> Self {
        let colour = COLOURS[line % COLOURS.len()];
        Self { colour, dash: DASHES[line % DASHES.len()], marker: MARKERS[line % MARKERS.len()] }
    }

    fn stroke(&self) -> ShapeStyle {
        self.colour.stroke_width(2)
    }
}

/// The text of an SVG file.
pub fn svg(figure: &Figure, table: &Table) -> Result<String, String> {
    let mut text = String::new();
    draw(figure, table, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn draw(figure: &Figure, table: &Table, text: &mut String) -> Outcome {
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let root = match &figure.title {
        Some(title) => root.titled(title, TITLE)?,
        None => root,
    };
    // A letter is half as wide as it is high, about.
    let longest = table.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0) as u32;
    let legend = (60 + longest * 8).clamp(120, SIZE.0 / 2);
    let (left, right) = root.split_horizontally(SIZE.0 - legend);
    self::lines(figure, table, &left)?;
    self::legend(figure, table, &right)?;
    root.present()?;
    Ok(())
}

fn lines(figure: &Figure, table: &Table, area: &DrawingArea<SVGBackend, Shift>) -> Outcome {
    let spots = || table.lines.iter().flat_map(|line| &line.spots);
    let (least, most) =
        spots().fold((f64::MAX, f64::MIN), |(least, most), spot| (least.min(spot.x), most.max(spot.x)));
    let (least, most) = match (least, most) {
        (least, most) if least < most => (least, most),
        (least, most) if least == most => (least - 0.5, most + 0.5),
        _ => (0.0, 1.0),
    };
    let room = (most - least) * 0.02;
    let top = match figure.y {
        Measure::Schedulable => 1.0,
        _ => spots().map(|spot| spot.high).fold(1.0, f64::max),
    };
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(56)
        .build_cartesian_2d(least - room..most + room, -0.02 * top..top * 1.02)?;
    let number = |number: &f64| {
        let text = format!("{number:.3}");
        text.trim_end_matches('0').trim_end_matches('.').replace("-0", "0")
    };
    chart
        .configure_mesh()
        .bold_line_style(GREY)
        .light_line_style(TRANSPARENT)
        .axis_style(DARK)
        .x_labels(11)
        .y_labels(11)
        .x_label_formatter(&number)
        .y_label_formatter(&number)
        .x_desc(&figure.x_label)
        .y_desc(&figure.y_label)
        .label_style(TEXT)
        .axis_desc_style(TEXT)
        .draw()?;
    for (Line { spots, .. }, look) in table.lines.iter().zip((0..).map(Look::of)) {
        let high = spots.iter().map(|spot| (spot.x, spot.high));
        let low = spots.iter().rev().map(|spot| (spot.x, spot.low));
        let band: Vec<_> = high.chain(low).collect();
        chart.draw_series([Polygon::new(band, look.colour.mix(0.15))])?;
    }
    for (Line { spots, .. }, look) in table.lines.iter().zip((0..).map(Look::of)) {
        let at: Vec<_> = spots.iter().map(|Spot { x, y, .. }| (*x, *y)).collect();
        match look.dash {
            (0, _) => chart.draw_series([PathElement::new(at.clone(), look.stroke())])?,
            (dash, gap) => {
                let line = DashedPathElement::new(at.clone(), dash, gap, look.stroke());
                chart.draw_series([line])?
            }
        };
        let marker = |at| EmptyElement::at(at) + Polygon::new(look.marker.to_vec(), look.colour.filled());
        chart.draw_series(at.into_iter().map(marker))?;
    }
    Ok(())
}

fn legend(figure: &Figure, table: &Table, area: &DrawingArea<SVGBackend, Shift>) -> Outcome {
    let style = TextStyle::from(TEXT).color(&DARK).pos(Pos::new(HPos::Left, VPos::Center));
    if figure.line != "test" {
        area.draw(&Text::new(figure.line.replace('_', " "), (4, 24), style.clone()))?;
    }
    for ((line, look), y) in table.lines.iter().zip((0..).map(Look::of)).zip((48..).step_by(26)) {
        let ends = vec![(4, y), (40, y)];
        match look.dash {
            (0, _) => area.draw(&PathElement::new(ends, look.stroke()))?,
            (dash, gap) => area.draw(&DashedPathElement::new(ends, dash, gap, look.stroke()))?,
        }
        area.draw(&(EmptyElement::at((22, y)) + Polygon::new(look.marker.to_vec(), look.colour.filled())))?;
        area.draw(&Text::new(line.name.clone(), (48, y), style.clone()))?;
    }
    Ok(())
}
