"""The figure of examples/studies/policies.toml by tierce, and by simulating its sets with SimSo: CPU time of each.

Usage: simso_figure.py FOLDER SETS. SimSo plays a second, the longest period, of SETS sets at each utilisation by each policy; its time
for the whole figure is that many times more. Building its model and reading results are not counted. A set without a miss in that
second counts as schedulable, which shows less than a test: another second, or other phases, may have one.
"""

import contextlib
import io
import math
import pathlib
import shutil
import sys
import time

from simso.configuration import Configuration
from simso.core import Model

import tierce

SIMULATED_MS = 1000
STUDY = "examples/studies/policies.toml"
POLICIES = {"global EDF": "EDF", "global DkC": "FP", "partitioned EDF": "P_EDF", "partitioned RM": "P_RM", "PD²": "PD2"}


def simulate(tasks, scheduler, cpus):
    """CPU time, and whether a deadline was missed."""
    config = Configuration()
    config.duration = SIMULATED_MS * config.cycles_per_ms
    k = (cpus - 1 + math.sqrt(5 * cpus * cpus - 6 * cpus + 1)) / (2 * cpus)
    for number, task in enumerate(tasks, 1):
        period_ms, work_ms = task["period_ns"] / 1e6, task["work_ns"] / 1e6
        data = {"priority": k * work_ms - period_ms} if scheduler == "FP" else {}
        config.add_task(
            name=task["name"], identifier=number, period=period_ms, deadline=period_ms, activation_date=0, wcet=work_ms, data=data
        )
    for cpu in range(cpus):
        config.add_processor(name=f"cpu{cpu}", identifier=cpu + 1)
    config.scheduler_info.clas = "simso.schedulers." + scheduler
    config.check_all()
    model = Model(config)
    before = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        model.run_model()
    took = time.process_time() - before
    end = config.duration
    late = (job for task in model.task_list for job in task.jobs if (job.end_date or end) > job.absolute_deadline_cycles)
    return took, any(True for _ in late)


def main():
    folder, sets = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    began = time.process_time()
    results = tierce.sweep(STUDY, folder, progress=False)
    ours_s = time.process_time() - began
    rows = [row for row in results.table.to_dicts() if row["set"] < sets]
    theirs_s, played, shown, met = 0.0, 0, 0, 0
    for row in rows:
        tasks = tierce.generate(
            "emberson", tasks=row["tasks"], cpus=row["cpus"], utilisation=row["utilisation"], periods=("1ms", "1s"), seed=row["seed"]
        )
        took_s, missed = simulate(tasks.to_dicts(), POLICIES[row["test"]], row["cpus"])
        theirs_s, played, shown, met = theirs_s + took_s, played + 1, shown + row["schedulable"], met + (not missed)
    whole_s = theirs_s * len(results) / played
    print(f"{len(results):,} verdicts and their figure: {ours_s:.1f} s of CPU time")
    print(f"SimSo 0.8.5, {played} runs of 1 s: {theirs_s:.1f} s of CPU time, so {whole_s / 3600:.1f} h for all (extrapolated)")
    print(f"ratio: {whole_s / ours_s:,.0f}; of these {played}, tierce shows {shown} to be schedulable, and SimSo sees no miss in {met}")


main()
