"""The control of the waits: strict submission order with EASY backfill and true run times, without priorities.

The head of the queue gets a reservation at the earliest time at which it fits; later jobs start out of order where
they end before that, or use devices that the reservation does not need. Nobody is preempted.
Source: D. Lifka, The ANL/IBM SP Scheduling System, JSSPP 1995 (the EASY rule).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from runtime.model.devices import Masks, placement_masks
from runtime.model.indexes import Indexes
from runtime.model.nouns import Node, Placement, Shape
from runtime.scheduling.asking import impossible
from runtime.scheduling.fit import place
from runtime.scheduling.room import Room
from runtime.simulator.workload import TraceJob, node_size, shaped


@dataclass(frozen=True, slots=True)
class Waiting:
    order: int
    job: TraceJob
    shape: Shape


@dataclass(frozen=True, slots=True)
class Reservation:
    order: int
    at_s: float
    devices: Masks


@dataclass(slots=True)
class Easy:
    index: Indexes
    free: Masks
    ends: list[tuple[float, int, Masks]] = field(default_factory=list)
    queue: dict[Shape, list[Waiting]] = field(default_factory=dict)
    """By shape, each in order."""
    reservation: Reservation | None = None
    started_s: dict[str, float] = field(default_factory=dict)

    def head(self) -> Waiting | None:
        return min((lane[0] for lane in self.queue.values()), key=lambda one: one.order, default=None)

    def place(self, shape: Shape, free: Masks) -> tuple[Placement, ...] | None:
        return place(shape, Room(index=self.index, devices=free))

    def start(self, one: Waiting, placements: tuple[Placement, ...], now_s: float) -> None:
        masks = placement_masks(placements)
        for node, mask in masks.items():
            self.free[node] &= ~mask
        heappush(self.ends, (now_s + one.job.run_s, one.order, masks))
        self.started_s[one.job.job_id] = now_s
        lane = self.queue[one.shape]
        lane.remove(one)
        if not lane:
            del self.queue[one.shape]

    def round(self, now_s: float) -> None:
        while (head := self.head()) is not None:
            placements = self.place(head.shape, self.free)
            if placements is None:
                break
            self.start(head, placements, now_s)
        if head is None:
            return
        if self.reservation is None or self.reservation.order != head.order:
            self.reservation = self.reserve(head)
        while self.backfill(head, self.reservation, now_s):
            pass

    def reserve(self, head: Waiting) -> Reservation:
        room = dict(self.free)
        for at_s, _, masks in sorted(self.ends, key=lambda end: end[:2]):
            for node, mask in masks.items():
                room[node] |= mask
            placements = self.place(head.shape, room)
            if placements is not None:
                return Reservation(head.order, at_s, placement_masks(placements))
        raise AssertionError("a job that fits on the empty cluster fits when all have ended")

    def backfill(self, head: Waiting, reservation: Reservation, now_s: float) -> bool:
        """Start the first later job that delays nothing; whether there was one."""
        extra = {node: mask & ~reservation.devices.get(node, 0) for node, mask in self.free.items()}
        best: tuple[int, Waiting, tuple[Placement, ...]] | None = None
        for shape, lane in self.queue.items():
            anywhere, beside = self.place(shape, self.free), self.place(shape, extra)
            if anywhere is None:
                continue
            for one in lane:
                if best is not None and one.order > best[0]:
                    break
                ends_before = now_s + one.job.run_s <= reservation.at_s
                placements = beside if beside is not None else anywhere if ends_before else None
                if one.order != head.order and placements is not None:
                    best = (one.order, one, placements)
                    break
        if best is None:
            return False
        self.start(best[1], best[2], now_s)
        return True


def easy_waits(jobs: Sequence[TraceJob], nodes: Iterable[Node]) -> dict[str, float]:
    """Seconds from submission to start by job; jobs that fit on no cluster of these nodes are left out."""
    nodes = tuple(nodes)
    index = Indexes()
    for node in nodes:
        index.set_node(node, held=0)
    size = node_size(nodes)
    shapes = [shaped(job, size) for job in jobs]
    arrivals = [Waiting(i, job, shape) for i, (job, shape) in enumerate(zip(jobs, shapes, strict=True))]
    arrivals = [one for one in arrivals if impossible(one.shape, index.kinds, index) is None]
    easy = Easy(index, dict(index.free))
    n = 0
    while n < len(arrivals) or easy.ends:
        times = [arrivals[n].job.submitted_at_s] if n < len(arrivals) else []
        now_s = min([*times, *(end[0] for end in easy.ends[:1])])
        while n < len(arrivals) and arrivals[n].job.submitted_at_s <= now_s:
            easy.queue.setdefault(arrivals[n].shape, []).append(arrivals[n])
            n += 1
        while easy.ends and easy.ends[0][0] <= now_s:
            for node_id, mask in heappop(easy.ends)[2].items():
                easy.free[node_id] |= mask
        easy.round(now_s)
    return {one.job.job_id: easy.started_s[one.job.job_id] - one.job.submitted_at_s for one in arrivals}
