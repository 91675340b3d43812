//! Profiles from their text.

use crate::finding::{Arrival, Period};
use crate::identity::{File, Machine, Program, Routine};
use crate::jobs::Work;
use crate::profile::{Calibration, Profile, Thread, Verdict, VERSION};
use crate::proposal::{Importance, Margin, Reservation};
use std::str::FromStr;
use thiserror::Error;
use tierce_plan::{parse_time, show_time};
use toml::{Table, Value};

/// Why a text is not a profile.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// It is no TOML.
    #[error("profile_must_be_toml: {0}")]
    Text(#[from] toml::de::Error),
    /// A key is missing, is not known, or has a value that it may not have.
    #[error("{rule}: {place}: {message}")]
    Key {
        /// The rule that it breaks.
        rule: &'static str,
        /// Where.
        place: String,
        /// In words, with value and bound.
        message: String,
    },
}

type Result<T> = std::result::Result<T, ProfileError>;

/// A table whose keys are taken one by one; those that are left are not known.
struct Fields {
    place: String,
    table: Table,
}

impl Fields {
    fn fault(&self, key: &str, rule: &'static str, message: impl Into<String>) -> ProfileError {
        let place = if self.place.is_empty() { key.to_string() } else { format!("{}.{key}", self.place) };
        ProfileError::Key { rule, place, message: message.into() }
    }

    fn take(&mut self, key: &str) -> Result<Value> {
        self.table.remove(key).ok_or_else(|| self.fault(key, "key_must_be_given", "missing"))
    }

    fn text(&mut self, key: &str) -> Result<String> {
        match self.take(key)? {
            Value::String(text) => Ok(text),
            other => Err(self.fault(key, "value_must_be_text", format!("{other:?}"))),
        }
    }

    fn number<T: TryFrom<i64>>(&mut self, key: &str) -> Result<T> {
        let value = self.take(key)?;
        let number = value.as_integer().and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| {
            self.fault(key, "value_must_be_a_whole_number", format!("{value:?}, bound 0 or more"))
        })
    }

    fn time(&mut self, key: &str) -> Result<u64> {
        let text = self.text(key)?;
        parse_time(&text)
            .map_err(|error| self.fault(key, error.rule(), format!("{}: {text:?}", error.message())))
    }

    /// One of these names.
    fn named<T: Copy>(&mut self, key: &str, all: &[(&str, T)]) -> Result<T> {
        let text = self.text(key)?;
        let found = all.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
            self.fault(key, "name_must_be_known", format!("{text:?}, bound {}", names.join(", ")))
        })
    }

    fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    fn fields(&mut self, key: &str) -> Result<Fields> {
        match self.take(key)? {
            Value::Table(table) => Ok(Fields { place: self.fault(key, "", "").place(), table }),
            other => Err(self.fault(key, "value_must_be_a_table", format!("{other:?}"))),
        }
    }

    /// Tables of one name, as many as there are.
    fn list(&mut self, key: &str) -> Result<Vec<Fields>> {
        let values = match self.table.remove(key) {
            None => Vec::new(),
            Some(Value::Array(values)) => values,
            Some(other) => return Err(self.fault(key, "value_must_be_tables", format!("{other:?}"))),
        };
        let fields = |(at, value)| match value {
            Value::Table(table) => {
                Ok(Fields { place: self.fault(&format!("{key}[{at}]"), "", "").place(), table })
            }
            other => Err(self.fault(key, "value_must_be_tables", format!("{other:?}"))),
        };
        values.into_iter().enumerate().map(fields).collect()
    }

    /// Nothing is left.
    fn end(self) -> Result<()> {
        match self.table.keys().next() {
            None => Ok(()),
            Some(key) => Err(self.fault(key, "key_must_be_known", "profiles have no such key")),
        }
    }
}

impl ProfileError {
    fn place(self) -> String {
        match self {
            ProfileError::Key { place, .. } => place,
            ProfileError::Text(_) => String::new(),
        }
    }
}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Profile> {
        let mut top = Fields { place: String::new(), table: text.parse()? };
        let version: u32 = top.number("version")?;
        if version != VERSION {
            let message = format!(
                "{version}, bound {VERSION}: measure the program again, or use the tierce that wrote it"
            );
            return Err(top.fault("version", "version_must_be_known", message));
        }
        let executable = file(top.fields("program")?)?;
        let libraries = top.list("library")?.into_iter().map(file).collect::<Result<_>>()?;
        let profile = Profile {
            program: Program { executable, libraries },
            machine: machine(top.fields("machine")?)?,
            calibration: calibration(top.fields("calibration")?)?,
            threads: top.list("thread")?.into_iter().map(thread).collect::<Result<_>>()?,
        };
        top.end()?;
        Ok(profile)
    }
}

fn file(mut fields: Fields) -> Result<File> {
    let file = File { path: fields.text("path")?.into(), sha256: fields.text("sha256")? };
    fields.end()?;
    Ok(file)
}

fn machine(mut fields: Fields) -> Result<Machine> {
    let [kernel, cpu, frequency] = ["kernel", "cpu", "frequency"].map(|key| fields.text(key));
    fields.end()?;
    Ok(Machine { kernel: kernel?, cpu: cpu?, frequency: frequency? })
}

fn calibration(mut fields: Fields) -> Result<Calibration> {
    let calibration = Calibration {
        watched_ns: fields.time("watched")?,
        lost: fields.number("lost")?,
        importance: fields.named("importance", &Importance::ALL.map(|one| (one.name(), one)))?,
        margin: Margin(fields.number("margin_percent")?),
    };
    fields.end()?;
    Ok(calibration)
}

fn thread(mut fields: Fields) -> Result<Thread> {
    let arrival = match fields.has("arrival") {
        true => Some(fields.named("arrival", &Arrival::ALL.map(|one| (one.name(), one)))?),
        false => None,
    };
    let chance_percent =
        if fields.has("chance_percent") { Some(fields.number("chance_percent")?) } else { None };
    let burst = if fields.has("burst") { Some(work(fields.fields("burst")?)?) } else { None };
    let reserved =
        if fields.has("reservation") { Some(reservation(fields.fields("reservation")?)?) } else { None };
    let thread = Thread {
        name: fields.text("name")?,
        routine: routine(&mut fields)?,
        process: fields.text("process")?,
        count: fields.number("count")?,
        verdict: fields.named("verdict", &Verdict::ALL.map(|one| (one.name(), one)))?,
        arrival,
        wakeups: fields.number("wakeups")?,
        load: fields.number("load")?,
        waited: fields.number("waited")?,
        explained: fields.number("explained")?,
        chance_percent,
        periods: fields.list("period")?.into_iter().map(period).collect::<Result<_>>()?,
        burst,
        reservation: reserved,
    };
    fields.end()?;
    Ok(thread)
}

fn routine(fields: &mut Fields) -> Result<Option<Routine>> {
    if !fields.has("routine") {
        return Ok(None);
    }
    let place = fields.text("routine")?;
    if !Routine::is_place(&place) {
        let message = format!("{place:?}, bound \"main\" or a file and a place in it: \"player+0x1220\"");
        return Err(fields.fault("routine", "routine_must_be_a_place", message));
    }
    let function = if fields.has("function") { Some(fields.text("function")?) } else { None };
    Ok(Some(Routine { place, function }))
}

fn reservation(mut fields: Fields) -> Result<Reservation> {
    let (budget_ns, period_ns) = (fields.time("budget")?, fields.time("period")?);
    if budget_ns > period_ns {
        let message = format!("{} > {}", show_time(budget_ns), show_time(period_ns));
        return Err(fields.fault("budget", "budget_must_not_exceed_period", message));
    }
    fields.table.remove("deadline"); // for readers: it is the period
    fields.end()?;
    Ok(Reservation { budget_ns, period_ns })
}

fn period(mut fields: Fields) -> Result<Period> {
    let (mut jitter, mut releases) = (fields.fields("jitter")?, fields.fields("releases")?);
    let period = Period {
        period_ns: fields.time("period")?,
        is_absolute: fields.named("clock", &[("timer", true), ("sleep", false)])?,
        jitter_p99_ns: jitter.time("p99")?,
        jitter_max_ns: jitter.time("max")?,
        kept: fields.number("kept")?,
        chance_percent: fields.number("chance_percent")?,
        work: work(fields.fields("work")?)?,
        overruns: fields.number("overruns")?,
        resumed: fields.number("resumed")?,
        first_ns: releases.time("first")?,
        last_ns: releases.time("last")?,
    };
    [jitter, releases, fields].into_iter().try_for_each(Fields::end)?;
    Ok(period)
}

fn work(mut fields: Fields) -> Result<Work> {
    let work = Work {
        jobs: fields.number("jobs")?,
        median_ns: fields.time("median")?,
        p90_ns: fields.time("p90")?,
        p99_ns: fields.time("p99")?,
        max_ns: fields.time("max")?,
    };
    fields.end()?;
    Ok(work)
}
