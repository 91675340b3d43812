//! `tierce calibrate`: which reservation does a program need?

mod output;
mod watching;

use super::time;
use anyhow::{anyhow, bail, ensure, Context, Result};
use clap::ValueEnum;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tierce_admission::PlanExt;
use tierce_calibrate::{
    analyse, of_machine, of_program, plan, Calibration, Chance, Importance, Layer, Margin, Profile, Routine,
    Seen, Store, Stored,
};
use tierce_plan::Plan;
use tierce_scx::routines::Routine as At;
use watching::{watch, Of, Thread as Watched, Watching};

/// Find the periods and the work of a program's threads, and write its profile (root)
///
/// Runs a program, or watches one that runs, without a plan in force. From the sleeping and waking of each thread it finds the periods and
/// the CPU time of the jobs, and proposes a reservation. Threads without a period are named as such. The profile is kept, for
/// plans and to see later whether it still fits. Ctrl-C ends the watching, not the program's profile. Do this on an idle machine.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Watch all threads of this process and of those that it has started
    #[arg(long, value_name = "PID", conflicts_with_all = ["tid", "program", "list", "show", "check"])]
    pid: Option<u32>,
    /// Watch this thread alone
    #[arg(long, value_name = "TID", conflicts_with_all = ["program", "list", "show", "check"])]
    tid: Option<u32>,
    /// Watch for this long [default: until the program ends; 10s with --pid and --tid]
    #[arg(long = "for", value_name = "TIME", value_parser = time::duration)]
    duration_ns: Option<u64>,
    /// Watch although a plan is in force. Periods and work are right for threads that get as much as they need; the report says for how long
    /// each has waited
    #[arg(long, conflicts_with_all = ["program", "list", "show", "check"])]
    under_plan: bool,
    /// With --pid: watch this process, and none of those that it has started or starts
    #[arg(long, requires = "pid", conflicts_with_all = ["tid", "program", "list", "show", "check"])]
    alone: bool,
    /// How much the deadlines matter. low: the work of 90 % of the jobs and 5 %; normal: of 99 % and 10 %; high: of all and 20 %
    /// [default: normal]
    #[arg(long)]
    importance: Option<Matters>,
    /// What a budget has beyond the work, instead of that of the importance: 20%
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    margin: Option<u32>,
    /// Where to keep the profile
    #[arg(long, value_name = "WHERE", default_value = "machine")]
    layer: Where,
    /// Write the profile to this file instead
    #[arg(long, value_name = "FILE", conflicts_with = "layer")]
    out: Option<PathBuf>,
    /// Keep no profile
    #[arg(long, conflicts_with_all = ["layer", "out"])]
    dry_run: bool,
    /// Print a plan that gives each periodic thread its reservation
    #[arg(long, conflicts_with = "json")]
    plan: bool,
    /// Write JSON (documented in docs/calibrate.md)
    #[arg(long)]
    json: bool,
    /// List the profiles there are
    #[arg(long, conflicts_with_all = ["program", "show", "check", "plan"])]
    list: bool,
    /// Show the profile of a program
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["program", "check"])]
    show: Option<PathBuf>,
    /// Does the profile of a program still fit: the same executable, libraries, kernel, processor?
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["program", "plan"])]
    check: Option<PathBuf>,
    /// Seed of the Poisson processes with which wake-ups are compared
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The program to run, and its arguments
    #[arg(last = true)]
    program: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  sudo tierce calibrate --for 10s -- /usr/bin/player film.mkv
  sudo tierce calibrate --pid 1234 --importance high
  sudo tierce calibrate --for 10s --plan -- player film.mkv >player.toml
  sudo tierce calibrate --under-plan --pid 1234
  tierce calibrate --list
  tierce calibrate --check player

Exit codes: 0 a period was found, the profile fits, or it is shown; 1 no thread has a period, the profile no longer fits, or the plan does
not hold; 2 bad input or environment.";

#[derive(Clone, Copy, ValueEnum)]
enum Matters {
    Low,
    Normal,
    High,
}

#[derive(Clone, Copy, ValueEnum)]
enum Where {
    /// /usr/share/tierce/profiles
    Vendor,
    /// /etc/tierce/profiles
    System,
    /// /var/lib/tierce/profiles
    Machine,
    /// ~/.config/tierce/profiles
    User,
}

impl From<Where> for Layer {
    fn from(layer: Where) -> Layer {
        match layer {
            Where::Vendor => Layer::Vendor,
            Where::System => Layer::System,
            Where::Machine => Layer::Machine,
            Where::User => Layer::User,
        }
    }
}

/// Whole percent, of which more than 1000 are a mistake.
fn percent(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse() {
        Ok(percent @ 0..=1000) => Ok(percent),
        _ => Err("whole percent, bound 0% to 1000%".into()),
    }
}

impl Args {
    fn importance(&self) -> Option<Importance> {
        self.importance.map(|importance| match importance {
            Matters::Low => Importance::Low,
            Matters::Normal => Importance::Normal,
            Matters::High => Importance::High,
        })
    }

    /// What to watch, and for how long.
    fn of(&self) -> Result<(Of, Option<Duration>)> {
        let given = self.duration_ns.map(Duration::from_nanos);
        let some = given.or(Some(Duration::from_secs(10)));
        Ok(match (self.pid, self.tid, self.program.as_slice()) {
            (Some(pid), ..) => (Of::Process(pid), some),
            (_, Some(tid), _) => (Of::Thread(tid), some),
            (_, _, [program, arguments @ ..]) => {
                let (program, arguments) = (program.clone(), arguments.to_vec());
                // What the program prints is not to be mixed with what we do.
                (Of::Program { program, arguments, quiet: self.json || self.plan }, given)
            }
            _ => bail!(
                "program_must_be_given: what to watch? `tierce calibrate -- PROGRAM`, --pid PID, --tid TID; or --list, --show, --check"
            ),
        })
    }
}

/// Run `tierce calibrate`.
pub fn run(args: Args) -> Result<ExitCode> {
    let store = Store::of_this_machine();
    if args.list {
        return list(&store, args.json);
    }
    if let Some(program) = &args.show {
        let stored = find(&store, program)?;
        let mut profile = stored.profile.clone();
        if args.importance.is_some() || args.margin.is_some() {
            let importance = args.importance().unwrap_or(profile.calibration.importance);
            profile = profile.with(importance, args.margin.map_or(importance.into(), Margin));
        }
        return show(&args, &[(profile, Some(stored.file))], &[]);
    }
    if let Some(program) = &args.check {
        return check(&find(&store, program)?, args.json);
    }
    let (of, duration) = args.of()?;
    let watching = watch(&of, duration, args.under_plan)?;
    let (profiles, mut remarks) = profiles(&args, &watching)?;
    let kept = profiles.into_iter().map(|profile| {
        let file = match &args.out {
            _ if args.dry_run => None,
            Some(file) => {
                std::fs::write(file, profile.to_string()).with_context(|| file.display().to_string())?;
                Some(file.clone())
            }
            None => Some(store.keep(args.layer.into(), &profile)?),
        };
        Ok((profile, file))
    });
    let kept = kept.collect::<Result<Vec<_>>>()?;
    if kept.is_empty() {
        remarks.push("nothing was watched that has a program of its own".into());
    }
    show(&args, &kept, &remarks)
}

/// A profile for each program with a period, and one for the first program in any case; and what there is to say of them.
fn profiles(args: &Args, watching: &Watching) -> Result<(Vec<Profile>, Vec<String>)> {
    let importance = args.importance().unwrap_or_default();
    let margin = args.margin.map_or(importance.into(), Margin);
    let calibration = Calibration {
        watched_ns: watching.duration().as_nanos() as u64,
        lost: watching.lost,
        importance,
        margin,
    };
    let (mut chance, mut by_program) = (Chance::new(args.seed), BTreeMap::<&Path, Vec<Seen>>::new());
    let (mut nameless, mut functions) = (0, BTreeMap::new());
    let mut routine = |at: &At| {
        let function = functions.entry(at.clone()).or_insert_with(|| at.function()).clone();
        Routine { place: at.to_string(), function }
    };
    let is_meant = |thread: &&Watched| !args.alone || args.pid == Some(thread.process);
    let threads: Vec<&Watched> = watching.threads.iter().filter(is_meant).collect();
    for thread in &threads {
        match watching.programs.get(&thread.process) {
            Some(program) => by_program.entry(&program.path).or_default().push(Seen {
                name: thread.name.clone(),
                routine: thread.routine.as_ref().map(&mut routine),
                process: program.name.clone(),
                finding: analyse(&thread.watched, &mut chance),
            }),
            None => nameless += 1,
        }
    }
    let first = threads.iter().find_map(|thread| watching.programs.get(&thread.process));
    let (machine, mut profiles) = (of_machine(Path::new("/")), Vec::new());
    for (path, seen) in by_program {
        let of_it = watching.programs.values().filter(|program| program.path == path);
        let mapped = of_it.flat_map(|program| program.mapped.iter().cloned()).collect();
        let program = of_program(path, &mapped).with_context(|| path.display().to_string())?;
        let profile = Profile::new(program, machine.clone(), calibration, &seen);
        if profile.has_period() || first.is_some_and(|first| first.path == path) {
            profiles.push(profile);
        }
    }
    if let Some(file) = args.out.as_ref().filter(|_| profiles.len() > 1) {
        let paths: Vec<String> =
            profiles.iter().map(|it| it.program.executable.path.display().to_string()).collect();
        bail!(
            "one_file_has_one_profile: --out {}: there are profiles of {}; use --layer",
            file.display(),
            paths.join(", ")
        );
    }
    Ok((profiles, output::remarks(watching, nameless)))
}

/// Show profiles, each with the file that it is kept in.
fn show(args: &Args, kept: &[(Profile, Option<PathBuf>)], remarks: &[String]) -> Result<ExitCode> {
    let mut code = u8::from(!kept.iter().any(|(profile, _)| profile.has_period()));
    if args.plan {
        let profiles: Vec<&Profile> = kept.iter().map(|(profile, _)| profile).collect();
        // SAFETY: no arguments that could be wrong.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        let text = plan(&profiles, u32::try_from(cpus).unwrap_or(1).clamp(1, tierce_policy::CPUS_MAX));
        print!("{text}");
        remarks.iter().for_each(|remark| eprintln!("tierce: {remark}"));
        if let Err(reason) = holds(&text) {
            eprintln!("tierce: the plan does not hold on this machine: {reason}");
            code = 1;
        }
    } else if args.json {
        println!("{}", serde_json::to_string_pretty(&output::to_json(kept, remarks))?);
    } else {
        print!("{}", output::tables(kept, remarks));
    }
    Ok(ExitCode::from(code))
}

/// Whether `tierce check` accepts the plan; if not, why.
fn holds(text: &str) -> Result<()> {
    let plan = Plan::parse(text, "plan").map_err(|faults| anyhow!("{faults}"))?;
    let admission = plan.admit();
    ensure!(admission.holds, "{}", admission.faults(&plan));
    Ok(())
}

/// The file of a program, as the kernel names it: without links.
fn resolved(program: &Path) -> Result<PathBuf> {
    let found = if program.components().count() > 1 {
        Some(program.to_path_buf())
    } else {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::env::split_paths(&folders).map(|folder| folder.join(program)).collect::<Vec<_>>();
        paths.into_iter().find(|path| path.is_file())
    };
    let missing =
        || format!("program_must_exist: {}: no such program, in PATH or as a path", program.display());
    found.and_then(|path| path.canonicalize().ok()).with_context(missing)
}

fn find(store: &Store, program: &Path) -> Result<Stored> {
    // The program may be gone, and its profile still there.
    let path = match resolved(program) {
        Ok(path) => path,
        Err(_) if program.is_absolute() => program.into(),
        Err(error) => return Err(error),
    };
    let missing = || {
        let shown = path.display();
        format!("profile_must_exist: there is no profile of {shown}; `tierce calibrate -- {shown}` makes one, --list shows those there are")
    };
    store.find(&path)?.with_context(missing)
}

fn list(store: &Store, json: bool) -> Result<ExitCode> {
    let (stored, wrong) = store.list();
    let machine = of_machine(Path::new("/"));
    if json {
        let one = |stored: &Stored| {
            let changes: Vec<String> =
                stored.profile.changes(&machine).iter().map(ToString::to_string).collect();
            json!({ "program": stored.profile.program.executable.path, "layer": stored.layer.name(), "file": stored.file,
                "fits": changes.is_empty(), "changes": changes })
        };
        let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        let all = json!({ "version": output::VERSION, "profiles": stored.iter().map(one).collect::<Vec<_>>(), "wrong": wrong });
        println!("{}", serde_json::to_string_pretty(&all)?);
    } else {
        print!("{}", output::list(&stored, &machine));
        wrong.iter().for_each(|error| eprintln!("tierce: {error}"));
    }
    Ok(ExitCode::from(if wrong.is_empty() { 0 } else { 2 }))
}

fn check(stored: &Stored, json: bool) -> Result<ExitCode> {
    let changes = stored.profile.changes(&of_machine(Path::new("/")));
    let program = stored.profile.program.executable.path.display();
    if json {
        let list: Vec<_> = changes
            .iter()
            .map(|change| json!({ "what": change.what, "was": change.was, "is": change.is }))
            .collect();
        let all = json!({ "version": output::VERSION, "program": stored.profile.program.executable.path, "file": stored.file,
            "fits": changes.is_empty(), "changes": list });
        println!("{}", serde_json::to_string_pretty(&all)?);
    } else if changes.is_empty() {
        println!("{program}: the profile fits: {}", stored.file.display());
    } else {
        println!("{program}: the profile no longer fits: {}", stored.file.display());
        changes.iter().for_each(|change| println!("  {change}"));
        println!("Measure it again: tierce calibrate -- {program} …");
    }
    Ok(ExitCode::from(u8::from(!changes.is_empty())))
}
