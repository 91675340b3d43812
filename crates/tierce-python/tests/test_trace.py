"""Traces: kept, written, read, shown."""

import pytest

import tierce


@pytest.fixture
def report(root):
    return tierce.Plan.from_file("examples/desktop.toml").simulate("100ms", trace=True)


def test_a_trace_is_written_and_read(report, tmp_path):
    trace = report.trace
    trace.save(tmp_path / "run.trace")
    again = tierce.Trace.from_file(tmp_path / "run.trace")
    assert again.cut is None and (again.plan, again.cpus, again.length_ns) == ("examples/desktop.toml", 1, 100_000_000)
    assert again.events.to_dicts() == trace.events.to_dicts()
    assert tierce.Report.from_trace(again).tasks.to_dicts() == report.tasks.to_dicts()


def test_events_name_their_tasks(report):
    events = report.trace.events
    assert len(events) == len(report.trace)
    rows = [row for row in events.to_dicts() if row["kind"] == "job_complete" and row["task"] == "audio"]
    assert len(rows) == 10 and all(row["value"] == 1_800_000 for row in rows)
    assert events["time_ns"] == sorted(events["time_ns"])


def test_the_command_reads_it(report, tmp_path, command):
    report.trace.save(tmp_path / "run.trace")
    assert "audio" in command("trace", "stats", tmp_path / "run.trace")


def test_a_trace_is_a_timeline(report):
    page = report.trace.to_html()
    assert page.startswith("<!DOCTYPE html>") or page.lower().startswith("<!doctype html>")
    frame = report.trace._repr_html_()
    assert frame.startswith('<iframe srcdoc="&lt;') and frame.count('"') == 4, "nothing ends the attribute early"
    assert len(report.trace.to_perfetto()) > 1000


def test_without_events_there_is_no_trace(root):
    with pytest.raises(tierce.TraceError, match="trace_must_be_kept"):
        _ = tierce.Plan.from_file("examples/edf.toml").simulate("10ms").trace


def test_what_is_no_trace_is_refused(report, tmp_path):
    path = tmp_path / "bad.trace"
    path.write_bytes(b"not a trace at all")
    with pytest.raises(tierce.TraceError) as refused:
        tierce.Trace.from_file(path)
    assert refused.value.faults[0].file == str(path)
    with pytest.raises(tierce.TraceError):
        tierce.Trace.from_file(tmp_path / "none.trace")
    with pytest.raises(tierce.TraceError):
        report.trace.save(tmp_path / "no" / "folder.trace")
    report.trace.save(path)
    path.write_bytes(path.read_bytes()[:-7])
    assert "the file ends" in tierce.Trace.from_file(path).cut
