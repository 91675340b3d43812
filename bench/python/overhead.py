"""Measures what bench/python/run says, and fails where a bound is exceeded."""

import pathlib
import re
import subprocess
import sys
import time

import tierce

CALLS = 100  # so few at once that something else on this machine does not get in between each time


def best(rounds, one):
    """Seconds of the fastest round."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        one()
        found.append(time.perf_counter() - began)
    return min(found)


def plan_of(tasks):
    """Below one EDF node."""
    rows = tasks.to_dicts()
    load = {row["name"]: {"under": {"top": {}}, "load": {"period": f"{row['period_ns']}ns", "work": f"{row['work_ns']}ns"}} for row in rows}
    return tierce.Plan.from_dict({"node": {"top": {"policy": "edf", "cpu": 0}}, "task": load})


def calls(tasks):
    for _ in range(CALLS):
        tierce.analyse(tasks, "edf")


def main():
    in_rust, folder, rounds = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    hundred = tierce.generate("uunifast-discard", tasks=100, utilisation=0.9, periods=("1ms", "100ms"))
    plan = plan_of(hundred)
    ten = tierce.generate("uunifast-discard", tasks=10, utilisation=0.8, periods=("5ms", "50ms"))
    (folder / "plan.toml").write_text(plan.text)
    (folder / "tasks.csv").write_text(ten.to_csv())
    # In turns, so that what else the machine does meets both.
    simulated, analysed, there = [], {"set": [], "tuples": [], "dictionaries": []}, []
    tuples = [(row["work_ns"], row["period_ns"]) for row in ten.to_dicts()]
    forms = {"set": ten, "tuples": tuples, "dictionaries": ten.to_dicts()}
    for _ in range(4):
        done = subprocess.run([in_rust, folder / "plan.toml", folder / "tasks.csv", str(rounds)], capture_output=True, text=True, check=True)
        there.append([float(number) for number in done.stdout.split()])
        simulated.append(best(rounds, lambda: plan.simulate("1s", progress=False)))
        for form, tasks in forms.items():
            analysed[form].append(best(10 * rounds, lambda tasks=tasks: calls(tasks)) / CALLS * 1e6)
    simulation_s, analysis_us = (min(each) for each in zip(*there))
    ratio = min(simulated) / simulation_s
    print(f"simulation of 1 s, 100 tasks: {min(simulated) * 1e3:.2f} ms, in Rust {simulation_s * 1e3:.2f} ms: {(ratio - 1) * 100:+.1f} %, bound 10 %")
    worst = 0.0
    for form, found in analysed.items():
        more = min(found) - analysis_us
        worst = max(worst, more)
        print(f"analyse, 10 tasks as {form}: {min(found):.1f} us, in Rust {analysis_us:.1f} us: {more:+.1f} us a call, bound 20 us")
    took_s, worked_s = study()
    print(f"five policies, 20 utilisations, 1,000 sets of 20 tasks: {took_s:.1f} s, {worked_s:.1f} s of CPU time; bound 60 s")
    return ratio > 1.1 or worst > 20 or took_s > 60


def study():
    """Seconds of the notebook's first cells, the figure aside; and of CPU time, which does not depend on what else runs."""
    text = pathlib.Path("docs/notebooks/five_policies.py").read_text(encoding="utf-8")
    code = "".join(re.split(r"^# %%.*$", text, flags=re.M)[:4])
    names = {}
    before = time.process_time()
    exec(compile(code, "five_policies.py", "exec"), names)
    return names["took_s"], time.process_time() - before


sys.exit(main())
