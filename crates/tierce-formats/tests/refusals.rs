//! Every refusal, by an example: a file of tests/formats of which one thing is changed. docs/formats.md has the list, which
//! `UPDATE=1 cargo test -p tierce-formats --test refusals` writes anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tierce_admission::PlanExt;
use tierce_formats::{export, import, Format, Unit};
use tierce_plan::Plan;

/// File, what is in it, what is there instead, the rule that this breaks.
const CASES: [(&str, &str, &str, &str); 47] = [
    ("pycpa-spp.xml", "SystemModel", "System", "format_must_be_known"),
    ("pycpa-spp.xml", "</Platform>", "", "xml_syntax"),
    ("pycpa-spp.xml", "name=\"SPPScheduler\"", "", "attribute_must_be_given"),
    ("pycpa-spp.xml", "Mapping", "Maps", "element_must_be_given"),
    ("pycpa-spp.xml", "wcet=\"10\"", "wcet=\"ten\"", "number_must_be_decimal"),
    ("pycpa-spp.xml", "resID=\"1\"", "resID=\"1.5\"", "number_must_be_whole"),
    ("pycpa-spp.xml", "wcet=\"10\"", "wcet=\"1e20\"", "time_must_fit"),
    ("pycpa-spp.xml", "activationPeriod=\"30\"", "activationPeriod=\"0\"", "time_must_not_be_zero"),
    ("pycpa-spp.xml", "resID=\"2\"", "resID=\"1\"", "id_must_be_unique"),
    ("pycpa-spp.xml", "ID=\"2\" shortName=\"T21\"", "ID=\"1\" shortName=\"T21\"", "id_must_be_unique"),
    ("pycpa-spp.xml", "name=\"SPPScheduler\"", "name=\"TDMAScheduler\"", "policy_must_be_known"),
    ("pycpa-spp.xml", "<Resource", "<Other", "xml_syntax"),
    ("pycpa-spp.xml", "priority=\"1\"", "priority=\"high\"", "number_must_be_whole"),
    ("pycpa-spp.xml", "<mapTask tid=\"1\" rid=\"1\"/>", "", "task_must_be_mapped"),
    (
        "pycpa-spp.xml",
        "<mapTask tid=\"1\" rid=\"1\"/>",
        "<mapTask tid=\"1\" rid=\"9\"/>",
        "processor_must_exist",
    ),
    ("pycpa-spp.xml", "trgt=\"2\"", "trgt=\"7\"", "task_must_exist"),
    ("pycpa-spp.xml", "name=\"PJActivation\"", "name=\"Burst\"", "activation_must_be_known"),
    ("simso-rm.xml", "cycles_per_ms=\"1000000\"", "cycles_per_ms=\"0\"", "cycles_must_not_be_zero"),
    ("simso-rm.xml", "speed=\"1.0\"", "speed=\"0\"", "speed_must_not_be_zero"),
    (
        "simso-rm.xml",
        "<processor name=\"CPU 1\" id=\"1\" cl_overhead=\"0\" cs_overhead=\"0\" speed=\"1.0\"/>",
        "",
        "processor_must_be_given",
    ),
    ("simso-rm.xml", "id=\"3\" task_type", "id=\"2\" task_type", "id_must_be_unique"),
    ("simso-rm.xml", "Periodic", "Often", "task_type_must_be_known"),
    ("simso-fixed.xml", "cpu=\"2\"", "cpu=\"3\"", "processor_must_exist"),
    ("simso-priorities.xml", "priority=\"9\"", "priority=\"65536\"", "priority_must_fit"),
    ("simso-priorities.xml", "followed_by=\"3\"", "followed_by=\"9\"", "task_must_exist"),
    ("simso-priorities.xml", "5, 25, 60", "5, 25, 25", "dates_must_differ"),
    ("mast-two-flows.txt", "Name => cpu1", "Name cpu1", "mast_syntax"),
    ("mast-two-flows.txt", "Name => cpu1", "Nam => cpu1", "field_must_be_given"),
    ("mast-two-flows.txt", "Name => network", "Name => cpu1", "name_must_be_unique"),
    ("mast-two-flows.txt", "Regular_Processor", "Irregular_Processor", "processor_must_be_known"),
    ("mast-two-flows.txt", "Host => cpu1", "Host => cpu9", "processor_must_exist"),
    ("mast-two-flows.txt", "Host => cpu1", "Host => cpu2", "processor_must_be_free"),
    ("mast-two-flows.txt", "Type => Fixed_Priority,", "Type => Lottery,", "policy_must_be_known"),
    ("mast-two-flows.txt", "Speed_Factor => 1.00", "Speed_Factor => 0.00", "speed_must_not_be_zero"),
    ("mast-two-flows.txt", "Scheduler => s1", "Scheduler => s9", "scheduler_must_exist"),
    ("mast-two-flows.txt", "Activity_Server => a1", "Activity_Server => a9", "server_must_exist"),
    ("mast-two-flows.txt", "Activity_Operation => a1", "Activity_Operation => a9", "operation_must_exist"),
    ("mast-two-flows.txt", "Type => Simple", "Type => Message_Transmission", "message_must_take_time"),
    ("mast-two-flows.txt", "Type => Simple", "Type => Difficult", "operation_must_be_known"),
    ("mast-two-flows.txt", "Processing_Resource", "Processing_Resources", "processor_must_be_given"),
    ("mast-locks.txt", "(data)", "(date)", "resource_must_exist"),
    ("mast-locks.txt", "SRP_Resource", "Other_Resource", "resource_must_be_known"),
    (
        "mast-locks.txt",
        "Composite_Operation_List => (read, compute)",
        "Composite_Operation_List => (control_job)",
        "operations_must_be_few",
    ),
    ("mast-servers.txt", "Initial_Capacity => 2,", "Initial_Capacity => 21,", "budget_must_fit"),
    ("mast-servers.txt", "The_Priority => 700", "The_Priority => high", "number_must_be_whole"),
    ("mast-model.xml", "mast_mdl:SRP_Resource", "mast_mdl:Other", "element_must_be_known"),
    (
        "mast-model.xml",
        "Worst_Case_Execution_Time=\"2\"",
        "Worst_Case_Execution_Time=\"2\" Worst_Case_Execution_Time=\"3\"",
        "xml_syntax",
    ),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Rules with an example of each.
fn found() -> BTreeMap<String, String> {
    let mut rules = BTreeMap::new();
    let mut broken = |name: &str, text: &str, format: Option<Format>| {
        let format = format.map_or_else(|| Format::guess(name, text), Ok);
        let faults = format.and_then(|format| import(name, text, format, Unit::Ms)).unwrap_err();
        let fault = &faults.faults[0];
        let mut words = fault.message.clone();
        words += &fault.value.as_ref().map(|value| format!(": {value}")).unwrap_or_default();
        words += &fault.bound.as_ref().map(|bound| format!(", bound {bound}")).unwrap_or_default();
        rules.entry(fault.rule.to_string()).or_insert(words);
        fault.rule.to_string()
    };
    for (name, from, to, rule) in CASES {
        let text = std::fs::read_to_string(root().join("tests/formats").join(name)).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        assert_eq!(broken(name, &text.replace(from, to), None), rule, "{name}: {to}");
    }
    let (mast, simso, pycpa) = (Some(Format::Mast), Some(Format::Simso), Some(Format::Pycpa));
    broken("large", &" ".repeat((16 << 20) + 1), mast);
    broken("deep", &"<a>".repeat(65), simso);
    broken("many", &"Processing_Resource (Type => Regular_Processor, Name => p);".repeat(2), mast);
    let cpus: String = (0..513).map(|id| format!("<processor id='{id}'/>")).collect();
    broken("cpus", &format!("<simulation><sched/><processors>{cpus}</processors></simulation>"), simso);
    let handlers: Vec<_> = (0..201).map(|_| "(Type => Activity)").collect();
    let cpu = "Processing_Resource (Type => Regular_Processor, Name => p);";
    let handlers = handlers.join(", ");
    broken("handlers", &format!("{cpu} Transaction (Name => t, Event_Handlers => ({handlers}));"), mast);
    let platform = "<Platform><Resource resID='0'><Scheduler name='SPPScheduler'/></Resource></Platform>";
    let tasks = "<Task/>".repeat(301);
    let text =
        format!("<S>{platform}<Applications><Application appID='0'>{tasks}</Application></Applications></S>");
    broken("tasks", &text, pycpa);
    let plan =
        Plan::parse("[node.n]\npolicy = \"fair\"\ncpu = 0\n[task.t]\nunder.n = {}\nload = \"busy\"\n", "p")
            .unwrap();
    let faults = export(&plan, Format::Mast, Unit::Ms).unwrap_err();
    rules.insert(faults.faults[0].rule.into(), faults.faults[0].message.clone());
    rules
}

/// All rules that the sources name.
fn named(folder: &Path, rules: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            named(&path, rules);
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        for begin in ["fault(", "Fault::new("] {
            for (at, _) in text.match_indices(begin) {
                let rest = text[at + begin.len()..].trim_start();
                rules
                    .extend(rest.strip_prefix('"').and_then(|rest| rest.split('"').next()).map(String::from));
            }
        }
    }
}

#[test]
fn every_refusal_has_an_example() {
    let found = found();
    let mut rules = Vec::new();
    named(&root().join("crates/tierce-formats/src"), &mut rules);
    rules.sort();
    rules.dedup();
    assert!(rules.len() > 30, "{rules:?}");
    assert_eq!(found.keys().collect::<Vec<_>>(), rules.iter().collect::<Vec<_>>());

    let table: String = found.iter().map(|(rule, words)| format!("| `{rule}` | {words} |\n")).collect();
    let page = root().join("docs/formats.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let marker = "<!-- rules: generated by the tests of tierce-formats -->\n";
    let (begin, rest) = text.split_once(marker).unwrap();
    let (_, end) = rest.split_once("<!-- end -->").unwrap();
    let text_now = format!("{begin}{marker}| rule | example |\n|---|---|\n{table}<!-- end -->{end}");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&page, &text_now).unwrap();
    } else {
        assert_eq!(text_now, text, "docs/formats.md: UPDATE=1 writes it anew");
    }
}
