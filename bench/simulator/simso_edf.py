"""SimSo on a set of periodic tasks under EDF on one CPU: prints jobs per second of CPU time.

Usage: simso_edf.py TASKS, lines of: name period_ms work_ns. The fastest of SimSo's schedulers
for that counts, each best of 3 runs; building its model is not counted, nor is reading results.
"""

import contextlib
import io
import sys
import time

from simso.configuration import Configuration
from simso.core import Model

RUNS = 3
SCHEDULERS = ("EDF", "EDF_mono", "P_EDF")
SIMULATED_MS = 300


def configuration(tasks, scheduler):
    config = Configuration()
    config.duration = SIMULATED_MS * config.cycles_per_ms
    for number, (name, period_ms, work_ns) in enumerate(tasks, 1):
        config.add_task(
            name=name, identifier=number, period=period_ms, deadline=period_ms, activation_date=0, wcet=work_ns / 1e6
        )
    config.add_processor(name="cpu", identifier=1)
    config.scheduler_info.clas = scheduler
    config.check_all()
    return config


def measure(tasks, scheduler):
    """Jobs done and the CPU time they took."""
    model = Model(configuration(tasks, scheduler))
    before = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        model.run_model()
    took = time.process_time() - before
    return sum(1 for task in model.task_list for job in task.jobs if job.end_date is not None), took


def main():
    with open(sys.argv[1]) as lines:
        fields = [line.split() for line in lines]
    tasks = [(name, int(period_ms), int(work_ns)) for name, period_ms, work_ns in fields]
    best = 0.0
    for scheduler in SCHEDULERS:
        for _ in range(RUNS):
            jobs, took = measure(tasks, "simso.schedulers." + scheduler)
            best = max(best, jobs / took)
            print(f"SimSo {scheduler}: {jobs} jobs in {took:.2f} s", file=sys.stderr)
    print(f"{best:.0f}")


if __name__ == "__main__":
    main()
