"""A study by one and by two workers of Dask and of Ray, processes on this machine. Fails where two are not 1.7 times as fast.

Usage: workers.py FOLDER ROUNDS. The fastest of ROUNDS counts, each beginning with an empty folder and workers that have done a small study.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import distributed
import ray

import tierce

STUDY = "examples/studies/policies.toml"
BOUND = 1.7


@contextlib.contextmanager
def dask(workers):
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        where = f"{folder}/scheduler.json"

        def begin(what, *arguments):
            command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", where]
            process = subprocess.Popen([*command, *arguments], stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)

        begin("scheduler", "--port", "0")
        for _ in range(workers):
            begin("worker", "--nthreads", "1", "--no-nanny", "--local-directory", folder)
        with distributed.Client(scheduler_file=where, timeout=60) as client:
            client.wait_for_workers(workers, timeout=60)
            yield client


@contextlib.contextmanager
def rays(workers):
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        here = {"_node_ip_address": "127.0.0.1", "_temp_dir": folder}
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, object_store_memory=80 << 20, **here)
        yield ray
        ray.shutdown()


def took_s(cluster, workers, folder):
    with cluster(workers) as client:
        text = pathlib.Path(STUDY).read_text(encoding="utf-8")
        for study in (tierce.Study.from_text(text.replace("sets = 1000", "sets = 50")), tierce.Study.from_file(STUDY)):
            shutil.rmtree(folder, ignore_errors=True)
            began = time.monotonic()
            tierce.sweep(study, folder, client=client, progress=False)
        return time.monotonic() - began


def main():
    folder, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    slow = 0
    for name, cluster in {"Dask": dask, "Ray": rays}.items():
        load = os.getloadavg()[0]
        found = [[took_s(cluster, workers, folder) for workers in (1, 2)] for _ in range(rounds)]
        one_s, two_s = (min(each) for each in zip(*found))
        print(f"{name}: one worker {one_s:.1f} s, two {two_s:.1f} s: {one_s / two_s:.2f} times as fast, bound {BOUND}; load before {load:.1f}")
        slow += one_s / two_s < BOUND
    return slow > 0


sys.exit(main())
