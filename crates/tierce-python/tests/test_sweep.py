"""Studies: the same rows as the command's, resumed, refused by name."""

import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading

import pytest
from studies import files, study, tables

import tierce


def test_rows_are_those_of_the_command(command, tmp_path):
    asked = study(tmp_path / "study")
    (tmp_path / "study" / "study.toml").write_text(asked.text, encoding="utf-8")
    said = command("sweep", tmp_path / "study" / "study.toml", "-o", tmp_path / "command")
    results = tierce.sweep(tmp_path / "study" / "study.toml", tmp_path / "here")
    assert f"{len(results)} rows: " in said
    theirs = {str(path.relative_to(tmp_path / "command")): path.read_bytes() for path in (tmp_path / "command").rglob("*") if path.is_file()}
    assert files(results) == theirs and len(theirs) == 30 + 3


def test_rows_are_a_table_and_a_data_set(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    results = tierce.sweep(study(tmp_path, sets=6), tmp_path / "out")
    assert results.complete and len(results) == 2 * 5 * 6 * 4 == len(results.table)
    assert [path.name for path in results.figures] == ["all.svg"]
    rows = results.table.to_dicts()
    assert list(rows[0]) == results.table.columns == study(tmp_path).columns
    assert results.dataset().to_table().to_pylist() == rows == pyarrow.table(results).to_pylist()
    assert rows[0]["size"] == 300 and rows[0]["test"] == "edf" and 0 < rows[0]["ratio"] <= 1 and rows[0]["jobs"] is None
    assert str(pyarrow.table(results).schema.field("seed").type) == "uint64" and max(results.table["seed"]) > 2**63
    assert {row["schedulable"] for row in rows if row["test"] == "server"} == {True, False}
    assert str(results.table["seed"][0]) in repr(results.table) and "<table>" in results._repr_html_()


def test_what_was_ended_goes_on(tmp_path):
    asked, told = study(tmp_path), []

    def stop(done, total):
        told.append((done, total))
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        tierce.sweep(study(tmp_path, sets=4000), tmp_path / "out", threads=1, progress=stop)
    assert len(told) == 1 and told[0][1] == 40_000
    began = len(list((tmp_path / "out" / "rows").glob("*.parquet")))
    assert began < 1000 and not (tmp_path / "out" / "all.svg").exists()
    half = tierce.sweep(asked, tmp_path / "parts", part="2/2")
    assert not half.complete and len(half) == 15 * 16 and half.figures == []
    told.clear()
    whole = tierce.sweep(asked, tmp_path / "parts", part=(1, 2), progress=lambda *at: told.append(at))
    assert whole.complete and all(at[1] == 60 for at in told) and told[-1] == (60, 60)
    assert files(whole) == files(tierce.sweep(asked, tmp_path / "whole", threads=1))


def test_ctrl_c_ends_it_and_keeps_what_is_done(tmp_path):
    def interrupt(done, total):
        if done and not timer:
            timer.append(threading.Timer(0, lambda: os.kill(os.getpid(), signal.SIGINT)))
            timer[0].start()

    timer, asked = [], study(tmp_path, sets=10_000)
    with pytest.raises(KeyboardInterrupt):
        tierce.sweep(asked, tmp_path / "out", threads=2, progress=interrupt)
    timer[0].join()
    there = len(list((tmp_path / "out" / "rows").glob("*.parquet")))
    assert 0 < there < asked.chunks
    assert there == len(list((tmp_path / "out" / "rows").glob("*.parquet"))), "nothing goes on"


def test_a_study_goes_to_another_process_with_its_plans(tmp_path):
    asked = study(tmp_path / "study")
    sent = pickle.dumps(asked)
    shutil.rmtree(tmp_path / "study")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        chunk = pool.apply(chunk_of, (sent, 3))
    assert chunk == pickle.loads(sent).chunk(3)
    results = tierce.sweep(pickle.loads(sent), tmp_path / "out")
    assert (tmp_path / "out" / "rows" / "chunk-000003.parquet").read_bytes() == chunk
    assert results.complete and repr(asked).endswith("study.toml: 10 points, 120 sets, 4 tests>")


def chunk_of(sent, number):
    return pickle.loads(sent).chunk(number)


def test_refusals_name_the_rule(tmp_path):
    asked = study(tmp_path, sets=1)
    with pytest.raises(tierce.StudyError) as found:
        tierce.Study.from_text("[study]\nsets = 0\n[[analyse]]\npolicy = \"efd\"\n")
    rules = [(fault.rule, fault.line) for fault in found.value.faults]
    assert rules == [("number_within_range", 2), ("sets_must_be_drawn", 3), ("choice_must_exist", 4)]
    with pytest.raises(tierce.StudyError, match="file_must_be_readable"):
        tierce.sweep(tmp_path / "none.toml", tmp_path / "out")
    tierce.sweep(asked, tmp_path / "out")
    for other, rule in [
        (lambda: tierce.sweep(study(tmp_path, sets=1, seed=6), tmp_path / "out"), "folder_is_of_one_study"),
        (lambda: tierce.sweep(asked, tmp_path / "study.txt" / "out"), "folder_must_be_usable"),
        (lambda: tierce.sweep(study(tmp_path, size=[300, 5000]), tmp_path / "bad"), "set_must_be_testable"),
        (lambda: study(tmp_path, size=[300, 5000]).chunk(29), "set_must_be_testable"),
        (lambda: tierce.sweep(asked, tmp_path / "out")._keep(0, asked.chunk(1)), "chunk_is_of_this_study"),
        (lambda: tierce.sweep(asked, tmp_path / "out")._keep(0, b"PAR1"), "chunk_is_of_this_study"),
    ]:
        (tmp_path / "study.txt").write_text("a file")
        with pytest.raises(tierce.StudyError) as refused:
            other()
        assert refused.value.rule == rule
    for arguments, rule in [
        ({"threads": 0}, "threads_are_some"),
        ({"part": "3/2"}, "part_is_one_of_some"),
        ({"part": "half"}, "part_is_one_of_some"),
        ({"part": (1, 2, 3)}, "part_is_one_of_some"),
        ({"client": "dask"}, "client_must_be_known"),
        ({"client": object(), "threads": 2}, "threads_are_of_this_process"),
    ]:
        with pytest.raises(tierce.ArgumentError) as refused:
            tierce.sweep(asked, tmp_path / "out", **arguments)
        assert refused.value.rule == rule
    with pytest.raises(tierce.ArgumentError, match="chunk_must_exist"):
        asked.chunk(asked.chunks)
    with pytest.raises(tierce.ArgumentError, match="plan_is_a_dictionary: a study"):
        tierce.Study.from_dict([1])


def test_a_client_without_a_cluster_is_refused(tmp_path):
    ray, distributed = pytest.importorskip("ray"), pytest.importorskip("distributed")
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as closed:
        pass
    assert not ray.is_initialized()
    for client in (closed, ray):
        with pytest.raises(tierce.ArgumentError, match="client_must_be_connected"):
            tierce.sweep(study(tmp_path), tmp_path / "out", client=client)
    assert not (tmp_path / "out").exists()


def test_a_dictionary_is_written_as_a_study(tmp_path):
    text = study(tmp_path).text
    assert "\n[[analyse]]\npolicy = [\"edf\", \"rm\"]\nresponses = true\n\n[[analyse]]\n" in text
    assert tierce.Study.from_text(text, str(tmp_path / "study.toml")).tests == ["edf", "rm", "rm, not preempted", "server"]
    assert tierce.sweep(tables(sets=1) | {"simulate": [{"policy": "edf", "for": "10ms"}]}, tmp_path / "out").complete


def test_thresholds_are_enough_where_something_else_is(tmp_path):
    parts = tables(sets=60)
    parts["analyse"] = [{"policy": "dm", "preemption": ["full", "none", "thresholds"]}]
    del parts["simulate"], parts["figure"], parts["parameters"]
    found = {"dm": {}, "dm, not preempted": {}, "dm, with thresholds": {}}
    for row in tierce.sweep(parts, tmp_path / "out").table.to_dicts():
        found[row["test"]][row["seed"]] = row["schedulable"]
    full, none, thresholds = found.values()
    assert len(thresholds) == 5 * 60 and 0 < sum(none.values()) < sum(full.values())
    assert all(thresholds[seed] for seed in thresholds if full[seed] or none[seed])


def test_nothing_of_a_cluster_is_imported_without_one(tmp_path):
    code = """import sys, tierce
tierce.sweep({"generate": {"method": "emberson", "tasks": 2, "utilisation": 0.5, "periods": "1ms..9ms"}, "analyse": [{"policy": "rm"}]}, sys.argv[1])
print(sorted({"ray", "dask", "distributed", "pyarrow"} & set(sys.modules)))"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "out"], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
