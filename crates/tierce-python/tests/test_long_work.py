"""Long work: the interpreter goes on, Ctrl-C ends it, progress is told."""

import os
import signal
import threading
import time

import pytest

import tierce

BUSY = {
    "node": {"top": {"policy": "fair", "cpu": 0}},
    "tasks": {"hogs": {"count": 50, "under": {"top": {}}, "load": {"period": "1ms", "work": "10us"}}},
}


def ends(work):
    """Ctrl-C after 0.3 s; from then on it takes little CPU time, however long that lasts."""
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    began, worked = time.monotonic(), time.process_time()
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        work()
    assert 0.2 < time.monotonic() - began
    assert time.process_time() - worked < 5 * os.cpu_count()
    timer.join()


def test_ctrl_c_ends_a_simulation():
    ends(lambda: tierce.Plan.from_dict(BUSY).simulate("100000s"))


def test_ctrl_c_ends_many_analyses():
    sets = [tierce.generate("emberson", tasks=60, utilisation=0.95, periods=("1ms", "1s"))] * 200_000
    ends(lambda: tierce.analyse_many(sets, "audsley"))


def test_ctrl_c_ends_one_long_analysis():
    # Periods without a common divisor: millions of jobs to play.
    tasks = [(1, period) for period in (211, 223, 227, 229, 233, 239, 241, 251)]

    def work():
        while True:
            tierce.analyse(tasks, "edf", offsets="known")

    ends(work)


def counted_meanwhile():
    counted, done = 0, threading.Event()

    def work():
        tierce.Plan.from_dict(BUSY).simulate("3s", progress=False)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        counted += 1
        time.sleep(0.001)
    thread.join()
    return counted


def test_other_threads_run_meanwhile():
    # A busy machine may keep this thread waiting while the other one works, but not each time.
    assert any(counted_meanwhile() > 10 for _ in range(5))


def test_progress_is_told():
    told = []
    tierce.Plan.from_dict(BUSY).simulate("5s", progress=lambda done, total: told.append((done, total)))
    assert told and all(total == 5_000_000_000 for _, total in told)
    assert told == sorted(told) and told[-1][0] == 5_000_000_000


def test_what_progress_raises_ends_the_work():
    def stop(done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        tierce.Plan.from_dict(BUSY).simulate("100000s", progress=stop)


def test_a_bar_is_drawn_where_one_looks(monkeypatch, capsys):
    from tierce import _progress

    assert _progress.resolve(False) is None
    assert _progress.resolve(None) is None, "standard error is no terminal here"
    monkeypatch.setattr(_progress, "_PATIENCE_S", 0)
    monkeypatch.setattr(_progress, "_PAUSE_S", 0)
    bar = _progress.resolve(True)
    bar(1, 4)
    assert "25 %" in capsys.readouterr().err
    bar(4, 4)
    assert capsys.readouterr().err == "\r\x1b[K"
