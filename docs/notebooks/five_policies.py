# %% [markdown]
# # Five policies over utilisation
#
# Which part of random task sets is schedulable on four CPUs, by the best test that there is for each of five policies? 20
# utilisations, 1,000 sets of 20 tasks each, the same sets for all policies: 100,000 analyses.
#
# Utilisations of tasks are drawn by UUniFast-Discard (Davis & Burns 2009), periods uniformly from 5 to 50 ms; deadlines are periods.
# The tests of global scheduling are sufficient, those of partitions exact for each CPU (docs/analysis.md).

# %%
import os
import time

import tierce

CPUS, TASKS = 4, 20
SETS = int(os.environ.get("TIERCE_SETS", "1000"))
UTILISATIONS = [round(0.05 * step, 2) for step in range(1, 21)]
POLICIES = {
    "Pfair (PD²)": dict(policy="pd2", quantum="100us"),
    "partitioned EDF": dict(policy="edf", partition="first"),
    "partitioned DM": dict(policy="dm", partition="first"),
    "global EDF": dict(policy="edf"),
    "global D−kC": dict(policy="dkc"),
}

# %%
began = time.monotonic()
sets = [
    tierce.generate("uunifast-discard", tasks=TASKS, cpus=CPUS, utilisation=utilisation, periods=("5ms", "50ms"), seed=seed)
    for utilisation in UTILISATIONS
    for seed in range(1, SETS + 1)
]
verdicts = {name: tierce.analyse_many(sets, cpus=CPUS, **options) for name, options in POLICIES.items()}
took_s = time.monotonic() - began
print(f"{len(sets)} sets, {len(sets) * len(POLICIES)} analyses in {took_s:.1f} s")

# %% [markdown]
# Shares with their 95 % intervals (Wilson 1927). No set is refused by a policy.


# %%
def share(schedulable, z=1.959964):
    """Share, and the lower and upper end of its 95 % interval."""
    count, mean = len(schedulable), sum(schedulable) / len(schedulable)
    middle = (mean + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * (mean * (1 - mean) / count + z * z / (4 * count * count)) ** 0.5
    return mean, max(0.0, middle - half), min(1.0, middle + half)


curves = {}
for name, table in verdicts.items():
    assert not any(table["refused"])
    found = table["schedulable"]
    curves[name] = [share(found[at * SETS : (at + 1) * SETS]) for at in range(len(UTILISATIONS))]
for name, curve in curves.items():
    print(f"{name:16}", " ".join(f"{mean:5.3f}" for mean, _, _ in curve))

# %% [markdown]
# What must be so: Pfair fails only where quanta do not fit, and whatever fits is no more with more to do.

# %%
for name, curve in curves.items():
    assert curve[0][0] == 1.0, name
    for (_, _, before), (_, after, _) in zip(curve, curve[1:]):
        assert after <= before, f"{name}: more is schedulable with more to do"

# %% [markdown]
# As a figure to print: lines differ in dash and mark, so that it reads in grey, too; colours are those of Okabe & Ito (2008).

# %%
from matplotlib import pyplot

STYLES = [("#000000", "-", "o"), ("#0072B2", "--", "s"), ("#D55E00", "-.", "^"), ("#009E73", ":", "D"), ("#CC79A7", (0, (5, 1)), "v")]
pyplot.rcParams.update({"svg.fonttype": "path", "svg.hashsalt": "tierce", "font.size": 10})
figure, axes = pyplot.subplots(figsize=(6.4, 4))
for (name, curve), (colour, dash, mark) in zip(curves.items(), STYLES):
    means, lower, upper = zip(*curve)
    axes.plot(UTILISATIONS, means, color=colour, linestyle=dash, marker=mark, markersize=4, label=name)
    axes.fill_between(UTILISATIONS, lower, upper, color=colour, alpha=0.2, linewidth=0)
axes.set(xlabel=f"utilisation of each of {CPUS} CPUs", ylabel="share of schedulable sets", ylim=(-0.02, 1.02), xlim=(0.03, 1.02))
axes.grid(alpha=0.3)
axes.legend(loc="lower left")
axes.spines[["top", "right"]].set_visible(False)
figure.tight_layout()
figure.savefig("five_policies.svg", metadata={"Date": None})
