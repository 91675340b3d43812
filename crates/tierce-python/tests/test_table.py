"""Results as columns."""

import gc

import pytest

import tierce


@pytest.fixture
def table():
    return tierce.analyse([(1, 4), (2, 6), (30, 12)], "rm").tasks


def test_a_table_is_columns_and_rows(table):
    assert table.columns == ["name", "wcrt_ns", "deadline_ns", "slack_ns", "cpu"]
    assert len(table) == 3 and table["wcrt_ns"] == [1, 3, None]
    assert table.to_dicts()[0] == {"name": "t1", "wcrt_ns": 1, "deadline_ns": 4, "slack_ns": 3, "cpu": 0}
    with pytest.raises(tierce.ArgumentError, match="column_must_be_known"):
        table["wcrt"]


def test_arrow_takes_it_without_copies(table):
    pyarrow = pytest.importorskip("pyarrow")
    taken = pyarrow.table(table)
    assert taken.to_pylist() == table.to_dicts()
    assert [str(kind) for kind in taken.schema.types] == ["string", "int64", "int64", "int64", "int64"]
    again = pyarrow.table(table)
    addresses = [each.column("deadline_ns").chunk(0).buffers()[1].address for each in (taken, again)]
    assert addresses[0] == addresses[1], "both are the same memory"
    del table, again
    gc.collect()
    assert taken.column("deadline_ns").to_pylist() == [4, 6, 12], "which lives as long as somebody needs it"


def test_results_are_arrow_tables(root):
    pyarrow = pytest.importorskip("pyarrow")
    report = tierce.Plan.from_file("examples/desktop.toml").simulate("100ms", trace=True)
    assert pyarrow.table(report).to_pylist() == report.tasks.to_dicts()
    assert pyarrow.table(report.trace.events).num_rows == len(report.trace)
    assert pyarrow.table(tierce.TaskSet([(1, 5)])).num_rows == 1
    assert pyarrow.table(tierce.analyse([(1, 5)], "edf")).num_rows == 1
    assert pyarrow.table(report.chains).num_rows == 0
    many = tierce.analyse_many([[(1, 5)]] * 3, "edf")
    assert pyarrow.table(many).column("schedulable").to_pylist() == [True] * 3
    assert tierce.TaskSet(pyarrow.table(tierce.TaskSet([(1, 5), (2, 9)]))).to_dicts()[1]["work_ns"] == 2


def test_polars_and_pandas_take_it(table):
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(table).to_dicts() == table.to_dicts()
    assert tierce.analyse(polars.DataFrame(tierce.TaskSet([(1, 5)])), "edf")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame.from_arrow(table)
    assert frame["name"].tolist() == table["name"] and frame["deadline_ns"].tolist() == table["deadline_ns"]
    assert tierce.analyse(pandas.DataFrame(tierce.TaskSet([(1, 5)]).to_dicts()).to_dict("records"), "edf")


def test_a_stream_that_nobody_reads_is_freed(table):
    for _ in range(1000):
        table.__arrow_c_stream__()
    assert len(table) == 3


def test_long_tables_show_their_begin():
    table = tierce.TaskSet([(1, 100)] * 30).table
    assert repr(table).splitlines()[-1] == "… 10 more"
    assert repr(table).splitlines()[0].split() == table.columns
    html = table._repr_html_()
    assert html.count("<tr>") == 21 and "10 more" in html


def test_html_is_escaped():
    assert "<b>" not in tierce.TaskSet([tierce.Task(1, 5, name="<b>")])._repr_html_()
