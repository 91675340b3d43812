"""Studies, done in this process or by the workers of a cluster (docs/sweep.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Optional, Tuple, Union

from . import _cluster
from ._errors import ArgumentError, Fault
from ._native import Results, Study
from ._progress import Progress


def sweep(
    study: "Union[Study, str, os.PathLike[str], Mapping[str, Any]]",
    out: "Union[str, os.PathLike[str]]",
    *,
    threads: Optional[int] = None,
    part: "Union[None, str, Tuple[int, int]]" = None,
    client: Any = None,
    progress: Progress = None,
) -> Results:
    """Do a study: what is missing of it in the folder ``out``, and its figures when all is there. As ``tierce sweep``.

    ``study``: a :class:`Study`, the path of one, or its tables as a dictionary. ``threads``: how many work at once (all CPUs).
    ``part``: ``"1/2"`` or ``(1, 2)``, only the first half of the chunks. ``client``: a ``distributed.Client`` or the module ``ray``
    after ``ray.init``: their workers do a chunk each, and this process keeps what they send. ``progress``: as of ``Plan.simulate``,
    called with (sets done, all sets).

    The rows are the same to the byte, whoever does them. What was ended goes on from there with the same call. Releases the
    interpreter's lock; Ctrl-C ends it, and what is done is kept. Raises :class:`StudyError` and :class:`ArgumentError`.
    """
    if isinstance(study, Mapping):
        study = Study.from_dict(study)
    elif not isinstance(study, Study):
        study = Study.from_file(study)
    if threads is not None and threads < 1:
        raise ArgumentError([Fault("threads_are_some", "`threads` is how many work at once", value=str(threads), bound="1 or more")])
    if threads is not None and client is not None:
        raise ArgumentError([Fault("threads_are_of_this_process", "the workers of a `client` have one thread for each task of theirs")])
    numbers = _part(part)
    cluster = None if client is None else _cluster.of(client)
    results = Results._open(study, os.fspath(out))
    if cluster is None:
        results._run(threads, numbers, progress)
    else:
        _cluster.run(cluster, study, results, numbers, progress)
    if results.complete:
        results._draw()
    return results


def _part(part: "Union[None, str, Tuple[int, int]]") -> "Tuple[int, int]":
    try:
        number, of = (1, 1) if part is None else (int(each) for each in (part.split("/") if isinstance(part, str) else part))
    except (TypeError, ValueError):
        number, of = 0, 0
    if not 1 <= number <= of < 2**63:
        fault = Fault("part_is_one_of_some", "the first of four parts is \"1/4\" or (1, 4)", value=repr(part), bound="1/N to N/N")
        raise ArgumentError([fault])
    return number, of
