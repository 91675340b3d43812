"""A study for tests: analyses, and simulations of a plan that includes another file."""

import tierce

TOP = """include = "rest.toml"

[node.cpu]
policy = "reservation"
cpu = 0

[node.server]
policy = "fixed-priority"
under.cpu = { budget = "${size}us", period = "1ms" }
"""
REST = """[task.hog]
under.cpu = { budget = "20us", period = "1ms" }
load = "busy"
"""


def tables(sets=12, size=(300, 900), seed=5):
    return {
        "study": {"seed": seed, "sets": sets, "chunk": 4},
        "parameters": {"size": list(size)},
        "generate": {"method": "emberson", "tasks": 4, "utilisation": {"from": 0.4, "to": 0.8, "step": 0.1}, "periods": "5ms..50ms"},
        "analyse": [{"policy": ["edf", "rm"], "responses": True}, {"policy": "rm", "preemption": "none"}],
        "simulate": [{"name": "server", "plan": "plan.toml", "under": "server", "for": "300ms"}],
        "figure": [{"file": "all.svg", "where": {"size": 900}}],
    }


def study(folder, **changes):
    """Read in that folder, where its plan is put."""
    folder.mkdir(exist_ok=True)
    (folder / "plan.toml").write_text(TOP, encoding="utf-8")
    (folder / "rest.toml").write_text(REST, encoding="utf-8")
    return tierce.Study.from_dict(tables(**changes), str(folder / "study.toml"))


def files(results):
    """What is in the folder of the results, by name."""
    return {str(path.relative_to(results.folder)): path.read_bytes() for path in results.folder.rglob("*") if path.is_file()}
