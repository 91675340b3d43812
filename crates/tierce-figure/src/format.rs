//! In which form a figure is written: the ending of a file's name says so.

use crate::Refusal;
use std::path::Path;

/// A form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For pages and papers.
    Svg,
    /// For papers.
    Pdf,
    /// For pages and mails.
    Png,
}

impl Format {
    /// What the name of a file ends with.
    pub fn of(path: &Path) -> Result<Self, Refusal> {
        let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
        match ending.as_ref().and_then(|ending| ending.to_str()) {
            Some("svg") => Ok(Self::Svg),
            Some("pdf") => Ok(Self::Pdf),
            Some("png") => Ok(Self::Png),
            _ => Err(Refusal {
                rule: "picture_is_svg_pdf_or_png",
                message: format!("{}, bound .svg, .pdf or .png", path.display()),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings() {
        for (name, format) in [("a.svg", Format::Svg), ("b/a.PDF", Format::Pdf), ("a.svg.Png", Format::Png)] {
            assert_eq!(Format::of(Path::new(name)).unwrap(), format);
        }
        for name in ["a.gif", "svg", "a.", "", ".png"] {
            let refusal = Format::of(Path::new(name)).unwrap_err().to_string();
            assert_eq!(refusal, format!("picture_is_svg_pdf_or_png: {name}, bound .svg, .pdf or .png"));
        }
    }
}
