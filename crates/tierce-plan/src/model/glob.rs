//! Globs for names and paths.

/// A pattern over whole texts: `*` is any characters but `/`, `**` any characters, `?` one character but `/`, `[a-c]`
/// one of a range or list, `[!a-c]` one that is not in it, `\` takes the next character as it is.
///
/// ```
/// use tierce_plan::Glob;
/// let builds = Glob::new("user.slice/**/build*").unwrap();
/// assert!(builds.matches("user.slice/user-1000.slice/app/build-7"));
/// assert!(!builds.matches("user.slice/build/x"));
/// assert!(Glob::new("[a-").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    One(char),
    Any,
    Class { not: bool, ranges: Vec<(char, char)> },
    Star,
    StarStar,
}

impl Glob {
    /// Compile a pattern; the error says what is wrong with it.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        let mut parts = Vec::new();
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            parts.push(match c {
                '?' => Part::Any,
                '\\' => Part::One(rest.next().ok_or("nothing after the last `\\`")?),
                '[' => class(&mut rest)?,
                '*' if rest.peek() == Some(&'*') => {
                    while rest.next_if_eq(&'*').is_some() {}
                    Part::StarStar
                }
                '*' => Part::Star,
                c => Part::One(c),
            });
        }
        Ok(Self { text: text.into(), parts })
    }

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it fits all that the other one fits, as far as that is plain to see.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let plain = |part: &Part| matches!(part, Part::One(_));
        if other.parts.iter().all(plain) {
            let text: String =
                other.parts.iter().map(|part| if let Part::One(c) = part { *c } else { '?' }).collect();
            return self.matches(&text);
        }
        let within =
            |part: &Part| matches!(part, Part::Any | Part::Star) || matches!(part, Part::One(c) if *c != '/');
        match self.parts.as_slice() {
            [Part::StarStar] => true,
            [Part::Star] => other.parts.iter().all(within),
            own => own == other.parts,
        }
    }

    /// Whether some text may fit both. Of two lists or ranges of characters it is said without a look at them.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        // Most differ soon.
        let is_one = |(one, two): &(&Part, &Part)| matches!((one, two), (Part::One(_), Part::One(_)));
        let begins = || self.parts.iter().zip(&other.parts).take_while(is_one);
        if begins().any(|(one, two)| one != two) {
            return false;
        }
        let same = begins().count();
        let (own, its) = (&self.parts[same..], &other.parts[same..]);
        let width = its.len() + 1;
        let mut seen = vec![false; (own.len() + 1) * width];
        let mut left = vec![(0, 0)];
        while let Some((i, j)) = left.pop() {
            if std::mem::replace(&mut seen[i * width + j], true) {
                continue;
            }
            let (one, two) = (own.get(i), its.get(j));
            if one.is_none() && two.is_none() {
                return true;
            }
            // A star may also stand for nothing.
            left.extend(one.filter(|part| part.is_star()).map(|_| (i + 1, j)));
            left.extend(two.filter(|part| part.is_star()).map(|_| (i, j + 1)));
            if let (Some(one), Some(two)) = (one, two) {
                let after = |part: &Part, at| if part.is_star() { at } else { at + 1 };
                left.extend(one.meets(two).then(|| (after(one, i), after(two, j))));
            }
        }
        false
    }

    /// Whether the whole of `text` fits. Time is at most pattern times text.
    pub fn matches(&self, text: &str) -> bool {
        // The set of positions in the pattern that the text read so far can have led to.
        let mut at = vec![false; self.parts.len() + 1];
        at[0] = true;
        self.skip_stars(&mut at);
        for c in text.chars() {
            let mut next = vec![false; at.len()];
            for (i, part) in self.parts.iter().enumerate().filter(|(i, _)| at[*i]) {
                next[if part.is_star() { i } else { i + 1 }] |= part.takes(c);
            }
            self.skip_stars(&mut next);
            at = next;
        }
        at[self.parts.len()]
    }

    /// A star may also stand for nothing.
    fn skip_stars(&self, at: &mut [bool]) {
        for (i, part) in self.parts.iter().enumerate() {
            if part.is_star() {
                at[i + 1] |= at[i];
            }
        }
    }
}

impl Part {
    fn is_star(&self) -> bool {
        matches!(self, Part::Star | Part::StarStar)
    }

    /// Whether it may stand for this character, or a star for one more.
    fn takes(&self, c: char) -> bool {
        match self {
            Part::StarStar => true,
            Part::Star | Part::Any => c != '/',
            Part::One(one) => *one == c,
            Part::Class { not, ranges } => {
                c != '/' && ranges.iter().any(|range| range.0 <= c && c <= range.1) != *not
            }
        }
    }

    /// Whether some character may be one of both.
    fn meets(&self, other: &Part) -> bool {
        match (self, other) {
            (Part::One(c), part) | (part, Part::One(c)) => part.takes(*c),
            _ => true,
        }
    }
}

/// What is between `[` and `]`.
fn class(rest: &mut std::iter::Peekable<std::str::Chars>) -> Result<Part, &'static str> {
    const OPEN: &str = "a `[` without its `]`";
    let not = rest.next_if_eq(&'!').is_some();
    let mut ranges = Vec::new();
    loop {
        let first = rest.next().ok_or(OPEN)?;
        if first == ']' && !ranges.is_empty() {
            return Ok(Part::Class { not, ranges });
        }
        let mut last = first;
        if rest.next_if_eq(&'-').is_some() {
            if rest.peek() == Some(&']') {
                ranges.push(('-', '-')); // a `-` before the `]` is itself
            } else {
                last = rest.next().ok_or(OPEN)?;
            }
        }
        if last < first {
            return Err("a range in `[ ]` that runs backwards");
        }
        ranges.push((first, last));
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn globs_match_whole_texts() {
        for (pattern, text, fits) in [
            ("audio", "audio", true),
            ("audio", "audio1", false),
            ("stress-ng*", "stress-ng-cpu", true),
            ("*", "", true),
            ("*", "a/b", false),
            ("**", "a/b", true),
            ("a/**/b", "a/x/y/b", true),
            ("a/**/b", "a/b", false),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]a]", "]", true),
            ("[a-]", "-", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("", "", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
        ] {
            assert_eq!(Glob::new(pattern).unwrap().matches(text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn what_some_text_fits_both_of() {
        for (one, other, meet) in [
            ("cron.service", "cron.service", true),
            ("cron.service", "crond.service", false),
            ("cron*", "*.service", true),
            ("*.scope", "*.service", false),
            ("sshd@*.service", "*@7.service", true),
            ("sshd@*.service", "ssh?.service", false),
            ("a/**", "a/b/c", true),
            ("a/*", "a/b/c", false),
            ("a/**", "*/c", true),
            ("**b", "a/*", true),
            ("[ab]x", "[b-d]?", true),
            ("[ab]x", "c*", false),
            ("[!c]x", "c*", false),
            ("?", "/", false),
            ("?", "", false),
            ("**", "", true),
            ("*a*b*", "b*a", true),
        ] {
            let glob = |text| Glob::new(text).unwrap();
            assert_eq!(glob(one).meets(&glob(other)), meet, "{one} {other}");
            assert_eq!(glob(other).meets(&glob(one)), meet, "{other} {one}");
        }
    }

    #[test]
    fn bad_globs_are_refused() {
        for pattern in ["[", "[a", "[]", "[b-a]", "x\\", "[a-"] {
            assert!(Glob::new(pattern).is_err(), "{pattern}");
        }
    }
}
