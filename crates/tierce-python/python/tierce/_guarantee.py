"""Guarantees of CPU time, converted into each other (docs/guarantees.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional

from . import _native


@dataclass(frozen=True)
class Step:
    """One theorem."""

    to: str
    """What follows."""
    rule: str
    """The theorem."""
    formula: str
    """With its numbers."""
    because: str
    """In words."""


@dataclass(frozen=True)
class Derivation:
    """It follows."""

    result: str
    """The guarantee that was asked for, with all its numbers."""
    steps: List[Step]
    """One theorem each; none if it is the given one."""

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return self.result


@dataclass(frozen=True)
class Refusal:
    """It does not follow. False as a condition."""

    rule: str
    """The theorem that does not apply."""
    reason: str
    """In words."""

    def __bool__(self) -> bool:
        return False


def convert_guarantee(
    given: str,
    want: str,
    *,
    period: Optional[str] = None,
    stretch: Optional[str] = None,
    deadlines: Optional[str] = None,
) -> "Derivation | Refusal":
    """Convert a guarantee into another one, exactly, with the derivation.

    ``want`` is a type, or a type with its numbers, one of which may be ``?``; so may one of ``given``, which is solved for.
    ``period``, ``stretch`` and ``deadlines`` are what theorems leave open, as in ``tierce guarantee convert``.

    >>> print(convert_guarantee("RESBS 10ms 20ms", "RESCS ? 25ms"))
    RESCS 5ms 25ms

    Raises :class:`GuaranteeError` with column and bound where one of them is not written as a guarantee.
    """
    found = _native.convert_guarantee(given, want, period=period, stretch=stretch, deadlines=deadlines)
    if not found["follows"]:
        return Refusal(found["rule"], found["reason"])
    return Derivation(found["result"], [Step(**step) for step in found["steps"]])
