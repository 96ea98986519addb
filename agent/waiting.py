"""Waiting for something to happen: the events of the runtime, filtered to what a session cares for.

`EventPump` reads the stream in a thread, for a real runtime. `DirectWaiter` reads it in the calling thread, for a
runtime in memory whose clock moves when it is read.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from runtime_client.errors import RuntimeClientError
from runtime_client.models import EventView
from runtime_client.protocol import Runtime

ENDINGS = ("attempt_ended", "job_ended")
WORLD_CHANGES = ("node_joined", "node_left", "resync")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interest:
    """What is worth a wake-up."""

    job_ids: frozenset[str]
    metrics: frozenset[str]
    """Names of metrics of those jobs."""
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """Why the wait is over."""

    job_ids: tuple[str, ...] = ()
    """Jobs to look at; empty with `is_event`: look at all."""
    is_event: bool = False
    """False: the time ran out, or somebody asked to leave."""
    has_metric: bool = False
    """One of the metrics arrived."""


class Waiter(Protocol):
    def wait(self, interest: Interest) -> Wake:
        """
        Raises:
            RuntimeClientError: the stream is broken; wait for the runtime and open it again.
        """
        ...

    def close(self) -> None: ...


def matters(event: EventView, interest: Interest) -> Wake | None:
    """The wake-up that an event stands for; None: it is not for this session."""
    if event.type in WORLD_CHANGES:
        return Wake(is_event=True)
    if event.job_id is None or event.job_id not in interest.job_ids:
        return None
    if event.type in ENDINGS:
        return Wake(is_event=True, job_ids=(event.job_id,))
    if event.type == "metrics_logged" and interest.metrics & set(event.data.get("keys", ())):
        return Wake(is_event=True, job_ids=(event.job_id,), has_metric=True)
    return None


def merged(first: Wake, second: Wake) -> Wake:
    """Two wake-ups as one; one that looks at everything wins."""
    is_whole = (first.is_event and not first.job_ids) or (second.is_event and not second.job_ids)
    job_ids = () if is_whole else tuple(dict.fromkeys((*first.job_ids, *second.job_ids)))
    return Wake(is_event=True, job_ids=job_ids, has_metric=first.has_metric or second.has_metric)


class DirectWaiter:
    """Reads until the first event that matters, in the calling thread."""

    def __init__(self, runtime: Runtime, *, since: int) -> None:
        self._runtime = runtime
        self._seq = since

    def wait(self, interest: Interest) -> Wake:
        for event in self._runtime.events(since=self._seq, wait_s=interest.timeout_s):
            self._seq = event.seq if event.seq is not None else self._seq
            wake = matters(event, interest)
            if wake is not None:
                return wake
        return Wake()

    def close(self) -> None:
        """Nothing to close."""


class EventPump:
    """A thread reads the stream; `wait` takes what matters from a queue, in slices, so that a stop is seen soon."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        since: int,
        is_leaving: Callable[[], bool],
        slice_s: float = 0.5,
    ) -> None:
        self._is_leaving = is_leaving
        self._slice_s = slice_s
        self._queue: queue.SimpleQueue[EventView | RuntimeClientError] = queue.SimpleQueue()
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._read, args=(runtime, since), name="events", daemon=True)
        self._thread.start()

    def wait(self, interest: Interest) -> Wake:
        left_s = interest.timeout_s
        while left_s > 0 and not self._is_leaving():
            try:
                first = self._queue.get(timeout=min(self._slice_s, left_s))
            except queue.Empty:
                left_s -= self._slice_s
                continue
            wake = self._drained(first, interest)
            if wake is not None:
                return wake
        return Wake()

    def close(self) -> None:
        """Let the thread end with the next event; it is a daemon and holds nothing."""
        self._is_closed.set()

    def _drained(self, first: EventView | RuntimeClientError, interest: Interest) -> Wake | None:
        """All that is queued now, as one wake-up."""
        found: Wake | None = None
        item: EventView | RuntimeClientError | None = first
        while item is not None:
            if isinstance(item, RuntimeClientError):
                raise item
            wake = matters(item, interest)
            if wake is not None:
                found = wake if found is None else merged(found, wake)
            item = self._next()
        return found

    def _next(self) -> EventView | RuntimeClientError | None:
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            return None

    def _read(self, runtime: Runtime, since: int) -> None:
        try:
            for event in runtime.events(since=since):
                if self._is_closed.is_set():
                    return
                self._queue.put(event)
        except RuntimeClientError as error:
            self._queue.put(error)
