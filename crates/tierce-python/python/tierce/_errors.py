"""What is refused, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Sequence


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong."""

    rule: str
    """The rule that it breaks, in snake_case: a stable name (docs/plan-language.md lists those of plans)."""
    message: str
    """What is wrong, in one sentence without its place."""
    file: Optional[str] = None
    """The text that it is in, by name."""
    line: Optional[int] = None
    """Line in that text, from 1."""
    column: Optional[int] = None
    """Column in that line, in characters from 1."""
    value: Optional[str] = None
    """What broke the rule."""
    bound: Optional[str] = None
    """What would be allowed."""
    help: Optional[str] = None
    """What would help."""

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        text = f"{place}: {self.rule}: {self.message}" if place else f"{self.rule}: {self.message}"
        if self.value is not None:
            text += f": {self.value}"
        if self.bound is not None:
            text += f", bound {self.bound}"
        if self.help is not None:
            text += f" (hint: {self.help})"
        return text


class Error(Exception):
    """Something is refused. ``faults`` has all reasons; ``rule``, ``value`` and ``bound`` are those of the first."""

    def __init__(self, faults: Sequence[Fault], report: Optional[str] = None) -> None:
        self.faults: List[Fault] = list(faults)
        super().__init__(report if report is not None else "\n".join(str(fault) for fault in self.faults))

    @property
    def rule(self) -> Optional[str]:
        """The rule of the first fault."""
        return self.faults[0].rule if self.faults else None

    @property
    def value(self) -> Optional[str]:
        """The value of the first fault."""
        return self.faults[0].value if self.faults else None

    @property
    def bound(self) -> Optional[str]:
        """The bound of the first fault."""
        return self.faults[0].bound if self.faults else None

    def __reduce__(self):
        return (type(self), (self.faults, str(self)))


class ArgumentError(Error, ValueError):
    """An argument of a function is out of its range."""


class PlanError(Error, ValueError):
    """A plan has faults: all of them, each with its place. As text, each with the lines it is about."""


class AnalysisError(Error, ValueError):
    """A set of tasks, or what is asked of it, does not go together."""


class GuaranteeError(Error, ValueError):
    """A guarantee is not written as one."""


class TraceError(Error):
    """A trace cannot be read or written."""


class StudyError(Error, ValueError):
    """A study has faults: all of them, each with its place. Or its folder cannot be used, or a set cannot be drawn."""


class EngineError(Error, RuntimeError):
    """The engine broke one of its own rules: a bug of tierce."""
