//! Pictures of lines and words: one description, written as SVG or as PNG. No font of the system is needed.

use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;
use ttf_parser::{Face, OutlineBuilder};
use zeno::{Command, Mask, PathBuilder, Stroke, Style, Vector};

/// Latin letters and some signs of DejaVu Sans.
const FONT: &[u8] = include_bytes!("../font/sans.ttf");

/// Pixels of a PNG per unit.
const SCALE: f32 = 2.0;

/// Red, green, blue.
pub type Colour = [u8; 3];

/// Where in a text its place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// At its begin.
    Start,
    /// In its middle.
    Middle,
    /// At its end.
    End,
}

/// A line of words.
#[derive(Clone, Debug)]
pub struct Text {
    /// The place of its anchor, on the baseline.
    pub at: (f32, f32),
    /// In units.
    pub size: f32,
    /// Where in the text that place is.
    pub anchor: Anchor,
    /// Of the letters.
    pub colour: Colour,
    /// From below to above.
    pub turned: bool,
    /// The words.
    pub words: String,
}

/// From left to right, from top to bottom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    pub left: f32,
    pub top: f32,
    pub right: f32,
    pub bottom: f32,
}

impl Rect {
    /// They have a place in common.
    pub fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    /// All of `other` is inside.
    pub fn holds(&self, other: &Self) -> bool {
        self.left <= other.left
            && other.right <= self.right
            && self.top <= other.top
            && other.bottom <= self.bottom
    }
}

/// Something to be drawn; what comes later is above.
#[derive(Clone, Debug)]
pub enum Part {
    Line { points: Vec<(f32, f32)>, width: f32, colour: Colour, dashed: bool },
    Area { points: Vec<(f32, f32)>, colour: Colour },
    Dot { at: (f32, f32), radius: f32, colour: Colour },
    Text(Text),
}

/// On white.
pub struct Picture {
    /// In units.
    pub width: f32,
    /// In units.
    pub height: f32,
    /// In the order in which they are drawn.
    pub parts: Vec<Part>,
}

impl Text {
    /// Where it is, if it is not turned.
    pub fn place(&self) -> Rect {
        let width = Letters::new().map_or(0.0, |letters| letters.width(&self.words, self.size));
        let left = self.at.0 - self.before(width);
        Rect {
            left,
            top: self.at.1 - 0.8 * self.size,
            right: left + width,
            bottom: self.at.1 + 0.25 * self.size,
        }
    }

    fn before(&self, width: f32) -> f32 {
        match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        }
    }
}

fn ends_with(path: &Path, form: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(form))
}

/// A path says in which form it is wanted.
pub fn is_known(path: &Path) -> bool {
    ends_with(path, "svg") || ends_with(path, "png")
}

impl Picture {
    /// Into a file, in the form that its name ends with.
    pub fn write(&self, path: &Path) -> Result<()> {
        let bytes = if ends_with(path, "png") { self.to_png()? } else { self.to_svg().into_bytes() };
        std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }

    pub fn to_svg(&self) -> String {
        let (width, height) = (self.width, self.height);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"DejaVu Sans, Verdana, sans-serif\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        for part in &self.parts {
            let _ = match part {
                Part::Line { points, width, colour, dashed } => writeln!(
                    svg,
                    "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\"{}/>",
                    listed(points),
                    hex(colour),
                    if *dashed { " stroke-dasharray=\"5 4\"" } else { "" }
                ),
                Part::Area { points, colour } => {
                    writeln!(svg, "<polygon points=\"{}\" fill=\"{}\"/>", listed(points), hex(colour))
                }
                Part::Dot { at, radius, colour } => writeln!(
                    svg,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\" fill=\"{}\"/>",
                    at.0,
                    at.1,
                    hex(colour)
                ),
                Part::Text(text) => {
                    let anchor = match text.anchor {
                        Anchor::Start => "start",
                        Anchor::Middle => "middle",
                        Anchor::End => "end",
                    };
                    let turn = if text.turned { " rotate(-90)" } else { "" };
                    writeln!(
                        svg,
                        "<text transform=\"translate({:.1} {:.1}){turn}\" font-size=\"{}\" text-anchor=\"{anchor}\" \
                         fill=\"{}\">{}</text>",
                        text.at.0,
                        text.at.1,
                        text.size,
                        hex(&text.colour),
                        text.words.replace('&', "&amp;").replace('<', "&lt;")
                    )
                }
            };
        }
        svg + "</svg>\n"
    }

    pub fn to_png(&self) -> Result<Vec<u8>> {
        let mut canvas = Canvas::new((self.width * SCALE) as u32, (self.height * SCALE) as u32);
        let letters = Letters::new();
        for part in &self.parts {
            match part {
                Part::Line { points, width, colour, dashed } => {
                    let dashes = [5.0 * SCALE, 4.0 * SCALE];
                    let mut stroke = Stroke::new(width * SCALE);
                    if *dashed {
                        stroke.dash(&dashes, 0.0);
                    }
                    canvas.draw(&path(points, false), stroke, *colour);
                }
                Part::Area { points, colour } => {
                    canvas.draw(&path(points, true), zeno::Fill::NonZero, *colour)
                }
                Part::Dot { at, radius, colour } => {
                    let mut circle: Vec<Command> = Vec::new();
                    circle.add_circle((at.0 * SCALE, at.1 * SCALE), radius * SCALE);
                    canvas.draw(&circle, zeno::Fill::NonZero, *colour);
                }
                Part::Text(text) => {
                    if let Some(letters) = &letters {
                        canvas.draw(&letters.outlines(text), zeno::Fill::NonZero, text.colour);
                    }
                }
            }
        }
        canvas.encode()
    }
}

fn listed(points: &[(f32, f32)]) -> String {
    points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

fn hex([red, green, blue]: &Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn path(points: &[(f32, f32)], closed: bool) -> Vec<Command> {
    let mut path: Vec<Command> = Vec::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let to = (x * SCALE, y * SCALE);
        if at == 0 {
            path.move_to(to);
        } else {
            path.line_to(to);
        }
    }
    if closed {
        path.close();
    }
    path
}

/// Pixels, three bytes each.
struct Canvas {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl Canvas {
    fn new(width: u32, height: u32) -> Self {
        Self { width, height, pixels: vec![255; width as usize * height as usize * 3] }
    }

    fn draw<'a>(&mut self, path: &[Command], style: impl Into<Style<'a>>, colour: Colour) {
        if path.is_empty() {
            return;
        }
        let (mask, place) = Mask::new(path).style(style).render();
        let width = place.width as usize;
        if width == 0 {
            return;
        }
        for (row, line) in mask.chunks(width).enumerate() {
            let y = i64::from(place.top) + row as i64;
            for (column, cover) in line.iter().enumerate().filter(|(_, cover)| **cover > 0) {
                let x = i64::from(place.left) + column as i64;
                if !(0..i64::from(self.width)).contains(&x) || !(0..i64::from(self.height)).contains(&y) {
                    continue;
                }
                let at = (y as usize * self.width as usize + x as usize) * 3;
                for (below, above) in self.pixels[at..at + 3].iter_mut().zip(colour) {
                    let (cover, under) = (u32::from(*cover), u32::from(*below));
                    *below = ((u32::from(above) * cover + under * (255 - cover) + 127) / 255) as u8;
                }
            }
        }
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header()?.write_image_data(&self.pixels)?;
        Ok(bytes)
    }
}

/// The font.
struct Letters(Face<'static>);

impl Letters {
    fn new() -> Option<Self> {
        Face::parse(FONT, 0).ok().map(Self)
    }

    /// Of letters that it has not, none is drawn.
    fn glyphs<'a>(&'a self, words: &'a str) -> impl Iterator<Item = (ttf_parser::GlyphId, f32)> + 'a {
        let glyphs = words.chars().filter_map(|letter| self.0.glyph_index(letter));
        glyphs.map(|glyph| (glyph, f32::from(self.0.glyph_hor_advance(glyph).unwrap_or(0))))
    }

    fn width(&self, words: &str, size: f32) -> f32 {
        self.glyphs(words).map(|(_, width)| width).sum::<f32>() * size / f32::from(self.0.units_per_em())
    }

    fn outlines(&self, text: &Text) -> Vec<Command> {
        let scale = text.size / f32::from(self.0.units_per_em());
        let mut pen =
            Pen { path: Vec::new(), text, scale, right: -text.before(self.width(&text.words, text.size)) };
        for (glyph, width) in self.glyphs(&text.words) {
            self.0.outline_glyph(glyph, &mut pen);
            pen.right += width * scale;
        }
        pen.path
    }
}

/// Draws the letters of a text where they belong.
struct Pen<'a> {
    path: Vec<Command>,
    text: &'a Text,
    scale: f32,
    right: f32,
}

impl Pen<'_> {
    fn at(&self, x: f32, y: f32) -> Vector {
        let (right, up) = (self.right + x * self.scale, y * self.scale);
        let (right, down) = if self.text.turned { (-up, -right) } else { (right, -up) };
        Vector::new((self.text.at.0 + right) * SCALE, (self.text.at.1 + down) * SCALE)
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let to = self.at(x, y);
        self.path.move_to(to);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        let to = self.at(x, y);
        self.path.line_to(to);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let (by, to) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(by, to);
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let (first, second, to) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.curve_to(first, second, to);
    }
    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &str, anchor: Anchor) -> Text {
        let (at, size) = ((50.0, 30.0), 12.0);
        Text { at, size, anchor, colour: [0, 0, 0], turned: false, words: words.into() }
    }

    fn decoded(picture: &Picture) -> (u32, u32, Vec<u8>) {
        let png = picture.to_png().unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        (info.width, info.height, pixels)
    }

    /// Columns and rows (in units) in which something is not white.
    fn inked(picture: &Picture) -> Rect {
        let (width, _, pixels) = decoded(picture);
        let dark = pixels.chunks(3).enumerate().filter(|(_, pixel)| pixel.iter().any(|part| *part < 128));
        let places: Vec<_> = dark.map(|(at, _)| (at as u32 % width, at as u32 / width)).collect();
        assert!(!places.is_empty());
        let most = |of: fn(&(u32, u32)) -> u32| places.iter().map(of).max().unwrap() as f32 / SCALE;
        let least = |of: fn(&(u32, u32)) -> u32| places.iter().map(of).min().unwrap() as f32 / SCALE;
        Rect { left: least(|p| p.0), top: least(|p| p.1), right: most(|p| p.0), bottom: most(|p| p.1) }
    }

    #[test]
    fn letters_are_drawn_where_they_are_placed() {
        for anchor in [Anchor::Start, Anchor::Middle, Anchor::End] {
            let text = text("1.5ms / 6ms, µ ≈ gh", anchor);
            let place = text.place();
            let picture = Picture { width: 200.0, height: 60.0, parts: vec![Part::Text(text)] };
            let inked = inked(&Picture { parts: picture.parts.clone(), ..picture });
            if anchor == Anchor::Start {
                assert!(place.holds(&inked) && (place.right - inked.right) < 3.0, "{place:?} {inked:?}");
            }
            assert!(inked.left >= place.left.max(0.0) - 0.5, "{place:?} {inked:?}");
        }
    }

    #[test]
    fn turned_words_go_up() {
        let words = Text { turned: true, ..text("budget", Anchor::Start) };
        let inked = inked(&Picture { width: 100.0, height: 100.0, parts: vec![Part::Text(words)] });
        assert!(
            inked.bottom - inked.top > 2.0 * (inked.right - inked.left) && inked.bottom <= 31.0,
            "{inked:?}"
        );
    }

    #[test]
    fn lines_areas_and_dots_have_their_colours() {
        let parts = vec![
            Part::Area {
                points: vec![(0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0)],
                colour: [10, 20, 30],
            },
            Part::Line {
                points: vec![(0.0, 15.0), (20.0, 15.0)],
                width: 4.0,
                colour: [200, 0, 0],
                dashed: false,
            },
            Part::Dot { at: (15.0, 5.0), radius: 3.0, colour: [0, 200, 0] },
        ];
        let picture = Picture { width: 20.0, height: 20.0, parts };
        let (width, height, pixels) = decoded(&picture);
        let at = |x: f32, y: f32| {
            let at = ((y * SCALE) as usize * width as usize + (x * SCALE) as usize) * 3;
            [pixels[at], pixels[at + 1], pixels[at + 2]]
        };
        assert_eq!((width, height), (40, 40));
        assert_eq!(
            [at(5.0, 5.0), at(5.0, 15.0), at(15.0, 5.0), at(18.0, 18.0)],
            [[10, 20, 30], [200, 0, 0], [0, 200, 0], [255; 3]]
        );
        let svg = picture.to_svg();
        assert!(
            svg.contains("fill=\"#0a141e\"") && svg.contains("<circle") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
    }

    #[test]
    fn nothing_outside_is_drawn_and_nothing_panics() {
        let parts = vec![
            Part::Line {
                points: vec![(-50.0, -50.0), (500.0, 500.0)],
                width: 2.0,
                colour: [0; 3],
                dashed: true,
            },
            Part::Line { points: Vec::new(), width: 2.0, colour: [0; 3], dashed: false },
            Part::Area { points: vec![(5.0, 5.0)], colour: [0; 3] },
            Part::Text(text("漢字 \u{0}", Anchor::End)),
            Part::Text(text("", Anchor::End)),
        ];
        let (width, height, _) = decoded(&Picture { width: 20.0, height: 20.0, parts });
        assert_eq!((width, height), (40, 40));
    }
}
