"""Who comes first: higher class, then earlier submission plus what the job lets by. Pure.

A job lets later ones by for a time that follows its expected work, up to a bound: so short work goes first, and
nobody waits for ever. Since this time does not change while the job waits, neither does the order. A preempted job
keeps its submission, and what it has saved is no longer expected of it.

Jobs of one lane are interchangeable, so only the first of each lane is looked at; that is why a round costs as much
as there are lanes, not jobs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence, Set
from heapq import heapify, heappop, heappush, merge
from typing import NamedTuple

from runtime.model.estimates import remaining_s
from runtime.model.indexes import Deadline, Delayed, Lane, Queued, lane_of
from runtime.model.state import State

from .asking import impossible
from .policy import Policy

AFTER_ALL = 1 << 62
Lanes = Mapping[Lane, Sequence[Queued]]


class Front(NamedTuple):
    """The first waiting job of a lane."""

    queued: Queued
    lane: Lane


class ClassQueue:
    """The jobs of one class in order, lane by lane.

    A lane whose job was taken by `pop` shows no further job until `advance` is called for it: a lane that is blocked
    is simply not advanced.
    """

    __slots__ = ("_fronts", "_lets_by_s", "_number", "_rest", "_skip", "_state")

    def __init__(self, lanes: Lanes, due: Lanes, skip: Set[str], state: State, policy: Policy) -> None:
        self._skip = skip
        self._state = state
        self._lets_by_s: dict[Lane, float] = {}
        self._fronts: list[tuple[float, Queued, int, Lane]] = []
        self._rest: dict[Lane, Iterator[Queued]] = {}
        self._number: dict[Lane, int] = {}
        for lane in (*lanes, *(lane for lane in due if lane not in lanes)):
            ready, late = lanes.get(lane, ()), due.get(lane)
            self._rest[lane] = merge(ready, late) if late else iter(ready)
            self._number[lane] = len(self._number)
            self._lets_by_s[lane] = lets_by_s(state, lane, policy)
            entry = self._next(lane)
            if entry is not None:
                self._fronts.append((self._rank_s(entry, lane), entry, self._number[lane], lane))
        heapify(self._fronts)

    def pop(self) -> Front | None:
        """The next job of the class; None: no lane shows one."""
        if not self._fronts:
            return None
        _, queued, _, lane = heappop(self._fronts)
        return Front(queued, lane)

    def advance(self, lane: Lane) -> None:
        """Show the lane's next job."""
        entry = self._next(lane)
        if entry is not None:
            heappush(self._fronts, (self._rank_s(entry, lane), entry, self._number[lane], lane))

    def _rank_s(self, entry: Queued, lane: Lane) -> float:
        return self._state.jobs[entry.job_id].submitted_at_s + self._lets_by_s[lane]

    def _next(self, lane: Lane) -> Queued | None:
        for entry in self._rest[lane]:
            if entry.job_id not in self._skip:
                return entry
        return None


def lets_by_s(state: State, lane: Lane, policy: Policy) -> float:
    """For how long jobs of this lane let later ones by."""
    expected_s = state.estimates.expected_s(lane.project, lane.experiment, lane.shape)
    if expected_s is None or not policy.overtaking:
        return 0.0
    work_s = remaining_s(expected_s, lane.done_s) * lane.shape.n_devices
    return min(policy.overtaking * work_s, policy.overtaking_max_s)


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


def queue_position(state: State, job_id: str, now_s: float, policy: Policy) -> int:
    """1 is next. Counts the jobs that come first, may start now, and can run on the nodes there are."""
    job = state.jobs[job_id]
    place = (job.submitted_at_s + lets_by_s(state, lane_of(job), policy), job.order)
    ahead = 0
    for queue in (state.index.queue, due_delayed(state, now_s)):
        for priority, lanes in queue.items():
            for lane, entries in lanes.items():
                if priority < job.priority or impossible(lane.shape, state.index.offered, state.index) is not None:
                    continue
                later_s = lets_by_s(state, lane, policy)
                ahead += len(entries) if priority > job.priority else _n_before(state, entries, later_s, place)
    return ahead + 1


def _n_before(state: State, entries: Sequence[Queued], later_s: float, place: tuple[float, int]) -> int:
    return bisect_left(entries, place, key=lambda e: (state.jobs[e.job_id].submitted_at_s + later_s, e.order))
