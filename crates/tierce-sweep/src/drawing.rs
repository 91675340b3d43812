//! The figure of a study: a line for each test, in a band that is its interval.

use crate::figures::{Spot, Table};
use crate::study::{Figure, Measure};
use tierce_figure::{Axis, Legend, Look, Panel, Shape};

/// What is drawn.
pub fn described(figure: &Figure, table: &Table) -> tierce_figure::Figure {
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
    let x = Axis::new(&figure.x_label, least - room, most + room);
    let y = Axis::new(&figure.y_label, -0.02 * top, top * 1.02);
    let mut panel = Panel::new(350.0, x, y);
    for (line, look) in table.lines.iter().zip((0..).map(Look::Number)) {
        let high = line.spots.iter().map(|spot| [spot.x, spot.high]);
        let low = line.spots.iter().rev().map(|spot| [spot.x, spot.low]);
        panel = panel.with("", look, Shape::Area(high.chain(low).collect()));
    }
    for (line, look) in table.lines.iter().zip((0..).map(Look::Number)) {
        let points = line.spots.iter().map(|Spot { x, y, .. }| [*x, *y]).collect();
        panel = panel.with(&line.name, look, Shape::Line(points));
    }
    let title = figure.title.clone().unwrap_or_default();
    let mut drawn = tierce_figure::Figure::new(title, panel).legend(Legend::Right);
    if figure.line != "test" {
        drawn.legend_title = figure.line.replace('_', " ");
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Line;

    fn figure(y: Measure) -> Figure {
        let [file, x, x_label, y_label, line] =
            ["a.svg", "utilisation", "utilisation", "accepted", "share_most"].map(String::from);
        Figure { file, title: Some("A title".into()), x, x_label, y, y_label, line, only: Vec::new() }
    }

    fn line(name: &str, values: &[(f64, f64)]) -> Line {
        let spot = |&(x, y): &(f64, f64)| Spot { x, y, low: y - 0.125, high: y + 0.25, count: 9 };
        Line { name: name.into(), spots: values.iter().map(spot).collect() }
    }

    #[test]
    fn a_figure_holds_its_table() {
        let table =
            Table { lines: vec![line("edf", &[(0.5, 0.75), (1.0, 0.5)]), line("rm", &[(0.5, 0.25)])] };
        let drawn = described(&figure(Measure::Schedulable), &table);
        let [area, _, edf, rm] = &drawn.rows[0][0].series[..] else { panic!("two lines and their bands") };
        assert_eq!(area.shape, Shape::Area(vec![[0.5, 1.0], [1.0, 0.75], [1.0, 0.375], [0.5, 0.625]]));
        assert_eq!((&edf.name[..], &edf.shape), ("edf", &Shape::Line(vec![[0.5, 0.75], [1.0, 0.5]])));
        assert_eq!((&rm.name[..], &rm.shape), ("rm", &Shape::Line(vec![[0.5, 0.25]])));
        assert_ne!(edf.look, rm.look);
        assert_eq!((&drawn.legend_title[..], drawn.rows[0][0].y.to), ("share most", 1.02));
        let svg = drawn.svg().unwrap();
        for words in [">A title</text>", ">accepted</text>", ">share most</text>", ">rm</text>"] {
            assert!(svg.contains(words), "{words}: {svg}");
        }
    }

    /// Ratios may be above 1; one point, or none, has a figure, too.
    #[test]
    fn few_and_large_values() {
        let table = Table { lines: vec![line("edf", &[(4.0, 7.0)])] };
        let drawn = described(&figure(Measure::Mean), &table);
        assert_eq!(drawn.rows[0][0].y.to, 7.25 * 1.02);
        assert!(drawn.rows[0][0].x.from < 4.0 && drawn.rows[0][0].x.to > 4.0);
        drawn.check().unwrap();
        described(&figure(Measure::Mean), &Table { lines: Vec::new() }).check().unwrap();
    }
}
