//! From a plan to a file of SimSo.

use crate::decimal::{gcd, show};
use crate::flat::{no_such_thing, work, Flat, Member, Order};
use crate::text::LeftOut;
use crate::xml::escaped;
use std::collections::HashMap;
use std::fmt::Write as _;
use tierce_plan::{Faults, Load, Plan, Spot, Work};

/// One millisecond in ns, and in cycles: a cycle is a nanosecond here.
const MS: u64 = 1_000_000;
/// Dates that are listed for a sporadic task.
const DATES_MAX: u64 = 1_000;
/// Nothing is simulated longer, unless one period is.
const LONGEST_NS: u64 = 10_000_000_000;

/// `plan` as a file of SimSo.
pub fn write(plan: &Plan) -> Result<(String, Vec<LeftOut>), Faults> {
    let mut flat = Flat::new(plan)?;
    flat.keep_those_in_use();
    let (class, field) = class(&flat)?;
    let members = std::mem::take(&mut flat.members);
    let duration_ns = duration(&members);
    let mut text = String::from("<?xml version=\"1.0\" ?>\n");
    let _ = writeln!(text, "<simulation cycles_per_ms=\"{MS}\" duration=\"{duration_ns}\" etm=\"wcet\">");
    let none = "overhead=\"0\" overhead_activate=\"0\" overhead_terminate=\"0\"";
    let _ = writeln!(text, "\t<sched class=\"simso.schedulers.{class}\" {none}/>");
    text += "\t<caches memory_access_time=\"100\"/>\n";
    let migration_ns = plan.machine.worst_migration_ns();
    let _ = writeln!(text, "\t<processors migration_overhead=\"{migration_ns}\">");
    let switch_ns = plan.machine.costs.switch_ns;
    for cpu in 1..=plan.machine.cpus {
        let costs = format!("cl_overhead=\"0\" cs_overhead=\"{switch_ns}\"");
        let _ = writeln!(text, "\t\t<processor {costs} id=\"{cpu}\" name=\"CPU {cpu}\" speed=\"1.0\"/>");
    }
    text += "\t</processors>\n\t<tasks>\n";
    if let Some(field) = field {
        let _ = writeln!(text, "\t\t<field name=\"{field}\" type=\"int\"/>");
    }
    let followers = followers(&mut flat, &members);
    for member in &members {
        flat.leave_bursts(member);
        flat.leave_regions(member);
    }
    for (number, member) in members.iter().enumerate() {
        let place = field.map(|field| {
            let cpu = flat.schedulers[member.scheduler].cpus[0] + 1;
            let value = if field == "cpu" { cpu.into() } else { member.priority };
            format!(" {field}=\"{value}\"")
        });
        let next = followers.get(&member.index).map(|next| format!(" followed_by=\"{next}\""));
        let more = place.unwrap_or_default() + &next.unwrap_or_default();
        text += &task(&mut flat, member, number, &more, duration_ns);
    }
    text += "\t</tasks>\n</simulation>\n";
    if plan.machine.costs.timer_ns > 0 {
        flat.leave(Spot::default(), "cost of timers", "SimSo has costs of switches and decisions");
    }
    for interrupt in &plan.machine.interrupts {
        flat.leave(interrupt.spot, "interrupts", "SimSo has none");
    }
    for lock in &plan.locks {
        flat.leave(lock.spot, format!("lock `{}`", lock.name), "SimSo has no shared resources");
    }
    Ok((text, flat.left_out))
}

/// SimSo's scheduler, and the field of tasks that it reads.
fn class(flat: &Flat) -> Result<(&'static str, Option<&'static str>), Faults> {
    let of_all = |cpus: &[u32]| cpus.len() == flat.plan.machine.cpus as usize;
    match &flat.schedulers[..] {
        [one] if of_all(one.cpus) && one.order == Order::Priority => Ok(("FP", Some("priority"))),
        [one] if of_all(one.cpus) => Ok(("EDF", None)),
        several => {
            let bad = several.iter().find(|one| one.order == Order::Priority || one.cpus.len() > 1);
            match bad {
                None => Ok(("Fixed_PEDF", Some("cpu"))),
                Some(bad) => {
                    let message = "SimSo has one scheduler: of all CPUs, or by deadlines on each CPU alone";
                    Err(no_such_thing(flat.plan, bad.node.spot, message))
                }
            }
        }
    }
}

/// Until all periods begin together, if that is not too long.
fn duration(members: &[Member]) -> u64 {
    let periods = || members.iter().filter_map(|member| member.load.shortest_period_ns());
    let mut all = 1u128;
    for period in periods() {
        all = all / gcd(all, period.into()) * u128::from(period);
        if all > LONGEST_NS.into() {
            break;
        }
    }
    let longest = periods().max().unwrap_or(MS);
    u64::try_from(all).unwrap_or(u64::MAX).min(LONGEST_NS.max(longest))
}

/// Which task each releases, by its id in the file.
fn followers(flat: &mut Flat, members: &[Member]) -> HashMap<usize, usize> {
    let ids: HashMap<usize, usize> =
        members.iter().enumerate().map(|(number, member)| (member.index, number + 1)).collect();
    let mut followers = HashMap::new();
    for member in members {
        let what = format!("what releases `{}`", member.task.name);
        match &flat.triggers[member.index].clone()[..] {
            [] => {}
            [(before, delay_ns)] => {
                if *delay_ns > 0 {
                    flat.leave(
                        member.task.spot,
                        format!("`delay` of `{}`", member.task.name),
                        "there are no delays",
                    );
                }
                if followers.contains_key(before) {
                    flat.leave(member.task.spot, what, "a task releases one other task only");
                } else {
                    followers.insert(*before, ids[&member.index]);
                }
            }
            _ => flat.leave(member.task.spot, what, "a task is released by one other task only"),
        }
    }
    for chain in &flat.plan.chains {
        let sampled =
            |link: &tierce_plan::Link| !matches!(flat.plan.tasks[link.task].load, Some(Load::Triggered(_)));
        if chain.links[1..].iter().any(sampled) {
            let why = "tasks with releases of their own that follow others are not known";
            flat.leave(chain.spot, format!("chain `{}`", chain.name), why);
        }
        if !chain.needs.is_empty() {
            flat.leave(chain.spot, format!("`needs` of chain `{}`", chain.name), "chains have no deadlines");
        }
    }
    followers
}

/// The line of a task; `more` are its other attributes.
fn task(flat: &mut Flat, member: &Member, number: usize, more: &str, duration_ns: u64) -> String {
    let (spot, name) = (member.task.spot, &member.task.name);
    let ms = |ns| show(ns, MS);
    let (kind, period_ns, begin_ns, dates) = match member.load {
        Load::Periodic(load) => ("Periodic", load.period_ns, load.phase_ns, String::new()),
        Load::Sporadic(load) => {
            let mut dates = vec![load.phase_ns];
            while dates.len() < 3
                || (dates[dates.len() - 1] < duration_ns && (dates.len() as u64) < DATES_MAX)
            {
                // The shortest distance and the longest in turn.
                let extra_ns = if dates.len() % 2 == 0 { load.extra_ns } else { 0 };
                dates.push(dates[dates.len() - 1] + load.separation_ns + extra_ns);
            }
            let dates: Vec<_> = dates.into_iter().map(ms).collect();
            ("Sporadic", load.separation_ns, 0, dates.join(", "))
        }
        other => ("APeriodic", other.shortest_period_ns().unwrap_or(MS), 0, String::new()),
    };
    if let Load::Periodic(load) = member.load {
        if load.jitter_ns > 0 {
            flat.leave(spot, format!("`jitter` of `{name}`"), "releases have no jitter");
        }
    }
    if !member.load.sections().is_empty() {
        flat.leave(spot, format!("`sections` of `{name}`"), "SimSo has no shared resources");
    }
    if member.load.is_soft() {
        flat.leave(spot, format!("`soft` of `{name}`"), "all deadlines count alike");
    }
    let worst_ns = work(member.load).map_or(0, Work::max_ns);
    if work(member.load).is_some_and(|work| work.min_ns() < worst_ns) {
        flat.leave(spot, format!("`work` of `{name}`"), "each job works the most that it may");
    }
    let mut deadline_ns = member.load.deadline_ns().unwrap_or(period_ns);
    if member.deadline_ns > 0 && member.deadline_ns != deadline_ns {
        flat.leave(
            spot,
            format!("deadline of the load of `{name}`"),
            "the one by which it is scheduled is in its place",
        );
        deadline_ns = member.deadline_ns;
    }
    format!(
        "\t\t<task name=\"{}\" id=\"{}\" task_type=\"{kind}\" abort_on_miss=\"no\" period=\"{}\" activationDate=\"{}\" \
         list_activation_dates=\"{dates}\" deadline=\"{}\" WCET=\"{}\" ACET=\"0\" et_stddev=\"0\" base_cpi=\"1.0\" \
         instructions=\"0\" mix=\"0.5\" preemption_cost=\"0\"{more}/>\n",
        escaped(name),
        number + 1,
        ms(period_ns),
        ms(begin_ns),
        ms(deadline_ns),
        ms(worst_ns),
    )
}
