//! `tierce request`: ask the manager for CPU time.

use anyhow::{bail, Result};
use serde_json::{json, Map, Value};
use std::path::PathBuf;
use std::process::ExitCode;
use tierce_ask::Manager;
use tierce_manager::words::{told, words};
use tierce_manager::{
    Answer, Ask, Change, List, Mode, News, Notice, Principal, State, What, Which, Wish, Wrong, LISTEN,
    VERSION,
};

/// Ask the manager for a guarantee of CPU time, or about those that you have
///
/// You ask for threads of your own, by number or by a pattern, and see and end only what is yours. The answer is granted, refused, with the
/// reason and the nearest guarantee that would be granted, or with --wait pending.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// For this thread
    #[arg(long, value_name = "TID", conflicts_with = "who")]
    thread: Option<u32>,
    /// For all of your threads that match, together: KEY=VALUE[,KEY=VALUE] [several: any of them]
    #[arg(long = "match", value_name = "WHO", value_parser = super::ctl::who)]
    who: Vec<tierce_plan::Keys>,
    /// The policy by which they share it; without threads: for a scheduler that you divide yourself
    #[arg(long)]
    policy: Option<String>,
    /// So much CPU time
    #[arg(long, value_name = "TIME", requires = "period")]
    budget: Option<String>,
    /// In every period of this length
    #[arg(long, value_name = "TIME", requires = "budget")]
    period: Option<String>,
    /// Another guarantee: 'PSBE 1/4 15ms'
    #[arg(long, value_name = "TEXT", conflicts_with = "budget")]
    guarantee: Option<String>,
    /// What it is worth to you; rules compare it
    #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
    value: i64,
    /// Several wishes, each with its value: 4ms/10ms=3,2ms/10ms=1; the manager chooses
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = mode, conflicts_with_all = ["budget", "guarantee"])]
    modes: Vec<Mode>,
    /// Each job of its threads, from a wake-up to the next sleep, should end within this time; you are told of those that do not
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,
    /// Only below this node
    #[arg(long, value_name = "NODE")]
    under: Option<String>,
    /// If it cannot be granted now, wait until it is, and say so
    #[arg(long)]
    wait: bool,
    /// Whose it is: user:NUMBER, group:NUMBER, unit:NAME, container:NAME, system
    #[arg(long, value_name = "PRINCIPAL")]
    owner: Option<Principal>,
    /// A word for people and rules
    #[arg(long, value_name = "WORD")]
    label: Option<String>,
    /// What else rules may want to know: KEY=VALUE [several]
    #[arg(long, value_name = "KEY=VALUE", value_parser = about)]
    about: Vec<(String, Value)>,
    /// Change nothing: say what each rule decides, and what would happen
    #[arg(long)]
    dry_run: bool,
    /// Other wishes (--budget, --modes, …) for this request
    #[arg(long, value_name = "ID", conflicts_with_all = ["thread", "who", "policy", "wait", "dry_run"])]
    change: Option<u64>,
    /// End this request
    #[arg(long, value_name = "ID", exclusive = false, conflicts_with_all = ["thread", "who", "change"])]
    cancel: Option<u64>,
    /// List your requests
    #[arg(long, conflicts_with_all = ["thread", "who", "change", "cancel"])]
    list: bool,
    /// Print what you are told, until Ctrl-C
    #[arg(long, conflicts_with_all = ["thread", "who", "change", "cancel", "list"])]
    watch: bool,
    /// Print what you have been told before
    #[arg(long, conflicts_with_all = ["thread", "who", "change", "cancel", "list", "watch"])]
    news: bool,
    /// Print the rules, and how each has fared
    #[arg(long, conflicts_with_all = ["thread", "who", "change", "cancel", "list", "watch", "news"])]
    rules: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
    /// Where the manager listens
    #[arg(long, value_name = "PATH", default_value = LISTEN)]
    listen: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  tierce request --thread 1234 --budget 2ms --period 10ms
  tierce request --thread 1234 --budget 2ms --period 10ms --deadline 8ms
                                                                 and be told (--watch) of jobs that take longer
  tierce request --thread 1234 --modes 4ms/10ms=3,2ms/10ms=1 --wait
  tierce request --match comm=ffmpeg --guarantee 'PS 1/4' --label transcoder
  tierce request --policy fair --budget 10ms --period 50ms       a scheduler of your own: request 8
  tierce ctl --request 8 create video --policy fair --weight 3 --match comm=mpv
                                                                 divide it, as root divides the plan (tierce ctl --help)
  tierce request --list
  tierce request --change 7 --budget 1ms --period 10ms           a smaller wish
  tierce request --cancel 7

Exit codes: 0 granted or done, 1 refused, 2 bad input, or nobody answers.";

/// `4ms/10ms=3`, or a guarantee.
fn mode(text: &str) -> Result<Mode, String> {
    let (text, value) = match text.rsplit_once('=') {
        Some((text, value)) => (text, value.parse().map_err(|_| format!("{value:?} is no whole number"))?),
        None => (text, 0),
    };
    Mode::parse(text, value).map_err(|wrong| wrong.to_string())
}

/// A value is JSON if it can be read as such, else a text.
fn about(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("KEY=VALUE")?;
    Ok((key.into(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

/// Run `tierce request`.
pub fn run(args: Args) -> Result<ExitCode> {
    let mut manager = Manager::open(&args.listen)?;
    if args.watch {
        return watch(&mut manager, args.json);
    }
    let (ask, waits) = (args.ask()?, args.wait && !args.dry_run);
    let mut answer = match manager.ask(&ask)? {
        Ok(answer) => answer,
        Err(wrong) if args.json => {
            println!("{}", json!({ "version": VERSION, "ok": false, "error": wrong }));
            return Ok(ExitCode::from(2));
        }
        Err(wrong) => bail!("{wrong}"),
    };
    show(&answer, args.json);
    if let (State::Pending, Some(about), true) = (answer.state, &answer.about, waits) {
        answer = wait_for(&mut manager, about.id)?;
        show(&answer, args.json);
    }
    Ok(ExitCode::from(u8::from(answer.state == State::Refused)))
}

fn show(answer: &Answer, as_json: bool) {
    match as_json {
        true => println!("{}", json!({ "version": VERSION, "ok": true, "answer": answer })),
        false => print!("{}", words(answer)),
    }
}

impl Args {
    fn ask(&self) -> Result<Ask> {
        if let Some(id) = self.cancel {
            return Ok(Ask::Cancel(Which { id }));
        }
        match (self.list, self.news, self.rules) {
            (true, ..) => return Ok(Ask::List(List {})),
            (_, true, _) => return Ok(Ask::News(News { after: 0 })),
            (.., true) => return Ok(Ask::Rules(List {})),
            _ => {}
        }
        let modes = self.modes()?;
        if let Some(id) = self.change {
            return Ok(Ask::Change(Change { id, modes }));
        }
        let table = |keys: &tierce_plan::Keys| {
            keys.iter().map(|(key, value)| (key.clone(), Value::String(value.clone()))).collect()
        };
        Ok(Ask::Request(Box::new(Wish {
            thread: self.thread,
            matches: self.who.iter().map(table).collect(),
            policy: self.policy.clone(),
            modes,
            under: self.under.clone(),
            wait: self.wait,
            owner: self.owner.clone(),
            label: self.label.clone(),
            about: self.about.iter().cloned().collect::<Map<_, _>>(),
            dry_run: self.dry_run,
        })))
    }

    fn modes(&self) -> Result<Vec<Mode>> {
        let modes = self.modes_without_deadline()?;
        match &self.deadline {
            Some(text) => {
                Ok(modes.into_iter().map(|mode| mode.with_deadline(text)).collect::<Result<_, _>>()?)
            }
            None => Ok(modes),
        }
    }

    fn modes_without_deadline(&self) -> Result<Vec<Mode>> {
        match (&self.budget, &self.period, &self.guarantee) {
            (Some(budget), Some(period), _) => Ok(vec![Mode::parse(&format!("{budget}/{period}"), self.value)?]),
            (.., Some(guarantee)) => Ok(vec![Mode::parse(guarantee, self.value)?]),
            _ if !self.modes.is_empty() => Ok(self.modes.clone()),
            _ => bail!("say what you ask for: --budget and --period, --guarantee, or --modes (or --list, --cancel ID)"),
        }
    }
}

/// Everything that the asker is told, until `each` has heard enough.
fn told_all(manager: &mut Manager, mut each: impl FnMut(&Notice) -> bool) -> Result<()> {
    let Ok(before) = manager.watch(0)? else { bail!("the manager does not let us watch") };
    if before.news.iter().any(&mut each) {
        return Ok(());
    }
    while let Some(notice) = manager.notice(None)? {
        if each(&notice) {
            break;
        }
    }
    Ok(())
}

fn watch(manager: &mut Manager, as_json: bool) -> Result<ExitCode> {
    told_all(manager, |notice| {
        match as_json {
            true => println!("{}", json!({ "version": VERSION, "event": notice })),
            false => println!("{}", told(notice)),
        }
        false
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Until a pending request has a guarantee, or is over.
fn wait_for(manager: &mut Manager, id: u64) -> Result<Answer> {
    let mut answer = Answer::new(State::Refused);
    told_all(manager, |notice| {
        match (notice.id == Some(id)).then_some(notice.what) {
            Some(What::Granted) => answer.state = State::Granted,
            Some(What::Ended | What::Revoked) => {}
            _ => return false,
        }
        answer.reason = Some(Wrong::new("it_was_waited_for", notice.text.clone()));
        true
    })?;
    if answer.state == State::Granted {
        answer.reason = None;
        if let Ok(all) = manager.ask(&Ask::List(List {}))? {
            answer.about = all.requests.into_iter().find(|request| request.id == id);
        }
    }
    Ok(answer)
}
