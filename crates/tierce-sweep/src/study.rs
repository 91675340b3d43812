//! What a study is.

use crate::decimal::Decimal;
use std::sync::Arc;
use tierce_analysis::generate::{Periods, Shares};
use tierce_analysis::question::Options;
use tierce_plan::Source;

/// A study. What decides its results are `seed`, `sets`, `chunk`, `points`, `tests` and `parameters`.
#[derive(Debug)]
pub struct Study {
    /// All seeds follow from it.
    pub seed: u64,
    /// Sets at each point.
    pub sets: u32,
    /// Sets whose rows are one file.
    pub chunk: u32,
    /// Names of what plans are given.
    pub parameters: Vec<String>,
    /// The grid: the last of its axes changes fastest.
    pub points: Vec<Point>,
    /// What is done with each set.
    pub tests: Vec<Test>,
    /// What is drawn of it.
    pub figures: Vec<Figure>,
    /// The plans that it names and what they include, each once: with its text all that it is made of.
    pub files: Vec<Arc<Source>>,
}

impl Study {
    /// Sets at all points.
    pub fn jobs(&self) -> u64 {
        self.points.len() as u64 * u64::from(self.sets)
    }

    /// Files of rows.
    pub fn chunks(&self) -> u64 {
        self.jobs().div_ceil(u64::from(self.chunk))
    }

    /// The sets of a chunk: by number, over all points.
    pub fn jobs_of(&self, chunk: u64) -> std::ops::Range<u64> {
        let first = chunk * u64::from(self.chunk);
        first..(first + u64::from(self.chunk)).min(self.jobs())
    }

    /// How many rows it has.
    pub fn rows_of(&self, chunk: u64) -> u64 {
        let jobs = self.jobs_of(chunk);
        (jobs.end - jobs.start) * self.tests.len() as u64
    }
}

/// A place in the grid.
#[derive(Clone, Debug)]
pub struct Point {
    /// How its sets are drawn; `None`: the study has none.
    pub drawn: Option<Drawn>,
    /// What plans are given, in the order of their names.
    pub parameters: Vec<Parameter>,
}

/// What a plan is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A number.
    Number(Decimal),
    /// Anything else.
    Text(String),
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// How utilisations and periods are drawn: as `tierce gen` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Paper,
    UunifastDiscard,
    Randfixedsum,
    Emberson,
}

impl Method {
    /// All, by their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("paper", Self::Paper),
        ("uunifast-discard", Self::UunifastDiscard),
        ("randfixedsum", Self::Randfixedsum),
        ("emberson", Self::Emberson),
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, method)| *method == self).map_or("", |(name, _)| name)
    }
}

/// How sets are drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    pub method: Method,
    pub cpus: u32,
    /// Not with [`Method::Paper`], which draws as many as it needs.
    pub tasks: Option<u32>,
    /// Of each CPU.
    pub utilisation: (Decimal, Decimal),
    /// Of a task.
    pub shares: (Decimal, Decimal),
    pub periods_ns: (u64, u64),
}

impl Drawn {
    /// What utilisations are drawn from.
    pub fn shares(&self) -> Shares {
        let cpus = f64::from(self.cpus);
        let sum = (self.utilisation.0.to_f64() * cpus, self.utilisation.1.to_f64() * cpus);
        let each = (self.shares.0.to_f64(), self.shares.1.to_f64());
        let tasks = self.tasks.unwrap_or(0) as usize;
        match self.method {
            Method::Paper => Shares::UntilInRange { each, sum },
            Method::UunifastDiscard => Shares::UUniFastDiscard { tasks, sum: sum.0 },
            Method::Randfixedsum | Method::Emberson => Shares::RandFixedSum { tasks, sum: sum.0, each },
        }
    }

    /// What periods are drawn from.
    pub fn periods(&self) -> Periods {
        let (shortest, longest) = self.periods_ns;
        match self.method {
            Method::Emberson => Periods::LogUniform(shortest, longest),
            _ => Periods::Uniform(shortest, longest),
        }
    }
}

/// What is done with each set.
#[derive(Clone, Debug)]
pub struct Test {
    pub name: String,
    pub kind: Kind,
}

/// See [`Test`].
#[derive(Clone, Debug)]
pub enum Kind {
    Analyse(Analysis),
    Simulate(Simulation),
}

/// A test of schedulability.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// As `tierce analyse` has them; how many CPUs, the point says.
    pub options: Options,
    /// Response times are wanted, not the verdict alone.
    pub responses: bool,
}

/// A run of the simulator.
#[derive(Clone, Debug)]
pub struct Simulation {
    pub plan: Template,
    pub for_ns: u64,
}

/// What the plan is made of.
#[derive(Clone, Debug)]
pub enum Template {
    /// The set alone, below one scheduler; by deadline or by priority.
    Edf,
    FixedPriority,
    /// A text in which `${NAME}` stands for parameters; the set is put below a node, if there is one.
    Text {
        text: String,
        name: String,
        under: Option<Under>,
        /// What the plan includes.
        others: Vec<Arc<Source>>,
    },
}

/// Where a set goes in a plan.
#[derive(Clone, Debug)]
pub struct Under {
    pub node: String,
    /// Edges have a priority.
    pub by_priority: bool,
}

/// Something to be drawn.
#[derive(Clone, Debug)]
pub struct Figure {
    /// A name in the folder, with the ending of its form.
    pub file: String,
    pub title: Option<String>,
    pub x: String,
    pub x_label: String,
    pub y: Measure,
    pub y_label: String,
    /// The column of which each value is a line.
    pub line: String,
    /// Only rows with one of these values in these columns.
    pub only: Vec<(String, Vec<String>)>,
}

/// What is shown of the rows of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// The share of sets that are schedulable.
    Schedulable,
    /// The mean of the longest response over deadline of a set.
    Mean,
    /// A quantile of it.
    Quantile(f64),
}
