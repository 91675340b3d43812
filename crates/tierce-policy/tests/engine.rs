//! The engine's tests in C (tests/engine/), built with sanitizers and run: random operations, every interleaving of small
//! machines, the heap and the arithmetic. And defects put into a copy of the engine, each of which the model has to find:
//! a model that cannot see failure proves nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

const SANITIZERS: &[&str] = &["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
/// With sanitizers gcc optimises for 10 s and more: only for what runs longer than that.
const OPTIMISED: &[&str] = &["-O1"];
const TINY: &[&str] = &[
    "-DTIERCE_NODES=12u",
    "-DTIERCE_EDGES=24u",
    "-DTIERCE_ROWS=4u",
    "-DTIERCE_CPUS=4u",
    "-DTIERCE_FAMILIES=2u",
];

/// Builds tests/engine/`source`.c with the engine in `policy`; the program's path.
fn build(source: &str, name: &str, policy: &Path, flags: &[&[&str]]) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let output = Command::new(std::env::var("CC").unwrap_or("gcc".into()))
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        .args(flags.concat())
        .arg("-I")
        .arg(project().join("crates/tierce-policy/native"))
        .arg("-I")
        .arg(policy)
        .arg(project().join("tests/engine").join(source).with_extension("c"))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("a C compiler (CC, or gcc) runs");
    assert!(output.status.success(), "{name} does not build:\n{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run(program: &Path, arguments: &[&str]) -> (Output, String) {
    let output = Command::new(program).args(arguments).output().expect("a program just built starts");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    (output, text)
}

/// TIERCE_SEED, else 1. The programs print what they were given.
fn seed() -> String {
    std::env::var("TIERCE_SEED").unwrap_or("1".into())
}

#[test]
fn a_million_random_operations_break_no_invariant() {
    let program = build("random", "random", &project().join("policy"), &[OPTIMISED, SANITIZERS]);
    // As plans are; times of any size; whole milliseconds, so that much happens at one time; machines of 65 to 512 CPUs.
    for (count, draws) in [("600000", &[][..]), ("200000", &["-w"]), ("200000", &["-c"]), ("60000", &["-m"])]
    {
        let (output, text) = run(&program, &[&["-n", count, "-s", &seed()], draws].concat());
        assert!(output.status.success(), "{text}");
    }
}

/// As in a kernel object that was made for a plan: what the plan does not need is left out, and refused.
#[test]
fn a_machine_without_what_its_plans_do_not_need() {
    let without = &["-DPORT_HAS(policy)=1", "-DPORT_HAS_PART(name)=0"];
    let program = build("random", "random-without", &project().join("policy"), &[SANITIZERS, without]);
    let (output, text) = run(&program, &["-n", "200000", "-s", &seed()]);
    assert!(output.status.success(), "{text}");
}

#[test]
fn heap_and_arithmetic_are_exact() {
    let program = build("parts", "parts", &project().join("policy"), &[SANITIZERS]);
    let (output, text) = run(&program, &["-n", "300000", "-s", &seed()]);
    assert!(output.status.success(), "{text}");
}

#[test]
fn every_interleaving_of_small_machines_holds() {
    let program = build("model", "model", &project().join("policy"), &[&["-O2"], TINY]);
    let (output, text) = run(&program, &[]);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("every configuration holds"));
}

/// A defect: its name, what is replaced by what in which file, the configuration that shows it, and what that says.
struct Defect {
    name: &'static str,
    file: &'static str,
    sound: &'static str,
    broken: &'static str,
    configuration: &'static str,
    says: &'static str,
}

const DEFECTS: &[Defect] = &[
    Defect {
        name: "a freed place is not settled",
        file: "engine/heads.c",
        sound: "\twork_push(head);\n\treturn 0;\n}\n\n/* A shared child has come and nobody",
        broken: "\treturn 0;\n}\n\n/* A shared child has come and nobody",
        configuration: "two_equal_1_1",
        says: "work_conserving",
    },
    Defect {
        name: "the place that a victim frees is not kept for the claimant",
        file: "engine/heads.c",
        sound: "\t\tif (head_room(head, edge_at(claimant)->cpu) > 0) {\n\t\t\tnode->claim_kept = 1;",
        broken: "\t\tif (0) {\n\t\t\tnode->claim_kept = 1;",
        configuration: "two_ranked_1_1",
        says: "livelock",
    },
    Defect {
        name: "the victim of a claim is not kicked",
        file: "engine/path.c",
        sound: "\t\t\tkick(victim);\n\t\t}\n\t}\n\thead_drop",
        broken: "\t\t}\n\t}\n\thead_drop",
        configuration: "two_ranked_1_1",
        says: "decided_at_rest",
    },
    Defect {
        name: "a place is given while it is being left",
        file: "engine/path.c",
        sound: "= TIERCE_HOLD_LEAVING;",
        broken: "= TIERCE_HOLD_FREE, node_at(head)->holds--, work_push(head);",
        configuration: "lone_equal",
        says: "a task is on two CPUs",
    },
    Defect {
        name: "a CPU that declines does not say so",
        file: "engine/cpu_entries.c",
        sound: "\t\ttold_declined(cpu);",
        broken: "\t\t(void)told_declined;",
        configuration: "two_equal_2_2",
        says: "decided_at_rest",
    },
    Defect {
        name: "an edge told off meanwhile is requested",
        file: "engine/enter.c",
        sound: " || !edge_at(edge)->told)",
        broken: ")",
        configuration: "two_ranked_2_2",
        says: "able_told",
    },
    Defect {
        name: "the kick is taken back after the inbox was looked at",
        file: "engine/cpu_entries.c",
        sound: "\t\tcpu_settle(cpu, now);\n\t}\n\tc->decisions++;",
        broken: "\t\tcpu_settle(cpu, now);\n\t}\n\tc->decisions++, c->kick_pending = 0;",
        configuration: "two_equal_1_1",
        says: "inbox_kicked",
    },
    Defect {
        name: "a place won by rank is lost to a lower edge beside it",
        file: "engine/heads.c",
        sound: "return x->rank >= edge_at(ROW(node->row, edge, cpu))->rank;",
        broken: "return true;",
        configuration: "twice_inverted",
        says: "livelock",
    },
    Defect {
        name: "the timer of shared events stays where it was",
        file: "engine/until.c",
        sound: "at = event ? event_link(event)->key : TIERCE_NEVER;",
        broken: "at = event ? event_link(event)->key : TIERCE_NEVER;\n\t\tif (event)",
        configuration: "shared_reservations",
        says: "timer is set too late",
    },
    Defect {
        name: "a conditional edge stays open",
        file: "engine/climb.c",
        sound: "edge_at(edge)->flags |= EDGE_SHUT;\n",
        broken: ";\n",
        configuration: "when_spent_task",
        says: "able_told",
    },
    Defect {
        name: "by strides a child gives up what it was owed to nobody",
        file: "fair/eevdf.c",
        sound: "\t\tif (others)\n",
        broken: "\t\tif (0)\n",
        configuration: "strides",
        says: "far from virtual time",
    },
    Defect {
        name: "by drawings one that sleeps goes on to count",
        file: "fair/eevdf.c",
        sound: "x->fair.tag > n->clock && is_eevdf(n)",
        broken: "x->fair.tag > n->clock",
        configuration: "drawings",
        says: "order_exact",
    },
    Defect {
        name: "below uniform, one that was throttled makes up for it",
        file: "uniform.c",
        sound: "\tanew |= (x->flags & EDGE_SPENT) && x->uniform.deadline_ns <= now;",
        broken: "\t",
        configuration: "uniform",
        says: "more is promised",
    },
    Defect {
        name: "a time constraint is accepted whatever the others have",
        file: "constraint.c",
        sound: "constraints_due(node, by_ns, now) + used_ns > ",
        broken: "used_ns > ",
        configuration: "constraints",
        says: "more is promised",
    },
    Defect {
        name: "a second chance is used up and nobody is told",
        file: "briefly_blocked.c",
        sound: "\tbrief_spend(edge, now);\n\treturn true;\n",
        broken: "\tbrief_spend(edge, now);\n\treturn false;\n",
        configuration: "two_briefly_blocked",
        says: "servable_counted",
    },
    Defect {
        name: "a period that begins in critical mode is one as usual",
        file: "mixed_criticality.c",
        sound: "\tx->mixed.epoch = n->mixed.epoch - n->mixed.critical;\n",
        broken: "\tx->mixed.epoch = n->mixed.epoch;\n",
        configuration: "criticality",
        says: "in critical mode",
    },
    Defect {
        name: "who was usual when critical mode began waits in the heap of those who are",
        file: "mixed_criticality.c",
        sound: "\tif (mixed_is_behind(edge)) /* perhaps only since critical mode began */\n",
        broken: "\tif (0)\n",
        configuration: "criticality_3",
        says: "order_exact",
    },
    Defect {
        name: "critical mode lasts until a critical child sleeps",
        file: "mixed_criticality.c",
        sound: "\t\tx->mixed.used_up = 1;\n\t\tmixed_uncount(edge, now);\n",
        broken: "\t\tx->mixed.used_up = 1;\n",
        configuration: "criticality",
        says: "criticals_counted",
    },
    Defect {
        name: "a task that enters a replica does not want the CPU any more",
        file: "engine/spread/transit.c",
        sound: "\tif (x->restore) {\n\t\tx->restore = 0;\n\t\tn->servable = 1;",
        broken: "\tx->restore = 0;\n\tif (0) {\n\t\tn->servable = 1;",
        configuration: "spread_2_3",
        says: "forgotten",
    },
    Defect {
        name: "a task in transit stays in the order of its replica",
        file: "engine/spread/transit.c",
        sound: "\t\t\tfirst_changed(cpu, climb(task, now), now);",
        broken: "",
        configuration: "spread_2_3",
        says: "able_told",
    },
    Defect {
        name: "a CPU that becomes idle does not say so",
        file: "engine/locks.c",
        sound: "\tif (idle && !is_idle(cpu))",
        broken: "\tif (idle && c->charged_ns == 0 && !is_idle(cpu))",
        configuration: "spread_2_3",
        says: "idle_at_rest",
    },
    Defect {
        name: "what waits on a CPU that decided for something else is not offered",
        file: "engine/spread/placement.c",
        sound: "\t\tif (replica && replica_waits(replica)) {",
        broken: "\t\tif (0) {",
        configuration: "spread_2_3",
        says: "spread_conserving",
    },
    Defect {
        name: "a CPU that runs something keeps its note that it is idle",
        file: "engine/locks.c",
        sound: "\tc->idle = idle;\n",
        broken: "\tif (idle)\n\t\tc->idle = idle;\n",
        configuration: "spread_2_3",
        says: "idle_told",
    },
    Defect {
        name: "a CPU that runs something outside takes tasks",
        file: "engine/spread/placement.c",
        sound: " && !cpu_at(cpu)->outside && replica_is_open(replica)",
        broken: " && replica_is_open(replica)",
        configuration: "spread_foreign",
        says: "livelock",
    },
    Defect {
        name: "the events of a group stay behind when it joins another",
        file: "engine/groups.c",
        sound: "\tdomain_at(into)->events = events_meet(domain_at(into)->events, domain_at(from)->events);\n\tdomain_at(from)->events = 0;\n",
        broken: "",
        configuration: "groups",
        says: "events_at_home",
    },
];

/// Ports that do things in the wrong order; the model plays them.
const PORTS: [(&str, &str); 2] = [
    ("-DMODEL_OFFERS_FIRST", "a task is offered before it waits"),
    ("-DMODEL_LOOKS_FIRST", "a CPU looks for tasks before it says that it is idle"),
];

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory for a defect");
    for entry in std::fs::read_dir(from).expect("policy/ is there") {
        let entry = entry.expect("policy/ can be listed");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("its type is known").is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("the engine is copied");
        }
    }
}

/// The engine in a directory of its own, with one defect.
fn spoiled(defect: &Defect, number: usize) -> PathBuf {
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("defect{number}"));
    copy_folder(&project().join("policy"), &to);
    let text = std::fs::read_to_string(to.join(defect.file)).expect("the engine is text");
    assert_eq!(
        text.matches(defect.sound).count(),
        1,
        "{} has changed: defect \"{}\" replaces\n{}\nwhich must be there once",
        defect.file,
        defect.name,
        defect.sound
    );
    std::fs::write(to.join(defect.file), text.replace(defect.sound, defect.broken))
        .expect("the defect is written");
    to
}

#[test]
fn the_model_finds_seeded_defects() {
    let mut missed = Vec::new();
    for (number, defect) in DEFECTS.iter().enumerate() {
        let policy = spoiled(defect, number);
        let name = format!("model_defect{number}");
        // Not optimised: that takes longer than it saves, with so few states until a defect shows.
        let program = build("model", &name, &policy, &[&["-Wno-unused"], TINY]);
        println!("{}:", defect.name);
        let (output, text) = run(&program, &["-m", "2000000", defect.configuration]);
        if output.status.code() != Some(1) || !text.contains(defect.says) {
            missed.push(format!("{}: expected \"{}\", got\n{text}", defect.name, defect.says));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn the_model_finds_lost_wake_ups_of_ports_in_the_wrong_order() {
    for (number, (define, what)) in PORTS.iter().enumerate() {
        let name = format!("model_port{number}");
        let flags: &[&[&str]] = &[&["-O1"], TINY, &[define]];
        let program = build("model", &name, &project().join("policy"), flags);
        let (output, text) = run(&program, &["-m", "3000000", "spread_2_3"]);
        assert_eq!(output.status.code(), Some(1), "{what}: {text}");
        assert!(text.contains("spread_conserving"), "{what}: {text}");
    }
}

#[test]
fn what_breaks_the_engine_is_shown_as_the_few_operations_that_suffice() {
    let defect = DEFECTS.iter().find(|defect| defect.name == "the victim of a claim is not kicked").unwrap();
    let program = build("random", "random_defect", &spoiled(defect, DEFECTS.len()), &[SANITIZERS]);
    let (output, text) = run(&program, &["-n", "1000000", "-s", &seed()]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let count = text.lines().find_map(|line| line.strip_suffix(" operations suffice:")?.parse().ok());
    assert!(count.is_some_and(|count: u32| (8..60).contains(&count)), "{text}");
}
