"""One round of scheduling on paper: every waiting job in order gets devices, a promise of devices, or a reason. Pure.

Least disruption first: start on free devices; wait for devices that are being vacated anyway; ask lower ones to leave;
wait. A job that waits without a promise is a *blocked head*: what comes after it may start only where it can not
delay it, that is on devices it can not use, or as a strictly lower job that can itself be preempted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from runtime.model.devices import Masks, placement_masks
from runtime.model.indexes import Lane
from runtime.model.nouns import Job, Placement, Shape
from runtime.model.state import State
from runtime.model.states import JobState

from .decision import Action, Expire, Preempt, Start, TimeOut
from .fit import describe_placements, describe_shape, fits, place, usable
from .order import ClassQueue, Front, due_delayed, expired, n_due
from .policy import Policy
from .preempt import Candidate, Search, candidates, choose_victims, with_devices_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A job that will fit once others are gone; its devices are kept for it."""

    placements: tuple[Placement, ...]
    victims: tuple[str, ...]
    """Asked to leave for it in this round; empty: what it waits for was leaving already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """The first job of a lane that can neither start nor be promised anything."""

    job_id: str
    priority: int
    lane: Lane
    wanted: Masks
    """All devices it could ever use."""
    behind: str | None
    """The blocked head that it would delay, where there would be room but for that; None: there is no room."""
    is_waiting_for_victims: bool
    """Attempts are leaving for it already, so nobody else is asked."""


@dataclass(slots=True, kw_only=True)
class Round:
    """The paper: what is left of the devices, and what has been decided so far."""

    state: State
    now_s: float
    policy: Policy
    free: Masks
    """Devices that nobody holds and nobody is promised."""
    vacating: Masks
    """Devices that are being left, and that nobody is promised."""
    pool: list[Candidate]
    """Who may still be asked to leave, in order of harm."""
    served: frozenset[str]
    """Jobs for whom attempts are leaving already."""
    actions: list[Action] = field(default_factory=list)
    promises: dict[str, Promise] = field(default_factory=dict)
    blocked: list[Blocked] = field(default_factory=list)
    barred_same: Masks = field(default_factory=dict)
    """Devices that blocked heads of the present class could use."""
    barred_above: Masks = field(default_factory=dict)
    """Devices that blocked heads of higher classes could use."""
    usable_by_shape: dict[Shape, Masks] = field(default_factory=dict)
    wake_s: float | None = None

    def usable(self, shape: Shape) -> Masks:
        """The devices it may use at all; none when the gang could not even run on an empty cluster."""
        found = self.usable_by_shape.get(shape)
        if found is None:
            found = usable(shape, self.state.index.kinds)
            self.usable_by_shape[shape] = found = found if fits(shape, found) else {}
        return found

    def wake_at(self, at_s: float | None) -> None:
        """Ask for a round at that time, unless one is due earlier or the time is past."""
        if at_s is not None and at_s > self.now_s and (self.wake_s is None or at_s < self.wake_s):
            self.wake_s = at_s


def play(state: State, *, now_s: float, policy: Policy) -> Round:
    """Decide a whole round; the state is only read."""
    over_time = list(_over_time(state, now_s))
    leaving = frozenset(action.job_id for action in over_time)
    paper = Round(
        state=state,
        now_s=now_s,
        policy=policy,
        free=dict(state.index.free),
        vacating=_vacating(state, leaving),
        pool=candidates(state, now_s=now_s, min_run_s=policy.min_run_s, leaving=leaving),
        served=_served(state),
    )
    paper.actions.extend(over_time)
    gone = expired(state, now_s)
    paper.actions.extend(_expire(state.jobs[deadline.job_id]) for deadline in gone)
    skip = frozenset(deadline.job_id for deadline in gone)
    due = due_delayed(state, now_s)
    for priority in sorted({*state.index.queue, *due}, reverse=True):
        _play_class(paper, ClassQueue(state.index.queue.get(priority, {}), due.get(priority, {}), skip))
    _plan_wake(paper, n_expired=len(gone))
    return paper


def _play_class(paper: Round, queue: ClassQueue) -> None:
    while (front := queue.pop()) is not None:
        if _serve(paper, front):
            queue.advance(front.lane)
    for node, mask in paper.barred_same.items():
        paper.barred_above[node] = paper.barred_above.get(node, 0) | mask
    paper.barred_same = {}


def _serve(paper: Round, front: Front) -> bool:
    """Start the job, or promise it devices, or note that it is blocked. False: so is its whole lane."""
    shape = front.lane.shape
    wanted = paper.usable(shape)
    if not wanted:
        return False
    job = paper.state.jobs[front.queued.job_id]
    allowed = _allowed(paper, front.lane, wanted)
    free = _within(paper.free, allowed)
    placements = place(shape, free)
    if placements is not None:
        _start(paper, job, placements)
        return True
    at_hand = {node: free.get(node, 0) | (paper.vacating.get(node, 0) & mask) for node, mask in allowed.items()}
    placements = place(shape, at_hand)
    if placements is not None:
        _promise(paper, job, placements, ())
        return True
    if job.job_id not in paper.served:
        search = choose_victims(shape, job.priority, at_hand, allowed, paper.pool, paper.now_s)
        if search.victims:
            _preempt(paper, job, search, at_hand, allowed)
            return True
        paper.wake_at(search.mature_at_s)
    _block(paper, job, front.lane, wanted)
    return False


def _start(paper: Round, job: Job, placements: tuple[Placement, ...]) -> None:
    _take(paper, placements)
    paper.actions.append(
        Start(job_id=job.job_id, attempt=job.n_attempts + 1, placements=placements, reason=_start_reason(paper, job))
    )


def _promise(paper: Round, job: Job, placements: tuple[Placement, ...], victims: tuple[str, ...]) -> None:
    _take(paper, placements)
    paper.promises[job.job_id] = Promise(placements=placements, victims=victims)


def _preempt(paper: Round, job: Job, search: Search, at_hand: Masks, allowed: Masks) -> None:
    placements = place(job.shape, with_devices_of(search.victims, at_hand, allowed))
    assert placements is not None, "the search proved that it fits"
    for victim in search.victims:
        for node, mask in victim.devices.items():
            paper.vacating[node] = paper.vacating.get(node, 0) | mask
        paper.actions.append(
            Preempt(
                job_id=victim.job.job_id,
                attempt=victim.attempt.number,
                beneficiary=job.job_id,
                reason=_preempt_reason(job, victim, placements),
                grace_s=victim.job.grace_s,
            )
        )
    ids = frozenset(victim.job.job_id for victim in search.victims)
    paper.pool = [candidate for candidate in paper.pool if candidate.job.job_id not in ids]
    _promise(paper, job, placements, tuple(victim.job.job_id for victim in search.victims))


def _block(paper: Round, job: Job, lane: Lane, wanted: Masks) -> None:
    is_barred = _allowed(paper, lane, wanted) is not wanted
    has_room = is_barred and fits(lane.shape, _within(paper.free, wanted))
    behind = next((head.job_id for head in _heads_of(paper, job)), None) if has_room else None
    paper.blocked.append(
        Blocked(
            job_id=job.job_id,
            priority=job.priority,
            lane=lane,
            wanted=wanted,
            behind=behind,
            is_waiting_for_victims=job.job_id in paper.served,
        )
    )
    for node, mask in wanted.items():
        paper.barred_same[node] = paper.barred_same.get(node, 0) | mask


def _heads_of(paper: Round, job: Job) -> Iterator[Blocked]:
    """The blocked heads that a start of this job could delay."""
    for head in paper.blocked:
        is_filler = job.is_preemptible and job.priority < head.priority
        if not is_filler and head.wanted.keys() & paper.usable(job.shape).keys():
            yield head


def _allowed(paper: Round, lane: Lane, wanted: Masks) -> Masks:
    """The devices a lane may use without delaying a blocked head."""
    same, above = paper.barred_same, {} if lane.is_preemptible else paper.barred_above
    if not same and not above:
        return wanted
    return {n: left for n, mask in wanted.items() if (left := mask & ~(same.get(n, 0) | above.get(n, 0)))}


def _within(masks: Masks, allowed: Masks) -> Masks:
    return {node: left for node, mask in allowed.items() if (left := masks.get(node, 0) & mask)}


def _take(paper: Round, placements: tuple[Placement, ...]) -> None:
    for node, mask in placement_masks(placements).items():
        paper.free[node] &= ~mask
        if node in paper.vacating:
            paper.vacating[node] &= ~mask


def _over_time(state: State, now_s: float) -> Iterator[TimeOut]:
    for job in sorted((state.jobs[job_id] for job_id in state.index.holding), key=lambda job: job.order):
        limit_s = _limit_s(job)
        if limit_s is not None and limit_s <= now_s and job.attempt is not None:
            yield TimeOut(
                job_id=job.job_id,
                attempt=job.attempt.number,
                reason=f"its time limit of {job.timeout_s:g} s is over",
                grace_s=job.grace_s,
            )


def _limit_s(job: Job) -> float | None:
    """When a running attempt has to stop; None: it has no limit, or does not run."""
    if job.timeout_s is None or job.state is not JobState.RUNNING:
        return None
    if job.attempt is None or job.attempt.started_at_s is None:
        return None
    return job.attempt.started_at_s + job.timeout_s


def _expire(job: Job) -> Expire:
    return Expire(job_id=job.job_id, reason=f"waited longer than its queue timeout of {job.queue_timeout_s:g} s")


def _vacating(state: State, leaving: frozenset[str]) -> Masks:
    vacating: Masks = {}
    for job_id in state.index.holding:
        job = state.jobs[job_id]
        if job.attempt is not None and (job.state is JobState.STOPPING or job_id in leaving):
            for node, mask in placement_masks(job.attempt.placements).items():
                vacating[node] = vacating.get(node, 0) | mask
    return vacating


def _served(state: State) -> frozenset[str]:
    stops = (job.attempt.stop for job_id in state.index.holding if (job := state.jobs[job_id]).attempt is not None)
    return frozenset(stop.beneficiary for stop in stops if stop is not None and stop.beneficiary is not None)


def _plan_wake(paper: Round, n_expired: int) -> None:
    state = paper.state
    for job_id in state.index.holding:
        paper.wake_at(_limit_s(state.jobs[job_id]))
    if n_expired < len(state.index.deadlines):
        paper.wake_at(state.index.deadlines[n_expired].at_s)
    first_delayed = n_due(state, paper.now_s)
    if first_delayed < len(state.index.delayed):
        paper.wake_at(state.index.delayed[first_delayed].not_before_s)


def _start_reason(paper: Round, job: Job) -> str:
    if not paper.blocked:
        return "first in the queue, and its devices are free"
    head = paper.blocked[0]
    what = f"{head.job_id} waits for {describe_shape(head.lane.shape)}"
    if job.is_preemptible and job.priority < head.priority:
        return f"fills devices that would idle while {what}; it will be preempted when they can be used"
    return f"its devices are of no use to {head.job_id}, which comes first"


def _preempt_reason(job: Job, victim: Candidate, placements: tuple[Placement, ...]) -> str:
    return (
        f"{job.job_id} ({job.priority_class}) needs {describe_shape(job.shape)} and gets "
        f"{describe_placements(placements)}; {victim.job.job_id} ({victim.job.priority_class}) loses "
        f"{victim.lost_s:.0f} device-seconds since its last checkpoint"
    )
