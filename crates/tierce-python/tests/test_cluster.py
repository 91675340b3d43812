"""Studies done by workers of Dask and Ray: processes of their own, with the real schedulers, on this machine."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest
from studies import files, study

import tierce


class Dask:
    """A scheduler and two workers."""

    def __init__(self, folder):
        self.distributed = pytest.importorskip("distributed")
        self.processes, where = [], str(folder / "scheduler.json")
        self.begin("scheduler", "--port", "0", "--scheduler-file", where)
        for _ in range(2):
            self.begin("worker", "--nthreads", "1", "--no-nanny", "--local-directory", str(folder), "--scheduler-file", where)
        self.client = self.distributed.Client(scheduler_file=where, timeout=60)
        self.client.wait_for_workers(2, timeout=60)
        self.pids = self.client.run(os.getpid)

    def begin(self, what, *arguments):
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--host", "127.0.0.1", "--no-dashboard", *arguments]
        self.processes.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))

    def busy(self):
        """The process of a worker that has a chunk."""
        return next((self.pids[worker] for worker, chunks in self.client.processing().items() if chunks), None)

    def end(self):
        with contextlib.suppress(Exception):
            self.client.close()
        for process in reversed(self.processes):
            process.kill()
            process.wait()


class Ray:
    """Its processes, with two workers at most."""

    def __init__(self, folder):
        self.client = pytest.importorskip("ray")
        self.folder = tempfile.mkdtemp(prefix="ray-")  # short, for names of sockets
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        self.client.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=80 << 20,
            _node_ip_address="127.0.0.1",
            _temp_dir=self.folder,
        )

    def busy(self):
        """The process of a worker that has a chunk: its parent is a child of this one, and its name says what it does."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (process / "cmdline").read_bytes().startswith(b"ray::_chunk") and parent(parent(process.name)) == os.getpid():
                    return int(process.name)
        return None

    def end(self):
        self.client.shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)


def parent(pid):
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


@pytest.fixture(params=[Dask, Ray], ids=["dask", "ray"], scope="module")
def cluster(request, tmp_path_factory):
    made = request.param(tmp_path_factory.mktemp("cluster"))
    yield made
    made.end()


def test_rows_are_those_of_one_process(cluster, tmp_path):
    asked, told = study(tmp_path / "study"), []
    results = tierce.sweep(asked, tmp_path / "there", client=cluster.client, progress=lambda *at: told.append(at))
    assert results.complete and files(results) == files(tierce.sweep(asked, tmp_path / "here"))
    assert told[-1] == (120, 120) and told == sorted(told)
    # A second time there is nothing to do but what is missing.
    (tmp_path / "there" / "rows" / "chunk-000007.parquet").unlink()
    told.clear()
    results = tierce.sweep(asked, tmp_path / "there", client=cluster.client, progress=lambda *at: told.append(at))
    assert results.complete and told[-1] == (120, 120) and all(done >= 116 for done, _ in told)
    half = tierce.sweep(asked, tmp_path / "half", client=cluster.client, part="1/2")
    assert len(half) == 15 * 16


def test_what_a_worker_refuses_is_refused_here(cluster, tmp_path):
    with pytest.raises(tierce.StudyError) as refused:
        tierce.sweep(study(tmp_path, size=[300, 5000]), tmp_path / "out", client=cluster.client)
    assert refused.value.rule == "set_must_be_testable"


def test_a_killed_worker_costs_its_own_work_alone(cluster, tmp_path):
    asked, killed, told = study(tmp_path / "study", sets=60), [], []

    def kill(done, total):
        told.append(done)
        if not killed and 0 < done < total / 2 and (pid := cluster.busy()):
            os.kill(pid, signal.SIGKILL)
            killed.append(done)

    results = tierce.sweep(asked, tmp_path / "there", client=cluster.client, progress=kill)
    assert killed and told[-1] == 600, told
    assert results.complete and files(results) == files(tierce.sweep(asked, tmp_path / "here"))
