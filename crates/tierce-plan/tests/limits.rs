//! Rules that only large plans break, and other rules of a live run.

use std::fmt::Write;
use tierce_admission::PlanExt;
use tierce_plan::{Options, Plan};
use tierce_policy::Part;

fn rules(text: &str) -> Vec<&'static str> {
    match Plan::parse(text, "generated.toml") {
        Ok(_) => Vec::new(),
        Err(faults) => faults.faults.iter().map(|fault| fault.rule).collect(),
    }
}

/// `members` tasks in `sets` sets below a fair root.
fn crowd(sets: usize, members: usize) -> String {
    let mut text = "[node.top]\npolicy = \"fair\"\ncpu = 0\n".to_string();
    for set in 0..sets {
        let _ = write!(text, "[tasks.s{set}]\ncount = {members}\nunder.top = {{}}\n");
    }
    text
}

#[test]
fn a_thousand_reservations_and_ten_thousand_fair_children_fit() {
    let mut text = crowd(1, 10_000);
    text += "[node.rt]\npolicy = \"reservation\"\nunder.top = {}\n";
    text += "[tasks.r]\ncount = 1000\nunder.rt = { budget = \"10us\", period = \"10ms\" }\n";
    let plan = Plan::parse(&text, "generated.toml").unwrap();
    assert_eq!((plan.tasks.len(), plan.edges.len()), (11_000, 11_001));
    let admission = plan.admit();
    assert_eq!(admission.nodes[1].asked, Some(tierce_admission::Share::new(1.into(), 1.into())));
    let supply = admission.nodes[1].available.clone().unwrap(); // one of 10,001 equals
    assert_eq!(supply, tierce_admission::Share::new(1.into(), 10_001.into()));
    assert_eq!(admission.nodes[1].failures[0].rule, "budgets_must_fit_the_supply");
    assert!(admission.outline(&plan).lines().count() < 20);
}

#[test]
fn pools_are_refused_by_name() {
    assert_eq!(rules(&crowd(2, 40_000)), ["too_many_nodes"]);
    let faults =
        Plan::parse(&(crowd(1, 60_000) + &crowd(2, 6_000)[34..].replace(".s", ".t")), "generated.toml");
    let said = faults.unwrap_err().to_string();
    assert!(
        said.contains("generated.toml:4:8: too_many_nodes: ") && said.contains("`s0` alone counts 60000"),
        "{said}"
    );
    let mut text = "[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n".to_string();
    for node in 0..4 {
        let _ = write!(text, "[node.n{node}]\npolicy = \"fair\"\nunder.top = {{}}\n");
    }
    let under = (0..4).map(|node| format!("n{node} = {{}}")).collect::<Vec<_>>().join(", ");
    let _ = write!(text, "[tasks.t]\ncount = 40000\nunder = {{ {under} }}\n");
    assert_eq!(rules(&text), ["too_many_edges"]);
}

#[test]
fn shared_tasks_are_bounded() {
    let mut text = "[machine]\ncpus = 64\n[node.top]\npolicy = \"fair\"\nper_cpu = true\n".to_string();
    for pair in 0..32 {
        let (a, b) = (2 * pair, 2 * pair + 1);
        let _ = write!(text, "[tasks.t{pair}]\ncount = 60\nunder.top = [{{ cpu = {a} }}, {{ cpu = {b} }}]\n");
    }
    let found = rules(&text);
    let limit = tierce_policy::limits().heads;
    assert_eq!(found.contains(&"too_many_shared"), 32 * 60 > limit, "{found:?}");
}

#[test]
fn a_live_plan_fits_the_machine() {
    let text = "[node.top]\npolicy = \"fair\"\ndefault = true\ncpus = \"all\"\n";
    let plan = Plan::parse_with(text, "generated.toml", Options { cpus: 4 }).unwrap();
    assert_eq!(plan.nodes[0].roots, [0, 1, 2, 3]);
    assert!(plan.check_runnable(4).is_ok());
    let rules = |cpus| {
        plan.check_runnable(cpus).unwrap_err().faults.iter().map(|fault| fault.rule).collect::<Vec<_>>()
    };
    assert_eq!(rules(8), ["other_cpus_need_a_spread_default"]);
    assert_eq!(rules(3), ["root_cpu_must_be_online"]);
}

/// Plans that check and sim take may be too large for the kernel: each pool is filled, then one more.
#[test]
fn a_live_plan_fits_the_kernel_build() {
    let kernel = tierce_policy::KERNEL;
    let top = "[machine]\ncpus = 64\n[node.top]\npolicy = \"fair\"\nper_cpu = true\n\
               [node.rest]\npolicy = \"fair\"\ndefault = true\nspread = false\nunder.top = {}\n";
    let tasks = |count: u32, under: &dyn Fn(u32) -> String| {
        let mut text = top.to_string();
        for task in 0..count {
            let _ = write!(text, "[task.t{task}]\nunder = {{ {} }}\n", under(task));
        }
        text
    };
    let rules = |text: &str, cpus| {
        let plan = Plan::parse(text, "generated.toml").unwrap_or_else(|faults| panic!("{faults}"));
        match plan.check_runnable(cpus) {
            Ok(()) => vec![],
            Err(faults) => faults.faults.iter().map(|fault| (fault.rule, fault.bound.clone())).collect(),
        }
    };
    let bound = |rule, most: u32| vec![(rule, Some(most.to_string()))];
    let rest = |_| "rest = {}".to_string();
    let room = kernel.nodes - 65; // 64 replicas and `rest`
    assert_eq!(rules(&tasks(room, &rest), 64), []);
    assert_eq!(rules(&tasks(room + 1, &rest), 64), bound("too_many_nodes", kernel.nodes));
    // Below one CPU's root and the shared node: a head with two edges, one of them crossing.
    let both = |task: u32| format!("rest = {{}}, top = {{ cpu = {} }}", task % 64);
    let room = kernel.heads - 1; // `rest`
    assert_eq!(rules(&tasks(room, &both), 64), []);
    assert_eq!(rules(&tasks(room + 1, &both), 64), bound("too_many_shared", kernel.heads));
    // Three parents in one tree each: edges run out before nodes.
    let three = "[machine]\ncpus = 1\n[node.top]\npolicy = \"fair\"\ncpu = 0\n\
                 [node.a]\npolicy = \"fair\"\nunder.top = {}\n\
                 [node.b]\npolicy = \"fair\"\ndefault = true\nunder.top = {}\n";
    let mut text = three.to_string();
    for task in 0..(kernel.edges - 3) / 3 {
        let _ = write!(text, "[task.t{task}]\nunder = {{ top = {{}}, a = {{}}, b = {{}} }}\n");
    }
    assert_eq!(rules(&text, 1), []);
    text += "[task.last]\nunder = { top = {}, a = {}, b = {} }\n";
    assert_eq!(rules(&text, 1), bound("too_many_edges", kernel.edges));
    // A spread node has a node for each CPU, and so has each node below it.
    let spread = top.replace("spread = false\n", "");
    let room = kernel.nodes - 128;
    let mut text = tasks(room, &rest).replace("spread = false\n", "");
    assert_eq!(rules(&text, 64), []);
    text += "[task.last]\nunder.rest = {}\n";
    assert_eq!(rules(&text, 64), bound("too_many_nodes", kernel.nodes));
    let below = |count: u32| -> String {
        (0..count).map(|node| format!("[node.n{node}]\npolicy = \"fair\"\nunder.rest = {{}}\n")).collect()
    };
    assert_eq!(rules(&(spread.clone() + &below(kernel.families - 1)), 64), []);
    let faults = Plan::parse(&(spread + &below(kernel.families)), "generated.toml").unwrap_err().faults;
    assert_eq!(faults[0].rule, "too_many_spread_nodes");
    assert_eq!(faults[0].bound, Some(kernel.families.to_string()));
    // A machine with more CPUs.
    assert_eq!(rules(top, kernel.cpus + 1)[..1], bound("too_many_cpus", kernel.cpus));
}

#[test]
fn a_default_node_below_bounded_reservations_is_sure_of_the_rest() {
    let plan = |budget: &str| {
        let text = format!(
            "[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n\
             [node.rt]\npolicy = \"reservation\"\nunder.top = {{ priority = 1 }}\n\
             [task.a]\nunder.rt = {{ budget = \"{budget}\", period = \"10ms\" }}\n\
             [node.rest]\npolicy = \"fair\"\ndefault = true\nunder.top = {{}}\n"
        );
        Plan::parse(&text, "generated.toml").unwrap().check_runnable(1)
    };
    assert!(plan("9.999ms").is_ok());
    assert_eq!(plan("10ms").unwrap_err().faults[0].rule, "default_node_needs_a_share");
}

#[test]
fn who_may_starve_is_named() {
    let text = "[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n\
         [task.high]\nunder.top = { priority = 2 }\nload = { period = \"10ms\", work = \"1ms\" }\n\
         [tasks.low]\ncount = 3\nunder.top = { priority = 1 }\nload = \"busy\"\n";
    let plan = Plan::parse(text, "generated.toml").unwrap();
    let faults = plan.may_starve();
    assert_eq!(faults.len(), 1);
    assert_eq!((faults[0].rule, faults[0].message.contains("`low`")), ("task_may_starve", true));
}

/// Threads that match a set may be many more than the plan has members.
#[test]
fn a_default_node_that_sets_may_starve_is_named() {
    let found = |above: &str, rest: &str| {
        let text = format!(
            "[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n{above}match = {{ comm = \"x*\" }}\n\
             [node.rest]\npolicy = \"fair\"\ndefault = true\n{rest}\n"
        );
        let plan = Plan::parse(&text, "generated.toml").unwrap();
        assert!(plan.check_runnable(1).is_ok());
        plan.may_starve().iter().map(|fault| fault.rule).collect::<Vec<_>>()
    };
    let rt = |policy: &str, edge: &str| {
        format!("[node.rt]\npolicy = {policy}\nunder.top = {{ priority = 1 }}\n[tasks.x]\nunder.rt = {{ {edge} }}\n")
    };
    let budget = "budget = \"1ms\", period = \"10ms\"";
    let reservation = |more: &str| rt(&format!("\"reservation\"\n{more}"), budget);
    let named = ["default_node_may_starve"];
    assert_eq!(found(&reservation(""), "under.top = {}"), named);
    assert_eq!(found(&rt("\"edf\"", ""), "under.top = {}"), named);
    assert_eq!(found("[tasks.x]\nunder.top = { priority = 1 }\n", "under.top = {}"), named);
    assert_eq!(found("[tasks.x]\nunder.top = {}\n", "under.top = {}"), named); // equals: first come, first served
    assert_eq!(found(&reservation("replenishment = \"soft\""), "under.top = {}"), named);
    let none: [&str; 0] = [];
    assert_eq!(found(&reservation("cap = 0.9"), "under.top = {}"), none);
    assert_eq!(found(&reservation(""), &format!("under.top = {{}}\nunder.rt = {{ {budget} }}")), none);
    assert_eq!(found("[tasks.x]\nunder.top = {}\n", "under.top = { priority = 1 }"), none);
}

/// What a plan is loaded with: its policies, the parts of the engine that it needs, and what `[run] policies` asks for.
#[test]
fn policies_and_parts_that_a_plan_needs() {
    let names = |plan: &Plan| {
        let parts = Part::ALL.into_iter().filter(|part| plan.parts() & part.bit() != 0);
        (tierce_plan::policies::names(plan.policies()), parts.collect::<Vec<_>>())
    };
    let plan = |cpus: u32, text: &str| {
        Plan::parse_with(text, "plan.toml", Options { cpus }).unwrap_or_else(|faults| panic!("{faults}"))
    };
    let one = "node.top = { policy = 'fixed-priority', cpu = 0 }
               node.rest = { policy = 'fair', default = true, under.top = { priority = 0 } }";
    assert_eq!(names(&plan(1, one)), (vec!["fixed-priority", "fair"], vec![]));
    // The default node is spread over several CPUs.
    assert_eq!(names(&plan(2, one)).1, [Part::Spread]);
    let order = one.replace("'fair'", "'fair', order = 'stride'");
    assert_eq!(names(&plan(1, &order)).1, [Part::ByClock]);
    let shared = "node.all = { policy = 'edf', cpus = [0, 1] }";
    assert_eq!(names(&plan(2, shared)), (vec!["edf"], vec![Part::Shared]));
    for (choice, parts) in [("", vec![]), ("replenishment = 'soft'", vec![Part::Servers])] {
        let text = format!("[node.rt]\npolicy = 'reservation'\ncpu = 0\n{choice}");
        assert_eq!(names(&plan(1, &text)), (vec!["reservation"], parts));
    }
    // Room for what comes: its policies, and all parts.
    let room = format!("run.policies = ['edf', 'slots']\n{one}");
    assert_eq!(names(&plan(1, &room)), (vec!["fixed-priority", "edf", "fair", "slots"], Part::ALL.to_vec()));
    let all = plan(1, &format!("run.policies = 'all'\n{one}"));
    assert_eq!(all.policies(), tierce_plan::policies::all());
    let wrong = Plan::parse(&format!("run.policies = ['edff']\n{one}"), "plan.toml").unwrap_err();
    assert_eq!(wrong.faults[0].rule, "policy_must_exist");
}
