//! The JSON Schema of plans, generated from the records of the policies.

use crate::model::for_each::{COPIES_MAX, COPIES_PRESET};
use crate::model::{By, MatchClass, Preemption};
use crate::policies::{all, names, policies, Param, ParamKind};
use crate::text::units::show_time;
use crate::SEPARATIONS_MAX;
use serde_json::{json, Map, Value};

/// The schema (draft 2020-12) of a plan as an editor sees it: TOML read as JSON.
pub fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tierce plan",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "include": one_or_more(text("file to include, relative to this one; may not redefine anything")),
            "machine": machine(),
            "run": run(),
            "defaults": closed(
                "values that stand in for presets, by policy",
                policies().iter().map(|policy| {
                    let params = policy.node_params.iter().chain(&policy.edge_params);
                    (policy.name, closed(policy.name, params.map(|param| (param.name, parameter(param, None)))))
                }),
            ),
            "node": named("schedulers", node()),
            "task": named("tasks: one leaf each", leaf(Map::new())),
            "tasks": named("sets of tasks: a leaf per member", leaf(set_keys())),
            "lock": named("locks that sections of loads hold", lock()),
            "chain": named("tasks that follow each other", chain()),
        },
        "$defs": {
            "time": {
                "type": "string",
                "description": "a time with its unit: 10ms, 1.8ms, 500us",
                "pattern": r"^\s*[0-9][0-9_]*(\.[0-9_]+)?\s*(ns|us|µs|μs|ms|s|min)\s*$",
            },
            "amount": {
                "description": "a time, a range from which it is drawn, or times taken in turn",
                "anyOf": [
                    time(),
                    object("uniform, both ends included", [("min", time()), ("max", time())], &["min", "max"]),
                    { "type": "array", "items": time(), "minItems": 1 },
                ],
            },
            "cpu": { "type": "integer", "minimum": 0, "maximum": 63, "description": "number of a CPU" },
            "cpus": { "type": "array", "items": { "$ref": "#/$defs/cpu" }, "minItems": 1, "uniqueItems": true },
            "needs": one_or_more(text("a guarantee, for example RESBS 2ms 10ms")),
            "under": {
                "description": "parents: one edge, or a list of edges, for each",
                "type": "object",
                "propertyNames": { "$ref": "#/$defs/name" },
                "additionalProperties": one_or_more(edge()),
            },
            "load": load(),
            "sections": sections(),
            "matcher": matcher(),
            "name": { "type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]*$" },
        },
    })
}

fn time() -> Value {
    json!({ "$ref": "#/$defs/time" })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn whole(description: &str, least: i64, most: i64) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most, "description": description })
}

fn yes_or_no(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn one_or_more(item: Value) -> Value {
    json!({ "anyOf": [item, { "type": "array", "items": item, "minItems": 1 }] })
}

/// An object with these keys and no others.
fn closed<'n>(description: &str, keys: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
    object(description, keys, &[])
}

fn object<'n>(
    description: &str,
    keys: impl IntoIterator<Item = (&'n str, Value)>,
    required: &[&str],
) -> Value {
    let properties: Map<_, _> = keys.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
    json!({
        "type": "object", "description": description, "additionalProperties": false, "properties": properties,
        "required": required,
    })
}

/// Tables by name.
fn named(description: &str, item: Value) -> Value {
    json!({
        "type": "object", "description": description, "propertyNames": reference("name"),
        "additionalProperties": item,
    })
}

/// One parameter; `of_thread`: its name and what the text may say where it is its thread's own.
fn parameter(param: &Param, of_thread: Option<(&str, &str)>) -> Value {
    let preset = match (param.kind, param.preset) {
        (ParamKind::DurationOf(_), _) => "; default: the period".to_string(),
        (_, None) => "; required".to_string(),
        (_, Some(preset)) => format!("; default {}", param.show(preset, show_time)),
    };
    if param.kind == ParamKind::Choice {
        return json!({ "enum": param.choices, "description": format!("{}{preset}", param.meaning) });
    }
    if param.kind == ParamKind::Ratio {
        let description = format!("{}; {}{preset}", param.meaning, param.range(show_time));
        let text = json!({ "type": "string", "pattern": r"^[0-9]+(\.[0-9]{1,6})?$" });
        let number = json!({ "type": "number", "exclusiveMinimum": 0 });
        return json!({ "description": description, "anyOf": [text, number] });
    }
    if param.kind == ParamKind::Count {
        let number = json!({ "type": "integer", "minimum": param.least, "maximum": param.most });
        let description = format!("{}; {} to {}{preset}", param.meaning, param.least, param.most);
        if let Some((_, word)) = of_thread.filter(|(name, _)| *name == param.name) {
            return json!({ "description": description, "anyOf": [number, { "const": word }] });
        }
        let mut number = number;
        number["description"] = description.into();
        return number;
    }
    let range = param.range(show_time);
    json!({ "$ref": "#/$defs/time", "description": format!("{}; {range}{preset}", param.meaning) })
}

/// Keys of several policies side by side: a key may mean the same in each, or one of several things.
fn merged(lists: impl Iterator<Item = Vec<(&'static str, Value)>>) -> Map<String, Value> {
    let mut keys: Map<String, Value> = Map::new();
    for (name, value) in lists.flatten() {
        match keys.get_mut(name) {
            None => drop(keys.insert(name.into(), json!({ "anyOf": [value] }))),
            Some(known) => {
                if let Some(list) = known["anyOf"].as_array_mut().filter(|list| !list.contains(&value)) {
                    list.push(value);
                }
            }
        }
    }
    for value in keys.values_mut() {
        if let Some([only]) = value["anyOf"].as_array().map(Vec::as_slice) {
            *value = only.clone();
        }
    }
    keys
}

/// An edge may be below any policy: the schema cannot know which.
fn edge() -> Value {
    let mut keys = merged(policies().iter().map(|policy| {
        policy
            .edge_params
            .iter()
            .map(|param| (param.name, parameter(param, Some(("priority", "rt_priority")))))
            .collect()
    }));
    for (name, value) in [
        (
            "rank",
            whole(
                "which CPU gets a shared child; larger wins, between CPUs only",
                i32::MIN.into(),
                i32::MAX.into(),
            ),
        ),
        (
            "when",
            json!({ "const": "spent", "description": "only while all other edges of the child are out of budget" }),
        ),
        (
            "cpu",
            json!({
                "description": "which replica of the parent; any: one where there is room; all: each, with a budget of its own on each",
                "anyOf": [{ "const": "any" }, { "const": "all" }, reference("cpu")],
            }),
        ),
        (
            "soft",
            json!({ "type": "string", "description": "a second parent, with presets, for what is more than the budget" }),
        ),
        (
            "firm",
            json!({ "type": "string", "description": "the same below all others: at the lowest priority of that node" }),
        ),
    ] {
        keys.insert(name.into(), value);
    }
    json!({ "type": "object", "additionalProperties": false, "properties": keys })
}

/// A node: common keys, and for each policy its parameters.
fn node() -> Value {
    let common: Vec<(&str, Value)> = vec![
        ("cpu", json!({ "$ref": "#/$defs/cpu", "description": "the CPU whose root this is" })),
        (
            "cpus",
            json!({ "description": "CPUs whose shared root this is", "anyOf": [{ "const": "all" }, reference("cpus")] }),
        ),
        (
            "per_cpu",
            json!({ "description": "a replica for each CPU, or for these", "anyOf": [{ "type": "boolean" }, reference("cpus")] }),
        ),
        (
            "spread",
            json!({
                "description": "a replica for each CPU from which its parents lead, or for these; tasks below move between them; \
                                default: the default node and what is below it, if their policies can",
                "anyOf": [{ "type": "boolean" }, reference("cpus")],
            }),
        ),
        (
            "concurrency",
            whole(
                "CPUs that may run it at once; default: all that reach it",
                1,
                crate::policies::limits().cpus.into(),
            ),
        ),
        (
            "for_each",
            json!({ "enum": By::ALL.map(By::name), "description": "a copy, with what is below it, for each of these that has a thread there" }),
        ),
        ("most", whole(&format!("copies that there are; default {COPIES_PRESET}"), 1, COPIES_MAX.into())),
        ("default", yes_or_no("threads that match nothing belong here")),
        ("needs", reference("needs")),
        ("under", reference("under")),
    ];
    let one = policies().iter().map(|policy| {
        let mut keys = common.clone();
        let each =
            policy.edge_params.iter().map(|param| (param.name, parameter(param, Some(("weight", "nice")))));
        let each = closed("edge of each thread that matches nothing", each);
        keys.push(("policy", json!({ "const": policy.name })));
        keys.push(("each", each));
        keys.extend(policy.node_params.iter().map(|param| (param.name, parameter(param, None))));
        object(policy.name, keys, &["policy"])
    });
    json!({ "oneOf": one.collect::<Vec<_>>() })
}

fn leaf(mut more: Map<String, Value>) -> Value {
    for (name, value) in [
        ("under", reference("under")),
        ("load", reference("load")),
        ("needs", reference("needs")),
        ("affinity", json!({ "$ref": "#/$defs/cpus", "description": "CPUs it may run on" })),
        (
            "job_deadline",
            json!({ "$ref": "#/$defs/time", "description": "in a live run: jobs of its threads that end later are counted" }),
        ),
        ("match", one_or_more(reference("matcher"))),
        ("trust", trust()),
    ] {
        more.insert(name.into(), value);
    }
    json!({ "type": "object", "additionalProperties": false, "properties": more })
}

fn chain() -> Value {
    let names = json!({
        "type": "array", "items": reference("name"), "minItems": 2, "uniqueItems": true,
        "description": "tasks from first to last; one with `load = { work = … }` is released by the end of the one before it, any other \
                        reads what that wrote last",
    });
    let delay = json!({
        "type": "object", "propertyNames": reference("name"), "additionalProperties": time(),
        "description": "by task: what comes from the one before it comes so much later",
    });
    let needs = json!({
        "type": "string", "pattern": r"^\s*((response|reaction|age)\s+)?within\s+\S",
        "description": "how long it may take: within 30ms, reaction within 80ms, age within 60ms",
    });
    let mark = json!({
        "type": "string", "pattern": "^[!-~]{1,8}$",
        "description": "label of the marks by which live programs say what they pass on",
    });
    let keys = [("tasks", names), ("delay", delay), ("needs", one_or_more(needs)), ("mark", mark)];
    object("a chain", keys, &["tasks"])
}

fn trust() -> Value {
    json!({ "const": "names", "description": "threads may be known by what their owners can choose: no warning" })
}

fn set_keys() -> Map<String, Value> {
    let count = whole("members that check and sim have", 0, crate::policies::limits().nodes.into());
    let csv = text("a table of members: columns load.KEY and under.PARENT.KEY");
    [("count".to_string(), count), ("csv".to_string(), csv)].into_iter().collect()
}

fn load() -> Value {
    let amount = || reference("amount");
    let common = |more: Vec<(&'static str, Value)>| {
        let soft = yes_or_no("misses of the deadline are by design: nothing has to be shown");
        let own = [("deadline", time()), ("phase", time()), ("soft", soft)];
        own.into_iter().chain(more).collect::<Vec<_>>()
    };
    let timer = json!({ "anyOf": [
        time(),
        object("a timer of that name", [("name", json!({ "type": "string" })), ("period", time()),
            ("absolute", yes_or_no("keep the original times when late"))], &["period"]),
    ] });
    let phase = json!({
        "type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": false,
        "properties": { "run": amount(), "within": time(), "sleep": amount(), "suspend": amount(), "timer": timer },
        "dependentRequired": { "within": ["run"] },
    });
    let stage = object(
        "jobs until then; without a period: none",
        [("until", time()), ("period", time()), ("work", amount()), ("deadline", time())],
        &[],
    );
    let separation = json!({ "anyOf": [
        time(),
        { "type": "array", "items": time(), "minItems": 1, "maxItems": SEPARATIONS_MAX,
            "description": "from a job at least so long to the next one, to the second after it, …, ascending" },
    ] });
    json!({
        "description": "what it does in the simulator",
        "anyOf": [
            { "const": "busy", "description": "always wants a CPU" },
            apart(object("a job every period", common(kept(vec![("period", time()), ("work", amount()), ("jitter", time())])),
                &["period", "work"])),
            apart(object("jobs at least `separation` apart, plus a draw up to `extra`",
                common(kept(vec![("separation", separation), ("extra", time()), ("work", amount())])), &["separation", "work"])),
            apart(object("a job when the tasks before it in its chains have ended theirs", kept(vec![("work", amount())]),
                &["work"])),
            object("steps, over and over", common(vec![
                ("phases", json!({ "type": "array", "items": phase, "minItems": 1 })),
                ("repeat", whole("passes through the list; default: for ever", 1, i64::MAX)),
            ]), &["phases"]),
            object("a job every period, with numbers that change",
                [("stages", json!({ "type": "array", "items": stage, "minItems": 1 })),
                    ("soft", yes_or_no("misses of the deadline are by design: nothing has to be shown"))], &["stages"]),
            object("what a thread of an rt-app file does",
                common(vec![("rt_app", text("the file")), ("thread", text("name of the thread there"))]), &["rt_app"]),
        ],
    })
}

/// Keys of jobs that keep something from others.
fn kept(mut keys: Vec<(&'static str, Value)>) -> Vec<(&'static str, Value)> {
    let preemption = json!({
        "enum": Preemption::NAMES.map(|(name, _)| name),
        "description": "none: once begun, jobs do not give way to other tasks of their node; default: full",
    });
    let at = "CPU time since the job began; default: after the one before";
    let region = object(
        "a part of each job that does not give way to other tasks of its node",
        [
            ("at", json!({ "$ref": "#/$defs/time", "description": at })),
            ("length", json!({ "$ref": "#/$defs/time", "description": "CPU time" })),
        ],
        &["length"],
    );
    let regions = json!({ "type": "array", "items": region, "description": "one after the other" });
    let floating =
        "of each job up to so much CPU time, at any place, does not give way to other tasks of its node";
    let floating = json!({ "$ref": "#/$defs/time", "description": floating });
    let threshold = "once begun, jobs give way only to tasks of their node with a larger priority than that";
    let threshold = whole(threshold, 0, 65535);
    keys.extend([("sections", reference("sections")), ("preemption", preemption), ("regions", regions)]);
    keys.extend([("longest_region", floating), ("threshold", threshold)]);
    keys
}

/// At most one of them.
fn apart(mut load: Value) -> Value {
    const KEYS: [&str; 4] = ["preemption", "regions", "longest_region", "threshold"];
    let pairs =
        KEYS.iter().enumerate().flat_map(|(at, key)| KEYS[..at].iter().map(move |other| [other, key]));
    let pairs: Vec<_> = pairs.map(|pair| json!({ "required": pair })).collect();
    load["not"] = json!({ "anyOf": pairs });
    load
}

fn lock() -> Value {
    let protocol = json!({
        "enum": crate::model::Protocol::NAMES.map(|(name, _)| name),
        "description": "what happens when a job requests it while another one has it",
    });
    object("a lock", [("protocol", protocol)], &["protocol"])
}

fn sections() -> Value {
    let section = object(
        "a part of each job that holds a lock",
        [
            ("lock", text("name of the lock")),
            (
                "at",
                json!({ "$ref": "#/$defs/time", "description": "CPU time since the job, or the section around it, began; default: after the one before" }),
            ),
            (
                "length",
                json!({ "$ref": "#/$defs/time", "description": "CPU time, with that of sections within" }),
            ),
            ("sections", reference("sections")),
        ],
        &["lock", "length"],
    );
    json!({ "type": "array", "items": section, "description": "one after the other" })
}

fn matcher() -> Value {
    let id = |what: &str| whole(what, 0, u32::MAX.into());
    let range = |what: &str, least: i64, most: i64| {
        let ends = [("min", whole("least", least, most)), ("max", whole("most", least, most))];
        let one = json!({ "type": "integer", "minimum": least, "maximum": most });
        json!({ "description": what, "anyOf": [one, closed("range, both ends included", ends)] })
    };
    let ids = |what: &str| range(what, 0, u32::MAX.into());
    let mut value = closed(
        "which threads; all keys must fit",
        [
            ("comm", text("name of the thread (glob)")),
            ("pcomm", text("name of the process (glob)")),
            ("exe", text("path of the executable (glob; ** crosses /)")),
            ("exe_owner", id("user who owns the executable")),
            (
                "checksum",
                json!({ "type": "string", "pattern": "^sha256:[0-9A-Fa-f]{64}$",
                "description": "what is in the executable: sha256: and the digits that sha256sum prints; with exe" }),
            ),
            ("cgroup", text("path of the cgroup (glob; ** crosses /)")),
            ("unit", text("systemd unit (glob)")),
            ("system_unit", text("service or scope of the system's manager, not of a user's (glob)")),
            ("uid", ids("user id or range, real and effective")),
            ("gid", ids("group id or range, real and effective")),
            ("pid", id("process id")),
            ("tid", id("thread id")),
            ("ppid", id("process id of the parent")),
            ("nice", range("nice value or range", -20, 19)),
            (
                "class",
                json!({ "enum": MatchClass::ALL.map(MatchClass::name),
                "description": "real-time scheduling class: the thread leaves it while it has its place" }),
            ),
            ("is_kthread", yes_or_no("kernel threads, or only others")),
            ("is_group_leader", yes_or_no("first threads of processes, or only others")),
        ],
    );
    value["minProperties"] = 1.into();
    value
}

fn machine() -> Value {
    let cost = |what: &str| json!({ "$ref": "#/$defs/time", "description": what });
    let interrupt = object(
        "what steals time",
        [
            ("cpu", reference("cpu")),
            ("every", cost("distance, or mean distance")),
            ("takes", reference("amount")),
            ("phase", cost("first one after the epoch")),
            ("arrival", json!({ "enum": ["periodic", "poisson"] })),
        ],
        &["every", "takes"],
    );
    closed(
        "the machine that check and sim assume",
        [
            (
                "cpus",
                whole(
                    "number of CPUs; default: those of the machine, one in check and sim",
                    1,
                    crate::policies::limits().cpus.into(),
                ),
            ),
            ("epoch", cost("time to which releases and interrupts are relative")),
            (
                "phases",
                json!({ "enum": ["any", "known"], "description": "whether check may rely on the phases of periodic loads" }),
            ),
            (
                "costs",
                closed(
                    "CPU time of scheduling itself, default 0",
                    [
                        ("switch", cost("from one task to another")),
                        ("timer", cost("a timer fires")),
                        ("migration", migration_costs()),
                        ("level", cost("added for each node on the path")),
                    ],
                ),
            ),
            ("topology", topology()),
            ("interrupts", one_or_more(interrupt)),
            (
                "switches_max",
                whole("switches per second of a CPU of which more give a warning, default 5000", 1, i64::MAX),
            ),
        ],
    )
}

fn migration_costs() -> Value {
    let cost = |what: &str| json!({ "$ref": "#/$defs/time", "description": what });
    let distances = closed(
        "by distance; one that is left out costs as much as the next nearer one",
        [
            ("smt", cost("to an SMT sibling")),
            ("cache", cost("to another core with the same last-level cache")),
            ("node", cost("to another cache of the same NUMA node")),
            ("other", cost("to another NUMA node")),
        ],
    );
    json!({
        "description": "added when the task last ran on another CPU",
        "anyOf": [{ "$ref": "#/$defs/time" }, distances]
    })
}

fn topology() -> Value {
    let groups = |what: &str| {
        let cpus = json!({ "type": "array", "items": reference("cpu"), "minItems": 1 });
        let size = whole("so many consecutive CPUs", 1, crate::policies::limits().cpus.into());
        json!({ "description": what, "anyOf": [size, { "type": "array", "items": cpus }] })
    };
    closed(
        "which CPUs are near each other; in a live run default: what the machine says",
        [
            ("smt", groups("CPUs of one core (SMT siblings), default: none")),
            ("cache", groups("CPUs with one last-level cache, default: all")),
            ("node", groups("CPUs of one NUMA node, default: all")),
        ],
    )
}

fn run() -> Value {
    closed(
        "options of a live run",
        [
            (
                "watchdog",
                json!({ "$ref": "#/$defs/time", "description": "longest wait of a runnable thread, at most 30s" }),
            ),
            (
                "throttle",
                json!({ "enum": ["anywhere", "user"],
            "description": "where a thread without budget is stopped: at once, or on its way back to user mode" }),
            ),
            (
                "locks",
                json!({ "enum": ["none", "inheritance"],
            "description": "whether who has a lock runs in the place of who waits for it" }),
            ),
            (
                "marks",
                one_or_more(json!({ "type": "string", "pattern": r"^([^/\x00]+|/[^\x00]+)$",
            "description": "files whose programs write marks (USDT probe tierce:mark): a library by name, or an absolute path" })),
            ),
            ("trust", trust()),
            (
                "other_cpus",
                json!({ "enum": ["default", "refuse"],
            "description": "CPUs for which the plan names no root: each runs a replica of the default node, or the plan is refused" }),
            ),
            (
                "policies",
                one_or_more(json!({ "enum": std::iter::once("all").chain(names(all())).collect::<Vec<_>>(),
            "description": "policies that a later change of the plan may need: the kernel object is loaded with these, too" })),
            ),
        ],
    )
}
