"""Sets of tasks, and whether they are schedulable."""

import json
import pickle

import pytest

import tierce

# Two tasks that meet their deadlines under EDF, and not under rate monotonic priorities.
FULL = [("2ms", "5ms"), ("4ms", "7ms")]


def test_tasks_have_many_forms():
    forms = [
        [("1ms", "10ms"), ("8ms", 33_000_000, "20ms")],
        [{"work": "1ms", "period": "10ms"}, {"work_ns": 8_000_000, "period_ns": 33_000_000, "deadline": "20ms"}],
        [tierce.Task("1ms", "10ms"), tierce.Task("8ms", "33ms", "20ms")],
        iter([("1ms", "10ms"), tierce.Task("8ms", "33ms", "20ms")]),
        tierce.TaskSet.from_csv("name,work,period,deadline\nt1,1ms,10ms,\nt2,8ms,33ms,20ms"),
        tierce.TaskSet([("1ms", "10ms"), ("8ms", "33ms", "20ms")]),
        tierce.TaskSet([("1ms", "10ms"), ("8ms", "33ms", "20ms")]).table,
    ]
    first, *others = [tierce.TaskSet(form).to_dicts() for form in forms]
    assert first[1] == {"name": "t2", "work_ns": 8_000_000, "period_ns": 33_000_000, "deadline_ns": 20_000_000}
    assert all(other == first for other in others)


def test_response_times_are_those_of_the_textbook():
    # Joseph & Pandya 1986, with the recurrence done by hand.
    answer = tierce.analyse([(1, 4), (2, 6), (3, 12)], "rm")
    assert answer and answer.schedulable and answer.exact
    assert answer.tasks["wcrt_ns"] == [1, 3, 10]
    assert answer.tasks["slack_ns"] == [3, 3, 2]
    assert (answer.policy, answer.cpus, answer.supply, answer.utilisation_exact) == ("rm", 1, "a whole CPU", "5/6")


def test_edf_fills_a_cpu_and_rate_monotonic_does_not():
    assert tierce.analyse(FULL, "edf")
    answer = tierce.analyse(FULL, "rm")
    assert not answer and answer.exact and answer.utilisation_exact == "34/35"


QUESTIONS = [
    ("edf", {}),
    ("fp", {}),
    ("audsley", {}),
    ("fifo", {}),
    ("edf", {"supply": "4ms/5ms"}),
    ("dm", {"supply": "RESCS 4ms 5ms"}),
    ("edf", {"cpus": 2}),
    ("dkc", {"cpus": 2}),
    ("edf", {"cpus": 2, "partition": "worst"}),
    ("edf", {"supply": "8ms/5ms@2"}),
    ("pd2", {"cpus": 2, "quantum": "1ms"}),
    ("fp", {"preemption": "none"}),
    ("edf", {"offsets": "known"}),
    ("edf", {"sensitivity": True}),
    ("federated", {"cpus": 3}),
]


@pytest.mark.parametrize(("policy", "options"), QUESTIONS)
def test_answers_are_those_of_the_command(command, tmp_path, policy, options):
    tasks = tierce.TaskSet([("1ms", "5ms"), ("3ms", "10ms", "9ms"), ("4ms", "20ms")])
    (tmp_path / "tasks.csv").write_text(tasks.to_csv())
    answer = tierce.analyse(tasks, policy, **options)
    words = []
    for name, value in options.items():
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    said = json.loads(command("analyse", "--json", "--policy", policy, *words, tmp_path / "tasks.csv", status=0 if answer else 1))
    assert answer.schedulable == said["schedulable"] and answer.exact == said["exact"]
    assert answer.remarks == [remark.replace("--", "") for remark in said["remarks"]]
    if said["tasks"]:
        assert answer.tasks["wcrt_ns"] == [task["wcrt_ns"] for task in said["tasks"]]
    if "sensitivity" in options:
        assert answer.tasks["work_max_ns"] == [task["work_max_ns"] for task in said["tasks"]]
        assert answer.work_scale == said["work_scale_ppb"] / 1e9
    if "cpu" in answer.tasks.columns and policy != "federated":
        assert answer.tasks["cpu"] == [task["cpu"] for task in said["tasks"]]


def test_thresholds_are_given_or_chosen():
    # Wang & Saksena 1999; who is blocked waits for 1 ns less than with continuous time.
    times = [("20ms", "70ms", "50ms"), ("20ms", "80ms", "80ms"), ("35ms", "200ms", "100ms")]
    given = [tierce.Task(*times[at], priority=3 - at, threshold=threshold) for at, threshold in enumerate([3, 3, 2])]
    assert tierce.TaskSet(given).to_dicts()[2]["threshold"] == 2
    for answer in [tierce.analyse(given, "fp"), tierce.analyse(times, "dm", preemption="thresholds")]:
        assert answer and answer.exact
        assert answer.tasks["wcrt_ns"] == [39_999_999, 74_999_999, 95_000_000]
        assert answer.tasks["threshold_of"] == ["t1", "t1", "t2"]
    assert not tierce.analyse(given, "fp", preemption="full")


def test_two_criticalities():
    tasks = [
        {"work": "1ms", "period": "5ms", "criticality": "hi", "work_hi": "2ms"},
        {"work": "2ms", "period": "10ms", "criticality": "lo"},
    ]
    for policy in ["amc", "smc", "vestal", "edf-vd"]:
        answer = tierce.analyse(tasks, policy)
        assert answer and answer.tasks["criticality"] == ["hi", "lo"]
    with pytest.raises(tierce.AnalysisError, match="criticality_needs_its_policy"):
        tierce.analyse(tasks, "edf")
    with pytest.raises(tierce.AnalysisError, match="criticality_must_be_given"):
        tierce.analyse(FULL, "amc")


@pytest.mark.parametrize(
    ("tasks", "rule"),
    [
        ([], "table_needs_tasks"),
        ("tasks.csv", "tasks_are_a_list"),
        ([3], "task_must_be_one"),
        ([(1,)], "task_has_its_numbers"),
        ([{"work": 1}], "cell_must_not_be_empty"),
        ([{"work": 1, "period": 5, "deadlin": 3}], "column_must_be_known"),
        ([(0, 5)], "time_must_be_positive"),
        ([{"work": 1, "period": 5, "last_section": 2}], "sections_are_within_the_work"),
        ([{"work": 1, "period": 5, "threshold": 2}], "threshold_needs_a_priority"),
        ([{"work": 1, "period": 5, "criticality": "high"}], "criticality_must_be_known"),
        ([tierce.Task(1, 5, name="a"), tierce.Task(1, 5, name="a")], "names_are_unique"),
    ],
)
def test_bad_tasks_are_refused(tasks, rule):
    with pytest.raises(tierce.AnalysisError) as refused:
        tierce.analyse(tasks, "edf")
    assert refused.value.rule == rule


@pytest.mark.parametrize(
    ("options", "kind", "rule"),
    [
        ({"policy": "edff"}, tierce.ArgumentError, "name_must_be_known"),
        ({"partition": "worse"}, tierce.ArgumentError, "name_must_be_known"),
        ({"supply": "5ms/3ms"}, tierce.ArgumentError, "supply_must_fit"),
        ({"supply": "NULL"}, tierce.ArgumentError, "supply_must_be_bounded"),
        ({"cpus": 0}, tierce.AnalysisError, "cpus_within_range"),
        ({"quantum": "1ms"}, tierce.AnalysisError, "quantum_is_of_pd2"),
        ({"cpus": 2, "supply": "1ms/2ms"}, tierce.AnalysisError, "supply_is_of_one_cpu"),
    ],
)
def test_what_does_not_go_together_is_refused(options, kind, rule):
    with pytest.raises(kind) as refused:
        tierce.analyse(FULL, **{"policy": "edf", **options})
    assert refused.value.rule == rule
    assert "--" not in str(refused.value)


def test_faults_of_a_table_have_places():
    with pytest.raises(tierce.AnalysisError) as refused:
        tierce.TaskSet.from_csv("name,work,period\na,1ms,x\nb,,10ms", "set.csv")
    faults = refused.value.faults
    assert [(fault.file, fault.line, fault.column) for fault in faults] == [("set.csv", 2, 7), ("set.csv", 3, 3)]
    assert [str(fault) for fault in pickle.loads(pickle.dumps(refused.value)).faults] == [str(fault) for fault in faults]


def test_tables_of_files(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text("name,work,period\na,1ms,2ms\n")
    assert len(tierce.TaskSet.from_file(path)) == 1
    with pytest.raises(tierce.AnalysisError, match="file_must_be_readable"):
        tierce.TaskSet.from_file(tmp_path / "none.csv")


def test_many_sets_are_analysed_as_each_is():
    sets = [tierce.generate("uunifast-discard", tasks=8, utilisation=0.7 + 0.01 * seed, periods=("5ms", "50ms"), seed=seed) for seed in range(30)]
    told = []
    table = tierce.analyse_many(sets, "dm", threads=3, progress=lambda done, total: told.append((done, total)))
    assert table["schedulable"] == [tierce.analyse(tasks, "dm").schedulable for tasks in sets]
    assert table["set"] == list(range(30)) and table["tasks"] == [8] * 30
    assert table["utilisation"] == [tasks.utilisation for tasks in sets]
    assert table["refused"] == [None] * 30
    assert len(set(table["schedulable"])) == 2, "some are, some are not"


def test_a_set_without_an_answer_is_told():
    late = [tierce.Task("1ms", "5ms", deadline="9ms")]
    table = tierce.analyse_many([FULL, late], "dkc", cpus=2)
    assert table["schedulable"] == [True, None]
    assert table["refused"] == [None, "deadlines_are_at_most_periods"]
    assert len(tierce.analyse_many([], "edf")) == 0
    with pytest.raises(tierce.ArgumentError, match="threads_are_some"):
        tierce.analyse_many([FULL], "edf", threads=0)


def test_generated_sets_are_those_of_the_command(command):
    drawn = tierce.generate("emberson", tasks=10, cpus=2, utilisation=0.8, periods=("1ms", "1s"), seed=3)
    said = command("gen", "--method", "emberson", "--tasks", "10", "--cpus", "2", "--utilisation", "0.8", "--periods", "1ms..1s", "--seed", "3")
    assert drawn.to_dicts() == tierce.TaskSet.from_csv(said).to_dicts()
    ranged = tierce.generate("paper", cpus=4, utilisation=(0.88, 0.885), shares=(0.1, 1), periods=("5ms", "50ms"))
    assert 3.51 < ranged.utilisation < 3.55
    assert tierce.generate("randfixedsum", tasks=4, utilisation=1, shares=(0.2, 0.3), periods="10ms").utilisation == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"method": "uniform"}, "method_must_be_known"),
        ({"tasks": None}, "tasks_are_some"),
        ({"tasks": 0}, "tasks_are_some"),
        ({"tasks": 10**30}, "tasks_are_some"),
        ({"utilisation": (0.5, 0.6)}, "sum_is_one"),
        ({"utilisation": float("nan")}, "sum_is_one"),
        ({"utilisation": 3}, "sum_is_in_reach"),
        ({"periods": (5, 1)}, "periods_are_a_range"),
        ({"periods": (5, 1, 2)}, "range_is_a_pair"),
        ({"method": "paper"}, "tasks_are_as_many_as_needed"),
        ({"cpus": 0}, "cpus_within_range"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, rule):
    usual = {"method": "uunifast-discard", "tasks": 2, "utilisation": 0.5, "periods": (1000, 2000)}
    with pytest.raises(tierce.ArgumentError) as refused:
        tierce.generate(**{**usual, **options})
    assert refused.value.rule == rule


def test_servers_are_those_of_the_command(command, tmp_path):
    tasks = tierce.TaskSet([("1ms", "10ms"), ("2ms", "45ms"), ("4ms", "100ms")])
    (tmp_path / "tasks.csv").write_text(tasks.to_csv())
    said = json.loads(command("design", "server", "--policy", "rm", "--json", tmp_path / "tasks.csv"))
    found = tierce.design_server(tasks, "rm")
    assert found["budget_ns"] == [point["budget_ns"] for point in said["frontier"]]
    assert found["period_ns"][found["best"].index(True)] == said["best"]["period_ns"]
    assert tierce.design_server([("9ms", "10ms"), ("9ms", "10ms")], "edf") is None
    assert tierce.design_server(tasks, "edf", periods=["1ms", "2ms"], switch_cost=0)["period_ns"] == [1_000_000, 2_000_000]
    with pytest.raises(tierce.ArgumentError, match="time_must_be_positive"):
        tierce.design_server(tasks, "edf", periods=[0])


def test_tasks_are_split_over_cpus():
    tasks = [("5.5ms", "10ms")] * 3
    pieces = tierce.split(tasks, "nps-f", cpus=2)  # the example at the head of crates/tierce-analysis/src/split.rs
    assert pieces["slot_ns"] == [2_500_000] * 4
    assert pieces["length_ns"] == [1_510_990, 989_010, 521_980, 1_510_990]
    with pytest.raises(tierce.AnalysisError, match="bins_fit|room|fits"):
        tierce.split(tasks, "nps-f", cpus=1)
    with pytest.raises(tierce.AnalysisError, match="cluster_is_of_c_nps_f"):
        tierce.split(tasks, "nps-f", cpus=2, cluster=1)
    with pytest.raises(tierce.AnalysisError, match="jobs_are_preempted_anywhere"):
        tierce.split([tierce.Task(1, 5, suspension=1)], "s-ekg", cpus=2)


def test_guarantees_are_converted():
    found = tierce.convert_guarantee("RESBS 10ms 20ms", "RESCS ? 25ms")
    assert found and str(found) == "RESCS 5ms 25ms" and found.steps[0].formula
    assert str(tierce.convert_guarantee("PSBE ? 10ms", "RESCS 5ms 33ms")).startswith("PSBE ")
    refused = tierce.convert_guarantee("NULL", "RESCS 1ms 25ms")
    assert not refused and refused.reason
    with pytest.raises(tierce.GuaranteeError) as unreadable:
        tierce.convert_guarantee("RESBS 10ms", "PS")
    assert unreadable.value.faults[0].column
    with pytest.raises(tierce.GuaranteeError, match="one_side_has_all_numbers"):
        tierce.convert_guarantee("PSBE ? 10ms", "RESCS ? 33ms")
    with pytest.raises(tierce.ArgumentError):
        tierce.convert_guarantee("RESBS 10ms 20ms", "RESCS", period="x")
