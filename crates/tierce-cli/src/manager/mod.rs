//! `tierce-manager`: who gets which guarantee, decided by rules and admission control.

mod access;
mod bus;
mod config;
mod control;
mod dry_run;
mod machine;
mod people;
mod presence;
mod programs;
mod rates;
mod server;
#[cfg(test)]
mod twins;
mod unit;
mod way;

use crate::journal::{report, Level};
use anyhow::{bail, Context, Result};
use bus::Bus;
use clap::{CommandFactory, Parser};
use config::Config;
use control::Control;
use machine::{now_ns, Machine};
use people::People;
use presence::Presence;
use rates::Rates;
use server::Server;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tierce_admission::PlanExt;
use tierce_manager::rules::STACK;
use tierce_manager::words::told;
use tierce_manager::{
    Answer, Ask, Asker, Books, InForce, Notice, Principal, Target, What, Which, Writer, Wrong, LISTEN,
    NAMELESS, PART_EVENTS, PREFIX,
};
use tierce_plan::{Options, Plan};
use tierce_policy::added;
use tierce_scx::notify::notify;
use tierce_scx::socket;
use tierce_trace::Violations;

/// Answer requests for CPU time, beside a plan in force (root)
///
/// Programs ask for a guarantee (`tierce request`, or a line of JSON over the socket). Rules decide who counts more than whom, a scheduler
/// of the plan is chosen that can give what is asked for, admission control proves that all guarantees hold, and the plan in force is
/// changed in one transition. The books survive: after a crash or a restart, of the manager or of `tierce run`, who had a guarantee
/// has it again, or is told.
///
/// Without rules every request is passed through to admission control.
#[derive(Parser)]
#[command(name = "tierce-manager", version, after_help = EXAMPLES)]
struct Args {
    /// Rules and limits [default: /etc/tierce/manager.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A rule after those of the configuration: the name of one that comes with tierce, or a file [several]
    #[arg(long = "rule", value_name = "RULE")]
    rules: Vec<String>,
    /// Where programs ask
    #[arg(long, value_name = "PATH", default_value = LISTEN)]
    listen: PathBuf,
    /// Where the books are kept
    #[arg(long, value_name = "FILE", default_value = "/var/lib/tierce/manager.json")]
    books: PathBuf,
    /// Socket of the plan in force [default: $TIERCE_SOCKET or /run/tierce.sock]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Do not answer on D-Bus
    #[arg(long)]
    no_bus: bool,
    /// Change nothing: play requests, a line of JSON each from standard input, against this plan, and print the answers
    #[arg(long, value_name = "PLAN", conflicts_with_all = ["listen", "books", "socket"])]
    dry_run: Option<PathBuf>,
    /// With --dry-run: assume this number of CPUs
    #[arg(long, value_name = "N", requires = "dry_run", default_value_t = 1)]
    cpus: u32,
    /// With --dry-run: print JSON
    #[arg(long, requires = "dry_run")]
    json: bool,
}

impl Args {
    /// What is configured now.
    fn configuration(&self) -> Result<Config> {
        let usual = Path::new(CONFIG);
        let is_there = self.dry_run.is_none() && usual.is_file();
        config::read(self.config.as_deref().or(is_there.then_some(usual)), &self.rules)
    }
}

/// Where rules are configured.
const CONFIG: &str = "/etc/tierce/manager.toml";

const EXAMPLES: &str = "\
Examples:
  tierce-manager                                     answer requests, until Ctrl-C
  tierce-manager --rule most-important-first         with a rule that comes with tierce
  echo '{\"request\":\"request\",\"user\":1000,\"thread\":7,\"modes\":[{\"budget\":\"2ms\",\"period\":\"10ms\"}]}' |
      tierce-manager --dry-run examples/desktop.toml   what would be answered; no root, no kernel

Exit codes: 0 ended as requested; 2 the configuration is wrong, or the socket cannot be opened.";

/// Threads, users, promises and deadlines are looked at so often.
const LOOK: Duration = Duration::from_millis(500);

static STOP: AtomicBool = AtomicBool::new(false);
static RELOAD: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_signal: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

extern "C" fn reload(_signal: libc::c_int) {
    RELOAD.store(true, Ordering::Relaxed);
}

/// The arguments of `tierce-manager`.
pub fn command() -> clap::Command {
    Args::command()
}

/// The program `tierce-manager`.
pub fn main() -> ExitCode {
    let args = Args::parse();
    run(args).unwrap_or_else(|error| {
        eprintln!("tierce-manager: {error:#}");
        ExitCode::from(2)
    })
}

fn run(args: Args) -> Result<ExitCode> {
    if let Some(folder) = std::env::var_os(added::VARIABLE).filter(|path| !path.is_empty()) {
        added::load(Path::new(&folder))?;
    }
    // Rules may build values within values, which are dropped one within the other.
    let thread = std::thread::Builder::new().name("tierce-manager".into()).stack_size(STACK);
    let done = thread.spawn(move || manage(&args))?.join();
    done.unwrap_or_else(|_| bail!("the manager panicked"))
}

fn manage(args: &Args) -> Result<ExitCode> {
    let config = args.configuration()?;
    if let Some(plan) = &args.dry_run {
        let plan = Plan::load_with(plan, Options { cpus: args.cpus });
        let plan = plan.map_err(|faults| {
            eprint!("{}", faults.report());
            anyhow::anyhow!("the plan has faults")
        })?;
        dry_run::play(plan, config, std::io::stdin().lock(), args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let handlers =
        [(libc::SIGINT, stop as *const ()), (libc::SIGTERM, stop as _), (libc::SIGHUP, reload as _)];
    for (signal, handler) in handlers {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
    // SAFETY: whoever hangs up is noticed by the error of the write.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let books = read_books(&args.books)?;
    let people = People::of(Path::new("/"));
    let rates = Rates::new(people.clone());
    let mut server = Server::bind(&args.listen, rates.clone(), config.units.clone())?;
    let exit = || STOP.store(true, Ordering::Relaxed);
    let access = config.bus.access.clone();
    let (way, asks) = way::way()?;
    let bus = match args.no_bus {
        true => None,
        false => Some(Bus::open(config.bus.clone(), rates.clone(), way.clone(), exit)?),
    };
    if config.programs.recognise {
        programs::start(config.programs.clone(), rates, way.clone())?;
    }
    let mut daemon = Daemon::new(args, people, config, books);
    daemon.look(false);
    report(Level::Info, "manager_listens", &format!("the manager listens at {}", args.listen.display()), &[]);
    notify("READY=1");
    while !STOP.load(Ordering::Relaxed) {
        server.wait(asks.as_raw_fd(), daemon.until_next());
        if RELOAD.swap(false, Ordering::Relaxed) {
            daemon.reload();
        }
        server.turn(&mut |asker, ask| access.may_ask(asker, &ask).and_then(|()| daemon.ask(asker, ask)));
        // One at a time: those who ask over the socket have their turn before the next.
        if let Some(asked) = asks.next() {
            let answer = daemon.ask(&asked.asker, asked.ask.clone());
            asked.answer(answer);
        }
        if daemon.looked.elapsed() >= LOOK {
            daemon.look_at_users(&server);
            daemon.look_at_owners();
            daemon.look(server.is_watched_by_system() || bus.as_ref().is_some_and(Bus::is_watched_by_system));
        } else if daemon.is_due() {
            daemon.turn();
        }
        daemon.manager.go_on(now_ns());
        let notices = daemon.manager.take_notices();
        notices.iter().for_each(log);
        server.tell(&notices);
        bus.iter().for_each(|bus| bus.tell(&notices));
        daemon.save();
    }
    notify("STOPPING=1");
    Ok(ExitCode::SUCCESS)
}

/// What the system should know. Of missed deadlines, and of parts that are no requests, the loader tells it.
fn log(notice: &Notice) {
    let is_told = notice.what == What::DeadlineMissed || notice.part.is_some() && notice.id.is_none();
    if is_told {
        return;
    }
    if notice.to == Principal::System || notice.id.is_some() {
        let what = serde_json::to_value(notice.what).unwrap_or_default();
        let event = format!("request_{}", what.as_str().unwrap_or("noticed"));
        let to = notice.to.to_string();
        let id = notice.id.map_or_else(String::new, |id| id.to_string());
        let fields = [("principal", (&*to).into()), ("request", (&*id).into())];
        report(Level::Info, &event, &format!("{to}: {}", told(notice)), &fields);
    }
}

struct Daemon<'a> {
    args: &'a Args,
    people: People,
    presence: Presence,
    manager: tierce_manager::Manager<Control, Machine>,
    writer: Writer,
    saved: u64,
    /// Why the books could not be written, as it was last said.
    unwritten: Option<String>,
    looked: Instant,
    /// Why no plan can be asked, as it was last said.
    away: Option<String>,
    /// What any user can take by a name in the plan in force has been said.
    told_forgeable: bool,
    /// Broken promises and missed deadlines that were counted at the last look, and the number of the last thread that no longer matched.
    violations: Option<(Violations, u64)>,
    /// Of all parts of the plan, or only of those of requests.
    sees_all: bool,
    users: BTreeSet<u32>,
    /// There was a configuration at the usual place when this began.
    is_configured: bool,
}

impl<'a> Daemon<'a> {
    fn new(args: &'a Args, people: People, config: Config, books: Books) -> Self {
        let control = Control::new(socket::path(args.socket.clone()));
        let users = books.users.clone();
        let machine = Machine { people: people.clone(), gone: BTreeSet::new() };
        let presence = Presence::of(Path::new("/"), config.units);
        let manager = tierce_manager::Manager::new(control, machine, books, config.rules, config.limits);
        // Another number than any: books that have just been read are written once.
        let (saved, looked) = (u64::MAX, Instant::now());
        Self {
            args,
            people,
            presence,
            manager,
            writer: Writer::default(),
            saved,
            unwritten: None,
            looked,
            away: None,
            told_forgeable: false,
            violations: None,
            sees_all: false,
            users,
            is_configured: Path::new(CONFIG).is_file(),
        }
    }

    /// Rules and limits as they are configured now; those before, if these cannot be.
    fn reload(&mut self) {
        let is_gone = self.is_configured && self.args.config.is_none() && !Path::new(CONFIG).is_file();
        let config = match is_gone {
            true => Err(anyhow::anyhow!("{CONFIG} is gone")),
            false => self.args.configuration(),
        };
        match config {
            Ok(config) => {
                self.manager.set_rules(config.rules, config.limits);
                self.turn();
                report(Level::Info, "rules_reloaded", "rules and limits are as they are configured now", &[]);
            }
            Err(error) => {
                let message = format!("rules and limits stay as they were: {error:#}");
                report(Level::Warn, "rules_refused", &message, &[]);
            }
        }
    }

    fn ask(&mut self, asker: &Asker, ask: Ask) -> Result<Answer, Wrong> {
        let changes = match &ask {
            Ask::Request(wish) => !wish.dry_run,
            Ask::Divide(divide) => !divide.dry_run,
            Ask::Change(_) => true,
            _ => false,
        };
        if changes && self.unwritten.is_some() {
            self.save();
            self.written()?;
        }
        if let Ask::Request(wish) = &ask {
            let owner = wish.owner.clone().unwrap_or_else(|| asker.principal());
            self.presence.asks(&owner);
            self.manager.threads().gone.remove(&owner);
        }
        let is_new = matches!(ask, Ask::Request(_));
        let answer = self.manager.ask(asker, ask, now_ns())?;
        self.save(); // whoever hears of it may count on it
        if let (true, Err(wrong)) = (changes, self.written()) {
            if let Some(about) = answer.about.filter(|_| is_new) {
                // Nobody who cannot count on it has it. If it stays all the same, it is in the books as long as the manager runs.
                let _ = self.manager.ask(&Asker::SYSTEM, Ask::Cancel(Which { id: about.id }), now_ns());
            }
            return Err(wrong);
        }
        Ok(answer)
    }

    /// The books are in their file, or why not.
    fn written(&self) -> Result<(), Wrong> {
        match &self.unwritten {
            Some(why) => Err(Wrong::new("books_must_be_written", why.clone())),
            None => Ok(()),
        }
    }

    fn turn(&mut self) {
        let away = self.manager.turn(now_ns()).err().map(|wrong| wrong.to_string());
        if away != self.away {
            match &away {
                Some(why) => report(Level::Warn, "no_plan_in_force", why, &[]),
                None => report(Level::Info, "plan_in_force", "a plan is in force", &[]),
            }
            self.away = away;
        }
        if self.away.is_some() {
            self.told_forgeable = false;
        } else if !std::mem::replace(&mut self.told_forgeable, true) {
            let plan = self.manager.in_force().plan();
            let faults = plan.map_or_else(|_| String::new(), |plan| plan.forgeable().to_string());
            faults.lines().for_each(|line| report(Level::Warn, "match_can_be_forged", line, &[]));
        }
    }

    /// What nobody tells the manager. Parts of the plan that are no requests are looked at only if somebody wants to know.
    fn look(&mut self, system_watches: bool) {
        self.looked = Instant::now();
        self.turn();
        let heeded = PART_EVENTS.iter().any(|event| self.manager.heeds_of_system(event));
        let sees_all = system_watches || heeded;
        if self.away.is_some() || !sees_all && self.manager.books().requests.is_empty() {
            self.violations = None;
            return;
        }
        let names_begin = if sees_all { "" } else { PREFIX };
        let saw_all = std::mem::replace(&mut self.sees_all, sees_all);
        let is_meant = |part: &str| saw_all || part.starts_with(PREFIX);
        let Ok(snapshot) = self.manager.in_force().snapshot(names_begin) else { return };
        let before = self.violations.as_ref().map_or(u64::MAX, |(_, unmatched)| *unmatched);
        let Ok((last, unmatched)) = self.manager.in_force().unmatched(before) else { return };
        let Some((violations, before)) = &mut self.violations else {
            // What was before is nobody's news.
            self.violations.insert((Violations::default(), last)).0.since(&snapshot);
            return;
        };
        *before = last;
        for violation in violations.since(&snapshot).iter().filter(|it| is_meant(&it.part)) {
            self.manager.violated(violation);
        }
        for thread in unmatched.iter().filter(|it| is_meant(&it.name)) {
            self.manager.match_ended(thread);
        }
    }

    /// Who has a session, a connection or a request is there.
    fn look_at_users(&mut self, server: &Server) {
        let owners = self.manager.books().requests.values().filter_map(|request| request.owner.user());
        let mut users = self.people.sessions();
        users.extend(owners.map(|uid| self.people.person(uid)).chain(server.persons()));
        users.retain(|uid| *uid != NAMELESS);
        if self.away.is_some() {
            return;
        }
        users.difference(&self.users).for_each(|uid| self.manager.user_enters(*uid, now_ns()));
        self.users.difference(&users).for_each(|uid| self.manager.user_leaves(*uid, now_ns()));
        self.users = users;
    }

    /// Owners of requests that no thread ends are gone when nothing of them is left.
    fn look_at_owners(&mut self) {
        let all = self.manager.books().requests.values();
        let all = all.filter(|request| !matches!(request.target, Target::Thread { .. }));
        let owners: BTreeSet<&Principal> = all.map(|request| &request.owner).collect();
        if let Some(gone) = self.presence.gone(&owners, Instant::now()) {
            self.manager.threads().gone = gone;
        }
    }

    fn until_next(&self) -> Duration {
        if self.manager.is_behind() {
            return Duration::ZERO;
        }
        let look = LOOK.saturating_sub(self.looked.elapsed());
        let due = self.manager.next_ns().map(|due| Duration::from_nanos(due.saturating_sub(now_ns())));
        due.map_or(look, |due| look.min(due))
    }

    fn is_due(&self) -> bool {
        self.manager.next_ns().is_some_and(|due| due <= now_ns())
    }

    fn save(&mut self) {
        let revision = self.manager.revision();
        if revision != self.saved {
            match write_books(&self.args.books, &self.writer.written(self.manager.books())) {
                Ok(()) => {
                    self.saved = revision;
                    if self.unwritten.take().is_some() {
                        report(Level::Info, "books_written", "the books are written again", &[]);
                    }
                }
                Err(error) => {
                    let why = format!("{error:#}");
                    if self.unwritten.as_ref() != Some(&why) {
                        report(Level::Error, "books_not_written", &why, &[]);
                    }
                    self.unwritten = Some(why);
                }
            }
        }
    }
}

/// The books of the last run; if they cannot be read, new ones, with the old ones kept beside them.
fn read_books(path: &Path) -> Result<Books> {
    let boot = machine::boot();
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Books::new(boot)),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let text = String::from_utf8(bytes).map_err(|error| error.to_string());
    text.and_then(|text| Books::read(&text, &boot)).or_else(|why| {
        let aside = path.with_extension("unreadable");
        fs::rename(path, &aside).with_context(|| format!("{}: {why}", path.display()))?;
        let message =
            format!("{}: {why}; it is {} now, and new books begin", path.display(), aside.display());
        report(Level::Warn, "books_unreadable", &message, &[]);
        Ok(Books::new(boot))
    })
}

/// As a whole or not at all, whenever this process ends.
fn write_books(path: &Path, books: &[&str]) -> Result<()> {
    let shown = || format!("cannot write the books: {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(shown)?;
    }
    let new = path.with_extension("new");
    let _ = fs::remove_file(&new); // of a run that was killed
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).with_context(shown)?;
    books.iter().try_for_each(|part| file.write_all(part.as_bytes())).with_context(shown)?;
    fs::rename(&new, path).with_context(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn books_that_cannot_be_read_are_kept_beside_new_ones() {
        let folder = std::env::temp_dir().join(format!("tierce-books-{}", std::process::id()));
        let path = folder.join("manager.json");
        write_books(&path, &[&Books::new(machine::boot()).written()]).unwrap();
        assert_eq!(read_books(&path).unwrap(), Books::new(machine::boot()));
        fs::write(&path, "{").unwrap();
        assert_eq!(read_books(&path).unwrap(), Books::new(machine::boot()));
        assert_eq!(fs::read_to_string(folder.join("manager.unreadable")).unwrap(), "{");
        fs::write(&path, b"{\xff}").unwrap();
        assert_eq!(read_books(&path).unwrap(), Books::new(machine::boot()));
        assert_eq!(fs::read(folder.join("manager.unreadable")).unwrap(), b"{\xff}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn nothing_is_granted_while_the_books_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let books = file.join("manager.json"); // below a file
        let socket = folder.path().join("nobody.sock");
        let args =
            [Path::new("tierce-manager"), Path::new("--books"), &books, Path::new("--socket"), &socket];
        let args = Args::parse_from(args);
        let config = config::read(None, &[]).unwrap();
        let mut daemon = Daemon::new(&args, People::of(folder.path()), config, Books::new(machine::boot()));
        daemon.save();
        let ask = |daemon: &mut Daemon, dry_run| {
            let wish = tierce_manager::Wish { dry_run, ..Default::default() };
            daemon.ask(&Asker::user(1000), Ask::Request(Box::new(wish))).unwrap_err().rule
        };
        assert_eq!(ask(&mut daemon, false), "books_must_be_written");
        assert_eq!(ask(&mut daemon, true), "plan_must_be_in_force");
        fs::remove_file(&file).unwrap();
        assert_eq!(ask(&mut daemon, false), "plan_must_be_in_force", "they can be written again");
        assert!(books.is_file());
    }
}
