//! Every refusal of a study, with its place, and that a right one is read.

use tierce_sweep::read;

const GENERATE: &str =
    "[generate]\nmethod = \"emberson\"\ntasks = 5\nutilisation = 0.5\nperiods = \"1ms..10ms\"\n";
const ANALYSE: &str = "[[analyse]]\npolicy = \"edf\"\n";

/// Rule, what is in the place of [generate], what comes after it.
const REFUSED: [(&str, &str, &str); 51] = [
    ("toml_syntax", GENERATE, "[[analyse]\n"),
    ("key_must_exist", GENERATE, "[[analyse]]\npolicy = \"edf\"\nsuply = \"1ms/2ms\"\n"),
    ("value_must_be_of_its_kind", GENERATE, "[analyse]\npolicy = \"edf\"\n"),
    ("sets_must_be_drawn", "", ANALYSE),
    ("study_needs_a_test", GENERATE, ""),
    ("grid_must_fit", GENERATE, "[[simulate]]\npolicy = \"edf\"\nfor = \"1s\"\n[parameters]\na = { from = 1, to = 9999, step = 1 }\nb = { from = 1, to = 9999, step = 1 }\n"),
    ("grid_must_fit", "[generate]\nmethod = \"emberson\"\ntasks = 5\nutilisation = { from = 0.0001, to = 0.9999, step = 0.0001 }\nshares = { from = 0.5001, to = 0.9999, step = 0.0001 }\nperiods = \"1ms..10ms\"\n", ANALYSE),
    ("list_must_not_be_empty", GENERATE, "[[analyse]]\npolicy = []\n"),
    ("values_must_differ", GENERATE, "[[analyse]]\npolicy = [\"edf\", \"rm\", \"edf\"]\n"),
    ("choice_must_exist", GENERATE, "[[analyse]]\npolicy = \"efd\"\n"),
    ("choice_must_exist", "[generate]\nmethod = \"emerson\"\ntasks = 5\nutilisation = 0.5\nperiods = \"1ms..10ms\"\n", ANALYSE),
    ("number_must_be_decimal", "[generate]\nmethod = \"emberson\"\ntasks = 5\nutilisation = 5e-1\nperiods = \"1ms..10ms\"\n", ANALYSE),
    ("number_within_range", "[generate]\nmethod = \"emberson\"\ntasks = 1025\nutilisation = 0.5\nperiods = \"1ms..10ms\"\n", ANALYSE),
    ("steps_need_their_numbers", "[generate]\nmethod = \"emberson\"\ntasks = 5\nutilisation = { from = 0.1, to = 1 }\nperiods = \"1ms..10ms\"\n", ANALYSE),
    ("steps_must_be_some", "[generate]\nmethod = \"emberson\"\ntasks = 5\nutilisation = { from = 0.1, to = 1, step = 0 }\nperiods = \"1ms..10ms\"\n", ANALYSE),
    ("range_must_be_one", "[generate]\nmethod = \"paper\"\nutilisation = \"0.9..0.8\"\nperiods = \"1ms..10ms\"\n", ANALYSE),
    ("periods_are_a_range", "[generate]\nmethod = \"emberson\"\ntasks = 5\nutilisation = 0.5\nperiods = \"10ms..1ms\"\n", ANALYSE),
    ("time_needs_a_unit", "[generate]\nmethod = \"emberson\"\ntasks = 5\nutilisation = 0.5\nperiods = \"1..10\"\n", ANALYSE),
    ("sets_need_their_numbers", "[generate]\nmethod = \"emberson\"\ntasks = 5\nperiods = \"1ms..10ms\"\n", ANALYSE),
    ("tasks_are_as_many_as_needed", "[generate]\nmethod = \"paper\"\ntasks = 5\nutilisation = \"0.5..0.6\"\nperiods = \"1ms..10ms\"\n", ANALYSE),
    ("tasks_are_some", "[generate]\nmethod = \"emberson\"\nutilisation = 0.5\nperiods = \"1ms..10ms\"\n", ANALYSE),
    ("sum_is_one", "[generate]\nmethod = \"emberson\"\ntasks = 5\nutilisation = \"0.5..0.6\"\nperiods = \"1ms..10ms\"\n", ANALYSE),
    ("sum_is_in_reach", "[generate]\nmethod = \"emberson\"\ntasks = 5\nutilisation = 0.9\nshares = \"0..0.1\"\nperiods = \"1ms..10ms\"\n", ANALYSE),
    ("shares_are_a_range", "[generate]\nmethod = \"emberson\"\ntasks = 5\nutilisation = 0.9\nshares = \"0.5..1.5\"\nperiods = \"1ms..10ms\"\n", ANALYSE),
    ("parameter_needs_a_name", GENERATE, "[[analyse]]\npolicy = \"edf\"\n[parameters]\nseed = [1, 2]\n"),
    ("name_is_unique", GENERATE, "[[analyse]]\npolicy = \"edf\"\n[[analyse]]\npolicy = \"edf\"\n"),
    ("name_is_unique", GENERATE, "[[analyse]]\npolicy = \"edf\"\n[[figure]]\nfile = \"a.svg\"\n[[figure]]\nfile = \"a.svg\"\n"),
    ("policy_must_be_given", GENERATE, "[[analyse]]\nresponses = true\n"),
    ("name_is_of_one_test", GENERATE, "[[analyse]]\nname = \"both\"\npolicy = [\"edf\", \"rm\"]\n"),
    ("name_is_of_one_test", GENERATE, "[[simulate]]\nname = \"both\"\nfor = \"1s\"\npolicy = [\"edf\", \"rm\"]\n"),
    ("pd2_is_for_several_cpus", GENERATE, "[[analyse]]\npolicy = \"pd2\"\nquantum = \"1ms\"\n"),
    ("quantum_is_of_pd2", GENERATE, "[[analyse]]\npolicy = \"edf\"\nquantum = \"1ms\"\n"),
    ("thresholds_need_priorities", GENERATE, "[[analyse]]\npolicy = \"edf\"\npreemption = \"thresholds\"\n"),
    ("supply_must_fit", GENERATE, "[[analyse]]\npolicy = \"edf\"\nsupply = \"3ms/2ms\"\n"),
    ("time_must_be_given", GENERATE, "[[simulate]]\npolicy = \"edf\"\n"),
    ("time_must_not_be_zero", GENERATE, "[[simulate]]\npolicy = \"edf\"\nfor = \"0s\"\n"),
    ("policy_is_for_sets_of_one_cpu", "", "[[simulate]]\npolicy = \"edf\"\nfor = \"1s\"\n"),
    ("policy_or_plan", GENERATE, "[[simulate]]\nfor = \"1s\"\n"),
    ("file_must_be_readable", GENERATE, "[[simulate]]\nplan = \"none.toml\"\nfor = \"1s\"\n"),
    ("plan_must_be_right", GENERATE, "[[simulate]]\nplan = \"wrong.toml\"\nfor = \"1s\"\n"),
    ("node_must_exist", GENERATE, "[[simulate]]\nplan = \"right.toml\"\nunder = \"tpo\"\nfor = \"1s\"\n"),
    ("under_needs_sets", "", "[[simulate]]\nplan = \"right.toml\"\nunder = \"top\"\nfor = \"1s\"\n"),
    ("quantile_is_a_part", GENERATE, "[[analyse]]\npolicy = \"edf\"\n[[figure]]\nfile = \"a.svg\"\ny = \"ratio\"\nquantile = 2\n"),
    ("file_must_be_given", GENERATE, "[[analyse]]\npolicy = \"edf\"\n[[figure]]\ny = \"ratio\"\n"),
    ("name_is_unique", GENERATE, "[[analyse]]\npolicy = \"edf\"\n[[figure]]\nfile = \"a.svg\"\n[[figure]]\nfile = \"a.pdf\"\n"),
    ("picture_is_svg_pdf_or_png", GENERATE, "[[analyse]]\npolicy = \"edf\"\n[[figure]]\nfile = \"a.gif\"\n"),
    ("picture_is_svg_pdf_or_png", GENERATE, "[[analyse]]\npolicy = \"edf\"\n[[figure]]\nfile = \"../a.svg\"\n"),
    ("column_must_exist", GENERATE, "[[analyse]]\npolicy = \"edf\"\n[[figure]]\nfile = \"a.svg\"\nx = \"utilization\"\n"),
    ("column_must_exist", GENERATE, "[[analyse]]\npolicy = \"edf\"\n[[figure]]\nfile = \"a.svg\"\nwhere = { taks = 5 }\n"),
    ("x_is_a_number", GENERATE, "[[analyse]]\npolicy = \"edf\"\n[[figure]]\nfile = \"a.svg\"\nx = \"method\"\n"),
    ("value_must_be_of_its_kind", "study = 3\n", ANALYSE),
];

/// On four CPUs.
const REFUSED_ON_FOUR: [(&str, &str); 4] = [
    ("quantum_must_be_given", "[[analyse]]\npolicy = \"pd2\"\n"),
    ("supply_is_of_one_cpu", "[[analyse]]\npolicy = \"edf\"\nsupply = \"1ms/2ms\"\n"),
    ("fifo_is_of_one_cpu", "[[analyse]]\npolicy = \"fifo\"\n"),
    ("jobs_are_preempted_anywhere", "[[analyse]]\npolicy = \"edf\"\npreemption = \"none\"\n"),
];

/// A study in a folder with two plans.
fn refusal(text: &str) -> Option<String> {
    let folder = std::env::temp_dir().join(format!("tierce-sweep-faults-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("right.toml"), "[node.top]\npolicy = \"edf\"\ncpu = 0\n").unwrap();
    std::fs::write(folder.join("wrong.toml"), "[node.top]\npolicy = \"efd\"\n").unwrap();
    read(text, &folder.join("study.toml").display().to_string()).err().map(|faults| faults.to_string())
}

#[test]
fn each_rule_refuses() {
    for (rule, generate, rest) in REFUSED {
        let found = refusal(&format!("{generate}{rest}"))
            .unwrap_or_else(|| panic!("{rule}: is read\n{generate}{rest}"));
        assert!(found.lines().any(|line| line.contains(&format!(": {rule}: "))), "{rule}\n{found}");
    }
    for (rule, rest) in REFUSED_ON_FOUR {
        let found =
            refusal(&format!("{GENERATE}cpus = 4\n{rest}")).unwrap_or_else(|| panic!("{rule}: is read"));
        assert!(found.contains(&format!(": {rule}: ")), "{rule}\n{found}");
    }
}

#[test]
fn faults_have_place_value_bound_and_neighbour() {
    let found = refusal(&format!("[study]\nsets = 0\nsede = 2\n{GENERATE}{ANALYSE}")).unwrap();
    let lines: Vec<_> = found.lines().collect();
    assert!(lines[0].ends_with("study.toml:2:8: number_within_range: `sets` of `study` is out of range: 0, bound 1 to 1000000000"), "{found}");
    assert!(
        lines[1].contains("study.toml:3:1: key_must_exist") && lines[1].contains("did you mean `seed`?"),
        "{found}"
    );
}

#[test]
fn the_examples_are_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/studies");
    let mut studies = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        if text.contains("[study]") {
            read(&text, &path.display().to_string()).unwrap_or_else(|faults| panic!("{faults}"));
            studies += 1;
        }
    }
    assert!(studies > 0);
}
