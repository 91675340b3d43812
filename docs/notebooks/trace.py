# %% [markdown]
# # A trace of a real run
#
# Every event of a run, simulated or recorded by `tierce run --trace run.trace`: who ran when, when jobs came and were done. This one
# is of Linux 7.0 in a virtual machine of one CPU: rt-app plays audio and video, stress-ng computes without end, and
# `tierce run examples/desktop.toml` keeps the budgets of the two. (`make demo` records such a one: target/demo/run.trace.)

# %%
import tierce

trace = tierce.Trace.from_file("docs/notebooks/desktop.trace")
trace

# %% [markdown]
# Its statistics, as those of `tierce trace stats`:

# %%
report = tierce.Report.from_trace(trace)
report.tasks

# %% [markdown]
# Its events as columns. Arrow takes them without copies; here the longest response of the video task is found:

# %%
import pyarrow
import pyarrow.compute as compute

events = pyarrow.table(trace.events)
done = events.filter((compute.field("kind") == "job_complete") & (compute.field("task") == "video"))
longest_ns = compute.max(done["value"]).as_py()
print(f"{done.num_rows} jobs of video, the longest response {tierce.show_time(longest_ns)}")
assert done.num_rows > 50
assert longest_ns == max(row["response_max_ns"] or 0 for row in report.tasks.to_dicts() if row["name"] == "video")

# %% [markdown]
# How long the scheduler itself took: from each decision until the thread that it was for ran.

# %%
decided_ns, took_ns = None, []
for event in trace.events.to_dicts():
    if event["kind"] == "decision":
        decided_ns = event["time_ns"]
    if event["kind"] == "outside" and event["value"] == 3 and decided_ns is not None:
        took_ns.append(event["time_ns"] - decided_ns)
        decided_ns = None
took_ns.sort()
print(f"{len(took_ns)} switches, half of them within {tierce.show_time(took_ns[len(took_ns) // 2])}")
assert len(took_ns) > 500

# %% [markdown]
# Beside it the same plan in the simulator, where nothing but the tasks of the plan wants the CPU:

# %%
simulated = tierce.Plan.from_file("examples/desktop.toml").simulate("3s", trace=True)
real = {row["name"]: row for row in report.tasks.to_dicts() if row["jobs"]}
for row in simulated.tasks.to_dicts():
    if row["name"] in ("audio", "video"):
        measured, mean = real[row["name"]]["response_avg_ns"], row["response_avg_ns"]
        print(f"{row['name']}: {tierce.show_time(int(mean))} simulated, {tierce.show_time(int(measured))} measured, in the mean")
