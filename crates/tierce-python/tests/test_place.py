"""Servers to CPUs."""

import json

import pytest

import tierce

SERVERS = [("2ms", "5ms"), ("4ms", "10ms"), ("3ms", "5ms"), ("1ms", "20ms", "8ms")]


@pytest.mark.parametrize("order", ["fixed-priority", "edf"])
@pytest.mark.parametrize("strategy", ["first", "best", "worst", "period", "mixed", "switches"])
def test_servers_are_where_the_command_puts_them(command, tmp_path, strategy, order):
    table = tierce.TaskSet(SERVERS)
    (tmp_path / "servers.csv").write_text(table.to_csv(), encoding="utf-8")
    arguments = ["--cpus", 2, "--strategy", strategy, "--order", order, "--rest", "others", "-o", tmp_path / "plan.toml"]
    said = json.loads(command("place", "--json", *arguments, tmp_path / "servers.csv"))
    placed = tierce.place(table, strategy, cpus=2, order=order)
    assert placed.servers.to_dicts() == said["servers"]
    assert placed.switches_per_second == said["micro_switches_per_second"] / 1e6
    assert placed.plan(rest="others").text == (tmp_path / "plan.toml").read_text(encoding="utf-8")


def test_a_placement_is_a_plan_that_holds():
    placed = tierce.place(SERVERS, "switches", cpus=2)
    assert placed.servers["cpu"] == [1, 1, 0, 0] and placed.servers["response_ns"] == [2_000_000, 8_000_000, 3_000_000, 4_000_000]
    plan = placed.plan()
    assert plan.cpus == 2 and plan.tasks == ["t1", "t2", "t3", "t4"] and plan.check()
    assert "4 servers on 2 CPUs, 640.0 switches/s" in repr(placed) and "<table>" in placed._repr_html_()
    assert tierce.place(SERVERS, "first", cpus=2, order="edf").servers["response_ns"] == [None] * 4


@pytest.mark.parametrize(
    ("servers", "arguments", "rule"),
    [
        (SERVERS, {"cpus": 1}, "server_fits_nowhere"),
        (SERVERS, {"cpus": 0}, "cpus_within_range"),
        (SERVERS, {"cpus": 513}, "cpus_within_range"),
        (SERVERS, {"cpus": 2, "order": "fifo"}, "name_must_be_known"),
        ([(12, 10)], {"cpus": 2}, "budget_within_deadline_within_period"),
        ([tierce.Task(1, 10, jitter=1)], {"cpus": 2}, "servers_have_no_jitter"),
        ([tierce.Task(1, 10, priority=1), (1, 10)], {"cpus": 2}, "priorities_are_complete"),
        ([tierce.Task(1, 10, suspension=1)], {"cpus": 2}, "jobs_are_preempted_anywhere"),
    ],
)
def test_refusals_name_the_rule(servers, arguments, rule):
    with pytest.raises((tierce.AnalysisError, tierce.ArgumentError)) as refused:
        tierce.place(servers, "first", **arguments)
    assert refused.value.rule == rule


def test_names_of_servers_are_names_in_a_plan():
    for name, rest, rule in [("1a", None, "name_must_be_plain"), ("servers", None, "name_is_unique"), ("a", "a", "name_is_unique"), ("a", "cpu", "name_is_unique")]:
        with pytest.raises(tierce.AnalysisError, match=rule):
            tierce.place([tierce.Task(1, 10, name=name)], "first", cpus=1).plan(rest)
