//! What is drawn is what was computed; words do not stand on each other; each form of file is what it says.

use std::fmt::Write as _;
use tierce_figure::draw::{texts, Rect};
use tierce_figure::{Axis, Block, Figure, Format, Legend, Look, Panel, Place, Shape};

/// A figure with everything that there is.
fn everything(legend: Legend) -> Figure {
    let curve: Vec<_> = (0..=10).map(|x| [f64::from(x), f64::from(x * x)]).collect();
    let long = (0..200).map(|x| [f64::from(x) / 20.0, 100.0 - f64::from(x) / 2.0]).collect();
    let lines = Panel::new(160.0, Axis::new("period (ms)", 0.0, 10.0), Axis::new("budget (ms)", 0.0, 100.0))
        .titled("Lines")
        .with("a curve", Look::Number(0), Shape::Line(curve.clone()))
        .with("many points, dashed", Look::Number(1), Shape::Line(long))
        .with("", Look::Number(0), Shape::Area(curve))
        .with("what it is compared with", Look::Reference, Shape::Plain(vec![[0.0, 50.0], [10.0, 60.0]]))
        .with("bounds", Look::Number(2), Shape::Rules(vec![2.5, 7.5]))
        .note([5.0, 25.0], "best: 1.5ms / 6ms", Place::Near)
        .note([5.0, 25.0], "knee: 2ms / 7ms", Place::Near)
        .note([8.0, 58.0], "the tasks' utilisation", Place::Below)
        .note([10.0, 0.0], "not enough", Place::Corner);
    let points = Panel::new(
        160.0,
        Axis::log("µs", &[0.1, 1.0, 10.0, 100.0]),
        Axis::rows(["emulated", "counted", "here"]),
    )
    .titled("Points")
    .with("one CPU", Look::Number(3), Shape::Points(vec![[0.5, 0.5], [5.0, 1.5]]))
    .with("two CPUs", Look::Number(4), Shape::Points(vec![[50.0, 2.5]]))
    .note([0.1, 2.5], "a heading", Place::Right);
    let mut first = Block::new([0.1, 0.9], [0.0, 3.0]);
    first.above = "3".into();
    let second = Block::new([1.1, 1.9], [0.0, 4.0]);
    let bars = Panel::new(120.0, Axis::columns(["test 1", "test 2"]), Axis::new("", 0.0, 5.0))
        .titled("Bars")
        .with("round robin", Look::Number(1), Shape::Boxes(vec![first, second]));
    let inside = |x, words: &[&str]| Block {
        inside: words.iter().map(|words| (*words).into()).collect(),
        ..Block::new(x, [0.1, 0.9])
    };
    let slots = Panel::new(60.0, Axis::every("ms", 0.0, 24.0, 2.0), Axis::rows(["CPU 0", "CPU 1"])).with(
        "a reserve",
        Look::Pale(5),
        Shape::Boxes(vec![
            inside([0.0, 12.0], &["local0: N = 1.25ms", "N"]),
            inside([12.0, 13.0], &["local0: N = 1.25ms", "N"]),
        ]),
    );
    Figure {
        title: "Everything & more: δ = 4 < 5".into(),
        width: 760.0,
        rows: vec![vec![lines, points], vec![bars], vec![slots]],
        legend,
        legend_title: "of".into(),
    }
}

const LEGENDS: [Legend; 4] = [Legend::Above, Legend::Below, Legend::List, Legend::Right];

fn meeting(texts: &[(String, Rect)]) -> String {
    let mut meeting = String::new();
    for (at, (words, place)) in texts.iter().enumerate() {
        for (other, there) in &texts[..at] {
            if place.meets(there) {
                let _ = writeln!(meeting, "{words:?} on {other:?}");
            }
        }
    }
    meeting
}

#[test]
fn words_are_inside_and_not_on_each_other() {
    for legend in LEGENDS {
        let figure = everything(legend);
        let found = texts(&figure.svg().unwrap()).unwrap();
        assert_eq!(meeting(&found), "", "{legend:?}");
        let height = found.iter().map(|(_, place)| place.bottom).fold(0.0, f64::max);
        let sheet = Rect { left: 0.0, top: 0.0, right: figure.width, bottom: height };
        assert!(height > 400.0);
        for (words, place) in &found {
            assert!(sheet.holds(place), "{legend:?}: {words} {place:?}");
        }
        for wanted in [
            "Everything & more: δ = 4 < 5",
            "budget (ms)",
            "best: 1.5ms / 6ms",
            "local0: N = 1.25ms",
            "two CPUs",
            "3",
            "of",
        ] {
            assert!(found.iter().any(|(words, _)| words == wanted), "{legend:?}: {wanted}: {found:?}");
        }
        // One box has room for all, the other for nothing but the letter.
        assert_eq!(found.iter().filter(|(words, _)| words.starts_with("local0")).count(), 1);
    }
    // The test can fail.
    let twice = [
        ("a".into(), Rect { left: 0.0, top: 0.0, right: 9.0, bottom: 9.0 }),
        ("b".into(), Rect { left: 8.0, top: 8.0, right: 9.0, bottom: 9.0 }),
    ];
    assert_eq!(meeting(&twice), "\"b\" on \"a\"\n");
}

/// Numbers of an attribute such as `points="1,2 3,4"`.
fn numbers(tag: &str, name: &str) -> Vec<f64> {
    let text = tag.split_once(&format!(" {name}=\"")).unwrap().1.split_once('"').unwrap().0;
    text.split([' ', ',']).filter(|number| !number.is_empty()).map(|number| number.parse().unwrap()).collect()
}

/// The points of a curve, read from the picture by the places of the marks' words.
#[test]
fn a_curve_holds_what_was_computed() {
    let curve: Vec<_> =
        (0..40).map(|x| [f64::from(x) / 4.0, (f64::from(x) / 3.0).sin() * 40.0 + 50.0]).collect();
    let figure = Figure::new(
        "",
        Panel::new(300.0, Axis::new("x", 0.0, 10.0), Axis::new("y", 0.0, 100.0)).with(
            "curve",
            Look::Number(0),
            Shape::Plain(curve.clone()),
        ),
    );
    let svg = figure.svg().unwrap();
    let line = svg.lines().filter(|line| line.contains("<polyline") && numbers(line, "points").len() == 80);
    let [line] = line.collect::<Vec<_>>()[..] else { panic!("one line: {svg}") };
    let found: Vec<_> =
        numbers(line, "points").chunks(2).map(|pair| (pair[0] / 10.0, pair[1] / 10.0)).collect();
    let texts = texts(&svg).unwrap();
    let place = |words: &str| {
        let places = texts.iter().filter(|(found, _)| found == words).map(|(_, place)| place);
        // 0 is a mark of both axes; that of x is below.
        let place = places.max_by(|a, b| a.bottom.total_cmp(&b.bottom)).unwrap();
        ((place.left + place.right) / 2.0, (place.top + place.bottom) / 2.0)
    };
    let (left, right) = (place("0").0, place("10").0);
    let (bottom, top) = (place("20").1, place("80").1);
    for ([x, y], (right_of, down)) in curve.iter().zip(&found) {
        let read =
            [(right_of - left) / (right - left) * 10.0, 20.0 + (down - bottom) / (top - bottom) * 60.0];
        assert!((read[0] - x).abs() < 0.05 && (read[1] - y).abs() < 0.7, "{x} {y}: {read:?}");
    }
}

#[test]
fn bars_are_as_high_as_their_values() {
    let svg = everything(Legend::Above).svg().unwrap();
    let bars: Vec<_> =
        svg.lines().filter(|line| line.contains("<rect") && line.contains("#D55E00")).collect();
    // The key, and two bars of 3 and 4 of 5 parts of 120 pixels.
    let heights: Vec<_> = bars.iter().map(|bar| numbers(bar, "height")[0] / 10.0).collect();
    assert_eq!(heights, [12.0, 72.0, 96.0]);
}

/// Dashes of a line lie on it, and cover most of it.
#[test]
fn dashes_are_on_their_line() {
    let panel = Panel::new(100.0, Axis::new("", 0.0, 1.0), Axis::new("", 0.0, 1.0));
    let svg = Figure::new("", panel.with("", Look::Number(1), Shape::Plain(vec![[0.0, 0.5], [1.0, 0.5]])))
        .svg()
        .unwrap();
    let dashes: Vec<_> =
        svg.lines().filter(|line| line.contains("<polyline") && line.contains("#D55E00")).collect();
    let length: f64 = dashes
        .iter()
        .map(|line| numbers(line, "points"))
        .map(|points| points[points.len() - 2] - points[0])
        .sum();
    assert!(dashes.len() > 30 && dashes.len() < 70, "{}", dashes.len());
    assert!((4_000.0..6_500.0).contains(&length), "{length}");
    let y = numbers(dashes[0], "points")[1];
    assert!(dashes.iter().all(|line| numbers(line, "points").chunks(2).all(|point| point[1] == y)));
}

#[test]
fn a_png_has_letters_and_colours() {
    let bytes = everything(Legend::Right).drawn(Format::Png).unwrap();
    let mut reader = png::Decoder::new(&bytes[..]).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.color_type), (1520, png::ColorType::Rgba));
    let count = |colour: [u8; 4]| pixels.chunks(4).filter(|pixel| **pixel == colour).count();
    assert!(count([255; 4]) > pixels.len() / 8, "white");
    assert!(
        count([0, 114, 178, 255]) > 500 && count([213, 94, 0, 255]) > 500 && count([45, 45, 45, 255]) > 500
    );
    // The title's letters are the font's: rows of pixels with ink, in the first 30.
    let title = pixels[..1520 * 4 * 60].chunks(4).filter(|pixel| pixel[0] < 100).count();
    assert!(title > 1_000, "{title}");
}

#[test]
fn a_pdf_has_its_font_and_its_words() {
    let bytes = everything(Legend::Above).drawn(Format::Pdf).unwrap();
    let has = |part: &str| bytes.windows(part.len()).any(|window| window == part.as_bytes());
    assert!(bytes.starts_with(b"%PDF-") && has("/FontFile2") && has("/ToUnicode"), "a font that is embedded");
    assert!(!has("/Subtype /Image"), "nothing is made of pixels");
    // 760 pixels are 570 points.
    assert!(has("/MediaBox [0 0 570"), "{}", String::from_utf8_lossy(&bytes[..2_000]));
}

#[test]
fn an_svg_has_its_font_and_words_to_select() {
    let svg = everything(Legend::Above).svg().unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains("@font-face{font-family:\"DejaVu Sans\";src:url(data:font/ttf;base64,AAEAAA"));
    assert!(
        svg.contains(">best: 1.5ms / 6ms</text>")
            && svg.contains(">Everything &amp; more: δ = 4 &lt; 5</text>")
    );
}

/// As data it is the same figure again.
#[test]
fn as_json() {
    let figure = everything(Legend::Below);
    let text = serde_json::to_string(&figure).unwrap();
    let again: Figure = serde_json::from_str(&text).unwrap();
    assert_eq!(again.svg().unwrap(), figure.svg().unwrap());
}

/// Rule by rule: what is not drawn.
#[test]
fn refusals() {
    type Change = fn(&mut Figure);
    let panel = |figure: &mut Figure, change: fn(&mut Panel)| change(&mut figure.rows[0][1]);
    let cases: [(&str, &str, Change); 8] = [
        ("width_within_range", "bound 100 to 4000 pixels", |figure| figure.width = 1e300),
        ("rows_have_panels", "2 rows", |figure| figure.rows = vec![figure.rows[0].clone(), Vec::new()]),
        ("rows_have_panels", "3 rows", |figure| figure.rows[1] = vec![figure.rows[1][0].clone(); 5]),
        ("height_within_range", "bound 12000", |figure| {
            let mut high = figure.rows[1][0].clone();
            high.height = 4_000.0;
            figure.rows = vec![vec![high]; 4];
        }),
        ("height_within_range", "panel 1 of row 1: NaN", |figure| figure.rows[0][0].height = f64::NAN),
        ("axis_has_two_ends", "panel 1 of row 1: x from 1 to 1", |figure| {
            figure.rows[0][0].x.from = 1.0;
            figure.rows[0][0].x.to = 1.0;
        }),
        ("numbers_are_finite", "series \"a curve\"", |figure| {
            figure.rows[0][0].series[0].shape = Shape::Line(vec![[0.0, f64::INFINITY]]);
        }),
        ("numbers_are_finite", "note \"not enough\"", |figure| figure.rows[0][0].notes[3].at[0] = f64::NAN),
    ];
    let refused = |change: &dyn Fn(&mut Figure)| {
        let mut figure = everything(Legend::Above);
        change(&mut figure);
        figure.svg().unwrap_err().to_string()
    };
    for (rule, words, change) in cases {
        let said = refused(&change);
        assert!(said.starts_with(rule) && said.contains(words), "{said}");
    }
    let said = refused(&|figure| panel(figure, |panel| panel.x.from = 0.0));
    assert!(
        said.starts_with("logarithm_is_of_positive_numbers: panel 2 of row 1: x from 0 to 100"),
        "{said}"
    );
    let said = refused(&|figure| panel(figure, |panel| panel.x.ticks[0].at = 1e9));
    assert!(said.starts_with("ticks_are_on_the_axis: panel 2 of row 1"), "{said}");
    everything(Legend::Above).check().unwrap();
}

/// Nothing that is described makes it panic, and nothing is drawn outside.
#[test]
fn odd_figures() {
    let bare = Figure::new("", Panel::new(10.0, Axis::columns::<&str>([]), Axis::columns::<&str>([])));
    assert!(bare.svg().unwrap().ends_with("</svg>\n"));
    let odd = Panel::new(50.0, Axis::new("漢字 \u{0}", -1e300, 1e300), Axis::log("", &[1e-300, 1e300]))
        .titled("a title that is much longer than the figure is wide, so that it ends outside")
        .with("", Look::Number(usize::MAX), Shape::Line(vec![[0.0, -5.0], [1e301, 1e302]]))
        .with("", Look::Pale(99), Shape::Line(Vec::new()))
        .with("x".repeat(500), Look::Number(2), Shape::Points(Vec::new()))
        .with("", Look::Number(1), Shape::Boxes(vec![Block::new([5.0, -5.0], [1e9, 1e8])]))
        .with("", Look::Number(1), Shape::Area(vec![[5.0, 5.0]]))
        .note([0.0, 1.0], "n".repeat(300), Place::Near);
    for legend in LEGENDS {
        let figure = Figure::new("t".repeat(300), odd.clone()).wide(100.0).legend(legend);
        for format in [Format::Svg, Format::Pdf, Format::Png] {
            assert!(figure.drawn(format).unwrap().len() > 500);
        }
    }
}
