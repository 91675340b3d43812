"""Plans: read, made, checked, simulated."""

import json

import pytest

import tierce

EDF = {
    "node": {"top": {"policy": "edf", "cpu": 0}},
    "task": {
        "a": {"under": {"top": {}}, "load": {"period": "10ms", "work": "2ms"}},
        "b": {"under": {"top": {}}, "load": {"period": "20ms", "work": "12ms"}},
    },
}


def test_a_plan_of_dictionaries_is_that_of_its_text():
    plan = tierce.Plan.from_dict(EDF, "edf.toml")
    assert (plan.name, plan.cpus, plan.nodes, plan.tasks) == ("edf.toml", 1, ["top"], ["a", "b"])
    again = tierce.Plan.from_text(plan.text)
    assert again.text == plan.text == str(plan)
    assert again.simulate("1s").to_dict()["tasks"] == plan.simulate("1s").to_dict()["tasks"]


def test_dictionaries_have_every_form_of_the_language():
    plan = tierce.Plan.from_dict(
        {
            "machine": {"cpus": 2, "costs": {"switch": "2us"}, "interrupts": [{"every": "1ms", "takes": "1us"}]},
            "defaults": {"fair": {"quantum": "4ms"}},
            "run": {"trust": "names"},
            "node": {"top": {"policy": "fair", "spread": True, "default": True, "each": {"weight": "nice"}}},
            "task": {"odd": {"under": {"top": {"weight": 200}}, "affinity": [0, 1], "load": None, "match": {"comm": 'a"\\\n\x7fé'}}},
            "tasks": {"many": {"count": 2, "under": {"top": [{"weight": 50}]}, "load": "busy"}},
        }
    )
    assert plan.cpus == 2
    assert plan.tasks == ["odd", "many[0]", "many[1]"]


@pytest.mark.parametrize(
    ("parts", "rule"),
    [
        (3, "plan_is_a_dictionary"),
        ({"node": {"top": 3}}, "part_is_a_dictionary"),
        ({"node": {3: {}}}, "key_is_text"),
        ({"task": {"a": {"load": object()}}}, "value_must_be_plain"),
        ({"task": {"a": {"load": "\ud800"}}}, "text_is_unicode"),
    ],
)
def test_what_no_plan_can_have_is_refused(parts, rule):
    with pytest.raises(tierce.ArgumentError) as refused:
        tierce.Plan.from_dict(parts)
    assert refused.value.rule == rule


def test_a_list_within_itself_is_refused():
    deep = []
    deep.append(deep)
    with pytest.raises(tierce.ArgumentError, match="plan_is_not_so_deep"):
        tierce.Plan.from_dict({"task": {"a": {"needs": deep}}})


def test_all_faults_of_a_plan_have_rule_place_and_help():
    with pytest.raises(tierce.PlanError) as refused:
        tierce.Plan.from_text("[node.top]\npolicy = 'fair'\ncpu = 0\n[task.hog]\nunder.tpo = {}\nlaod = 3", "bad.toml")
    faults = refused.value.faults
    assert [(fault.rule, fault.file, fault.line, fault.column) for fault in faults] == [
        ("parent_must_exist", "bad.toml", 5, 7),
        ("key_must_exist", "bad.toml", 6, 1),
    ]
    assert "top" in faults[0].help and "load" in faults[1].help
    assert str(faults[1]).startswith("bad.toml:6:1: key_must_exist: ")
    assert "laod = 3" in str(refused.value), "as text the lines are shown"
    assert isinstance(refused.value, (tierce.Error, ValueError))


def test_a_fault_has_value_and_bound():
    text = "[node.rt]\npolicy='reservation'\ncpu=0\n[task.a]\nunder.rt={budget='3ms',period='2ms'}\nload='busy'"
    with pytest.raises(tierce.PlanError) as refused:
        tierce.Plan.from_text(text)
    assert refused.value.value and refused.value.bound


def test_what_does_not_hold_is_told(root):
    text = (root / "examples/desktop.toml").read_text().replace('budget = "10ms", period = "33.333ms"', 'budget = "30ms", period = "33.333ms"')
    check = tierce.Plan.from_text(text).check()
    assert not check and not check.holds
    fault = check.faults[0]
    assert fault.rule and fault.line and fault.value and fault.bound
    assert "desktop" in check.text


def test_check_says_what_the_command_says(root, command):
    for name in ["desktop", "edf", "locks", "chain", "hyper"]:
        path = f"examples/{name}.toml"
        check = tierce.Plan.from_file(path).check()
        said = json.loads(command("check", "--json", path, status=0 if check.holds else 1))
        assert check.to_dict() == said
        assert check.text == command("check", path, status=0 if check.holds else 1)


def test_simulation_is_that_of_the_command(root, command):
    for name in ["desktop", "edf", "locks", "chain"]:
        path = f"examples/{name}.toml"
        report = tierce.Plan.from_file(path).simulate("500ms", seed=7)
        assert report.to_dict() == json.loads(command("sim", "--json", "--for", "500ms", "--seed", "7", path))


def test_a_report_has_tables(root):
    report = tierce.Plan.from_dict(EDF).simulate(1_000_000_000)
    assert report.elapsed_ns == 1_000_000_000 and report.misses == 0
    assert report.tasks["jobs"] == [100, 50]
    assert report.tasks["cpu_ns"] == [200_000_000, 600_000_000]
    assert report.nodes["name"] == ["top"]
    assert report.edges["parent"] == ["cpu0", "top", "top"]
    assert report.cpus.to_dicts()[0]["idle_ns"] == 200_000_000
    chains = tierce.Plan.from_file("examples/chain.toml").simulate("1s").chains
    assert len(chains) > 0 and chains["response_max_ns"][0] > 0


def test_an_explanation_names_the_part(root):
    check = tierce.Plan.from_file("examples/desktop.toml").check()
    assert "RESBH 2ms 10ms" in check.explain("audio")
    assert check.tasks["guarantee"][0] == "RESBH 2ms 10ms"
    assert check.nodes["holds"][:2] == [None, True]
    with pytest.raises(tierce.ArgumentError, match="did you mean `audio`") as refused:
        check.explain("audoi")
    assert refused.value.value == "audoi"


def test_a_plan_that_cannot_be_played_is_refused():
    over = {"node": {"rt": {"policy": "reservation", "cpu": 0}}, "task": {}}
    for name in "ab":
        over["task"][name] = {"under": {"rt": {"budget": "8ms", "period": "10ms"}}, "load": "busy"}
    plan = tierce.Plan.from_dict(over)
    assert not plan.check()
    with pytest.raises(tierce.PlanError) as refused:
        plan.simulate("1s")
    assert refused.value.faults[0].rule and refused.value.faults[0].bound


def test_more_cpus_run_the_default_node():
    parts = {"node": {"top": {"policy": "fair", "cpu": 0, "default": True}}}
    assert tierce.Plan.from_dict(parts, cpus=4).cpus == 4
    with pytest.raises(tierce.ArgumentError) as refused:
        tierce.Plan.from_dict(parts, cpus=0)
    assert (refused.value.rule, refused.value.value, refused.value.bound) == ("cpus_within_range", "0", "1 to 512")


def test_a_file_that_is_not_there_is_a_fault(tmp_path):
    with pytest.raises(tierce.PlanError) as refused:
        tierce.Plan.from_file(tmp_path / "none.toml")
    assert "none.toml" in refused.value.faults[0].file


@pytest.mark.parametrize(
    ("duration", "rule"),
    [
        ("2", "time_needs_a_unit"),
        ("2h", "unit_must_exist"),
        ("0.5ns", "time_not_finer_than_1ns"),
        ("", "time_must_be_a_number"),
        (0, "time_must_be_positive"),
        (-1, "time_must_fit"),
        (2**61, "time_must_fit"),
        (1.5, "time_is_a_number_or_text"),
        (True, "time_is_a_number_or_text"),
        (None, "time_is_a_number_or_text"),
    ],
)
def test_bad_times_are_refused(duration, rule):
    with pytest.raises(tierce.ArgumentError) as refused:
        tierce.Plan.from_dict(EDF).simulate(duration)
    assert refused.value.rule == rule


def test_a_floor_is_short():
    plan = tierce.Plan.from_dict(EDF)
    assert plan.simulate("10ms", floor="2us", check=True).misses == 0
    with pytest.raises(tierce.ArgumentError, match="floor_within_range"):
        plan.simulate("10ms", floor="2ms")


def test_times_are_exact():
    assert tierce.parse_time("1.8ms") == tierce.parse_time(1_800_000) == 1_800_000
    assert tierce.show_time(1_800_000) == "1.8ms"


def test_notebooks_show_plans_and_verdicts(root):
    plan = tierce.Plan.from_file("examples/desktop.toml")
    for shown in [plan, plan.check(), plan.simulate("100ms")]:
        html = shown._repr_html_()
        assert html.startswith("<pre ") and "audio" in html
    assert "<script" not in tierce.Plan.from_dict(EDF, "<script>.toml")._repr_html_()
