//! Ask the resource manager for CPU time: the calls of `libtierce` in Rust.
//!
//! ```no_run
//! use tierce_ask::{Mode, Reserved};
//!
//! let modes = [Mode::parse("4ms/10ms", 3)?, Mode::parse("2ms/10ms", 1)?]; // the manager chooses by value
//! let mut own = Reserved::new(tierce_ask::LISTEN.as_ref(), &modes, false)?;
//! loop {
//!     own.wait(); // the job is done; until the next release
//!     // ... the job's work ...
//!     if let Some(notice) = own.told(Some(std::time::Duration::ZERO))? {
//!         println!("{}", notice.text);
//!     }
//! #   break;
//! }
//! # Ok::<(), anyhow::Error>(())
//! ```

use anyhow::{bail, ensure, Context, Result};
use serde_json::{json, Value};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use tierce_job::{Begun, Ended, Periodic, Totals};
pub use tierce_manager::{Answer, Ask, Change, Divide, Mode, Notice, State, What, LISTEN};
use tierce_manager::{Which, Wish, Wrong, VERSION};
pub use tierce_plan::Edit;

/// How long an answer may take: others may be asking, and the loader may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Notices that wait to be read; the oldest go first.
const NOTICES_MAX: usize = 1024;

/// A connection to the manager.
pub struct Manager {
    stream: BufReader<UnixStream>,
    shown: String,
    /// Of a line, what has come.
    line: Vec<u8>,
    told: VecDeque<Notice>,
}

impl Manager {
    /// The one that listens at `path`, usually [`LISTEN`].
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                anyhow::anyhow!("no manager answers at {shown} (tierce manager)")
            }
            _ => anyhow::anyhow!("{shown}: {error}"),
        })?;
        Ok(Self { stream: BufReader::new(stream), shown, line: Vec::new(), told: VecDeque::new() })
    }

    /// Ask, and wait for the answer.
    pub fn ask(&mut self, ask: &Ask) -> Result<Result<Answer, Wrong>> {
        self.say(serde_json::to_value(ask)?)
    }

    /// Operations within the scheduler of that request: all of them, or none. Names are those of its parts; `under` empty: the scheduler.
    pub fn divide(&mut self, id: u64, edits: Vec<Edit>) -> Result<Result<Answer, Wrong>> {
        self.ask(&Ask::Divide(Divide { id, edits, dry_run: false }))
    }

    /// Be told from now on, and what was told after that notice.
    pub fn watch(&mut self, after: u64) -> Result<Result<Answer, Wrong>> {
        self.say(json!({ "request": "watch", "after": after }))
    }

    /// The next notice, within that time; `None` as the time: for ever.
    pub fn notice(&mut self, within: Option<Duration>) -> Result<Option<Notice>> {
        if let Some(notice) = self.told.pop_front() {
            return Ok(Some(notice));
        }
        let Some(mut line) = self.line(within)? else { return Ok(None) };
        Ok(Some(serde_json::from_value(line["event"].take())?))
    }

    fn say(&mut self, mut request: Value) -> Result<Result<Answer, Wrong>> {
        request["version"] = VERSION.into();
        let stream = self.stream.get_mut();
        stream.write_all(format!("{request}\n").as_bytes()).with_context(|| self.shown.clone())?;
        loop {
            let Some(mut line) = self.line(Some(PATIENCE))? else { bail!("{}: no answer", self.shown) };
            if line.get("event").is_none() {
                return Ok(match line["ok"] == true {
                    true => Ok(serde_json::from_value(line["answer"].take())?),
                    false => Err(serde_json::from_value(line["error"].take())?),
                });
            }
            self.told.push_back(serde_json::from_value(line["event"].take())?);
            if self.told.len() > NOTICES_MAX {
                self.told.pop_front();
            }
        }
    }

    /// The next line, if it comes within that time.
    fn line(&mut self, within: Option<Duration>) -> Result<Option<Value>> {
        let until = within.map(|within| Instant::now() + within);
        loop {
            // No time at all would mean for ever.
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let left = left.map(|left| left.max(Duration::from_micros(1)));
            self.stream.get_ref().set_read_timeout(left)?;
            match self.stream.read_until(b'\n', &mut self.line) {
                Ok(_) if self.line.ends_with(b"\n") => break,
                Ok(_) => bail!("{}: the manager has hung up", self.shown),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if until.is_some_and(|until| Instant::now() >= until) {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error).with_context(|| self.shown.clone()),
            }
        }
        let line = std::mem::take(&mut self.line);
        Ok(Some(serde_json::from_slice(&line).with_context(|| format!("{}: not an answer", self.shown))?))
    }
}

/// The guarantee of a thread, and its jobs.
pub struct Reserved {
    manager: Manager,
    id: u64,
    jobs: Periodic,
    mode: Option<Mode>,
}

impl Reserved {
    /// For the calling thread, any of these modes. Refused is an error, unless it `waits`: then [`Reserved::told`] says when it is granted.
    /// A job's deadline is that of the mode ([`Mode::with_deadline`]), of which the kernel side counts misses, too; else the next release.
    pub fn new(path: &Path, modes: &[Mode], waits: bool) -> Result<Self> {
        let first = first(modes)?;
        let mut manager = Manager::open(path)?;
        manager.watch(u64::MAX)??;
        // SAFETY: no arguments, cannot fail.
        let tid = unsafe { libc::gettid() } as u32;
        let wish = Wish { thread: Some(tid), modes: modes.to_vec(), wait: waits, ..Wish::default() };
        let answer = given(manager.ask(&Ask::Request(Box::new(wish)))??)?;
        let about = answer.about.context("the answer is about no request")?;
        let mode = about.granted.map(|granted| granted.mode);
        let jobs = jobs(mode.as_ref().unwrap_or(first))?;
        Ok(Self { manager, id: about.id, jobs, mode })
    }

    /// Other modes. Less is always granted: no larger a share, no shorter a period, no higher a value.
    pub fn change(&mut self, modes: &[Mode]) -> Result<State> {
        let first = first(modes)?;
        let change = Change { id: self.id, modes: modes.to_vec() };
        let answer = given(self.manager.ask(&Ask::Change(change))??)?;
        self.mode = answer.about.and_then(|about| about.granted).map(|granted| granted.mode);
        self.jobs = jobs(self.mode.as_ref().unwrap_or(first))?;
        Ok(answer.state)
    }

    /// The mode that it has; `None`: it is pending, or over.
    pub fn mode(&self) -> Option<&Mode> {
        self.mode.as_ref()
    }

    /// The guarantee ends. Without this it does with the thread.
    pub fn cancel(mut self) -> Result<()> {
        self.manager.ask(&Ask::Cancel(Which { id: self.id }))??;
        Ok(())
    }

    /// The job is done; until the next release.
    pub fn wait(&mut self) -> Begun {
        self.jobs.wait()
    }

    /// The job is done.
    pub fn done(&mut self) -> Option<Ended> {
        self.jobs.done()
    }

    /// All jobs since the last change.
    pub fn totals(&self) -> Totals {
        self.jobs.totals()
    }

    /// What the thread is told of its guarantee, within that time. With another mode, jobs have its period from then on.
    pub fn told(&mut self, within: Option<Duration>) -> Result<Option<Notice>> {
        loop {
            match self.manager.notice(within)? {
                Some(notice) if notice.id != Some(self.id) => {} // of another one of this user
                notice => {
                    notice.iter().try_for_each(|notice| self.learn(notice))?;
                    return Ok(notice);
                }
            }
        }
    }

    fn learn(&mut self, notice: &Notice) -> Result<()> {
        match (notice.what, &notice.mode) {
            (What::Granted | What::Changed, Some(mode)) => {
                let times = |mode: &Mode| Some((mode.budget_and_period_ns()?.1, mode.deadline_ns));
                if self.mode.as_ref().and_then(times) != times(mode) {
                    self.jobs = jobs(mode)?;
                }
                self.mode = Some(mode.clone());
            }
            (What::Revoked | What::Ended, _) => self.mode = None,
            _ => {}
        }
        Ok(())
    }
}

/// The most valuable one, which is the first to be tried. Each has to have a period.
fn first(modes: &[Mode]) -> Result<&Mode> {
    modes.iter().try_for_each(|mode| jobs(mode).map(|_| ()))?;
    let best = modes.iter().map(|mode| mode.value).max();
    modes.iter().find(|mode| Some(mode.value) == best).context("at least one mode")
}

fn jobs(mode: &Mode) -> Result<Periodic> {
    let (_, period_ns) = mode.budget_and_period_ns().context("a guarantee with a budget and a period")?;
    let jobs = Periodic::new(Duration::from_nanos(period_ns), Duration::ZERO);
    Ok(match mode.deadline_ns {
        Some(ns) => jobs.deadline(Duration::from_nanos(ns)),
        None => jobs,
    })
}

fn given(answer: Answer) -> Result<Answer> {
    let why = || answer.reason.as_ref().map(Wrong::to_string).unwrap_or_default();
    ensure!(answer.state != State::Refused, "refused: {}", why());
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// Who says these lines, one for each that is asked; what is asked comes back. An empty one hangs up.
    fn says(
        name: &str,
        lines: &'static [&'static str],
    ) -> (std::path::PathBuf, std::thread::JoinHandle<Vec<Value>>) {
        let path = std::env::temp_dir().join(format!("tierce-ask-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let asked = BufReader::new(stream.try_clone().unwrap());
            let mut heard = Vec::new();
            for (line, answer) in asked.lines().map_while(Result::ok).zip(lines) {
                heard.push(serde_json::from_str(&line).unwrap());
                if answer.is_empty() {
                    break;
                }
                stream.write_all(answer.as_bytes()).unwrap();
            }
            heard
        });
        (path, thread)
    }

    const REFUSED: &str = "{\"ok\":true,\"answer\":{\"state\":\"refused\",\"reason\":{\"rule\":\"full\",\"message\":\"no\"}}}\n";
    const DONE: &str = "{\"version\":1,\"ok\":true,\"answer\":{\"state\":\"done\"}}\n";
    const GRANTED: &str = "{\"version\":1,\"ok\":true,\"answer\":{\"state\":\"granted\",\"about\":{\"id\":7,\
        \"state\":\"granted\",\"owner\":\"user:1\",\"modes\":[]}}}\n\
        {\"version\":1,\"event\":{\"number\":1,\"to\":\"user:1\",\"id\":8,\"what\":\"ended\",\"text\":\"another one's\"}}\n";
    const TOLD: &str =
        "{\"version\":1,\"event\":{\"number\":2,\"to\":\"user:1\",\"id\":7,\"what\":\"will_end\",\
        \"text\":\"soon\"}}\n{\"version\":1,\"ok\":true,\"answer\":{\"state\":\"granted\"}}\n\
        {\"version\":1,\"event\":{\"number\":3,\"to\":\"user:1\",\"id\":7,\"what\":\"changed\",\"text\":\"less\",\
        \"mode\":{\"budget\":\"1ms\",\"period\":\"8ms\",\"value\":1}}}\n";

    fn mode(text: &str) -> Mode {
        Mode::parse(text, 0).unwrap()
    }

    #[test]
    fn a_thread_asks_does_jobs_and_is_told() {
        let (path, manager) = says("jobs", &[DONE, GRANTED, TOLD, DONE]);
        let mut own = Reserved::new(&path, &[mode("1ms/2ms"), mode("1ms/4ms")], false).unwrap();
        for _ in 0..3 {
            own.wait();
        }
        assert_eq!(own.totals().jobs, 2);
        assert!(own.done().is_some() && own.done().is_none());
        assert_eq!(own.change(&[mode("1ms/4ms")]).unwrap(), State::Granted);
        let notice = own.told(Some(Duration::from_secs(60))).unwrap().unwrap();
        assert_eq!((notice.id, &notice.text[..]), (Some(7), "soon"));
        // Another mode, with another period.
        let notice = own.told(Some(Duration::from_secs(60))).unwrap().unwrap();
        assert_eq!((notice.what, own.mode()), (What::Changed, Some(&Mode::parse("1ms/8ms", 1).unwrap())));
        assert!(own.told(Some(Duration::ZERO)).unwrap().is_none());
        own.cancel().unwrap();
        let heard = manager.join().unwrap();
        // SAFETY: no arguments, cannot fail.
        let tid = unsafe { libc::gettid() };
        assert_eq!(heard[1]["modes"].as_array().unwrap().len(), 2);
        assert_eq!(
            (&heard[1]["thread"], &heard[2]["id"], &heard[3]["id"]),
            (&tid.into(), &7.into(), &7.into())
        );
        std::fs::remove_file(path).unwrap();
    }

    /// By the deadline of the mode, else by the next release.
    #[test]
    fn jobs_have_the_deadline_of_the_mode() {
        let late = |mode: &Mode| {
            let mut jobs = jobs(mode).unwrap();
            jobs.wait();
            std::thread::sleep(Duration::from_millis(3));
            jobs.done().unwrap().missed
        };
        let second = mode("1ms/1s");
        assert!(late(&second.clone().with_deadline("2ms").unwrap()));
        assert!(!late(&second));
    }

    #[test]
    fn an_owner_divides_his_scheduler() {
        let (path, server) = says("divide", &[DONE, REFUSED]);
        let mut manager = Manager::open(&path).unwrap();
        let edit = || Edit::Enclose { name: "video".into() };
        assert_eq!(manager.divide(3, vec![edit()]).unwrap().unwrap().state, State::Done);
        let answer = manager.divide(3, vec![edit(), edit()]).unwrap().unwrap();
        assert_eq!((answer.state, &answer.reason.unwrap().rule[..]), (State::Refused, "full"));
        drop(manager);
        let heard = server.join().unwrap();
        let asked =
            json!({ "version": 1, "request": "divide", "id": 3, "edits": [edit()], "dry_run": false });
        assert_eq!((&heard[0], heard[1]["edits"].as_array().unwrap().len()), (&asked, 2));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn whatever_is_wrong_is_said() {
        let lines: [(&'static [&'static str], &str); 5] = [
            (&[""], "hung up"),
            (&[DONE, "garbage\n"], "not an answer"),
            (&[DONE, "{\"ok\":false,\"error\":{\"rule\":\"a_rule\",\"message\":\"no\"}}\n"], "a_rule: no"),
            (&[DONE, "{}\n"], "invalid type"),
            (&[DONE, "{\"ok\":true,\"answer\":{\"state\":\"granted\"}}\n"], "about no request"),
        ];
        for (lines, why) in lines {
            let (path, manager) = says("wrong", lines);
            let error = Reserved::new(&path, &[mode("1ms/2ms")], false).err().unwrap();
            assert!(format!("{error:#}").contains(why), "{error:#}");
            manager.join().unwrap();
        }
        assert!(given(
            serde_json::from_value(serde_json::from_str::<Value>(REFUSED).unwrap()["answer"].clone())
                .unwrap()
        )
        .unwrap_err()
        .to_string()
        .contains("full: no"));
        let error = Reserved::new(Path::new("/nowhere/at/all"), &[mode("1ms/2ms")], false).err().unwrap();
        assert!(error.to_string().contains("no manager answers"));
        for (modes, why) in [
            (&[][..], "at least one mode"),
            (&[mode("PS 1/4")], "with a budget and a period"),
            (&[mode("1ms/2ms"), mode("PS 1/4")], "with a budget and a period"),
        ] {
            let error = Reserved::new(Path::new("/"), modes, false).err().unwrap();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
