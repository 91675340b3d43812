//! From the picture that plotters has drawn to files.

use super::canvas::{Canvas, Rect};
use super::layout::Layout;
use super::letters::FONT;
use super::style::{FAMILY, PNG_SCALE, UNIT};
use crate::{Figure, Format};
use anyhow::{Context, Result};
use base64::Engine;
use plotters::prelude::*;
use resvg::{tiny_skia, usvg};
use std::path::Path;
use std::sync::Arc;

impl Figure {
    /// Into a file, in the form that its name ends with.
    pub fn write(&self, path: &Path) -> Result<()> {
        let bytes = self.drawn(Format::of(path)?)?;
        std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }

    /// The bytes of a file.
    pub fn drawn(&self, format: Format) -> Result<Vec<u8>> {
        match format {
            Format::Svg => Ok(self.svg()?.into_bytes()),
            Format::Pdf => self.pdf(),
            Format::Png => self.png(),
        }
    }

    /// The text of an SVG file. The font is in it: a browser shows the same letters where it is not installed.
    pub fn svg(&self) -> Result<String> {
        let font = base64::engine::general_purpose::STANDARD.encode(FONT);
        let style = format!(
            "<style>@font-face{{font-family:\"DejaVu Sans\";src:url(data:font/ttf;base64,{font})}}</style>\n"
        );
        let (head, rest) = self.plain()?;
        Ok(format!("{head}{style}{rest}"))
    }

    /// The same without the font: the first tag, and what follows.
    fn plain(&self) -> Result<(String, String)> {
        self.check()?;
        let layout = Layout::of(self);
        let [width, height] = [self.width, layout.height].map(f64::ceil);
        let [wide, high] = [width, height].map(|pixels| pixels * UNIT);
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, (wide as u32, high as u32)).into_drawing_area();
        layout.draw(&Canvas { area: area.clone() })?;
        area.present()?;
        drop(area);
        // In plotters' whole numbers the picture is larger than it is to be shown.
        let (_, rest) = svg.split_once('\n').context("plotters writes a first line")?;
        let head = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {wide} {high}\">\n"
        );
        // Blank space around words would be selected with them. XML has no control characters.
        let mut rest = rest.replace("\n</text>", "</text>").replace("\">\n", "\">");
        rest.retain(|letter| {
            letter == '\n' || !letter.is_control() && !matches!(letter, '\u{fffe}' | '\u{ffff}')
        });
        Ok((head, rest))
    }

    fn tree(&self) -> Result<usvg::Tree> {
        let (head, rest) = self.plain()?;
        Ok(usvg::Tree::from_str(&format!("{head}{rest}"), &options())?)
    }

    fn png(&self) -> Result<Vec<u8>> {
        let tree = self.tree()?;
        let size = tree.size().to_int_size().scale_by(PNG_SCALE).context("a picture has a size")?;
        let mut pixels =
            tiny_skia::Pixmap::new(size.width(), size.height()).context("a picture has a size")?;
        resvg::render(&tree, tiny_skia::Transform::from_scale(PNG_SCALE, PNG_SCALE), &mut pixels.as_mut());
        Ok(pixels.encode_png()?)
    }

    fn pdf(&self) -> Result<Vec<u8>> {
        // A point is 4/3 pixels.
        let page = svg2pdf::PageOptions { dpi: 96.0 };
        svg2pdf::to_pdf(&self.tree()?, svg2pdf::ConversionOptions::default(), page)
            .map_err(|error| anyhow::anyhow!("the PDF: {error}"))
    }
}

/// No font of the system is looked for.
fn options() -> usvg::Options<'static> {
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    usvg::Options { fontdb: Arc::new(fonts), font_family: FAMILY.into(), ..usvg::Options::default() }
}

/// What an SVG text says, and where it is seen, in pixels; words that are turned, too.
pub fn texts(svg: &str) -> Result<Vec<(String, Rect)>> {
    fn of(group: &usvg::Group, found: &mut Vec<(String, Rect)>) {
        for node in group.children() {
            match node {
                usvg::Node::Group(group) => of(group, found),
                usvg::Node::Text(text) => {
                    let place = text.abs_bounding_box();
                    let words = text.chunks().iter().map(|chunk| chunk.text()).collect();
                    let [left, top, right, bottom] =
                        [place.left(), place.top(), place.right(), place.bottom()].map(f64::from);
                    found.push((words, Rect { left, top, right, bottom }));
                }
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    of(usvg::Tree::from_str(svg, &options())?.root(), &mut found);
    Ok(found)
}
