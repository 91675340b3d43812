//! What is wrong with a plan: every fault with its place, the rule it broke, value and bound, and a hint.

use crate::text::source::{Place, Source, Sources, Spot};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The rule it breaks, in snake_case; a stable name (docs/plan-language.md lists all).
    pub rule: &'static str,
    /// What is wrong, in one sentence without its place.
    pub message: String,
    /// Where.
    pub spot: Spot,
    /// The value that broke the rule.
    pub value: Option<String>,
    /// The bound it broke.
    pub bound: Option<String>,
    /// What would help.
    pub hint: Option<String>,
    /// What to write at `spot` instead, where that means the same.
    pub fix: Option<String>,
    /// Another place that matters, and why.
    pub other: Option<(Spot, String)>,
}

impl Fault {
    /// A fault without value, bound and hint.
    pub fn new(rule: &'static str, spot: Spot, message: impl Into<String>) -> Self {
        Self {
            rule,
            message: message.into(),
            spot,
            value: None,
            bound: None,
            hint: None,
            fix: None,
            other: None,
        }
    }

    /// With the value that broke the rule.
    pub fn value(mut self, value: impl ToString) -> Self {
        self.value = Some(value.to_string());
        self
    }

    /// With the bound it broke.
    pub fn bound(mut self, bound: impl ToString) -> Self {
        self.bound = Some(bound.to_string());
        self
    }

    /// With what would help.
    pub fn hint(mut self, hint: impl ToString) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// With what to write instead, where that means the same.
    pub fn fix(mut self, fix: Option<String>) -> Self {
        self.fix = fix;
        self
    }

    /// With another place that matters.
    pub fn other(mut self, spot: Spot, why: impl Into<String>) -> Self {
        self.other = Some((spot, why.into()));
        self
    }
}

/// All faults of a plan, in the order of the text. Never empty when it is an error.
///
/// `Display` writes one line per fault, for machines: `file:line:column: rule: message: V, bound B (hint: H); file:line:column: what else matters`;
/// [`Faults::report`] is for people, [`Faults::to_json`] for tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    /// In the order of the text.
    pub faults: Vec<Fault>,
    /// The texts they point into.
    pub sources: Sources,
}

impl Faults {
    /// `faults`, sorted by place, each once.
    pub fn new(mut faults: Vec<Fault>, sources: Sources) -> Self {
        faults.sort_by_key(|fault| fault.spot);
        faults.dedup();
        Self { faults, sources }
    }

    /// The fault as one line.
    pub fn line(&self, fault: &Fault) -> String {
        let mut line = format!("{}: {}: {}", self.sources.place(fault.spot), fault.rule, fault.message);
        match (&fault.value, &fault.bound) {
            (Some(value), Some(bound)) => line += &format!(": {value}, bound {bound}"),
            (Some(value), None) => line += &format!(": {value}"),
            (None, Some(bound)) => line += &format!(": bound {bound}"),
            (None, None) => {}
        }
        if let Some(hint) = &fault.hint {
            line += &format!(" (hint: {hint})");
        }
        if let Some((spot, why)) = &fault.other {
            line += &format!("; {}: {why}", self.sources.place(*spot));
        }
        line.replace('\n', " ")
    }

    /// For people: every fault with the lines it is about.
    pub fn report(&self) -> String {
        self.report_with(&miette::GraphicalReportHandler::new().with_width(110))
    }

    /// The same without colours and box characters.
    pub fn report_plain(&self) -> String {
        self.report_with(
            &miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::none()).with_width(110),
        )
    }

    fn report_with(&self, handler: &miette::GraphicalReportHandler) -> String {
        let mut text = String::new();
        for fault in &self.faults {
            let shows = self.can_be_shown(fault.spot)
                && fault.other.as_ref().is_none_or(|(other, _)| self.can_be_shown(*other));
            // Rendering into a String cannot fail; should it ever, the one-line form is still true.
            if !shows || handler.render_report(&mut text, &Report::new(self, fault)).is_err() {
                text += &self.line(fault);
            }
            text.push('\n');
        }
        text
    }

    /// A spot far to the right is not drawn: nobody reads it, and drawing pads with 65,535 characters at most.
    fn can_be_shown(&self, spot: Spot) -> bool {
        const COLUMN_MAX: usize = 1_000;
        let end = Spot { start: spot.start.saturating_add(spot.len), len: 0, ..spot };
        [spot, end].into_iter().all(|spot| self.sources.place(spot).column <= COLUMN_MAX)
    }

    /// For tools: an array of faults.
    pub fn to_json(&self) -> serde_json::Value {
        #[derive(Serialize)]
        struct Json<'a> {
            rule: &'a str,
            file: String,
            line: usize,
            column: usize,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            value: &'a Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            bound: &'a Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            hint: &'a Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            fix: &'a Option<String>,
        }
        let one = |fault: &Fault| {
            let Place { file, line, column } = self.sources.place(fault.spot);
            let Fault { rule, message, value, bound, hint, fix, .. } = fault;
            serde_json::to_value(Json { rule, file, line, column, message, value, bound, hint, fix })
                .unwrap_or_default()
        };
        self.faults.iter().map(one).collect()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.faults.iter().enumerate() {
            let end = if i == 0 { "" } else { "\n" };
            write!(f, "{end}{}", self.line(fault))?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// One fault as miette wants it.
#[derive(Debug)]
struct Report {
    message: String,
    rule: &'static str,
    help: Option<String>,
    source: Arc<Source>,
    labels: Vec<miette::LabeledSpan>,
}

impl Report {
    fn new(faults: &Faults, fault: &Fault) -> Self {
        let source = faults.sources.0.get(fault.spot.source as usize).cloned();
        let source = source.unwrap_or_else(|| Arc::new(Source::new("?", "")));
        let text = &source.text;
        let span = |spot: Spot| {
            let start = (spot.start as usize).min(text.len());
            (start, (spot.len as usize).min(text.len() - start))
        };
        let label = match (&fault.value, &fault.bound) {
            (Some(value), Some(bound)) => format!("{value}, bound: {bound}"),
            (Some(value), None) => value.clone(),
            (None, Some(bound)) => format!("bound: {bound}"),
            (None, None) => "here".into(),
        };
        let mut labels = vec![miette::LabeledSpan::new_primary_with_span(Some(label), span(fault.spot))];
        let mut help = fault.hint.clone();
        if let Some((spot, why)) = &fault.other {
            if spot.source == fault.spot.source {
                labels.push(miette::LabeledSpan::new_with_span(Some(why.clone()), span(*spot)));
            } else {
                let why = format!("{why}: {}", faults.sources.place(*spot));
                help = Some(help.map_or(why.clone(), |hint| format!("{hint}\n{why}")));
            }
        }
        Self { message: fault.message.clone(), rule: fault.rule, help, source, labels }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Report {}

impl miette::Diagnostic for Report {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.rule))
    }
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as _)
    }
    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(&*self.source)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}
