"""What is derived from the live jobs and nodes, kept in step with every change instead of computed anew. Pure.

`check` compares all of it with a slow recomputation.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from .devices import KindMasks, Masks, kind_masks, placement_mask
from .errors import InvariantViolation
from .estimates import rounded_down
from .ground import Ground, ground_of
from .leaving import GRACE_MAX_S, KILL_S, Experiment
from .nouns import WHOLE, ArrayPlace, Job, Node, Placement, Shape
from .states import HOLDING, JobState


class Lane(NamedTuple):
    """Queued jobs of one class that are interchangeable for the scheduler; it looks at the first one only."""

    shape: Shape
    is_preemptible: bool
    project: str
    experiment: str
    done_s: float
    """Work done and saved, rounded down: what is left is about the same."""


class Queued(NamedTuple):
    """A queued job's place in its lane; sorts by submission."""

    order: int
    job_id: str


class Delayed(NamedTuple):
    """A queued job that backs off; sorts by the time it may start."""

    not_before_s: float
    order: int
    job_id: str


class Deadline(NamedTuple):
    """When a queued job gives up; sorts by time."""

    at_s: float
    job_id: str


class Hour(NamedTuple):
    """Jobs that have to be over by one hour and, as they would get the same grace, have to leave at one time for it.

    Many jobs are few of these, so that a round before their hour costs as little as any other.
    """

    earliest_s: float
    """When that may be at the earliest: before the hour by the longest grace that there is. What has been learned
    changes, an index must not."""
    finish_by_s: float
    grace_s: float
    experiment: Experiment
    is_held: bool
    """Whether they hold devices."""
    leave_s: float
    """Of those: as `Attempt.leave_s`; 0: nothing was known."""


Entry = TypeVar("Entry", Queued, Delayed, Deadline, Hour)
Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True, kw_only=True)
class ArrayLine:
    """The live tasks of an array: no more of them are in the queue than may start."""

    parallel: int | None
    n_live: int = 0
    n_holding: int = 0
    ready: list[Queued] = field(default_factory=list)
    """Queued tasks that neither wait for others nor are on hold, in order of submission."""
    n_open: int = 0
    """So many of them, the first ones, are in the queue."""

    @property
    def n_may_open(self) -> int:
        n_left = len(self.ready) if self.parallel is None else max(0, self.parallel - self.n_holding)
        return min(len(self.ready), n_left)


def lane_of(job: Job) -> Lane:
    return Lane(job.shape, job.is_preemptible, job.project, job.experiment, rounded_down(job.done_s))


def deadline_of(job: Job) -> Deadline | None:
    """When a queued job gives up waiting; None: never, or the wait has not begun."""
    if job.queue_timeout_s is None or job.is_waiting:
        return None
    return Deadline(job.queued_since_s + job.queue_timeout_s, job.job_id)


def limit_of(job: Job) -> Deadline | None:
    """When a running attempt has to stop; None: it has no limit, or does not run."""
    limit_s = job.limit_s
    if limit_s is None or job.state is not JobState.RUNNING:
        return None
    if job.attempt is None or job.attempt.started_at_s is None:
        return None
    return Deadline(job.attempt.started_at_s + limit_s, job.job_id)


def hour_of(job: Job) -> Hour | None:
    """None: it has none."""
    if job.finish_by_s is None:
        return None
    return Hour(
        job.finish_by_s - KILL_S - max(job.grace_s, GRACE_MAX_S),
        job.finish_by_s,
        job.grace_s,
        Experiment(job.project, job.experiment),
        job.attempt is not None,
        (None if job.attempt is None else job.attempt.leave_s) or 0.0,
    )


@dataclass(slots=True, kw_only=True)
class Indexes:
    free: Masks = field(default_factory=dict)
    """Devices of which no attempt holds a part and that take new work, by node (every node has an entry)."""
    used_shares: dict[str, dict[int, int]] = field(default_factory=dict)
    """Thousandths held of devices that are given out in shares, by node. No empty parts."""
    used_cpu: dict[str, int] = field(default_factory=dict)
    """Thousandths of a core set aside for attempts, by node. No zeros."""
    used_memory: dict[str, int] = field(default_factory=dict)
    """Memory set aside for attempts, in MiB, by node. No zeros."""
    grounds: dict[str, Ground] = field(default_factory=dict)
    """What each node offers besides its devices."""
    n_alive: dict[Shape, int] = field(default_factory=dict)
    """Live jobs by shape. No zeros."""
    kinds: dict[str, KindMasks] = field(default_factory=dict)
    """All devices by node and kind."""
    offered: dict[str, KindMasks] = field(default_factory=dict)
    """Those of them that take new work."""
    suspect: set[str] = field(default_factory=set)
    """Nodes to be used last, and never for gangs."""
    held: set[str] = field(default_factory=set)
    """Queued jobs that somebody put a hold on; they are neither in `queue` nor in `delayed`."""
    waiting: set[str] = field(default_factory=set)
    """Queued jobs that wait for others to end; they are nowhere else."""
    dependents: dict[str, set[str]] = field(default_factory=dict)
    """Those of them by what they wait for. No empty parts."""
    doomed: set[str] = field(default_factory=set)
    """Those of them that can never start."""
    arrays: dict[str, ArrayLine] = field(default_factory=dict)
    """Arrays that have live tasks."""
    queue: dict[int, dict[Lane, list[Queued]]] = field(default_factory=dict)
    """Jobs that may start now, by priority and lane, in order of submission. No empty parts."""
    delayed: list[Delayed] = field(default_factory=list)
    """Queued jobs whose `not_before_s` lies after the state's clock."""
    deadlines: list[Deadline] = field(default_factory=list)
    """Queued jobs with a queue timeout."""
    holding: set[str] = field(default_factory=set)
    """Jobs whose attempt holds devices."""
    in_use: dict[tuple[str, str], int] = field(default_factory=dict)
    """Devices that they hold, by project and priority class. No zeros."""
    stopping: set[str] = field(default_factory=set)
    """Those of them that were asked to stop."""
    movable: dict[int, set[str]] = field(default_factory=dict)
    """Those of them that may be asked to leave for a higher class, by priority. No empty parts."""
    limits: list[Deadline] = field(default_factory=list)
    """Running jobs with a time limit, and when it is over."""
    hours: dict[Hour, set[str]] = field(default_factory=dict)
    """Jobs that have to be over by some hour. No empty parts."""
    hours_in_order: list[Hour] = field(default_factory=list)
    """The same hours, in order of the earliest time at which somebody may have to leave for them."""
    accounts: dict[str, dict[str, None]] = field(default_factory=dict)
    """Live jobs by session and by project, in order of submission. No empty parts."""
    usable_by_shape: dict[Shape, Masks] = field(default_factory=dict, compare=False, repr=False)
    """What the scheduler has found out about shapes on these nodes: a memo, empty again when a node changes."""

    def add_job(self, job: Job, clock_s: float, *, is_held: bool = False) -> None:
        self.n_alive[job.shape] = self.n_alive.get(job.shape, 0) + 1
        if (hour := hour_of(job)) is not None:
            if hour not in self.hours:
                insort(self.hours_in_order, hour)
            self.hours.setdefault(hour, set()).add(job.job_id)
        if job.array is not None:
            self._join_array(job, job.array, 1)
        if job.state in HOLDING and job.attempt is not None:
            self._hold(job)
            for placement in job.attempt.placements:
                self._take(placement)
        elif job.state is JobState.QUEUED:
            self._enqueue(job, clock_s, is_held=is_held)

    def remove_job(self, job: Job, clock_s: float) -> None:
        _change(self.n_alive, job.shape, -1)
        if (hour := hour_of(job)) is not None:
            self.hours[hour].discard(job.job_id)
            if not self.hours[hour]:
                del self.hours[hour]
                _remove_sorted(self.hours_in_order, hour)
        if job.array is not None:
            self._join_array(job, job.array, -1)
        if job.state in HOLDING and job.attempt is not None:
            self._release(job)
            for placement in job.attempt.placements:
                self._give_back(placement)
        elif job.state is JobState.QUEUED:
            self._dequeue(job, clock_s)

    def _take(self, placement: Placement) -> None:
        node_id = placement.node_id
        self.free[node_id] &= ~placement_mask(placement)
        if placement.device_thousandths < WHOLE:
            used = self.used_shares.setdefault(node_id, {})
            for device in placement.devices:
                used[device] = used.get(device, 0) + placement.device_thousandths
        _change(self.used_cpu, node_id, placement.cpu_milli)
        _change(self.used_memory, node_id, placement.memory_mb)

    def _give_back(self, placement: Placement) -> None:
        node_id = placement.node_id
        mask = placement_mask(placement)
        if placement.device_thousandths < WHOLE:
            used = self.used_shares[node_id]
            for device in placement.devices:
                _change(used, device, -placement.device_thousandths)
                if device in used:
                    mask &= ~(1 << device)
            if not used:
                del self.used_shares[node_id]
        self.free[node_id] |= mask & self.offered[node_id][None]
        _change(self.used_cpu, node_id, -placement.cpu_milli)
        _change(self.used_memory, node_id, -placement.memory_mb)

    def _join_array(self, job: Job, place: ArrayPlace, change: int) -> None:
        line = self.arrays.setdefault(place.array_id, ArrayLine(parallel=place.parallel))
        line.n_live += change
        line.n_holding += change if job.state in HOLDING else 0

    def settle_array(self, array_id: str, jobs: Mapping[str, Job], clock_s: float) -> None:
        """Let as many of its tasks into the queue as may start, and no more; to be called after its tasks change."""
        line = self.arrays[array_id]
        if not line.n_live:
            del self.arrays[array_id]
            return
        while line.n_open < line.n_may_open:
            self._into_queue(jobs[line.ready[line.n_open].job_id], clock_s)
            line.n_open += 1
        while line.n_open > line.n_may_open:
            line.n_open -= 1
            self._out_of_queue(jobs[line.ready[line.n_open].job_id], clock_s)

    def drop_from_account(self, account: str, job_id: str) -> None:
        entry = self.accounts[account]
        del entry[job_id]
        if not entry:
            del self.accounts[account]

    def promote(self, jobs: Mapping[str, Job], clock_s: float) -> None:
        """Move jobs whose back-off is over by `clock_s` into their lanes."""
        n_due = bisect_left(self.delayed, Delayed(clock_s, 1 << 62, ""))
        for entry in self.delayed[:n_due]:
            self._into_lane(jobs[entry.job_id])
        del self.delayed[:n_due]

    def set_node(self, node: Node, *, held: int, closed: int = 0, is_suspect: bool = False) -> None:
        """Add a node, or replace what is known of it.

        Args:
            held: its devices that attempts hold.
            closed: its devices that take no new work.
        """
        masks = kind_masks(node)
        self.kinds[node.node_id] = masks
        self.grounds[node.node_id] = ground_of(node)
        self.offered[node.node_id] = {kind: mask & ~closed for kind, mask in masks.items()}
        (self.suspect.add if is_suspect else self.suspect.discard)(node.node_id)
        self.usable_by_shape.clear()
        self.free[node.node_id] = masks[None] & ~held & ~closed

    def remove_node(self, node_id: str) -> None:
        del self.kinds[node_id], self.offered[node_id], self.grounds[node_id]
        self.suspect.discard(node_id)
        self.usable_by_shape.clear()
        del self.free[node_id]

    def _hold(self, job: Job) -> None:
        self.holding.add(job.job_id)
        self._count_in_use(job, job.shape.n_devices)
        if job.state is JobState.STOPPING:
            self.stopping.add(job.job_id)
        elif job.is_preemptible:
            self.movable.setdefault(job.priority, set()).add(job.job_id)
        limit = limit_of(job)
        if limit is not None:
            insort(self.limits, limit)

    def _count_in_use(self, job: Job, change: int) -> None:
        _change(self.in_use, (job.project, job.priority_class), change)

    def _release(self, job: Job) -> None:
        self.holding.discard(job.job_id)
        self._count_in_use(job, -job.shape.n_devices)
        if job.state is JobState.STOPPING:
            self.stopping.discard(job.job_id)
        elif job.is_preemptible:
            movable = self.movable[job.priority]
            movable.discard(job.job_id)
            if not movable:
                del self.movable[job.priority]
        limit = limit_of(job)
        if limit is not None:
            _remove_sorted(self.limits, limit)

    def _enqueue(self, job: Job, clock_s: float, *, is_held: bool) -> None:
        deadline = deadline_of(job)
        if deadline is not None:
            insort(self.deadlines, deadline)
        if job.is_waiting:
            self._wait(job)
        elif is_held:
            self.held.add(job.job_id)
        elif job.array is None:
            self._into_queue(job, clock_s)
        else:
            line, entry = self.arrays[job.array.array_id], Queued(job.order, job.job_id)
            at = bisect_left(line.ready, entry)
            line.ready.insert(at, entry)
            if at < line.n_open:
                line.n_open += 1
                self._into_queue(job, clock_s)

    def _wait(self, job: Job) -> None:
        self.waiting.add(job.job_id)
        for dependency in job.waits_for:
            self.dependents.setdefault(dependency.on, set()).add(job.job_id)
        if job.unmet is not None:
            self.doomed.add(job.job_id)

    def _wait_no_more(self, job: Job) -> None:
        self.waiting.discard(job.job_id)
        self.doomed.discard(job.job_id)
        for name in {dependency.on for dependency in job.waits_for}:
            others = self.dependents[name]
            others.discard(job.job_id)
            if not others:
                del self.dependents[name]

    def _into_queue(self, job: Job, clock_s: float) -> None:
        if job.not_before_s > clock_s:
            insort(self.delayed, Delayed(job.not_before_s, job.order, job.job_id))
        else:
            self._into_lane(job)

    def _into_lane(self, job: Job) -> None:
        lanes = self.queue.setdefault(job.priority, {})
        insort(lanes.setdefault(lane_of(job), []), Queued(job.order, job.job_id))

    def _dequeue(self, job: Job, clock_s: float) -> None:
        deadline = deadline_of(job)
        if deadline is not None:
            _remove_sorted(self.deadlines, deadline)
        if job.is_waiting:
            self._wait_no_more(job)
        elif job.job_id in self.held:
            self.held.discard(job.job_id)
        elif job.array is None:
            self._out_of_queue(job, clock_s)
        else:
            line, entry = self.arrays[job.array.array_id], Queued(job.order, job.job_id)
            is_open = bisect_left(line.ready, entry) < line.n_open
            _remove_sorted(line.ready, entry)
            if is_open:
                line.n_open -= 1
                self._out_of_queue(job, clock_s)

    def _out_of_queue(self, job: Job, clock_s: float) -> None:
        if job.not_before_s > clock_s:
            _remove_sorted(self.delayed, Delayed(job.not_before_s, job.order, job.job_id))
            return
        lanes = self.queue[job.priority]
        lane = lanes[lane_of(job)]
        _remove_sorted(lane, Queued(job.order, job.job_id))
        if not lane:
            del lanes[lane_of(job)]
            if not lanes:
                del self.queue[job.priority]


def _change(counts: dict[Key, int], key: Key, change: int) -> None:
    """Add to a count; one that comes to nothing is left out."""
    left = counts.get(key, 0) + change
    if left:
        counts[key] = left
    else:
        counts.pop(key, None)


def _remove_sorted(entries: list[Entry], entry: Entry) -> None:
    at = bisect_left(entries, entry)
    if at == len(entries) or entries[at] != entry:
        raise InvariantViolation(rule="a job is in the index of its state", found=f"{entry} is not")
    del entries[at]
