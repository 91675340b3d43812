#!/usr/bin/env python3
"""A million analyses, once without a break and once killed five times at random moments: are the rows the same, and what did it take?

    bench/sweep/killed.py [SETS at each utilisation, preset 10000] [SEED of the moments, preset 1]

Needs scripts/build. Time and CPU time in s, the most resident memory in MB.
"""

import filecmp
import math
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[2]
KILLS = 5


def study(folder: pathlib.Path, sets: int) -> pathlib.Path:
    """That of the example with more sets, utilisations up to 1, and an analysis that is quick there in place of global EDF."""
    text = (ROOT / "examples/studies/policies.toml").read_text()
    for old, new in [
        ("sets = 1000 ", f"sets = {sets} "),
        ("from = 0.51, to = 0.985, step = 0.025", "from = 0.05, to = 1, step = 0.05"),
        ('name = "global EDF"', 'name = "partitioned EDF, best fit"'),
        ('policy = "edf"\n\n', 'policy = "edf"\npartition = "best"\n\n'),
    ]:
        if old not in text:
            sys.exit(f"killed.py: {old!r} is not in the study")
        text = text.replace(old, new, 1)
    path = folder / "study.toml"
    path.write_text(text)
    return path


def run(path: pathlib.Path, out: pathlib.Path, kill_after: float, most: list[int]) -> bool:
    """Whether it was done before it was killed. `most` gets how much memory it has had, in kB: what the kernel counts of a child that
    has ended begins with what this process has."""
    command = [ROOT / "target/release/tierce-sweep", path, "-o", out]
    sweep = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + kill_after
    while sweep.poll() is None:
        if time.monotonic() > until:
            sweep.send_signal(signal.SIGKILL)
            sweep.wait()
            return False
        status = pathlib.Path(f"/proc/{sweep.pid}/status").read_text()
        most += [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")]
        time.sleep(0.01)
    if sweep.returncode:
        sys.exit(f"killed.py: it ended with {sweep.returncode}")
    return True


def took(name: str, work) -> float:
    began, before, most = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN), []
    work(most)
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{name}: {seconds:.1f} s, {cpu:.1f} s of CPU time, {max(most) / 1000:.1f} MB", flush=True)
    return seconds


def main() -> None:
    sets = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = study(folder, sets)
        whole, resumed = folder / "whole", folder / "resumed"
        seconds = took("without a break", lambda most: run(path, whole, math.inf, most))

        def killed(most: list[int]) -> None:
            kills = 0
            while kills < KILLS:
                kills += not run(path, resumed, draw.uniform(0.02, 1.5 / KILLS) * seconds, most)
            run(path, resumed, math.inf, most)

        took(f"killed {KILLS} times, seed {seed}", killed)
        files = sorted(file.relative_to(whole) for file in (whole / "rows").rglob("*.parquet"))
        same, _, _ = filecmp.cmpfiles(whole, resumed, files, shallow=False)
        bytes_ = sum((whole / file).stat().st_size for file in files)
        print(f"{len(same)} of {len(files)} files of rows are equal, {bytes_ / 1e6:.1f} MB")
        sys.exit(len(same) != len(files))


if __name__ == "__main__":
    main()
