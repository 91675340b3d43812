"""Tierce in Python: plans, simulation and schedulability analysis by the engine of the command ``tierce``.

>>> import tierce
>>> tasks = [("1ms", "5ms"), ("4ms", "10ms")]
>>> tierce.analyse(tasks, "edf").schedulable
True

Times are whole nanoseconds (``int``) wherever they come out, in columns whose names end in ``_ns``. Going in, they are such
numbers or text with a unit: ``"10ms"``, ``"1.8ms"``, ``"2s"``. Nothing is ever rounded.

Results are tables of columns. ``polars.DataFrame(table)``, ``pyarrow.table(table)`` and ``pandas.DataFrame.from_arrow(table)``
take them without copies; ``table.to_dicts()`` needs none of these.

What is refused is an exception that names the rule, the place, the value and the bound: :class:`Error`.
"""

from ._errors import (
    AnalysisError,
    ArgumentError,
    EngineError,
    Error,
    Fault,
    GuaranteeError,
    PlanError,
    StudyError,
    TraceError,
)
from ._guarantee import Derivation, Refusal, convert_guarantee
from ._native import (
    Analysis,
    Check,
    Placement,
    Plan,
    Report,
    Results,
    Study,
    Table,
    TaskSet,
    Trace,
    analyse,
    analyse_many,
    design_server,
    generate,
    parse_time,
    place,
    show_time,
    split,
)
from ._sweep import sweep
from ._task import Task

__all__ = [
    "Analysis",
    "AnalysisError",
    "ArgumentError",
    "Check",
    "Derivation",
    "EngineError",
    "Error",
    "Fault",
    "GuaranteeError",
    "Placement",
    "Plan",
    "PlanError",
    "Refusal",
    "Report",
    "Results",
    "Study",
    "StudyError",
    "Table",
    "Task",
    "TaskSet",
    "Trace",
    "TraceError",
    "analyse",
    "analyse_many",
    "convert_guarantee",
    "design_server",
    "generate",
    "parse_time",
    "place",
    "show_time",
    "split",
    "sweep",
]
