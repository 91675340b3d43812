"""How far long work has come."""

from __future__ import annotations

import sys
import time
from typing import Callable, Optional, Union

Progress = Union[None, bool, Callable[[int, int], object]]

_WIDTH = 40
_PATIENCE_S = 0.3
_PAUSE_S = 0.2


def resolve(progress: Progress) -> Optional[Callable[[int, int], object]]:
    """What is told: ``progress`` itself, or with ``None`` and ``True`` a bar on standard error, with ``None`` on a terminal only."""
    if callable(progress):
        return progress
    if progress is False or (progress is None and not _is_terminal()):
        return None
    return _Bar()


def _is_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False


class _Bar:
    def __init__(self) -> None:
        self.began = time.monotonic()
        self.shown = 0.0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done >= total:
            if self.shown:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
            return
        if now - self.began < _PATIENCE_S or now - self.shown < _PAUSE_S or done <= 0:
            return
        self.shown = now
        left = (now - self.began) * (total - done) / done
        full = _WIDTH * done // total
        sys.stderr.write(f"\r[{'#' * full}{' ' * (_WIDTH - full)}] {100 * done // total} %, {left:.0f} s left")
        sys.stderr.flush()
