"""A task of an analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Union

Time = Union[int, str]


@dataclass(frozen=True)
class Task:
    """A periodic or sporadic task. Times are whole ns, or text with a unit; ``None`` is the default.

    The columns are those of the tables of ``tierce analyse`` (docs/analysis.md): a job is released once per ``period`` or later,
    becomes ready up to ``jitter`` after that, works for up to ``work``, and is due ``deadline`` after its release.
    """

    work: Time
    """Longest work of a job, above 0."""
    period: Time
    """Shortest distance of releases, above 0."""
    deadline: Optional[Time] = None
    """From the release; default: the period."""
    name: Optional[str] = None
    """Unique in its set; default: ``t1`` for the first task, and so on."""
    jitter: Optional[Time] = None
    """How late a job may become ready; default 0."""
    blocking: Optional[Time] = None
    """How long less urgent tasks may block it; default 0."""
    priority: Optional[int] = None
    """Larger is higher; all tasks of a set have one, or none has."""
    threshold: Optional[int] = None
    """The priority that others must exceed to preempt a job that has begun; default: its priority."""
    offset: Optional[Time] = None
    """When the first job comes; of effect with ``offsets="known"``."""
    suspension: Optional[Time] = None
    """How long a job suspends itself, in all; default 0."""
    section: Optional[Time] = None
    """Its longest region without preemption; default: ``last_section``."""
    last_section: Optional[Time] = None
    """The region without preemption with which a job ends; default 0."""
    criticality: Optional[str] = None
    """``"lo"`` or ``"hi"``, for the policies of two criticalities."""
    work_hi: Optional[Time] = None
    """Its work at the worst."""
    span: Optional[Time] = None
    """Longest chain of its work, for the policy ``federated``."""
