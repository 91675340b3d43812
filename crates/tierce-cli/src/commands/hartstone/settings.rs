//! What the schedulers and the machine are given, and the plans that come of it.

use super::pools::{self, load, pool, stages, Task, STAGES_NS};
use super::results::Scheduler;
use crate::commands::time::{duration, time};
use clap::ValueEnum;
use serde_json::{json, Value};
use std::fmt::Write as _;
use std::path::PathBuf;
use tierce_admission::percent;
use tierce_plan::show_time;

/// Run the PH experiments of the Hartstone benchmark in the simulator: the load at the first missed deadline
///
/// Five periodic tasks of 2, 4, 8, 16, 32 Hz work 32, 16, 8, 4, 2 kilo-whets of 1.25 ms a job: 40 % of the CPU. Each step adds load:
/// in experiment 1 task 5 becomes 8 Hz faster, in 2 all become faster by a tenth, in 3 all work a kilo-whet more, in 4 there is another
/// task like task 3. Each step runs alone, from an empty start; an experiment ends with the first step in which a deadline is
/// missed. --extended is one run of 120 s: at 48 % until 30 s, at 120 % until 45 s, at 48 % again.
///
/// A deadline is the next release. A late job runs on and the next one waits for it: no job is skipped. A miss is a job that was not done
/// at its deadline, whether later or never. Periods are rounded up to whole nanoseconds.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Which
    #[arg(long, default_value = "all")]
    pub experiment: Experiment,
    /// Under which schedulers, several with commas
    #[arg(long, value_delimiter = ',', default_value = "all")]
    pub scheduler: Vec<Chosen>,
    /// 120 s, with an overload from 30 to 45 s, instead of step after step
    #[arg(long)]
    pub extended: bool,
    /// How long each step runs
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = duration, conflicts_with = "extended")]
    pub step_ns: u64,
    /// Show each step: load, misses, switches
    #[arg(long, conflicts_with = "json")]
    pub steps: bool,
    /// Write JSON (documented in docs/experiments/hartstone.md)
    #[arg(long)]
    pub json: bool,
    /// Draw the figures
    #[arg(long, value_name = "DIR")]
    pub plot: Option<PathBuf>,
    /// What figures are written as
    #[arg(long, value_name = "FORMAT", default_value = "png", requires = "plot", value_parser = ["png", "svg", "pdf"])]
    pub format: String,
    /// Write the plan of each step that runs, for `tierce sim`
    #[arg(long, value_name = "DIR")]
    pub plans: Option<PathBuf>,
    /// Show what a board has printed instead of simulating: files with a line of JSON for each step
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["plans", "step_ns"])]
    pub results: Vec<PathBuf>,
    #[command(flatten)]
    pub settings: Settings,
}

const EXAMPLES: &str = "\
Examples:
  tierce hartstone                                              all experiments, all schedulers
  tierce hartstone --experiment 1 --scheduler edf --steps       30 steps without a miss: 100 % of the CPU
  tierce hartstone --extended --plot figures                    120 s with an overload, as pictures
  tierce hartstone --scheduler edf,multiburst --switch 20us --json
  tierce hartstone --experiment 3 --scheduler edf --plans plans; tierce sim plans/experiment-3-step-7-edf.toml
  tierce hartstone --results board.json --plot figures --format pdf    what `make hartstone-board` has printed

Exit codes: 0 done, whatever was missed; 2 bad input.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    #[value(name = "1")]
    One,
    #[value(name = "2")]
    Two,
    #[value(name = "3")]
    Three,
    #[value(name = "4")]
    Four,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Chosen {
    /// Turns of equal length
    RoundRobin,
    /// Fixed priorities, the faster the higher
    Priority,
    /// The earliest deadline first
    Edf,
    /// Rounds kept by control loops, a burst for each task
    IPlusPi,
    /// The same with several bursts in a round
    Multiburst,
    All,
}

pub fn chosen(chosen: Chosen) -> Vec<Scheduler> {
    let one = match chosen {
        Chosen::RoundRobin => Scheduler::RoundRobin,
        Chosen::Priority => Scheduler::Priority,
        Chosen::Edf => Scheduler::Edf,
        Chosen::IPlusPi => Scheduler::IPlusPi,
        Chosen::Multiburst => Scheduler::Multiburst,
        Chosen::All => return Scheduler::ALL.to_vec(),
    };
    vec![one]
}

/// What the schedulers and the machine are given.
#[derive(clap::Args, Clone, Debug)]
pub struct Settings {
    /// Machine: CPU time of a switch to another task
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = time, allow_hyphen_values = true)]
    switch: u64,
    /// Machine: for a timer that goes off
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = time, allow_hyphen_values = true)]
    timer: u64,
    /// round-robin: turn of each task
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = duration)]
    quantum: u64,
    /// i-plus-pi, multiburst: set point of the round; 0ns: --burst for each task that wants the CPU
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = time)]
    round: u64,
    /// i-plus-pi, multiburst: nominal burst
    #[arg(long, value_name = "TIME", default_value = "3ms", value_parser = duration)]
    burst: u64,
    /// i-plus-pi, multiburst: no burst is shorter
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = duration)]
    least_burst: u64,
    /// i-plus-pi, multiburst: no burst is longer
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = duration)]
    largest_burst: u64,
    /// i-plus-pi: K_I
    #[arg(long, value_name = "RATIO", default_value = "0.25", value_parser = gain)]
    inner_gain: String,
    /// i-plus-pi: K_R
    #[arg(long, value_name = "RATIO", default_value = "0.9", value_parser = gain)]
    outer_gain: String,
    /// i-plus-pi: Z_R
    #[arg(long, value_name = "RATIO", default_value = "0.88", value_parser = gain)]
    outer_zero: String,
    /// i-plus-pi, multiburst: shares: a number for each of the five tasks (others are as task 3), `load`, or `equal`
    #[arg(long, value_name = "N,N,N,N,N|HOW", default_value = "2,20,156,1250,10000", value_parser = importance)]
    importance: Importance,
    /// multiburst: when a task runs after it wakes, one for each of the five tasks (others are as task 3), or one for all
    #[arg(long, value_name = "WAKE,…", value_parser = wakes,
        default_value = "end-of-round,end-of-round,after-burst,after-burst,immediate")]
    wake: Wakes,
}

/// Relative shares.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Importance {
    Load,
    Equal,
    Given([u64; 5]),
}

const IMPORTANCE_MAX: u64 = 10_000;

fn importance(text: &str) -> Result<Importance, String> {
    match text {
        "load" => return Ok(Importance::Load),
        "equal" => return Ok(Importance::Equal),
        _ => {}
    }
    let number = |word: &str| word.parse().ok().filter(|number| (1..=IMPORTANCE_MAX).contains(number));
    let numbers: Option<Vec<u64>> = text.split(',').map(number).collect();
    let five = numbers.and_then(|numbers| numbers.try_into().ok());
    five.map(Importance::Given)
        .ok_or_else(|| format!("load, equal, or five numbers from 1 to {IMPORTANCE_MAX} with commas"))
}

/// A decimal number; what it may be is for the plan to say.
fn gain(text: &str) -> Result<String, String> {
    let decimal = text.chars().all(|c| c.is_ascii_digit() || c == '.') && text.parse::<f64>().is_ok();
    if decimal {
        Ok(text.into())
    } else {
        Err("a decimal number, such as 0.25".into())
    }
}

/// Of each of the five tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wakes([&'static str; 5]);

const WAKES: [&str; 3] = ["immediate", "after-burst", "end-of-round"];

fn wakes(text: &str) -> Result<Wakes, String> {
    let known = |word: &str| WAKES.into_iter().find(|known| *known == word);
    let words: Option<Vec<_>> = text.split(',').map(known).collect();
    match words.as_deref() {
        Some([one]) => Ok(Wakes([one; 5])),
        Some([a, b, c, d, e]) => Ok(Wakes([a, b, c, d, e])),
        _ => Err(format!("one or five of {} with commas", WAKES.join(", "))),
    }
}

impl Settings {
    /// What a result depends on beside the experiment.
    pub fn in_json(&self, args: &Args) -> Value {
        json!({
            "kilo_whet_ns": pools::KILO_WHET_NS,
            "step_ns": if args.extended { None } else { Some(args.step_ns) },
            "stages_ns": if args.extended { Some(STAGES_NS) } else { None },
            "costs": { "switch_ns": self.switch, "timer_ns": self.timer },
            "round-robin": { "quantum_ns": self.quantum },
            "i-plus-pi": { "round_ns": self.round, "burst_ns": self.burst, "least_burst_ns": self.least_burst,
                "largest_burst_ns": self.largest_burst, "inner_gain": self.inner_gain, "outer_gain": self.outer_gain,
                "outer_zero": self.outer_zero, "importance": self.shares_in_json() },
            "multiburst": { "round_ns": self.round, "burst_ns": self.burst, "least_burst_ns": self.least_burst,
                "largest_burst_ns": self.largest_burst, "importance": self.shares_in_json(), "wake": self.wake.0 },
        })
    }

    pub fn shares_in_json(&self) -> Value {
        match &self.importance {
            Importance::Load => json!("load"),
            Importance::Equal => json!("equal"),
            Importance::Given(numbers) => json!(numbers),
        }
    }

    pub fn in_words(&self) -> String {
        let shares = match &self.importance {
            Importance::Load => "by load".to_string(),
            Importance::Equal => "equal".to_string(),
            Importance::Given(numbers) => numbers.map(|number| number.to_string()).join(","),
        };
        let wake = if self.wake.0.iter().all(|wake| *wake == self.wake.0[0]) {
            self.wake.0[0].to_string()
        } else {
            self.wake.0.join(",")
        };
        let round = match self.round {
            0 => format!("{} per task", show_time(self.burst)),
            ns => show_time(ns),
        };
        format!(
            "A switch costs {}, a timer {}. Round robin: turns of {}. I+PI and Multiburst: rounds of {round}, bursts of {} to {}, \
             importance {shares}; K_I {}, K_R {}, Z_R {}; wake {wake}.",
            show_time(self.switch),
            show_time(self.timer),
            show_time(self.quantum),
            show_time(self.least_burst),
            show_time(self.largest_burst),
            self.inner_gain,
            self.outer_gain,
            self.outer_zero
        )
    }

    /// The shares of tasks, the first five of which are those of the baseline.
    fn shares(&self, tasks: &[Task]) -> Vec<u64> {
        let asked = |task: &Task| task.centihertz * task.kilo_whets;
        let most = tasks.iter().map(asked).max().unwrap_or(1);
        let share = |(at, task): (usize, &Task)| match &self.importance {
            Importance::Load => (asked(task) * 1000).div_ceil(most),
            Importance::Equal => 100,
            Importance::Given(numbers) => *numbers.get(at).unwrap_or(&numbers[2]),
        };
        tasks.iter().enumerate().map(share).collect()
    }

    /// A plan in which each task has the load that is written here. `tasks`: the most that they ask for.
    fn plan(&self, scheduler: Scheduler, tasks: &[Task], loads: &[String], title: &str) -> String {
        let mut text = format!("# {title}\n\n");
        if self.switch > 0 || self.timer > 0 {
            let (switch, timer) = (show_time(self.switch), show_time(self.timer));
            let _ = writeln!(text, "[machine]\ncosts = {{ switch = \"{switch}\", timer = \"{timer}\" }}\n");
        }
        let policy = if scheduler == Scheduler::Priority { "fixed-priority" } else { scheduler.name() };
        let _ = writeln!(text, "[node.cpu0]\npolicy = \"{policy}\"\ncpu = 0");
        if scheduler == Scheduler::RoundRobin {
            let _ = writeln!(text, "quantum = \"{}\"", show_time(self.quantum));
        }
        if matches!(scheduler, Scheduler::IPlusPi | Scheduler::Multiburst) {
            for (name, ns) in [
                ("round", self.round),
                ("burst", self.burst),
                ("least_burst", self.least_burst),
                ("largest_burst", self.largest_burst),
            ] {
                let _ = writeln!(text, "{name} = \"{}\"", show_time(ns));
            }
        }
        if scheduler == Scheduler::IPlusPi {
            for (name, gain) in [
                ("inner_gain", &self.inner_gain),
                ("outer_gain", &self.outer_gain),
                ("outer_zero", &self.outer_zero),
            ] {
                let _ = writeln!(text, "{name} = \"{gain}\"");
            }
        }
        let shares = self.shares(tasks);
        for (at, (task, load)) in tasks.iter().zip(loads).enumerate() {
            let slower = tasks.iter().filter(|other| other.centihertz < task.centihertz).count();
            let share = shares[at];
            let wake = self.wake.0.get(at).unwrap_or(&self.wake.0[2]);
            let edge = match scheduler {
                Scheduler::RoundRobin | Scheduler::Edf => String::new(),
                Scheduler::Priority => format!(" priority = {} ", slower + 1),
                Scheduler::IPlusPi => format!(" importance = {share} "),
                Scheduler::Multiburst => format!(" importance = {share}, wake = \"{wake}\" "),
            };
            let _ = writeln!(text, "\n[task.{}]\nunder.cpu0 = {{{edge}}}\nload = {load}", task.name);
        }
        text
    }

    /// The plan of a step.
    pub fn step_plan(&self, experiment: u32, step: u32, scheduler: Scheduler) -> String {
        let tasks = pool(experiment, step);
        let name = scheduler.name();
        let title = format!(
            "Hartstone PH, experiment {experiment}, step {step}: {} of a CPU, {name}",
            percent(&load(&tasks))
        );
        let loads: Vec<_> = tasks.iter().map(|task| format!("{{ {}, soft = true }}", jobs(task))).collect();
        self.plan(scheduler, &tasks, &loads, &title)
    }

    /// The plan of the extended version.
    pub fn extended_plan(&self, experiment: u32, scheduler: Scheduler) -> String {
        let pools = stages(experiment).map(|step| pool(experiment, step));
        let load_of = |tasks: &[Task]| percent(&load(tasks));
        let title = format!(
            "Hartstone PH, extended, experiment {experiment}: {} of a CPU, from 30 s {}, from 45 s {}, {}",
            load_of(&pools[0]),
            load_of(&pools[1]),
            load_of(&pools[2]),
            scheduler.name()
        );
        let most = &pools[1];
        let staged = |task: &Task| {
            let of = |tasks: &[Task]| tasks.iter().find(|one| one.name == task.name).map(jobs);
            let [first, second, third] = [of(&pools[0]), of(most), of(&pools[2])];
            if let Some(always) = first.clone().filter(|_| first == second && second == third) {
                return format!("{{ {always}, soft = true }}");
            }
            let until = |end_ns: u64, jobs: Option<String>| {
                let jobs = jobs.map_or(String::new(), |jobs| format!(", {jobs}"));
                format!("{{ until = \"{}\"{jobs} }}", show_time(end_ns))
            };
            format!(
                "{{ stages = [{}, {}, {{ {} }}], soft = true }}",
                until(STAGES_NS[0], first),
                until(STAGES_NS[1], second),
                third.unwrap_or_default()
            )
        };
        let loads: Vec<_> = most.iter().map(staged).collect();
        self.plan(scheduler, most, &loads, &title)
    }
}

fn jobs(task: &Task) -> String {
    format!("period = \"{}\", work = \"{}\"", show_time(task.period_ns()), show_time(task.work_ns()))
}
