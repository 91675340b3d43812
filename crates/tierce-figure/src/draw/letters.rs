//! The font: how wide words are, and where they have to be broken.

use std::sync::OnceLock;
use ttf_parser::Face;

/// Latin and Greek letters, digits and signs of DejaVu Sans.
pub const FONT: &[u8] = include_bytes!("../../font/sans.ttf");

struct Letters(Face<'static>);

impl Letters {
    fn of_figures() -> &'static Self {
        static LETTERS: OnceLock<Letters> = OnceLock::new();
        LETTERS.get_or_init(|| Self(Face::parse(FONT, 0).expect("the font is part of the program")))
    }

    /// A letter that the font has not is as wide as its sign for that.
    fn width(&self, words: &str, size: f64) -> f64 {
        let glyphs = words.chars().map(|letter| self.0.glyph_index(letter).unwrap_or_default());
        let units: f64 = glyphs.map(|glyph| f64::from(self.0.glyph_hor_advance(glyph).unwrap_or(0))).sum();
        units * size / f64::from(self.0.units_per_em())
    }
}

/// As wide as these words, which are of that size.
pub fn width(words: &str, size: f64) -> f64 {
    Letters::of_figures().width(words, size)
}

/// Lines of at most that width; one word alone may be longer.
pub fn wrapped(words: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_inclusive(' ') {
        match lines.last_mut() {
            Some(line) if width(&format!("{line}{}", word.trim_end()), size) <= most => line.push_str(word),
            _ => lines.push(word.into()),
        }
    }
    lines.iter().map(|line| line.trim_end().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_wide_as_there_is_room() {
        let words = "Share of random task sets that are accepted: 4 CPUs";
        let lines = wrapped(words, 12.0, 120.0);
        assert!(lines.len() > 2 && lines.iter().all(|line| width(line, 12.0) <= 120.0), "{lines:?}");
        assert_eq!(lines.join(" "), words);
        assert_eq!(wrapped(words, 12.0, 1e9), [words]);
        assert_eq!(wrapped("word", 12.0, 1.0), ["word"]);
        assert!(wrapped("", 12.0, 100.0).is_empty());
        assert!(width("δ ≤ µ 漢\u{0}", 12.0) > 0.0);
    }
}
