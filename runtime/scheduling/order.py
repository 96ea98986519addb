"""Who comes first: higher class, then earlier submission plus what the job lets by. Pure.

A job lets later ones by for a time that follows its expected work, up to a bound, and for one that follows what its
project had beyond its share (`fairshare`), up to another: so between projects the share decides, inside one short work
goes first, and nobody waits for ever. A preempted job keeps its submission, and what it has saved is no longer expected
of it.

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
from .fairshare import AFTER_ALL, ClassShares, FairShares, due_entries
from .policy import Policy

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

    __slots__ = ("_fair", "_fronts", "_lets_by_s", "_number", "_rest", "_skip", "_state")

    def __init__(self, lanes: Lanes, due: Lanes, skip: Set[str], state: State, fair: ClassShares) -> None:
        self._skip = skip
        self._fair = fair
        self._state = state
        self._lets_by_s: dict[Lane, float] = {}
        self._fronts: list[tuple[float, Queued, int, Lane]] = []
        self._rest: dict[Lane, Iterator[Queued]] = {}
        self._number: dict[Lane, int] = {}
        for lane in (*lanes, *(lane for lane in due if lane not in lanes)):
            ready, late = lanes.get(lane, ()), due.get(lane)
            self._rest[lane] = merge(ready, late) if late else iter(ready)
            self._number[lane] = len(self._number)
            self._lets_by_s[lane] = lets_by_s(state, lane, fair.policy)
            entry = self._next(lane)
            if entry is not None:
                self._fronts.append((self._rank_s(entry, lane), entry, self._number[lane], lane))
        heapify(self._fronts)

    def pop(self) -> Front | None:
        """The next job of the class; None: no lane shows one."""
        while self._fronts:
            rank_s, queued, number, lane = heappop(self._fronts)
            now_rank_s = self._rank_s(queued, lane)
            if now_rank_s <= rank_s:
                return Front(queued, lane)
            heappush(self._fronts, (now_rank_s, queued, number, lane))  # its project was given something meanwhile
        return None

    def advance(self, lane: Lane) -> None:
        """Show the lane's next job."""
        entry = self._next(lane)
        if entry is not None:
            heappush(self._fronts, (self._rank_s(entry, lane), entry, self._number[lane], lane))

    def _rank_s(self, entry: Queued, lane: Lane) -> float:
        by_share_s = self._fair.lets_by_s(lane.project, lane.shape.n_devices)
        return self._state.jobs[entry.job_id].submitted_at_s + self._lets_by_s[lane] + by_share_s

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
    for entry in due_entries(state.index.delayed, now_s):
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
    shares = FairShares(state=state, now_s=now_s, policy=policy)
    fair = shares.of_class(job.priority)
    place = (job.submitted_at_s + _later_s(state, lane_of(job), fair), job.order)
    ahead = 0
    for queue in (state.index.queue, due_delayed(state, now_s)):
        for priority, lanes in queue.items():
            for lane, entries in lanes.items():
                if priority < job.priority or impossible(lane.shape, state.index.offered, state.index) is not None:
                    continue
                later_s = _later_s(state, lane, fair)
                ahead += len(entries) if priority > job.priority else _n_before(state, entries, later_s, place)
    return ahead + 1


def _later_s(state: State, lane: Lane, fair: ClassShares) -> float:
    return lets_by_s(state, lane, fair.policy) + fair.lets_by_s(lane.project, lane.shape.n_devices)


def _n_before(state: State, entries: Sequence[Queued], later_s: float, place: tuple[float, int]) -> int:
    return bisect_left(entries, place, key=lambda e: (state.jobs[e.job_id].submitted_at_s + later_s, e.order))
