//! The types of guarantees, their parameters, their text.

use crate::exact::Exact;
use crate::number::{noted_time, parse_share, parse_time, show_share, show_time, whole, NumberError};
use crate::number::{NUMBER_CHARACTERS_MAX, TIME_MAX_NS};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The twelve types of guarantees (HLS, section 5.2; order of Table 5.2).
///
/// Each is a set of *patterns*: a pattern says for every instant whether the virtual processor has the CPU. A scheduler
/// that gives the guarantee may produce any pattern of the set, and only those. In what follows *supply* of an interval
/// is the CPU time that the pattern gives in it; i runs over all whole numbers, T over all times; a phase t is chosen by
/// the scheduler and kept, but not known to the child. Everything counts only while the child wants to run (assumption 4
/// of section 5.1.3).
///
/// *Hard* reservations promise that no more than the amount is given, as well as no less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `ALL`: every instant. What the machine gives to a root (5.2.2.1).
    All,
    /// `RESU r`, a uniformly slower processor: between two consecutive deadlines d < d' that the child names the supply
    /// is r·(d' − d) at least. Which deadlines, is up to the child and not part of the guarantee (5.2.2.3).
    Resu,
    /// `RESBH x y`, basic and hard: there is a t such that the supply of every [t + iy, t + (i+1)y] is exactly x
    /// (5.2.2.2). What a hard constant-bandwidth server or Rez gives.
    Resbh,
    /// `RESBS x y`, basic and soft: there is a t such that the supply of every [t + iy, t + (i+1)y] is x at least.
    Resbs,
    /// `RESCH x y`, continuous and hard: for every T the supply of [T, T + y] is exactly x; so the pattern repeats
    /// itself after y.
    Resch,
    /// `RESCS x y`, continuous and soft: for every T the supply of [T, T + y] is x at least.
    Rescs,
    /// `RESPS x y z`, probabilistic and soft: RESBS x y, and the chance to get up to z more from an overrun partition
    /// that is shared with others. z is not promised (6.2.2).
    Resps,
    /// `RESNH x y`, non-preemptive and hard: there is a t such that exactly the [t + iy, t + iy + x] are given.
    Resnh,
    /// `RESSH x y z`, synchronised and hard: exactly the [z + iy, z + iy + x] are given.
    Ressh,
    /// `PSBE s δ`, proportional share with bounded error: for every T and n the supply of [T, T + n] is
    /// max(0, s·n − δ) at least (5.2.2.4; equation 5.1: a fluctuation-constrained server).
    Psbe,
    /// `PS s`, proportional share: the supply of [T, T + n], divided by n, is in the limit of long n at least s. Nothing
    /// is promised for any n (5.2.2.4).
    Ps,
    /// `NULL`: nothing, best effort (5.2.2.5).
    Null,
}

/// What a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// x: CPU time, above 0 and at most the period.
    Amount,
    /// y: a time above 0.
    Period,
    /// z of RESPS: size of the overrun partition, from 0 to the period.
    Overrun,
    /// z of RESSH: the time at which a period begins, from 0 on.
    Phase,
    /// s or r: a fraction of the CPU, above 0 and at most 1.
    Share,
    /// δ: how far the supply may be behind the share, a time from 0 on.
    Error,
}

impl Parameter {
    /// As its formula calls it.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Amount => "x",
            Self::Period => "y",
            Self::Overrun | Self::Phase => "z",
            Self::Share => "s",
            Self::Error => "δ",
        }
    }

    /// In a word, as JSON names it; times are in ns.
    pub fn name(self) -> &'static str {
        match self {
            Self::Amount => "amount",
            Self::Period => "period",
            Self::Overrun => "overrun",
            Self::Phase => "phase",
            Self::Share => "share",
            Self::Error => "error",
        }
    }

    /// It is a time, not a share.
    pub fn is_time(self) -> bool {
        self != Self::Share
    }

    /// A value as people write it; its bounds are looked at elsewhere. Otherwise the rule that it breaks, and its words.
    pub fn parse(self, text: &str) -> Result<Exact, NumberError> {
        if self.is_time() {
            parse_time(text)
        } else {
            parse_share(text)
        }
    }

    /// What would be allowed where a value breaks that rule.
    pub fn bound(self, rule: &str) -> String {
        match (rule, self) {
            ("time_must_fit", _) => format!("at most {}", show_time(&whole(TIME_MAX_NS))),
            ("number_must_fit", _) => format!("at most {NUMBER_CHARACTERS_MAX} characters"),
            ("number_must_not_divide_by_0", _) => "above 0 below the bar".into(),
            ("number_must_not_be_negative", Self::Overrun | Self::Phase | Self::Error) => "0 or more".into(),
            (_, Self::Share) => "above 0 and at most 1".into(),
            ("number_must_not_be_negative", _) => "above 0".into(),
            _ => "a number and ns, us, ms, s or min".into(),
        }
    }

    /// A value as people write it.
    pub fn show(self, value: &Exact) -> String {
        if self.is_time() {
            show_time(value)
        } else {
            show_share(value)
        }
    }
}

impl Kind {
    /// All of them, in the order of Table 5.2.
    pub const ALL: [Kind; 12] = [
        Self::All,
        Self::Resu,
        Self::Resbh,
        Self::Resbs,
        Self::Resch,
        Self::Rescs,
        Self::Resps,
        Self::Resnh,
        Self::Ressh,
        Self::Psbe,
        Self::Ps,
        Self::Null,
    ];

    /// Its name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "ALL",
            Self::Resu => "RESU",
            Self::Resbh => "RESBH",
            Self::Resbs => "RESBS",
            Self::Resch => "RESCH",
            Self::Rescs => "RESCS",
            Self::Resps => "RESPS",
            Self::Resnh => "RESNH",
            Self::Ressh => "RESSH",
            Self::Psbe => "PSBE",
            Self::Ps => "PS",
            Self::Null => "NULL",
        }
    }

    /// What its numbers are.
    pub fn parameters(self) -> &'static [Parameter] {
        use Parameter::{Amount, Error, Overrun, Period, Phase, Share};
        match self {
            Self::All | Self::Null => &[],
            Self::Resu | Self::Ps => &[Share],
            Self::Resbh | Self::Resbs | Self::Resch | Self::Rescs | Self::Resnh => &[Amount, Period],
            Self::Resps => &[Amount, Period, Overrun],
            Self::Ressh => &[Amount, Period, Phase],
            Self::Psbe => &[Share, Error],
        }
    }

    /// How it is written: `RESPS x y z`.
    pub fn form(self) -> String {
        let symbols = self.parameters().iter().map(|parameter| format!(" {}", parameter.symbol()));
        format!("{}{}", self.name(), symbols.collect::<String>())
    }

    /// A reservation: it has an amount and a period.
    pub fn is_reservation(self) -> bool {
        self.parameters().len() >= 2 && self != Self::Psbe
    }

    /// A reservation whose amount comes at any place within each period; the others are continuous, or none.
    pub fn is_basic(self) -> bool {
        matches!(self, Self::Resbh | Self::Resbs | Self::Resps)
    }

    /// It promises that no more is given, too.
    pub fn is_hard(self) -> bool {
        matches!(self, Self::Resbh | Self::Resch | Self::Resnh | Self::Ressh)
    }

    /// By name; a hint names what is close.
    fn parse(name: &str, column: usize) -> Result<Kind, Fault> {
        if let Some(kind) = Self::ALL.into_iter().find(|kind| kind.name() == name) {
            return Ok(kind);
        }
        let upper = name.to_uppercase();
        let close = Self::ALL.into_iter().find(|kind| kind.name() == upper);
        let hint = close.map(|kind| format!("did you mean {}?", kind.name()));
        let names = Self::ALL.map(Kind::name).join(", ");
        Err(Fault::new("guarantee_must_be_known", column, name, "there is no such guarantee")
            .bound(names)
            .maybe_hint(hint))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A guarantee: a type and its numbers, all within their bounds.
///
/// ```
/// use tierce_guarantee::{Guarantee, Kind};
/// let guarantee = Guarantee::parse("RESCS 10ms 0.02s").unwrap();
/// assert_eq!(guarantee.kind(), Kind::Rescs);
/// assert_eq!(guarantee.to_string(), "RESCS 10ms 20ms");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Guarantee {
    kind: Kind,
    values: Arc<[Exact]>,
}

/// A guarantee of which some numbers are open: `RESCS ? 33ms`, or, with all of them open, just `RESCS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its type.
    pub kind: Kind,
    /// One per parameter; `None` is open.
    pub values: Vec<Option<Exact>>,
}

/// What is wrong with the text of a guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Name of the rule, snake_case.
    pub rule: &'static str,
    /// Place in the text, in characters from 1.
    pub column: usize,
    /// What stands there.
    pub value: String,
    /// In plain words.
    pub message: String,
    /// What would be allowed.
    pub bound: Option<String>,
    /// What would help.
    pub hint: Option<String>,
}

impl Fault {
    fn new(rule: &'static str, column: usize, value: &str, message: impl Into<String>) -> Self {
        let (value, message) = (value.to_string(), message.into());
        Self { rule, column, value, message, bound: None, hint: None }
    }

    fn bound(self, bound: impl Into<String>) -> Self {
        Self { bound: Some(bound.into()), ..self }
    }

    fn maybe_hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "column {}: {}: {} (\"{}\"", self.column, self.rule, self.message, self.value)?;
        if let Some(bound) = &self.bound {
            write!(f, "; allowed: {bound}")?;
        }
        write!(f, ")")?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for Fault {}

/// All faults of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(
    /// In the order of the text, never empty.
    pub Vec<Fault>,
);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(Fault::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Faults {}

/// Why these values are none of this type, each with the index of its parameter.
fn out_of_bounds<'v>(
    kind: Kind,
    value: impl Fn(usize) -> Option<&'v Exact>,
) -> Vec<(usize, &'static str, &'static str, String)> {
    use Parameter::{Amount, Overrun, Period, Share};
    let parameters = kind.parameters();
    let of = |wanted: Parameter| parameters.iter().position(|p| *p == wanted).and_then(&value);
    let mut found = Vec::new();
    for (at, parameter) in parameters.iter().enumerate() {
        let Some(value) = value(at) else { continue };
        let positive = matches!(parameter, Amount | Period | Share);
        if value.sign() == Ordering::Less || positive && value.sign() == Ordering::Equal {
            let bound = if positive { "above 0" } else { "0 or more" };
            found.push((at, "guarantee_numbers_are_positive", "this must be more", bound.to_string()));
        } else if *parameter == Share && *value > whole(1) {
            found.push((at, "share_must_not_exceed_1", "more than one CPU", "at most 1".to_string()));
        } else if let (Amount | Overrun, Some(period)) = (parameter, of(Period)) {
            if value > period {
                let rule = if *parameter == Amount {
                    "amount_must_not_exceed_period"
                } else {
                    "overrun_must_not_exceed_period"
                };
                let bound = format!("at most {}", show_time(period));
                found.push((at, rule, "more CPU time than the period has", bound));
            }
        }
    }
    found
}

impl Wanted {
    /// Every number is open.
    pub fn any(kind: Kind) -> Self {
        Self { kind, values: vec![None; kind.parameters().len()] }
    }

    /// Parse a type alone (all numbers open) or a type with all its numbers, of which `?` are open.
    pub fn parse(text: &str) -> Result<Self, Faults> {
        let words = words(text);
        let Some((column, name)) = words.first() else {
            let message = "a guarantee is a type and its numbers: RESBS 2ms 10ms";
            return Err(Faults(vec![Fault::new("guarantee_must_be_known", 1, "", message)]));
        };
        let kind = Kind::parse(name, *column).map_err(|fault| Faults(vec![fault]))?;
        let parameters = kind.parameters();
        if words.len() == 1 {
            return Ok(Self::any(kind));
        }
        let mut faults = Vec::new();
        if words.len() - 1 != parameters.len() {
            let (column, word) = words.get(parameters.len() + 1).unwrap_or(&words[words.len() - 1]);
            let message = format!("{kind} has {} numbers, not {}", parameters.len(), words.len() - 1);
            let fault = Fault::new("guarantee_must_have_its_numbers", *column, word, message);
            let apart = words[1..].iter().any(|(_, word)| word.chars().all(char::is_alphabetic));
            let hint = apart.then(|| "a unit follows its number without a blank: 10ms".to_string());
            faults.push(fault.bound(kind.form()).maybe_hint(hint));
        }
        let mut values = vec![None; parameters.len()];
        for ((parameter, slot), (column, word)) in parameters.iter().zip(&mut values).zip(&words[1..]) {
            if *word == "?" {
                continue;
            }
            match parameter.parse(word) {
                Ok(value) => *slot = Some(value),
                Err((rule, message)) => {
                    faults.push(Fault::new(rule, *column, word, message).bound(parameter.bound(rule)));
                }
            }
        }
        for (at, rule, message, bound) in out_of_bounds(kind, |at| values[at].as_ref()) {
            let (column, word) = words[at + 1];
            faults.push(Fault::new(rule, column, word, message).bound(bound));
        }
        if faults.is_empty() {
            return Ok(Self { kind, values });
        }
        faults.sort_by_key(|fault| fault.column);
        Err(Faults(faults))
    }

    /// The guarantee, when nothing is open.
    pub fn full(&self) -> Option<Guarantee> {
        let values = self.values.iter().cloned().collect::<Option<Vec<_>>>()?;
        Guarantee::new(self.kind, values)
    }

    /// How many numbers are open.
    pub fn open(&self) -> usize {
        self.values.iter().filter(|value| value.is_none()).count()
    }

    /// The same with `value` for the first open number.
    pub(crate) fn filled(&self, value: Exact) -> Option<Guarantee> {
        let mut filled = self.clone();
        *filled.values.iter_mut().find(|value| value.is_none())? = Some(value);
        filled.full()
    }

    /// What is given for a parameter.
    pub(crate) fn get(&self, wanted: Parameter) -> Option<&Exact> {
        let at = self.kind.parameters().iter().position(|parameter| *parameter == wanted)?;
        self.values[at].as_ref()
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.kind.name())?;
        for (parameter, value) in self.kind.parameters().iter().zip(&self.values) {
            write!(f, " {}", value.as_ref().map_or("?".into(), |value| parameter.show(value)))?;
        }
        Ok(())
    }
}

/// Words and the columns, in characters from 1, at which they begin.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut begin = None;
    for (column, (at, c)) in text.char_indices().enumerate() {
        match (begin, c.is_whitespace()) {
            (None, false) => begin = Some((column + 1, at)),
            (Some((column, from)), true) => {
                found.push((column, &text[from..at]));
                begin = None;
            }
            _ => {}
        }
    }
    found.extend(begin.map(|(column, from)| (column, &text[from..])));
    found
}

impl Guarantee {
    /// Parse `RESBS 2ms 10ms`. All faults are reported.
    pub fn parse(text: &str) -> Result<Self, Faults> {
        let wanted = Wanted::parse(text)?;
        wanted.full().ok_or_else(|| {
            let (column, word) = words(text).pop().unwrap_or((1, ""));
            let message = "this says the type but not all of its numbers";
            let fault = Fault::new("guarantee_must_have_its_numbers", column, word, message);
            Faults(vec![fault.bound(wanted.kind.form())])
        })
    }

    /// `None` when a number is missing, too much, or out of its bounds.
    pub fn new(kind: Kind, values: Vec<Exact>) -> Option<Self> {
        Self::of(kind, values.into())
    }

    fn of(kind: Kind, values: Arc<[Exact]>) -> Option<Self> {
        if values.len() != kind.parameters().len() {
            return None;
        }
        let is_sound = out_of_bounds(kind, |at| Some(&values[at])).is_empty();
        is_sound.then_some(Self { kind, values })
    }

    /// ALL.
    pub fn all() -> Self {
        Self { kind: Kind::All, values: Arc::default() }
    }

    /// NULL.
    pub fn null() -> Self {
        Self { kind: Kind::Null, values: Arc::default() }
    }

    /// A reservation of that type, RESPS and RESSH with z = 0; `None` when out of bounds or no reservation.
    pub fn reservation(kind: Kind, amount: Exact, period: Exact) -> Option<Self> {
        if !kind.is_reservation() {
            return None;
        }
        if kind.parameters().len() == 2 {
            return Self::of(kind, [amount, period].into());
        }
        let mut values = vec![amount, period];
        values.resize(kind.parameters().len(), whole(0));
        Self::new(kind, values)
    }

    /// PSBE.
    pub fn psbe(share: Exact, error: Exact) -> Option<Self> {
        Self::new(Kind::Psbe, vec![share, error])
    }

    /// PS.
    pub fn ps(share: Exact) -> Option<Self> {
        Self::new(Kind::Ps, vec![share])
    }

    /// RESU.
    pub fn resu(share: Exact) -> Option<Self> {
        Self::new(Kind::Resu, vec![share])
    }

    /// Its type.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its numbers, in the order of [`Kind::parameters`].
    pub fn values(&self) -> &[Exact] {
        &self.values
    }

    /// A number by what it is.
    pub fn get(&self, wanted: Parameter) -> Option<&Exact> {
        let at = self.kind.parameters().iter().position(|parameter| *parameter == wanted)?;
        Some(&self.values[at])
    }

    /// Amount and period of a reservation.
    pub fn amount_and_period(&self) -> Option<(&Exact, &Exact)> {
        Some((self.get(Parameter::Amount)?, self.get(Parameter::Period)?))
    }

    /// The fraction of the CPU that it promises in the long run.
    pub fn share(&self) -> Exact {
        match self.kind {
            Kind::All => whole(1),
            Kind::Null => whole(0),
            _ => match self.amount_and_period() {
                Some((amount, period)) => amount / period,
                None => self.values[0].clone(),
            },
        }
    }

    /// It means the same as ALL: a reservation of the whole period, or PSBE 1 0.
    pub fn is_whole_cpu(&self) -> bool {
        self.kind == Kind::All
            || self.amount_and_period().is_some_and(|(amount, period)| amount == period)
            || self.kind == Kind::Psbe && self.values[0] == whole(1) && self.values[1] == whole(0)
    }

    /// What it means to whoever has it, in plain words.
    ///
    /// ```
    /// use tierce_guarantee::Guarantee;
    /// let meaning = Guarantee::parse("PSBE 1/2 5ms").unwrap().meaning();
    /// assert_eq!(meaning, "1/2 of a CPU, never more than 5ms behind; the longest wait is 10ms");
    /// ```
    pub fn meaning(&self) -> String {
        // What is promised is rounded down, the rest up.
        let show = |wanted: Parameter| {
            let up = !matches!(wanted, Parameter::Amount | Parameter::Overrun);
            self.get(wanted).map_or(String::new(), |value| match wanted.is_time() {
                true => noted_time(value, up),
                false => show_share(value),
            })
        };
        let (amount, period, share) =
            (show(Parameter::Amount), show(Parameter::Period), show(Parameter::Share));
        let no_more = "and no more: further work waits";
        match self.kind {
            Kind::All => "all of a CPU".into(),
            Kind::Resu => format!("{share} of a CPU between any two of the deadlines that it names"),
            Kind::Resbh => format!("{amount} in every period of {period}, at any place in it, {no_more} for the next period"),
            Kind::Resbs => format!("at least {amount} in every period of {period}, at any place in it"),
            Kind::Resch => format!("{amount} in every window of {period}, wherever it begins, {no_more}"),
            Kind::Rescs => format!("at least {amount} in every window of {period}, wherever it begins"),
            Kind::Resps => format!(
                "at least {amount} in every period of {period}, at any place in it, and up to {} more when others leave it",
                show(Parameter::Overrun)
            ),
            Kind::Resnh => format!("one block of {amount} at the same place of every period of {period}, {no_more}"),
            Kind::Ressh => format!(
                "one block of {amount} in every period of {period}, from {} on, {no_more}",
                show(Parameter::Phase)
            ),
            Kind::Psbe => {
                let wait = self.get(Parameter::Error).map(|error| noted_time(&(error / self.share()), true));
                let (behind, wait) = (show(Parameter::Error), wait.unwrap_or_default());
                format!("{share} of a CPU, never more than {behind} behind; the longest wait is {wait}")
            }
            Kind::Ps => format!("{share} of a CPU in the long run, at no particular time"),
            Kind::Null => "nothing: it gets what others leave".into(),
        }
    }

    /// For people: where a time is a fraction, decimals follow: `PSBE 1/3 40/3ms (≈13.334ms)`.
    pub fn noted(&self) -> String {
        let times =
            self.kind.parameters().iter().zip(&self.values[..]).filter(|(parameter, _)| parameter.is_time());
        let notes = times.filter_map(|(parameter, value)| {
            let text = noted_time(value, *parameter != Parameter::Amount);
            text.split_once(" (").map(|(_, note)| note.trim_end_matches(')').to_string())
        });
        let notes: Vec<_> = notes.collect();
        let note = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        format!("{self}{note}")
    }

    /// The same, as one of which nothing is open.
    pub fn wanted(&self) -> Wanted {
        Wanted { kind: self.kind, values: self.values.iter().cloned().map(Some).collect() }
    }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.wanted().fmt(f)
    }
}
