//! `tierce demo-table`: the end of `make demo`. Not a command to remember, so help does not show it.

use anyhow::{ensure, Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tierce_admission::PlanExt;
use tierce_plan::Plan;
use tierce_trace::units::{percent, time};
use tierce_trace::Report;

/// Put side by side what a plan guarantees, what the simulator said, what was measured (scripts/demo-guest)
#[derive(clap::Args)]
pub struct Args {
    /// The plan
    plan: PathBuf,
    /// The folder with simulated.json, tierce/, default/ and deadline/, and ordinary/ with tierce/ and default/
    folder: PathBuf,
}

/// The programs with deadlines, by the names of their tasks.
const PERIODIC: [&str; 2] = ["audio", "video"];
/// Who belongs to the node `desktop`, as the measurement calls them; the first two are its children in the plan.
const DESKTOP: [&str; 3] = ["build", "runaway", "others"];
/// Start of the measured time: by then all programs have started and were bound to the plan, in µs since rt-app's start.
const BEGIN_US: i64 = 1_000_000;
/// A share below its promise by less than this was kept, in 1/1000 of the CPU: clocks tick in 10 ms, and what ended during
/// the measurement is not counted.
const TOLERANCE: u64 = 10;

/// Run `tierce demo-table`.
pub fn run(args: Args) -> Result<ExitCode> {
    let plan = Plan::load(&args.plan).map_err(|faults| anyhow::anyhow!("{faults}"))?;
    let simulated = Simulated::read(&args.folder.join("simulated.json"))?;
    let read = |name| Measured::read(&args.folder.join(name));
    let measured = [read("tierce")?, read("default")?, read("deadline")?];
    let promises = Promises::new(&plan)?;
    let head = ["", "by the plan", "simulated", "measured here", "EEVDF, nice 0", "SCHED_DEADLINE"];
    let mut table = vec![head.map(String::from)];
    let mut kept = true;
    for name in PERIODIC {
        let deadline_ns = promises.deadline_ns(name)?;
        let jobs = side_by_side(simulated.jobs(name)?, &measured, |of| of.jobs(name))?;
        let shares = side_by_side(simulated.share(name)?, &measured, |of| of.share(&[name]))?;
        kept &= jobs[..2].iter().all(|jobs| jobs.late == 0);
        let late = jobs.each_ref().map(|jobs| format!("{} of {}", jobs.late, jobs.all));
        let longest = jobs.each_ref().map(|jobs| time(jobs.longest_ns));
        table.push(row(&format!("{name}: late jobs"), "none".into(), late));
        table.push(row("  longest response", format!("within {}", time(deadline_ns)), longest));
        table.push(row(
            "  of the CPU",
            format!("at most {}", promises.share(name)?.rounded_up()),
            shares.map(Share::text),
        ));
    }
    let promised = promises.share("desktop")?;
    let shares = side_by_side(simulated.share("desktop")?, &measured, |of| of.share(&DESKTOP))?;
    kept &= shares[..2].iter().all(|share| share.reaches(promised));
    table.push(row(
        "desktop (all others): of the CPU",
        format!("{} in the long run", promised.rounded_down()),
        shares.map(Share::text),
    ));
    let [build, runaway, _] = DESKTOP;
    let simulated = ratio(simulated.share(build)?, simulated.share(runaway)?);
    let ratios =
        side_by_side(simulated, &measured, |of| Ok(ratio(of.share(&[build])?, of.share(&[runaway])?)))?;
    kept &= ratios[..2].iter().all(|ratio| (975..=1025).contains(ratio));
    table.push(row(
        "  build : runaway",
        "1 : 1".into(),
        ratios.map(|ratio| format!("{}.{:02} : 1", ratio / 1000, ratio % 1000 / 10)),
    ));
    ordinary(&args.folder.join("ordinary"), &mut table)?;
    print!("{}", aligned(&table));
    println!(
        "\nThe same programs, {} of them (rt-app: audio, video; stress-ng: four workers of a build job, a runaway), one\n\
         second after their start, on one CPU. Then what programs that the plan does not name get done on two CPUs: 100 %\n\
         is under EEVDF, without Tierce. In the last column audio and video are in SCHED_DEADLINE, with the budgets and\n\
         periods of the plan, and all others under EEVDF. {}",
        time(measured[0].elapsed_ns),
        if kept { "Every guarantee was kept." } else { "A guarantee was NOT kept." }
    );
    Ok(ExitCode::from(u8::from(!kept)))
}

/// What programs that the plan does not name get done while it is in force on two CPUs: parts of what they do without it.
fn ordinary(folder: &Path, table: &mut Vec<[String; 6]>) -> Result<()> {
    const WHAT: [(&str, &str); 3] = [
        ("hackbench", "two CPUs: messages (hackbench)"),
        ("switch", "  switches (stress-ng)"),
        ("fork", "  processes begun (stress-ng)"),
    ];
    let [tierce, default] = [rates(&folder.join("tierce/work"))?, rates(&folder.join("default/work"))?];
    for (name, what) in WHAT {
        let rate =
            |rates: &[(String, f64)]| rates.iter().find(|(known, _)| known == name).map(|(_, rate)| *rate);
        let of = rate(&tierce).zip(rate(&default)).with_context(|| format!("{name} was not measured"))?;
        let here = format!("{:.0} %", 100.0 * of.0 / of.1);
        table.push([what, "", "", &here, "100 %", ""].map(String::from));
    }
    Ok(())
}

/// Lines of a name and a rate.
fn rates(path: &Path) -> Result<Vec<(String, f64)>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let line = |line: &str| {
        let (name, rate) = line.split_once(' ')?;
        Some((name.to_string(), rate.parse::<f64>().ok().filter(|rate| *rate > 0.0)?))
    };
    let lines: Option<Vec<_>> = text.lines().map(line).collect();
    lines.with_context(|| format!("{}: not lines of a name and a rate", path.display()))
}

/// What was simulated, and what was measured: with Tierce, by default, in SCHED_DEADLINE.
fn side_by_side<T>(
    simulated: T,
    measured: &[Measured; 3],
    of: impl Fn(&Measured) -> Result<T>,
) -> Result<[T; 4]> {
    let [tierce, default, deadline] = measured;
    Ok([simulated, of(tierce)?, of(default)?, of(deadline)?])
}

fn row(what: &str, promised: String, [simulated, tierce, default, deadline]: [String; 4]) -> [String; 6] {
    [what.into(), promised, simulated, tierce, default, deadline]
}

/// Columns: the first to the left, the others to the right, a line under the head.
fn aligned(table: &[[String; 6]]) -> String {
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    let mut text = String::new();
    for (index, cells) in table.iter().enumerate() {
        let right = (1..6).map(|column| format!("  {:>width$}", cells[column], width = widths[column]));
        text += &format!("{:<width$}{}\n", cells[0], right.collect::<String>(), width = widths[0]);
        if index == 0 {
            text += &format!("{}\n", "─".repeat(widths.iter().sum::<usize>() + 10));
        }
    }
    text
}

/// Part of `per`, in 1/1000.
fn ratio(part: Share, per: Share) -> u64 {
    let (above, below) = (
        u128::from(part.part_ns) * u128::from(per.whole_ns),
        u128::from(per.part_ns) * u128::from(part.whole_ns),
    );
    (above * 1000).checked_div(below).unwrap_or(0) as u64
}

/// What the plan promises.
struct Promises<'a> {
    plan: &'a Plan,
    verdict: serde_json::Value,
}

impl<'a> Promises<'a> {
    fn new(plan: &'a Plan) -> Result<Self> {
        let admission = plan.admit();
        ensure!(admission.holds, "{}: the plan does not hold", plan.name);
        Ok(Promises { plan, verdict: admission.to_json(plan) })
    }

    /// The share that is available to a task or node whatever others do.
    fn share(&self, name: &str) -> Result<Share> {
        let parts = ["tasks", "nodes"].iter().filter_map(|list| self.verdict[list].as_array()).flatten();
        let share =
            parts.into_iter().find(|part| part["name"] == name).and_then(|part| part["available"].as_str());
        let share =
            share.with_context(|| format!("{}: what is available to {name} is not known", self.plan.name))?;
        let (part, whole) = share.split_once('/').unwrap_or((share, "1"));
        Ok(Share { part_ns: part.parse()?, whole_ns: whole.parse()? })
    }

    fn deadline_ns(&self, name: &str) -> Result<u64> {
        let task = self.plan.tasks.iter().find(|task| task.name == name);
        let deadline_ns = task.and_then(|task| task.load.as_ref()).and_then(|load| load.deadline_ns());
        deadline_ns.with_context(|| format!("{}: {name} has no deadlines", self.plan.name))
    }
}

/// Some of a time.
#[derive(Clone, Copy)]
struct Share {
    part_ns: u64,
    whole_ns: u64,
}

impl Share {
    fn text(self) -> String {
        percent(self.part_ns, self.whole_ns)
    }

    /// Of a lower bound: no more than is guaranteed.
    fn rounded_down(self) -> String {
        let hundredths = u128::from(self.part_ns) * 10_000 / u128::from(self.whole_ns.max(1));
        percent(hundredths as u64, 10_000)
    }

    /// Of an upper bound.
    fn rounded_up(self) -> String {
        let hundredths = (u128::from(self.part_ns) * 10_000).div_ceil(u128::from(self.whole_ns.max(1)));
        percent(hundredths as u64, 10_000)
    }

    /// Whether it is that share, or less by no more than the tolerance.
    fn reaches(self, promised: Share) -> bool {
        let [part, whole] = [self.part_ns, self.whole_ns].map(u128::from);
        let [promised, of] = [promised.part_ns, promised.whole_ns].map(u128::from);
        1000 * part * of + u128::from(TOLERANCE) * whole * of >= 1000 * promised * whole
    }
}

/// The jobs of one program.
#[derive(Debug, PartialEq, Eq, Default)]
struct Jobs {
    all: u64,
    late: u64,
    longest_ns: u64,
}

/// What the simulator said.
struct Simulated(Report);

impl Simulated {
    fn read(path: &Path) -> Result<Self> {
        let text = fs::read(path).with_context(|| path.display().to_string())?;
        Ok(Simulated(serde_json::from_slice(&text).with_context(|| path.display().to_string())?))
    }

    fn share(&self, name: &str) -> Result<Share> {
        let tasks = self.0.tasks.iter().map(|task| (&task.name, task.cpu_ns));
        let nodes = self.0.nodes.iter().map(|node| (&node.name, node.cpu_ns));
        let found = tasks.chain(nodes).find(|(known, _)| *known == name);
        let (_, part_ns) = found.with_context(|| format!("{name} was not simulated"))?;
        Ok(Share { part_ns, whole_ns: self.0.elapsed_ns })
    }

    fn jobs(&self, name: &str) -> Result<Jobs> {
        let task = self.0.tasks.iter().find(|task| task.name == name);
        let task = task.with_context(|| format!("{name} was not simulated"))?;
        let longest_ns = task.response_ns.map_or(0, |spread| spread.max);
        Ok(Jobs { all: task.jobs, late: task.misses, longest_ns })
    }
}

/// What the guest measured under one scheduler.
struct Measured {
    folder: PathBuf,
    elapsed_ns: u64,
    cpu_ns: Vec<(String, u64)>,
}

impl Measured {
    fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("cpu");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let line = |line: &str| {
            let (name, number) = line.split_once(' ')?;
            Some((name.to_string(), number.parse::<u64>().ok()?))
        };
        let lines: Option<Vec<_>> = text.lines().map(line).collect();
        let mut cpu_ns =
            lines.with_context(|| format!("{}: not lines of a name and a number", path.display()))?;
        let (last, ms) = cpu_ns.pop().with_context(|| format!("{}: empty", path.display()))?;
        ensure!(last == "ms" && ms > 0, "{}: does not end with the measured time", path.display());
        Ok(Measured { folder: folder.into(), elapsed_ns: ms * 1_000_000, cpu_ns })
    }

    /// What programs of these names got together.
    fn share(&self, names: &[&str]) -> Result<Share> {
        let mut part_ns = 0;
        for name in names {
            let found = self.cpu_ns.iter().find(|(known, _)| known == name);
            part_ns += found.with_context(|| format!("{name} was not measured"))?.1;
        }
        Ok(Share { part_ns, whole_ns: self.elapsed_ns })
    }

    fn jobs(&self, program: &str) -> Result<Jobs> {
        jobs_in(&self.folder, program)
    }
}

/// What rt-app says in that folder about the jobs of a program.
fn jobs_in(folder: &Path, program: &str) -> Result<Jobs> {
    let here = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut logs = here.filter_map(|entry| Some(entry.ok()?.path()));
    let ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".log") && name.contains(program)
    };
    let path = logs.find(ours).with_context(|| format!("rt-app left no log of {program}"))?;
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    rt_app_jobs(&text).with_context(|| path.display().to_string())
}

/// A line per job: idx, perf, run, period, start, end, rel_st, slack, c_duration, c_period, wu_lat, in µs. Slack is what
/// was left of the period when the work was done; negative, the job was late. Jobs of the first second are left out.
fn rt_app_jobs(text: &str) -> Result<Jobs> {
    let mut jobs = Jobs::default();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let numbers: Vec<i64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [.., start_us, slack_us, _, period_us, _] = numbers[..] else {
            anyhow::bail!("not a line of rt-app's log: {line}");
        };
        if start_us < BEGIN_US {
            continue;
        }
        jobs.all += 1;
        jobs.late += u64::from(slack_us < 0);
        jobs.longest_ns = jobs.longest_ns.max(period_us.saturating_sub(slack_us).max(0) as u64 * 1000);
    }
    ensure!(jobs.all > 0, "no job in it");
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_an_rt_app_log() {
        let log =
            "# Policy : SCHED_OTHER priority : 0\n#idx perf run period start end rel_st slack c_duration\n\
                   \x20 0  4787  1829   7960  9728068  97360288122122   4701  1800  10000  1427\n\
                   \x20 0  4787 29842  29843 10947102 10976945  12271000  -2723  1800  10000     0\n\
                   \x20 0  4787 29842  29843 10947102 10976945  12271  -2723  1800  10000     0\n";
        assert_eq!(rt_app_jobs(log).unwrap(), Jobs { all: 2, late: 1, longest_ns: 12_723_000 });
        assert!(rt_app_jobs("# nothing\n").is_err());
        assert!(rt_app_jobs("a b c\n").is_err());
    }

    #[test]
    fn shares_within_the_tolerance() {
        let share = |part_ns| Share { part_ns, whole_ns: 1000 };
        let quarter = Share { part_ns: 1, whole_ns: 4 };
        assert!(share(250).reaches(quarter) && share(240).reaches(quarter));
        assert!(!share(239).reaches(quarter));
        assert_eq!((ratio(share(500), quarter), ratio(quarter, share(0))), (2000, 0));
        let third = Share { part_ns: 2, whole_ns: 3 };
        assert_eq!((third.rounded_down(), third.rounded_up()), ("66.66 %".into(), "66.67 %".into()));
        assert_eq!((quarter.rounded_down(), quarter.rounded_up()), ("25.00 %".into(), "25.00 %".into()));
    }

    #[test]
    fn columns_line_up() {
        let line = |words: [&str; 6]| words.map(String::from);
        let text = aligned(&[line(["", "a", "b", "c", "d", "e"]), line(["x µs", "10", "2", "3", "4", "5"])]);
        let lengths: Vec<_> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(lengths, [lengths[0]; 3]);
    }
}
