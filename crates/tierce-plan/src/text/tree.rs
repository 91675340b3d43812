//! A text of TOML, a plan's or another, as a tree whose every part knows its place, and reading of tables that reports every fault.

use crate::text::faults::Fault;
use crate::text::source::Spot;
use crate::text::units::{parse_time, show_time, TimeError};

/// A key or value of the text.
#[derive(Clone, Debug)]
pub struct Value {
    /// Where it stands.
    pub spot: Spot,
    /// What it is.
    pub kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A text in quotes.
    Text(String),
    /// As written, base 10; `None` when it does not fit.
    Whole(Option<i64>),
    /// A number with a point or an exponent, as written.
    Float(String),
    /// True or false.
    Bool(bool),
    /// A date or a time of day: nothing has one.
    Date,
    /// In their order.
    List(Vec<Value>),
    /// Keys and values.
    Table(Table),
}

impl Kind {
    /// In words, for messages.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Whole(_) => "a whole number",
            Self::Float(_) => "a decimal number without quotes",
            Self::Bool(_) => "true or false",
            Self::Date => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// A table, in the order of the text.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Each key once.
    pub entries: Vec<(Key, Value)>,
}

impl Table {
    /// Where a key of that name stands first, in that part of the text, at any depth.
    fn first_key(&self, name: &str, within: std::ops::Range<u32>) -> Option<Spot> {
        let inner = |(key, value): &(Key, Value)| match &value.kind {
            _ if key.text == name && within.contains(&key.spot.start) => Some(key.spot),
            Kind::Table(table) => table.first_key(name, within.clone()),
            _ => None,
        };
        self.entries.iter().find_map(inner)
    }
}

/// A key of a table.
#[derive(Clone, Debug)]
pub struct Key {
    /// As written, without quotes.
    pub text: String,
    /// Where it stands.
    pub spot: Spot,
}

/// What a time with a unit of another language was meant to be.
fn meant_time(text: &str) -> Option<String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = (&text[..digits], text[digits..].trim());
    let unit = match unit.to_lowercase().as_str() {
        "nsec" | "nanosecond" | "nanoseconds" => "ns",
        "usec" | "microsecond" | "microseconds" => "us",
        "msec" | "milli" | "millis" | "millisecond" | "milliseconds" => "ms",
        "sec" | "secs" | "second" | "seconds" => "s",
        "m" | "mins" | "minute" | "minutes" => "min",
        "%" => return Some("a time, such as \"2ms\": it is not given as a part of the period".into()),
        _ => return None,
    };
    Some(format!("write \"{number}{unit}\"; units: ns, us, ms, s, min"))
}

/// Parse TOML. A tree is returned only when there is no syntax error.
pub fn parse(text: &str, source: u32) -> Result<Table, Vec<Fault>> {
    if u32::try_from(text.len()).is_err() {
        let message = "a plan's text is less than 4 GiB";
        return Err(vec![Fault::new("text_must_fit", Spot { source, start: 0, len: 0 }, message)]);
    }
    let spot = |span: std::ops::Range<usize>| Spot {
        source,
        start: span.start as u32,
        len: span.end.saturating_sub(span.start) as u32,
    };
    let (tree, errors) = toml::de::DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(table(tree.get_ref(), &spot));
    }
    let recovered = table(tree.get_ref(), &spot);
    let mut faults = Vec::new();
    let headers = headers(text);
    let mut again = None; // the last header that is there twice
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        if error.message() != "duplicate key" {
            faults.push(Fault::new("toml_syntax", spot(span), error.message().replace('\n', ", ")));
            continue;
        }
        let above = headers.partition_point(|header| header.start <= span.start);
        let header = above.checked_sub(1).map(|at| headers[at].clone());
        let in_header = header.as_ref().is_some_and(|header| header.contains(&span.start));
        let (what, first) = match header {
            // Of a table that is there twice its keys are, too.
            Some(header) if !in_header && again == Some(header.start) => continue,
            Some(header) if in_header => {
                again = Some(header.start);
                let same = |other: &&std::ops::Range<usize>| text[(*other).clone()] == text[header.clone()];
                let first = headers.iter().find(same).filter(|first| first.start < header.start);
                (text[header.clone()].to_string(), first.map(|first| spot(first.clone())))
            }
            header => {
                let key = text.get(span.clone()).unwrap_or_default();
                let begin = header.map_or(0, |header| header.end as u32);
                (key.to_string(), recovered.first_key(key, begin..span.start as u32))
            }
        };
        let is_edge = text.get(..span.start).is_some_and(|before| before.ends_with("under."));
        let fault = Fault::new("redefined", spot(span), format!("`{what}` is given twice"));
        let fault = match is_edge {
            true => fault
                .hint(format!("several edges to one parent are a list: under.{what} = [{{ … }}, {{ … }}]")),
            false => fault,
        };
        faults.push(match first {
            Some(first) => fault.other(first, "first here"),
            None => fault,
        });
    }
    Err(faults)
}

/// Lines that begin with `[`.
fn headers(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut at = 0;
    let mut headers = Vec::new();
    for line in text.split_inclusive('\n') {
        let start = at + line.len() - line.trim_start().len();
        at += line.len();
        if line.trim_start().starts_with('[') {
            headers.push(start..start + line.trim().len());
        }
    }
    headers
}

fn table(from: &toml::de::DeTable, spot: &impl Fn(std::ops::Range<usize>) -> Spot) -> Table {
    let mut entries: Vec<_> = from
        .iter()
        .map(|(key, value)| {
            let key = Key { text: key.get_ref().to_string(), spot: spot(key.span()) };
            (key, self::value(value.get_ref(), spot(value.span()), spot))
        })
        .collect();
    entries.sort_by_key(|(key, _)| key.spot);
    Table { entries }
}

fn value(from: &toml::de::DeValue, at: Spot, spot: &impl Fn(std::ops::Range<usize>) -> Spot) -> Value {
    use toml::de::DeValue;
    let kind = match from {
        DeValue::String(text) => Kind::Text(text.to_string()),
        DeValue::Integer(number) => Kind::Whole(i64::from_str_radix(number.as_str(), number.radix()).ok()),
        DeValue::Float(number) => Kind::Float(number.as_str().to_string()),
        DeValue::Boolean(yes) => Kind::Bool(*yes),
        DeValue::Datetime(_) => Kind::Date,
        DeValue::Array(list) => {
            Kind::List(list.iter().map(|item| value(item.get_ref(), spot(item.span()), spot)).collect())
        }
        DeValue::Table(entries) => Kind::Table(table(entries, spot)),
    };
    Value { spot: at, kind }
}

/// A whole number of a text; `None` does not fit.
pub fn show_whole(number: Option<i64>) -> String {
    number.map_or("beyond 64 bits".into(), |number| number.to_string())
}

/// A value of another kind than wanted.
pub fn wrong_kind(what: &str, value: &Value, wanted: &str) -> Fault {
    let fault = Fault::new("value_must_be_of_its_kind", value.spot, format!("{what} must be {wanted}"));
    match &value.kind {
        Kind::Text(text) => fault.value(format!("\"{text}\"")),
        other => fault.value(other.describe()),
    }
}

/// Names that keys have elsewhere (SCHED_DEADLINE, cgroups, papers) or had in earlier versions, and those that they have here. Their values mean
/// the same: `tierce upgrade-plan` replaces them.
const SYNONYMS: [(&str, &str); 28] = [
    ("runtime", "budget"),
    ("runtime", "work"),
    ("sched_runtime", "budget"),
    ("dl_runtime", "budget"),
    ("quota", "budget"),
    ("capacity", "budget"),
    ("sched_period", "period"),
    ("dl_period", "period"),
    ("interval", "period"),
    ("sched_deadline", "deadline"),
    ("dl_deadline", "deadline"),
    ("sched_priority", "priority"),
    ("rt_priority", "priority"),
    ("shares", "weight"),
    ("cpu_shares", "weight"),
    ("slice", "quantum"),
    ("timeslice", "quantum"),
    ("wcet", "work"),
    ("c", "work"),
    ("execution", "work"),
    ("exec", "work"),
    ("mit", "separation"),
    ("inter_arrival", "separation"),
    ("offset", "phase"),
    ("name", "comm"),
    ("cmd", "comm"),
    ("command", "comm"),
    ("process", "pcomm"),
];
/// The same of keys whose values mean something else here.
const RELATED: [(&str, &str); 5] = [
    ("prio", "priority"),
    ("nice", "weight"),
    ("cpuset", "affinity"),
    ("parent", "under"),
    ("parents", "under"),
];

/// All faults found so far.
#[derive(Clone, Default)]
pub struct Collector {
    /// In the order in which they were found.
    pub faults: Vec<Fault>,
}

impl Collector {
    /// One more.
    pub fn add(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    fn wrong_kind(&mut self, what: &str, value: &Value, wanted: &str) {
        self.add(wrong_kind(what, value, wanted));
    }

    /// A time with its unit, in ns.
    pub fn time(&mut self, what: &str, value: &Value) -> Option<u64> {
        let example =
            |number: &str| format!("write it with its unit: \"{number}us\", \"{number}ms\" or \"{number}s\"");
        match &value.kind {
            Kind::Text(text) => match parse_time(text) {
                Ok(ns) => return Some(ns),
                Err(error) => {
                    let mut fault =
                        Fault::new(error.rule(), value.spot, format!("{what}: {}", error.message()));
                    fault = match error {
                        TimeError::NoUnit => fault.value(text).hint(example(text.trim())),
                        TimeError::TooLong => {
                            fault.value(text).bound(show_time(tierce_guarantee::TIME_MAX_NS))
                        }
                        TimeError::FinerThanNs => fault.value(text).bound("1ns"),
                        _ => fault.value(format!("\"{text}\"")).hint(
                            meant_time(text)
                                .unwrap_or("for example \"10ms\"; units: ns, us, ms, s, min".into()),
                        ),
                    };
                    self.add(fault);
                }
            },
            Kind::Whole(number) => {
                let number = number.map_or("10".into(), |number| number.to_string());
                let message = format!("{what}: {}", TimeError::NoUnit.message());
                self.add(
                    Fault::new(TimeError::NoUnit.rule(), value.spot, message)
                        .value(&number)
                        .hint(example(&number)),
                );
            }
            Kind::Float(number) => {
                let message = format!("{what}: {}", TimeError::NoUnit.message());
                self.add(
                    Fault::new(TimeError::NoUnit.rule(), value.spot, message)
                        .value(number)
                        .hint(example(number)),
                );
            }
            _ => self.wrong_kind(what, value, "a time such as \"10ms\""),
        }
        None
    }

    /// A time above 0.
    pub fn duration(&mut self, what: &str, value: &Value) -> Option<u64> {
        let ns = self.time(what, value)?;
        if ns == 0 {
            self.add(Fault::new("time_must_not_be_zero", value.spot, format!("{what} must not be zero")));
            return None;
        }
        Some(ns)
    }

    /// A whole number from `least` to `most`.
    pub fn whole(&mut self, what: &str, value: &Value, least: i64, most: i64) -> Option<i64> {
        match &value.kind {
            Kind::Whole(Some(number)) if (least..=most).contains(number) => return Some(*number),
            Kind::Whole(number) => self.add(
                Fault::new("number_within_range", value.spot, format!("{what} is out of range"))
                    .value(show_whole(*number))
                    .bound(format!("{least} to {most}")),
            ),
            Kind::Float(number) => {
                self.add(
                    Fault::new("float_not_allowed", value.spot, format!("{what} must be a whole number"))
                        .value(number)
                        .bound(format!("{least} to {most}")),
                );
            }
            _ => {
                let fault = wrong_kind(what, value, "a whole number");
                self.add(fault.bound(format!("{least} to {most}")));
            }
        }
        None
    }

    /// True or false.
    pub fn bool(&mut self, what: &str, value: &Value) -> Option<bool> {
        match value.kind {
            Kind::Bool(yes) => return Some(yes),
            _ => self.wrong_kind(what, value, "true or false"),
        }
        None
    }

    /// A text in quotes.
    pub fn text<'v>(&mut self, what: &str, value: &'v Value) -> Option<&'v str> {
        match &value.kind {
            Kind::Text(text) => return Some(text),
            _ => self.wrong_kind(what, value, "a text in quotes"),
        }
        None
    }

    /// A table.
    pub fn table<'v>(&mut self, what: &str, value: &'v Value) -> Option<&'v Table> {
        self.table_or(what, value, |_| None)
    }

    /// The same, with a hint for who wrote a text instead.
    pub fn table_or<'v>(
        &mut self,
        what: &str,
        value: &'v Value,
        hint: impl FnOnce(&str) -> Option<String>,
    ) -> Option<&'v Table> {
        let fault = || wrong_kind(what, value, "a table: { … }");
        let fault = match &value.kind {
            Kind::Table(table) => return Some(table),
            Kind::Text(text) => hint(text).map_or_else(fault, |hint| fault().hint(hint)),
            _ => fault(),
        };
        self.add(fault);
        None
    }

    /// A list.
    pub fn list<'v>(&mut self, what: &str, value: &'v Value) -> Option<&'v [Value]> {
        match &value.kind {
            Kind::List(list) => return Some(list),
            _ => self.wrong_kind(what, value, "a list: [ … ]"),
        }
        None
    }

    /// A value or a list of them.
    pub fn one_or_more<'v>(&mut self, value: &'v Value) -> &'v [Value] {
        match &value.kind {
            Kind::List(list) => list,
            _ => std::slice::from_ref(value),
        }
    }
}

/// A table being read: remembers which keys there could have been, and names them when it meets another.
pub struct Fields<'v> {
    what: String,
    entries: Vec<Option<&'v (Key, Value)>>,
    known: Vec<&'static str>,
    given: Vec<&'static str>,
}

impl<'v> Fields<'v> {
    /// `what` as it appears in messages: "task `audio`".
    pub fn new(what: impl Into<String>, table: &'v Table) -> Self {
        Self {
            what: what.into(),
            entries: table.entries.iter().map(Some).collect(),
            known: Vec::new(),
            given: Vec::new(),
        }
    }

    /// A key of that name, with its value, if it is there.
    pub fn key(&mut self, name: &'static str) -> Option<&'v (Key, Value)> {
        self.known.push(name);
        let at = self.entries.iter().position(|entry| entry.is_some_and(|(key, _)| key.text == name))?;
        self.given.push(name);
        self.entries[at].take()
    }

    /// The value of the key of that name, if it is there.
    pub fn take(&mut self, name: &'static str) -> Option<&'v Value> {
        self.key(name).map(|(_, value)| value)
    }

    /// A key of it as it appears in messages.
    pub fn what(&self, name: &str) -> String {
        format!("`{name}` of {}", self.what)
    }

    /// [`Collector::time`] of a key.
    pub fn time(&mut self, name: &'static str, collector: &mut Collector) -> Option<u64> {
        let value = self.take(name)?;
        collector.time(&self.what(name), value)
    }

    /// [`Collector::duration`] of a key.
    pub fn duration(&mut self, name: &'static str, collector: &mut Collector) -> Option<u64> {
        let value = self.take(name)?;
        collector.duration(&self.what(name), value)
    }

    /// [`Collector::whole`] of a key.
    pub fn whole(
        &mut self,
        name: &'static str,
        least: i64,
        most: i64,
        collector: &mut Collector,
    ) -> Option<i64> {
        let value = self.take(name)?;
        collector.whole(&self.what(name), value, least, most)
    }

    /// [`Collector::bool`] of a key.
    pub fn bool(&mut self, name: &'static str, collector: &mut Collector) -> Option<bool> {
        let value = self.take(name)?;
        collector.bool(&self.what(name), value)
    }

    /// [`Collector::text`] of a key.
    pub fn text(&mut self, name: &'static str, collector: &mut Collector) -> Option<&'v str> {
        let value = self.take(name)?;
        collector.text(&self.what(name), value)
    }

    /// Whether a key that nobody took yet was meant to be that one: it is reported at the end.
    pub fn is_misspelt(&self, name: &'static str) -> bool {
        self.entries.iter().flatten().any(|(key, _)| meant(&key.text, &[name]).is_some())
    }

    /// Whatever is left has no meaning here.
    pub fn finish(self, collector: &mut Collector) {
        self.finish_with(collector, |_| None);
    }

    /// The same; `elsewhere`: what is said of a key that has a meaning elsewhere.
    pub fn finish_with(mut self, collector: &mut Collector, elsewhere: impl Fn(&str) -> Option<String>) {
        for (key, _) in self.entries.into_iter().flatten() {
            let has = format!("it has {}", listed(&self.known));
            let meant = meant(&key.text, &self.known);
            let fix = match meant {
                Some((Meant::Synonym, name)) if !self.given.contains(&name) => Some(name),
                _ => None,
            };
            self.given.extend(fix);
            let hint = match (meant, elsewhere(&key.text)) {
                (Some((Meant::Related, "under")), _) => "write under.PARENT = { … }".into(),
                (Some((Meant::Synonym | Meant::Related, name)), _) => {
                    format!("here it is called `{name}`; {has}")
                }
                (_, Some(elsewhere)) => elsewhere,
                (Some((Meant::Misspelt, name)), None) => format!("did you mean `{name}`? {has}"),
                (None, None) => has,
            };
            let message = format!("{} has no key `{}`", self.what, key.text);
            let fault = Fault::new("key_must_exist", key.spot, message).hint(hint);
            collector.add(fault.fix(fix.map(String::from)));
        }
    }
}

/// `` `a`, `b`, `c` ``.
pub fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    quoted.join(", ")
}

/// How a key was meant to be another one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meant {
    Synonym,
    Related,
    Misspelt,
}

/// Which of the known keys was meant.
fn meant<'n>(key: &str, known: &[&'n str]) -> Option<(Meant, &'n str)> {
    let lower = key.to_lowercase();
    let one_of = |names: &[(&str, &str)], how| {
        known.iter().find(|name| names.contains(&(lower.as_str(), name))).map(|name| (how, *name))
    };
    let misspelt = || closest(key, known.iter().copied()).map(|name| (Meant::Misspelt, name));
    one_of(&SYNONYMS, Meant::Synonym).or_else(|| one_of(&RELATED, Meant::Related)).or_else(misspelt)
}

/// The name nearest to `text`, if it is near enough to have been meant.
pub fn closest<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let allowed = (text.chars().count() / 3).clamp(1, 3);
    names.map(|name| (distance(text, name), name)).filter(|(d, _)| *d <= allowed).min().map(|(_, name)| name)
}

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replace.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        let names = ["period", "budget", "deadline"];
        for (text, near) in [
            ("peroid", Some("period")),
            ("buget", Some("budget")),
            ("weight", None),
            ("dedline", Some("deadline")),
        ] {
            assert_eq!(closest(text, names.into_iter()), near, "{text}");
        }
    }
}
