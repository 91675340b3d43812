# %% [markdown]
# # A first plan
#
# An audio thread has to be done with 1.8 ms of work in every 10 ms, beside a program that never stops computing. Which scheduler
# gives it that? The plan says who gets how much CPU time; `check` proves it, `simulate` plays it.

# %%
import tierce

# %% [markdown]
# Two threads that share one CPU fairly:

# %%
parts = {
    "node": {"top": {"policy": "fair", "cpu": 0}},
    "task": {
        "audio": {"under": {"top": {}}, "load": {"period": "10ms", "work": "1.8ms", "deadline": "4ms"}},
        "runaway": {"under": {"top": {}}, "load": "busy"},
    },
}
fair = tierce.Plan.from_dict(parts, "fair.toml")
fair

# %% [markdown]
# A fair share promises no response time, and some jobs are late:

# %%
late = fair.simulate("2s")
assert late.misses > 0
late

# %% [markdown]
# A reservation of 2 ms in every 10 ms comes first, and what is left goes to the others. 2 ms are enough for 1.8 ms of work:

# %%
parts["node"] = {
    "top": {"policy": "fixed-priority", "cpu": 0},
    "rt": {"policy": "reservation", "under": {"top": {"priority": 1}}},
    "rest": {"policy": "fair", "under": {"top": {"priority": 0}}},
}
parts["task"]["audio"]["under"] = {"rt": {"budget": "2ms", "period": "10ms", "deadline": "4ms"}}
parts["task"]["runaway"]["under"] = {"rest": {}}
plan = tierce.Plan.from_dict(parts, "reserved.toml")
check = plan.check()
assert check.holds
plan

# %% [markdown]
# Why? Step by step from the CPU:

# %%
print(check.explain("audio"))

# %% [markdown]
# The simulation agrees: no job is late, and the runaway program has the rest.

# %%
report = plan.simulate("2s", trace=True)
assert report.misses == 0
report.tasks

# %% [markdown]
# What ran when; the wheel zooms:

# %%
plan.simulate("100ms", trace=True).trace

# %% [markdown]
# The same plan for `tierce run`, in the plan language:

# %%
print(plan.text)
