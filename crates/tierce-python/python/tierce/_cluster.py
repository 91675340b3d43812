"""Chunks of a study, done by the workers of Dask or Ray.

A task is one chunk: the study's text goes there, the bytes of a Parquet file come back, and the process that asked keeps them. So
workers need no common folder, a worker that is lost costs what it had begun, and the scheduler gives that to another. Neither
library is imported here: who has a client has imported it.
"""

from __future__ import annotations

import functools
import sys
import time
from typing import Any, Iterable, List, Tuple

from ._errors import ArgumentError, Fault
from ._native import Results, Study
from ._progress import Progress, resolve

_PAUSE_S = 0.5
_LOOK_S = 2.0
_RETRIES = 3
"""How often a chunk is given to another worker: what Dask has as a preset, too. A chunk that ends each of its workers is an error."""


@functools.lru_cache(maxsize=4)
def _study(*parts: Any) -> Study:
    return Study._from_parts(*parts)


def _chunk(parts: Tuple[Any, ...], chunk: int) -> bytes:
    """What a worker does; it reads a study once."""
    return _study(*parts).chunk(chunk)


class _Dask:
    def __init__(self, client: Any) -> None:
        self.client = client

    def cpus(self) -> int:
        return sum(self.client.nthreads().values())

    def start(self, *task: Any) -> Any:
        return self.client.submit(_chunk, *task, pure=False)

    def first(self, waiting: List[Any]) -> Iterable[Any]:
        distributed = sys.modules["distributed"]
        try:
            return distributed.wait(waiting, timeout=_PAUSE_S, return_when="FIRST_COMPLETED").done
        except distributed.TimeoutError:
            return ()

    def result(self, task: Any) -> bytes:
        return task.result()

    def cancel(self, waiting: List[Any]) -> None:
        self.client.cancel(waiting)


class _Ray:
    def __init__(self, ray: Any) -> None:
        self.ray = ray
        self.remote = ray.remote(num_cpus=1, max_retries=_RETRIES)(_chunk)

    def cpus(self) -> int:
        return int(self.ray.cluster_resources().get("CPU", 1))

    def start(self, *task: Any) -> Any:
        return self.remote.remote(*task)

    def first(self, waiting: List[Any]) -> Iterable[Any]:
        return self.ray.wait(waiting, num_returns=1, timeout=_PAUSE_S)[0]

    def result(self, task: Any) -> bytes:
        try:
            return self.ray.get(task)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause

    def cancel(self, waiting: List[Any]) -> None:
        for task in waiting:
            self.ray.cancel(task)


def of(client: Any) -> Any:
    """What gives tasks to the workers of that client."""
    ray, distributed = sys.modules.get("ray"), sys.modules.get("distributed")
    if ray is not None and client is ray:
        if ray.is_initialized():
            return _Ray(ray)
        raise ArgumentError([Fault("client_must_be_connected", "there is no Ray to give tasks to: call ray.init() before")])
    if distributed is not None and isinstance(client, distributed.Client):
        if client.status == "running" and not client.asynchronous:
            return _Dask(client)
        message = "this client of Dask is closed, or is for coroutines (asynchronous=True)"
        raise ArgumentError([Fault("client_must_be_connected", message, value=repr(client))])
    message = "`client` gives tasks to workers"
    raise ArgumentError([Fault("client_must_be_known", message, value=repr(client), bound="a distributed.Client, or the module ray")])


def run(cluster: Any, study: Study, results: Results, part: Tuple[int, int], progress: Progress) -> None:
    """Do what is missing of a part."""
    chunks = results._chunks(part)
    missing = [chunk for chunk in chunks if not results._has(chunk)]
    total = study._sets_of(chunks)
    done, left, tell = total - study._sets_of(missing), iter(missing), resolve(progress)
    text, name, files = study._parts()
    parts = (text, name, tuple(files))
    waiting, room, looked = {}, 0, 0.0
    try:
        while True:
            if not room or time.monotonic() - looked > _LOOK_S:
                # So many that no worker waits for this process, and so few that it need not hold all tasks of a large study.
                room, looked = max(8, 3 * cluster.cpus()), time.monotonic()
            while len(waiting) < room and (chunk := next(left, None)) is not None:
                waiting[cluster.start(parts, chunk)] = chunk
            if not waiting:
                break
            for task in cluster.first(list(waiting)):
                chunk = waiting.pop(task)
                results._keep(chunk, cluster.result(task))
                done += study._sets_of([chunk])
            if tell is not None:
                tell(done, total)
    finally:
        if waiting:
            cluster.cancel(list(waiting))
