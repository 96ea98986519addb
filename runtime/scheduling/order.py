"""Who comes first: higher class, then earlier submission. Pure.

A preempted job keeps its place. Jobs of one lane (same shape, same preemptibility) are interchangeable, so only the
first of each lane is looked at; that is why a round costs as much as there are lanes, not jobs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence, Set
from heapq import heapify, heappop, heappush, merge
from typing import NamedTuple

from runtime.model.indexes import Deadline, Delayed, Lane, Queued, lane_of
from runtime.model.state import State

from .fit import impossible

AFTER_ALL = 1 << 62
Lanes = Mapping[Lane, Sequence[Queued]]


class Front(NamedTuple):
    """The first waiting job of a lane."""

    queued: Queued
    lane: Lane


class ClassQueue:
    """The jobs of one class in order of submission, lane by lane.

    A lane whose job was taken by `pop` shows no further job until `advance` is called for it: a lane that is blocked
    is simply not advanced.
    """

    __slots__ = ("_fronts", "_number", "_rest", "_skip")

    def __init__(self, lanes: Lanes, due: Lanes, skip: Set[str]) -> None:
        self._skip = skip
        self._fronts: list[tuple[Queued, int, Lane]] = []
        self._rest: dict[Lane, Iterator[Queued]] = {}
        self._number: dict[Lane, int] = {}
        for lane in (*lanes, *(lane for lane in due if lane not in lanes)):
            ready, late = lanes.get(lane, ()), due.get(lane)
            self._rest[lane] = merge(ready, late) if late else iter(ready)
            self._number[lane] = len(self._number)
            entry = self._next(lane)
            if entry is not None:
                self._fronts.append((entry, self._number[lane], lane))
        heapify(self._fronts)

    def pop(self) -> Front | None:
        """The next job of the class; None: no lane shows one."""
        if not self._fronts:
            return None
        queued, _, lane = heappop(self._fronts)
        return Front(queued, lane)

    def advance(self, lane: Lane) -> None:
        """Show the lane's next job."""
        entry = self._next(lane)
        if entry is not None:
            heappush(self._fronts, (entry, self._number[lane], lane))

    def _next(self, lane: Lane) -> Queued | None:
        for entry in self._rest[lane]:
            if entry.job_id not in self._skip:
                return entry
        return None


def due_delayed(state: State, now_s: float) -> dict[int, dict[Lane, list[Queued]]]:
    """Jobs whose back-off has ended since the last event, by priority and lane, in order of submission."""
    due: dict[int, dict[Lane, list[Queued]]] = {}
    for entry in state.index.delayed[: n_due(state, now_s)]:
        job = state.jobs[entry.job_id]
        due.setdefault(job.priority, {}).setdefault(lane_of(job), []).append(Queued(entry.order, entry.job_id))
    for lanes in due.values():
        for entries in lanes.values():
            entries.sort()
    return due


def n_due(state: State, now_s: float) -> int:
    return bisect_left(state.index.delayed, Delayed(now_s, AFTER_ALL, ""))


def due(deadlines: Sequence[Deadline], now_s: float) -> Sequence[Deadline]:
    """Those that are over, earliest first; the deadlines are in order."""
    return deadlines[: bisect_left(deadlines, Deadline(now_s, chr(0x10FFFF)))]


def expired(state: State, now_s: float) -> Sequence[Deadline]:
    """Queued jobs that have waited longer than they wanted to, earliest deadline first."""
    return due(state.index.deadlines, now_s)


def queue_position(state: State, job_id: str, now_s: float) -> int:
    """1 is next. Counts the jobs that come first, may start now, and can run on the nodes there are."""
    job = state.jobs[job_id]
    place = Queued(job.order, job_id)
    ahead = 0
    for queue in (state.index.queue, due_delayed(state, now_s)):
        for priority, lanes in queue.items():
            for lane, entries in lanes.items():
                if priority >= job.priority and impossible(lane.shape, state.index.offered) is None:
                    ahead += len(entries) if priority > job.priority else bisect_left(entries, place)
    return ahead + 1
