//! Locks: the three tasks of every textbook with each protocol, and random plans, which never take longer than `tierce check` says.
//!
//! TIERCE_SEEDS=FROM..TO plays other plans than the usual ones.

mod common;

use common::{parse, report_of, seeds, seen::Seen, within_bounds, Maker, MS};
use std::fmt::Write;
use tierce_admission::{Deadlines, PlanExt};
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation};

/// Low has the lock for 2 ms from 0 on; high comes at 1 ms and wants it after 0.5 ms; so does middle, for 5 ms, without a lock.
fn inversion(policy: &str, protocol: &str) -> Plan {
    let under = |priority: u32, deadline: &str| match policy {
        "edf" => format!("under.top = {{ deadline = \"{deadline}\" }}"),
        _ => format!("under.top = {{ priority = {priority} }}"),
    };
    parse(&format!(
        r#"
        [lock.bus]
        protocol = "{protocol}"
        [node.top]
        policy = "{policy}"
        cpu = 0
        [task.high]
        {}
        load = {{ period = "10ms", phase = "1ms", work = "2ms", sections = [{{ lock = "bus", at = "500us", length = "1ms" }}] }}
        [task.middle]
        {}
        load = {{ period = "20ms", phase = "1ms", work = "5ms" }}
        [task.low]
        {}
        load = {{ period = "40ms", work = "4ms", sections = [{{ lock = "bus", length = "2ms" }}] }}
        "#,
        under(3, "10ms"),
        under(2, "20ms"),
        under(1, "40ms")
    ))
}

/// Longest responses in us, of high, middle and low, and how long high waited.
fn played(policy: &str, protocol: &str) -> [u64; 4] {
    let report = report_of(&inversion(policy, protocol), 1, 11 * MS + 1);
    let worst = |task: usize| report.tasks[task].response_ns.as_ref().unwrap().max / 1000;
    [worst(0), worst(1), worst(2), report.tasks[0].lock_waits.map_or(0, |waits| waits.max_ns / 1000)]
}

#[test]
fn the_inversion_of_three_tasks() {
    // Until 6.5 ms the middle one runs, then low leaves the lock at 7.5 ms.
    assert_eq!(played("fixed-priority", "none"), [8_000, 5_500, 11_000, 6_000]);
    // Low runs in place of high from 1.5 to 2.5 ms.
    assert_eq!(played("fixed-priority", "inheritance"), [3_000, 8_000, 11_000, 1_000]);
    assert_eq!(played("fixed-priority", "ceiling"), [3_000, 8_000, 11_000, 1_000]);
    // High begins when low has left the lock.
    assert_eq!(played("fixed-priority", "immediate-ceiling"), [3_000, 8_000, 11_000, 1_000]);
    assert_eq!(played("edf", "inheritance"), [3_000, 8_000, 11_000, 1_000]);
    assert_eq!(played("edf", "srp"), [3_000, 8_000, 11_000, 1_000]);
}

/// Of the longest wait: of whom, for how long; how long the holder ran meanwhile, and who else did.
fn waited(protocol: &str) -> (String, u64, u64, Vec<(String, u64)>) {
    let report = report_of(&inversion("fixed-priority", protocol), 1, 11 * MS + 1);
    let [waited] = &report.lock_waits[..] else { panic!("{protocol}: {:?}", report.lock_waits) };
    assert_eq!((&*waited.task, &*waited.lock, waited.count, waited.waits), ("high", "bus", 1, false));
    (waited.holder.clone().unwrap(), waited.longest_ns, waited.holder_ran_ns, waited.others_ran.clone())
}

#[test]
fn it_is_known_who_ran_while_the_holder_did_not() {
    let inverted = vec![("middle".to_string(), 5 * MS)];
    assert_eq!(waited("none"), ("low".into(), 6 * MS, MS, inverted));
    for protocol in ["inheritance", "ceiling", "immediate-ceiling"] {
        assert_eq!(waited(protocol), ("low".into(), MS, MS, Vec::new()), "{protocol}");
    }
}

#[test]
fn check_says_how_long_each_may_wait() {
    for protocol in ["inheritance", "ceiling", "immediate-ceiling"] {
        let plan = inversion("fixed-priority", protocol);
        let verdict = plan.admit();
        assert!(verdict.holds, "{}", verdict.faults(&plan));
        let bounds: Vec<_> =
            verdict.tasks.iter().map(|task| task.response.and_then(|found| found.ns())).collect();
        assert_eq!(bounds, [Some(4 * MS), Some(9 * MS), Some(13 * MS)]);
        let json = verdict.to_json(&plan);
        let blocking = &json["tasks"][1]["blocking"];
        assert_eq!(blocking["most_ns"], 2 * MS);
        assert_eq!(blocking["held"][0]["lock"], "bus");
        assert_eq!(blocking["held"][0]["task"], "low");
    }
    let plan = inversion("fixed-priority", "none");
    let verdict = plan.admit();
    assert_eq!(verdict.tasks[0].deadlines, Deadlines::NotShown);
    let why = verdict.faults(&plan).to_string();
    assert!(why.contains("it can wait for lock `bus` while `low` has it"), "{why}");
}

/// A job that is late is followed by the next one of its task only when that is the most urgent: until then it takes no lock.
#[test]
fn the_job_after_a_late_one_waits_for_its_turn() {
    let plan = parse(
        r#"
        [lock.bus]
        protocol = "inheritance"
        [node.top]
        policy = "edf"
        cpu = 0
        [task.long]
        under.top = {}
        load = { period = "50ms", work = "4ms", sections = [{ lock = "bus", at = "50us", length = "3500us" }] }
        [task.often]
        under.top = {}
        load = { period = "2500us", phase = "100us", work = "350us", sections = [{ lock = "bus", length = "200us" }] }
        [task.middle]
        under.top = {}
        load = { period = "20ms", phase = "200us", work = "1100us", deadline = "4200us", sections = [{ lock = "bus", at = "800us", length = "50us" }] }
        "#,
    );
    let report = report_of(&plan, 1, 6 * MS);
    // `often` waits for `long` until 3.55 ms and is done at 3.9 ms, late; its next job is due at 5.1 ms, `middle` at 4.4 ms and first.
    assert_eq!(report.tasks[2].response_ns.as_ref().unwrap().max, 4_800_000);
}

/// Each with a budget: who has the lock runs on that of who waits.
#[test]
fn a_budget_that_ends_within_a_section() {
    let example = include_str!("../../../examples/locks.toml");
    let plan = parse(example);
    let verdict = plan.admit();
    assert!(verdict.holds, "{}", verdict.faults(&plan));
    assert_eq!(verdict.tasks[0].response.and_then(|found| found.ns()), Some(10 * MS));
    assert_eq!(verdict.tasks[0].blocking.as_ref().unwrap().most_ns, Some(1_500_000));
    assert!(verdict.tasks[1].blocking.is_none(), "it pays for nobody");
    // With a budget of 1.5 ms low has used all of it 0.5 ms after it got the lock.
    let ends =
        example.replace("budget = \"4ms\", period = \"40ms\"", "budget = \"1500us\", period = \"15ms\"");
    let worst = |text: &str| {
        let plan = parse(text);
        let report = report_of(&plan, 1, 40 * MS);
        (report.tasks[0].response_ns.as_ref().unwrap().max, report.tasks[0].misses, plan.admit())
    };
    let (none, inherited) = (worst(&ends.replace("\"inheritance\"", "\"none\"")), worst(&ends));
    assert_eq!((none.0, none.1), (15_500_000, 1));
    assert_eq!((inherited.0, inherited.1), (3 * MS, 0));
    // Low does not come to a second section before high is done.
    let verdict = inherited.2;
    assert_eq!(verdict.tasks[0].response.and_then(|found| found.ns()), Some(10 * MS));
    assert_eq!(verdict.tasks[0].blocking.as_ref().unwrap().most_ns, Some(1_500_000));
    let why = verdict.faults(&parse(&ends)).to_string();
    assert!(why.contains("the budget of `low`, 1.5ms in 15ms, may end within a section"), "{why}");
    assert!(
        why.contains(
            "its 4ms in 40ms and what it may pay for others meanwhile: `bus`, which `high` has for 1ms"
        ),
        "{why}"
    );
    // With less work between its sections its budget may end within one that it began while high waited: that counts, too.
    let often = ends.replace(
        r#"work = "4ms", sections = [{ lock = "bus", at = "1ms""#,
        r#"work = "1600us", sections = [{ lock = "bus", at = "50us""#,
    );
    let plan = parse(&often.replace("budget = \"3500us\"", "budget = \"5ms\""));
    let verdict = plan.admit();
    let paid = verdict.tasks[0].blocking.as_ref().unwrap();
    assert_eq!((paid.most_ns, paid.held[0].times), (Some(3 * MS), 2));
    assert_eq!(verdict.tasks[0].response.and_then(|found| found.ns()), Some(10 * MS));
}

/// The budget of the one with the shorter period ends within a section: the other one waits for many of its budgets.
#[test]
fn no_protocol_bounds_no_wait_for_a_budget() {
    let plan = parse(
        r#"
        [lock.bus]
        protocol = "none"
        [node.top]
        policy = "reservation"
        cpu = 0
        [task.short]
        under.top = { budget = "1ms", period = "10ms" }
        load = { period = "100ms", work = "6ms", sections = [{ lock = "bus", at = "500us", length = "5ms" }] }
        [task.long]
        under.top = { budget = "2ms", period = "40ms" }
        load = { period = "40ms", phase = "1ms", work = "2ms", sections = [{ lock = "bus", length = "1ms" }] }
        "#,
    );
    let report = report_of(&plan, 1, 200 * MS);
    assert!(report.tasks[1].misses > 0);
    let verdict = plan.admit();
    assert!(verdict.tasks.iter().all(|task| task.deadlines == Deadlines::NotShown));
    let why = verdict.faults(&plan).to_string();
    assert!(why.contains("it can wait for lock `bus` while `short` has it and does not run"), "{why}");
}

/// Why nothing is known of the deadlines below a node.
#[test]
fn where_check_says_nothing() {
    let sections = "sections = [{ lock = \"bus\", length = \"1ms\" }]";
    let why = |policy: &str, machine: &str, other: &str, third: &str| {
        let plan = parse(&format!(
            "{machine}\n[lock.bus]\nprotocol = \"inheritance\"\n[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n\
             [node.set]\npolicy = \"{policy}\"\nunder.top = {{ priority = 2 }}\n\
             [task.a]\nunder.set = {{}}\nload = {{ period = \"10ms\", work = \"2ms\", {sections} }}\n\
             [task.b]\n{other}\nload = {{ period = \"20ms\", work = \"2ms\", {sections} }}\n\
             [task.c]\nunder.set = {{}}\nload = {third}\n"
        ));
        let verdict = plan.admit();
        assert!(!verdict.holds);
        assert_eq!(verdict.tasks[0].deadlines, Deadlines::NotShown);
        verdict.faults(&plan).to_string()
    };
    let plain = "{ period = \"30ms\", work = \"1ms\" }";
    let found = why("fixed-priority", "", "under.top = { priority = 1 }", plain);
    assert!(found.contains("lock `bus` has users that are not directly below `set`"), "{found}");
    let found = why("fair", "", "under.set = {}", plain);
    assert!(found.contains("`set` orders neither by priority nor by deadline"), "{found}");
    let found = why("edf", "", "under.set = {}", "{ period = \"30ms\", work = \"1ms\", jitter = \"1ms\" }");
    assert!(found.contains("jobs of `c` are released late"), "{found}");
    let suspends = "{ phases = [{ run = \"1ms\" }, { suspend = \"1ms\" }, { run = \"1ms\" }, { timer = \"30ms\" }], deadline = \"30ms\" }";
    let found = why("fixed-priority", "", "under.set = {}", suspends);
    assert!(found.contains("`c` suspends itself: others may get locks meanwhile"), "{found}");
    let found = why("fixed-priority", "machine.costs = { switch = \"1us\" }", "under.set = {}", plain);
    assert!(found.contains("`[machine] costs` is not known"), "{found}");
}

impl Maker {
    fn locked(&mut self) -> Plan {
        let deadlines = self.between(0, 2) == 0;
        let locks = self.between(1, 3);
        self.locks(deadlines, locks);
        let policy = if deadlines { "edf" } else { "fixed-priority" };
        let inside = self.between(0, 3) == 0;
        let place = if inside {
            self.text += "[node.top]\npolicy = \"reservation\"\ncpu = 0\n";
            self.text +=
                "[task.other]\nunder.top = { budget = \"1ms\", period = \"4ms\" }\nload = \"busy\"\n";
            "under.top = { budget = \"3500us\", period = \"5ms\" }"
        } else {
            "cpu = 0"
        };
        let _ = writeln!(self.text, "[node.set]\npolicy = \"{policy}\"\n{place}");
        let tasks = self.between(2, 5);
        for task in 0..tasks {
            let period = self.between(4, 60) * 500;
            let work = (period * self.between(20, 100) / 100 / (tasks + 1) / 50 * 50).max(100);
            let deadline = if self.between(0, 2) == 0 { self.between(period / 2, period) } else { period };
            let sections = self.sections(work, 0, locks);
            let phase = self.between(0, 40) * 50;
            let edge = match deadlines {
                true => String::new(),
                false => format!("priority = {}", if self.between(0, 5) == 0 { 3 } else { 9 - task }),
            };
            let release = match self.between(0, 3) {
                0 => format!("separation = \"{period}us\", extra = \"500us\""),
                1 if !deadlines => format!("period = \"{period}us\", jitter = \"{}us\"", period / 4),
                _ => format!("period = \"{period}us\""),
            };
            let load = format!(
                "{release}, work = \"{work}us\", deadline = \"{deadline}us\", phase = \"{phase}us\"{sections}"
            );
            let _ = writeln!(self.text, "[task.t{task}]\nunder.set = {{ {edge} }}\nload = {{ {load} }}");
        }
        parse(&self.text)
    }
}

impl Maker {
    /// Tasks with a budget each, which covers their work and their waits, and something to spare; some have no sections. Without a
    /// protocol a job may take several budgets.
    fn budgets(&mut self, spare_us: i64) -> Plan {
        let locks = self.between(1, 3);
        let protocol = if self.between(0, 3) == 0 { "none" } else { "inheritance" };
        for lock in 0..locks {
            let _ = writeln!(self.text, "[lock.l{lock}]\nprotocol = \"{protocol}\"");
        }
        self.reservation();
        let tasks = self.between(2, 5);
        let mut loads = Vec::new();
        for task in 0..tasks {
            let server = self.between(4, 60) * 500;
            let many = if protocol == "none" { self.between(1, 6) } else { 1 };
            let work = (server * many * self.between(20, 100) / 100 / tasks / 50 * 50).max(100);
            let period = server * many + if self.between(0, 1) == 0 { 0 } else { self.between(0, 20) * 100 };
            let sections =
                if self.between(0, 4) == 0 { String::new() } else { self.sections(work, 0, locks) };
            let phase = self.between(0, 40) * 50;
            let release = match self.between(0, 2) {
                0 => format!("separation = \"{period}us\", extra = \"500us\""),
                1 if many == 1 => format!("period = \"{period}us\", jitter = \"{}us\"", period - server),
                _ => format!("period = \"{period}us\""),
            };
            let load = format!("{release}, work = \"{work}us\", phase = \"{phase}us\"{sections}");
            let _ = writeln!(
                self.text,
                "[task.t{task}]\nunder.set = {{ budget = \"<{task}>us\", period = \"{server}us\" }}\nload = {{ {load} }}"
            );
            loads.push((work.div_ceil(many), server));
        }
        let with = |budgets: &mut dyn Iterator<Item = u64>| {
            let replace =
                |text: String, (at, budget)| text.replace(&format!("<{at}>"), &u64::to_string(&budget));
            parse(&budgets.enumerate().fold(self.text.clone(), replace))
        };
        // How long each waits does not depend on budgets that cover everything.
        let first = with(&mut loads.iter().map(|(_, server)| *server));
        let found = first.admit().tasks;
        let found = first.tasks.iter().zip(&found).filter(|(task, _)| task.name != "first");
        let waits =
            found.map(|(_, task)| task.blocking.as_ref().and_then(|found| found.most_ns).unwrap_or(0));
        let all = |((work, server), ns): (&(u64, u64), u64)| {
            (work + ns / 1000).saturating_add_signed(spare_us).min(*server)
        };
        with(&mut loads.iter().zip(waits).map(all))
    }
}

impl Maker {
    /// The node `set`, on a whole CPU or below a more urgent task.
    fn reservation(&mut self) {
        let place = if self.between(0, 2) == 0 {
            self.text += "[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n\
                          [task.first]\nunder.top = { priority = 9 }\nload = { period = \"2ms\", work = \"400us\" }\n";
            "under.top = { priority = 5 }"
        } else {
            "cpu = 0"
        };
        let _ = writeln!(self.text, "[node.set]\npolicy = \"reservation\"\n{place}");
    }

    /// Tasks with a budget each, which ends within many sections, of those that have fewer budgets than they need, too. That of `t0` brings what it
    /// works and pays, with something to spare, in one period, where that is known.
    fn ending(&mut self, spare_us: i64) -> Plan {
        let locks = self.between(1, 3);
        for lock in 0..locks {
            let _ = writeln!(self.text, "[lock.l{lock}]\nprotocol = \"inheritance\"");
        }
        self.reservation();
        let tasks = self.between(2, 4);
        let mut first = (0, 0, 0);
        for task in 0..tasks {
            let server = self.between(4, 40) * if task == 0 { 500 } else { 250 };
            let budget = (server * self.between(10, 110 / tasks) / 100 / 50 * 50).max(100);
            let many = if task == 0 { 1 } else { self.between(1, 4) };
            let full = if task == 0 { 50 } else { 130 };
            let work = (budget * many * self.between(20, full) / 100 / 50 * 50).max(100);
            let period = match self.between(0, 2) {
                0 if task > 0 => self.between(server / 2, server * many),
                1 => server * many + self.between(0, 20) * 100,
                _ => server * many,
            };
            let within = if self.between(0, 2) == 0 { work } else { work.min(500) };
            let sections = self.sections(within, 0, locks);
            let phase = self.between(0, 40) * 50;
            let release = match self.between(0, 2) {
                0 => format!("separation = \"{period}us\", extra = \"500us\""),
                1 if task > 0 => format!("period = \"{period}us\", jitter = \"{}us\"", period / 4),
                _ => format!("period = \"{period}us\""),
            };
            let amount = if task == 0 { "<0>".into() } else { budget.to_string() };
            first = if task == 0 { (work, budget, server) } else { first };
            let _ = writeln!(
                self.text,
                "[task.t{task}]\nunder.set = {{ budget = \"{amount}us\", period = \"{server}us\" }}\n\
                 load = {{ {release}, work = \"{work}us\", phase = \"{phase}us\"{sections} }}"
            );
        }
        let (work, budget, server) = first;
        let with = |budget_us: u64| parse(&self.text.replace("<0>", &budget_us.to_string()));
        // What it pays in one period does not depend on how much more the budget is.
        let whole = with(server);
        let at = whole.tasks.iter().position(|task| task.name == "t0").unwrap();
        let paid_ns = whole.admit().tasks[at].blocking.as_ref().and_then(|found| found.most_ns);
        let exact = paid_ns.map(|ns| (work + ns / 1000).saturating_add_signed(spare_us).min(server));
        with(exact.unwrap_or(budget).max(100))
    }
}

/// The budgets of those that others wait for end within sections: what check says of those that pay for them.
#[test]
fn nothing_takes_longer_where_budgets_end() {
    let (mut near, mut ended, mut met) = (Seen::default(), 0, 0);
    for seed in seeds() {
        let plan = Maker::new(seed, "ending").ending(0);
        if Simulation::new(&plan, Options::default()).is_err() {
            continue; // budgets above a CPU
        }
        let verdict = plan.admit();
        let report = report_of(&plan, seed, 400 * MS);
        ended += report.tasks.iter().filter(|task| task.under[0].throttles > 0).count();
        met += within_bounds(&plan, &verdict, seed, |task, found, longest, bound| {
            if found.blocking.as_ref().is_some_and(|found| found.most_ns > Some(0)) {
                near.add(longest, bound, || format!("seed {seed}: {}", task.name));
            }
        });
    }
    println!("{ended} budgets end, {met} shown");
    near.print("responses of payers");
    let enough = near.at_least_tenths(7) > 5 && near.all() > 100 && ended > 100 && met > 100;
    assert!(enough, "{near:?} {ended} {met}");
}

/// What `t0` pays for holders whose budgets end within sections, on one budget of its own for each job: never more than check says.
#[test]
fn no_budget_ends_before_its_job_where_others_do() {
    let (mut covered, mut near) = (0, 0);
    for seed in seeds() {
        let with = |spare_us| Maker::new(seed, "ending").ending(spare_us);
        let plan = with(10);
        let at = plan.tasks.iter().position(|task| task.name == "t0").unwrap();
        let verdict = plan.admit();
        let found = &verdict.tasks[at];
        let pays = found.blocking.as_ref().is_some_and(|found| found.most_ns > Some(0));
        let shown = found.response.is_some() && pays;
        if !shown || Simulation::new(&plan, Options::default()).is_err() {
            continue;
        }
        let used_up = |plan: &Plan, round: u64| {
            report_of(plan, seed ^ round << 32, 400 * MS).tasks[at].under[0].throttles > 0
        };
        assert!((0..3).all(|round| !used_up(&plan, round)), "seed {seed}\n{}", plan_text(&plan));
        covered += 1;
        near += u64::from(used_up(&with(-60), 0));
    }
    println!("{covered} tasks pay for others, {near} of them at most 50 us less than they may");
    assert!(covered > 20 && near > 3, "{covered} {near}");
}

#[test]
fn nothing_takes_longer_than_check_says() {
    let (mut near, mut waited, mut met, mut paid) = (Seen::default(), 0, 0, 0);
    for seed in seeds() {
        let mut maker = Maker::new(seed, "locks");
        let plan = if seed % 3 == 0 { maker.budgets(0) } else { maker.locked() };
        let verdict = plan.admit();
        if Simulation::new(&plan, Options::default()).is_err() {
            continue; // budgets above a CPU
        }
        for round in 0..3 {
            let report = report_of(&plan, seed ^ round << 32, 400 * MS);
            for (task, verdict) in plan.tasks.iter().zip(&verdict.tasks) {
                let seen = report.tasks.iter().find(|seen| seen.name == task.name).unwrap();
                waited += seen.lock_waits.map_or(0, |waits| waits.count);
                let shown = verdict.deadlines == Deadlines::Met;
                met += u64::from(shown);
                paid += u64::from(shown && seed % 3 == 0 && seen.lock_waits.is_some());
                assert!(
                    !shown || seen.misses == 0,
                    "seed {seed}: {} misses\n{}",
                    task.name,
                    plan_text(&plan)
                );
                let bound = verdict.response.and_then(|response| response.ns());
                let longest = seen.response_ns.as_ref().map(|response| response.max);
                if let (Some(bound), Some(longest)) = (bound, longest) {
                    // Responses count from the release, the bound from before its jitter.
                    near.add(longest, bound, || format!("seed {seed}: {}\n{}", task.name, plan_text(&plan)));
                }
            }
        }
    }
    println!("{waited} waits, {met} shown, {paid} on budgets");
    let enough = near.print("responses").equal() > 100 && waited > 1_000 && met > 500 && paid > 20;
    assert!(enough, "{waited} {met} {paid}");
}

/// What a task pays for others on its own budget: never more than check says, and some almost as much.
#[test]
fn no_budget_ends_before_its_job() {
    let (mut covered, mut near) = (0, 0);
    for seed in seeds() {
        let with = |spare_us| Maker::new(seed, "budgets").budgets(spare_us);
        let plan = with(10);
        let verdict = plan.admit();
        if !verdict.nodes.iter().all(|node| node.failures.is_empty()) {
            continue;
        }
        let pays =
            |at: &usize| verdict.tasks[*at].blocking.as_ref().is_some_and(|found| found.most_ns > Some(0));
        let payers: Vec<_> = (0..plan.tasks.len()).filter(pays).collect();
        let used_up = |plan: &Plan| {
            let report = report_of(plan, seed, 400 * MS);
            payers.iter().filter(|at| report.tasks[**at].under[0].throttles > 0).count()
        };
        assert_eq!(used_up(&plan), 0, "seed {seed}\n{}", plan_text(&plan));
        covered += payers.len();
        // All times but these 10 us are multiples of 50 us: within one of them.
        near += used_up(&with(-60));
    }
    println!("{covered} tasks pay for others, {near} of them at most 50 us less than they may");
    assert!(covered > 50 && near > 10, "{covered} {near}");
}

fn plan_text(plan: &Plan) -> &str {
    &plan.sources.0[0].text
}

/// More work than time, late releases, any protocol: jobs of all tasks go on being done, each as long as it works.
#[test]
fn overload_is_no_deadlock() {
    for seed in 0..150 {
        let mut maker = Maker::new(seed, "overload");
        let deadlines = maker.between(0, 1) == 0;
        let protocols: &[&str] = if deadlines {
            &["none", "inheritance", "srp"]
        } else {
            &["none", "inheritance", "ceiling", "immediate-ceiling"]
        };
        let protocol = protocols[maker.between(0, protocols.len() as u64 - 1) as usize];
        for lock in 0..3 {
            let _ = writeln!(maker.text, "[lock.l{lock}]\nprotocol = \"{protocol}\"");
        }
        let policy = if deadlines { "edf" } else { "fixed-priority" };
        let _ = writeln!(maker.text, "[node.set]\npolicy = \"{policy}\"\ncpu = 0");
        for task in 0..5 {
            let period = maker.between(4, 40) * 500;
            let (work, jitter) = ((period / 4 / 50 * 50).max(100), maker.between(0, period - 1));
            let sections = maker.sections(work, 0, 3);
            let edge = if deadlines { String::new() } else { format!("priority = {}", 9 - task) };
            let _ = writeln!(
                maker.text,
                "[task.t{task}]\nunder.set = {{ {edge} }}\nload = {{ period = \"{period}us\", work = \"{work}us\", \
                 jitter = \"{jitter}us\"{sections} }}"
            );
        }
        let plan = parse(&maker.text);
        let report = report_of(&plan, seed, 500 * MS);
        let idle_ns = report.cpus[0].idle_ns;
        assert!(idle_ns < 100 * MS, "seed {seed}: {}\n{}", report.tables(), maker.text);
        let work: u64 = report.tasks.iter().map(|task| task.cpu_ns).sum();
        let done = plan.tasks.iter().zip(&report.tasks).map(|(task, seen)| {
            let work = task.load.as_ref().and_then(|load| load.clone().work_mut().map(|work| work.max_ns()));
            work.unwrap() * seen.jobs
        });
        let done: u64 = done.sum();
        assert!(done <= work && work <= done + 5 * 5 * MS, "seed {seed}: {done} of {work}");
    }
}
