# %% [markdown]
# # A trace
#
# Every event of a run, simulated or recorded by `tierce run --trace run.trace`: who ran when, when jobs came and were done. Here
# a desktop is simulated and its trace written, read and looked at; a recorded one is read the same way.

# %%
import tierce

plan = tierce.Plan.from_file("examples/desktop.toml")
plan.simulate("1s", trace=True).trace.save("run.trace")
trace = tierce.Trace.from_file("run.trace")
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
assert longest_ns == max(row["response_max_ns"] for row in report.tasks.to_dicts() if row["name"] == "video")

# %% [markdown]
# When it had to wait, because its budget was used up or others came first: from its release to its first run.

# %%
begun = {}
waits = []
for event in trace.events.to_dicts():
    if event["task"] != "video":
        continue
    if event["kind"] == "job_release":
        begun[event["b"]] = event["time_ns"]
    if event["kind"] == "job_start":
        waits.append(event["time_ns"] - begun[event["b"]])
print(f"longest wait {tierce.show_time(max(waits))} of {len(waits)} jobs")
assert 0 < max(waits) < 33_333_000
