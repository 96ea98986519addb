"""One round of scheduling on paper: every waiting job in order gets devices, a promise of devices, or a reason. Pure.

Least disruption first: start on free devices; wait for devices that are being vacated anyway; ask lower ones to leave;
wait. The first job of a class that waits without a promise is a *blocked head*: devices are reserved for it from the
time at which they are expected to be free. What comes after it may use them only if it is expected to end before, or
as a strictly lower job that can itself be preempted. Where no time can be told, or the head has waited too long
already, that holds for all devices that the head could use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from runtime.model.devices import Masks, placement_masks
from runtime.model.indexes import Lane
from runtime.model.nouns import Job, Placement, Shape
from runtime.model.state import State

from .decision import Action, Expire, Preempt, Start, TimeOut
from .fit import describe_placements, describe_shape, fits, includes, place, usable
from .order import ClassQueue, Front, due, due_delayed, expired, n_due
from .policy import Policy
from .preempt import Candidate, Search, began_s, candidates, choose_victims, may_gain, with_devices_of
from .reserve import Release, Reservation, end_s, overlap, reserve, run_s


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
    behind: str | None
    """The blocked head that it would delay, where there would be room but for that; None: there is no room."""
    is_waiting_for_victims: bool
    """Attempts are leaving for it already, so nobody else is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A blocked job that what comes after it must not delay."""

    job: Job
    wanted: Masks
    """All devices it could ever use."""
    reservation: Reservation | None
    """None: nothing may start on any of them."""


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
    leaving: frozenset[str]
    """Jobs that reached their time limit in this round."""
    served: frozenset[str]
    """Jobs for whom attempts are leaving already."""
    actions: list[Action] = field(default_factory=list)
    promises: dict[str, Promise] = field(default_factory=dict)
    blocked: list[Blocked] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)
    given: list[Release] = field(default_factory=list)
    """Devices given in this round, and when they are expected back; without those of which nothing is known."""
    victims: set[str] = field(default_factory=set)
    """Who is asked to leave in this round."""
    failed: dict[tuple[Shape, bool], float] = field(default_factory=dict)
    """What did not fit anywhere, and how long it was expected to run: what runs longer does not fit either."""
    barred_same: Masks = field(default_factory=dict)
    """Devices that blocked heads of the present class could use."""
    barred_for: list[Shape] = field(default_factory=list)
    """Their shapes; those whose devices another one bars already are left out."""
    barred_above: Masks = field(default_factory=dict)
    """Devices that blocked heads of higher classes could use."""
    reserved_same: list[Reservation] = field(default_factory=list)
    reserved_above: list[Reservation] = field(default_factory=list)
    """For heads of the present class, and of higher ones."""
    wake_s: float | None = None
    _pool: list[Candidate] | None = None

    def pool(self) -> list[Candidate]:
        """Who may still be asked to leave, in order of harm."""
        if self._pool is None:
            self._pool = candidates(self.state, now_s=self.now_s, min_run_s=self.policy.min_run_s, leaving=self.leaving)
        return self._pool

    def leave(self, victims: frozenset[str]) -> None:
        """Take those out of the pool who were asked."""
        self.victims |= victims
        self._pool = [candidate for candidate in self.pool() if candidate.job.job_id not in victims]

    def usable(self, shape: Shape) -> Masks:
        """The devices it may use at all; none when the gang could not even run on an empty cluster."""
        memo = self.state.index.usable_by_shape
        found = memo.get(shape)
        if found is None:
            found = usable(shape, self.state.index.kinds)
            memo[shape] = found = found if fits(shape, found) else {}
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
        free={node: mask for node, mask in state.index.free.items() if mask},
        vacating=_vacating(state, leaving),
        leaving=leaving,
        served=_served(state),
    )
    paper.actions.extend(over_time)
    gone = expired(state, now_s)
    paper.actions.extend(_expire(state.jobs[deadline.job_id]) for deadline in gone)
    skip = frozenset(deadline.job_id for deadline in gone)
    late = due_delayed(state, now_s)
    for priority in sorted({*state.index.queue, *late}, reverse=True):
        lanes, back = state.index.queue.get(priority, {}), late.get(priority, {})
        _play_class(paper, ClassQueue(lanes, back, skip, state, policy))
    _plan_wake(paper, n_expired=len(gone))
    return paper


def _play_class(paper: Round, queue: ClassQueue) -> None:
    while (front := queue.pop()) is not None:
        if _serve(paper, front):
            queue.advance(front.lane)
    for node, mask in paper.barred_same.items():
        paper.barred_above[node] = paper.barred_above.get(node, 0) | mask
    paper.barred_same = {}
    paper.barred_for = []
    paper.reserved_above += paper.reserved_same
    paper.reserved_same = []
    paper.failed = {}


def _serve(paper: Round, front: Front) -> bool:
    """Start the job, or promise it devices, or note that it is blocked. False: so is its whole lane."""
    shape = front.lane.shape
    wanted = paper.usable(shape)
    if not wanted:
        return False
    job = paper.state.jobs[front.queued.job_id]
    if any(includes(barred, shape) for barred in paper.barred_for):
        _block(paper, job, front.lane, wanted)
        return False
    takes_s = run_s(paper.state, job)
    lasts_s = inf if takes_s is None else takes_s
    if (shape, job.is_preemptible) in paper.failed and lasts_s >= paper.failed[shape, job.is_preemptible]:
        return False
    free = _allowed(paper, front.lane, _within(paper.free, wanted), paper.now_s + lasts_s)
    placements = place(shape, free)
    if placements is not None:
        _start(paper, job, placements)
        return True
    at_hand = _allowed(paper, front.lane, _joined(_within(paper.free, wanted), _within(paper.vacating, wanted)))
    placements = place(shape, at_hand)
    if placements is not None:
        _promise(paper, job, placements, ())
        return True
    if job.job_id not in paper.served and may_gain(paper.state, job.priority):
        allowed = _allowed(paper, front.lane, wanted)
        search = choose_victims(shape, job.priority, at_hand, allowed, paper.pool(), paper.now_s)
        if search.victims:
            _preempt(paper, job, search, at_hand, allowed)
            return True
        paper.wake_at(search.mature_at_s)
    _block(paper, job, front.lane, wanted)
    if job.job_id not in paper.served:
        paper.failed[shape, job.is_preemptible] = lasts_s
    return False


def _start(paper: Round, job: Job, placements: tuple[Placement, ...]) -> None:
    _take(paper, placements)
    _expect_back(paper, job, placements)
    reason = _start_reason(paper, job, placements)
    paper.actions.append(Start(job_id=job.job_id, attempt=job.n_attempts + 1, placements=placements, reason=reason))


def _expect_back(paper: Round, job: Job, placements: tuple[Placement, ...]) -> None:
    takes_s = run_s(paper.state, job)
    if takes_s is not None:
        paper.given.append(Release(paper.now_s + takes_s, placements))


def _promise(paper: Round, job: Job, placements: tuple[Placement, ...], victims: tuple[str, ...]) -> None:
    _take(paper, placements)
    _expect_back(paper, job, placements)
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
    paper.leave(frozenset(victim.job.job_id for victim in search.victims))
    paper.failed = {}
    _promise(paper, job, placements, tuple(victim.job.job_id for victim in search.victims))


def _block(paper: Round, job: Job, lane: Lane, wanted: Masks) -> None:
    has_room = _is_barred(paper, lane) and fits(lane.shape, _within(paper.free, wanted))
    behind = next((head.job.job_id for head in _heads_of(paper, job)), None) if has_room else None
    paper.blocked.append(
        Blocked(
            job_id=job.job_id,
            priority=job.priority,
            lane=lane,
            behind=behind,
            is_waiting_for_victims=job.job_id in paper.served,
        )
    )
    ahead = [head for head in paper.heads if head.job.priority == job.priority]
    if not any(h.reservation and overlap(h.job.shape, h.wanted, job.shape, wanted) for h in ahead):
        _keep_for(paper, job, wanted)


def _keep_for(paper: Round, job: Job, wanted: Masks) -> None:
    """Make it a head: reserve devices for it, or else bar all that it could use."""
    reservation = _reservation(paper, job, wanted)
    paper.heads.append(Head(job=job, wanted=wanted, reservation=reservation))
    if reservation is not None:
        paper.reserved_same.append(reservation)
    elif not any(includes(shape, job.shape) for shape in paper.barred_for):
        paper.barred_for.append(job.shape)
        for node, mask in wanted.items():
            paper.barred_same[node] = paper.barred_same.get(node, 0) | mask


def _reservation(paper: Round, job: Job, wanted: Masks) -> Reservation | None:
    """None: no time can be told, or it has waited too long already, or there is nothing to give to others anyway."""
    free = _within(paper.free, wanted)
    if not any(free.values()) or paper.now_s - job.queued_since_s >= paper.policy.backfill_patience_s:
        return None
    releases = sorted((*_releases(paper, job.priority), *paper.given), key=lambda release: release.at_s)
    return reserve(job, wanted, free, releases, paper.now_s)


def _releases(paper: Round, priority: int) -> Iterator[Release]:
    """What is expected to be given back; lower attempts that may be asked to leave give back when they may."""
    for job_id in paper.state.index.holding:
        job = paper.state.jobs[job_id]
        attempt = job.attempt
        if attempt is None:
            continue
        if job_id in paper.leaving or job_id in paper.victims:
            yield Release(paper.now_s + job.grace_s, attempt.placements, paper.vacating)
        elif job.is_preemptible and job.priority < priority and attempt.stop is None:
            yield Release(max(paper.now_s, began_s(attempt) + paper.policy.min_run_s), attempt.placements)
        elif (at_s := end_s(paper.state, job, attempt, paper.now_s)) is not None:
            yield Release(at_s, attempt.placements, None if attempt.stop is None else paper.vacating)


def _heads_of(paper: Round, job: Job) -> Iterator[Head]:
    """The blocked heads that a start of this job could delay."""
    for head in paper.heads:
        is_filler = job.is_preemptible and job.priority < head.job.priority
        if not is_filler and overlap(head.job.shape, head.wanted, job.shape, paper.usable(job.shape)):
            yield head


def _is_barred(paper: Round, lane: Lane) -> bool:
    """Whether any devices are kept from this lane for the sake of a blocked head."""
    is_above = bool(paper.barred_above or paper.reserved_above) and not lane.is_preemptible
    return is_above or bool(paper.barred_same or paper.reserved_same)


def _allowed(paper: Round, lane: Lane, devices: Masks, until_s: float = inf) -> Masks:
    """Those of these devices that the lane may use up to that time without delaying a blocked head."""
    if not _is_barred(paper, lane):
        return devices
    kept = [paper.barred_same, *(r.devices for r in paper.reserved_same if r.at_s < until_s)]
    if not lane.is_preemptible:
        kept += [paper.barred_above, *(r.devices for r in paper.reserved_above if r.at_s < until_s)]
    for masks in kept:
        if masks:
            devices = {n: left for n, mask in devices.items() if (left := mask & ~masks.get(n, 0))}
    return devices


def _within(masks: Masks, wanted: Masks) -> Masks:
    """What both have. Walks the first, which is the short one in a cluster where little is free."""
    return {node: left for node, mask in masks.items() if (left := mask & wanted.get(node, 0))}


def _joined(some: Masks, others: Masks) -> Masks:
    joined = dict(some)
    for node, mask in others.items():
        joined[node] = joined.get(node, 0) | mask
    return joined


def _take(paper: Round, placements: tuple[Placement, ...]) -> None:
    for node, mask in placement_masks(placements).items():
        for masks in (paper.free, paper.vacating):
            if node in masks:
                masks[node] &= ~mask


def _over_time(state: State, now_s: float) -> Iterator[TimeOut]:
    over = (state.jobs[limit.job_id] for limit in due(state.index.limits, now_s))
    for job in sorted(over, key=lambda job: job.order):
        if job.attempt is not None:
            yield TimeOut(
                job_id=job.job_id,
                attempt=job.attempt.number,
                reason=f"its time limit of {job.timeout_s:g} s is over",
                grace_s=job.grace_s,
            )


def _expire(job: Job) -> Expire:
    return Expire(job_id=job.job_id, reason=f"waited longer than its queue timeout of {job.queue_timeout_s:g} s")


def _vacating(state: State, leaving: frozenset[str]) -> Masks:
    vacating: Masks = {}
    for job_id in state.index.stopping | leaving:
        job = state.jobs[job_id]
        if job.attempt is not None:
            for node, mask in placement_masks(job.attempt.placements).items():
                vacating[node] = vacating.get(node, 0) | mask
    return vacating


def _served(state: State) -> frozenset[str]:
    stops = (job.attempt.stop for job_id in state.index.stopping if (job := state.jobs[job_id]).attempt is not None)
    return frozenset(stop.beneficiary for stop in stops if stop is not None and stop.beneficiary is not None)


def _plan_wake(paper: Round, n_expired: int) -> None:
    state = paper.state
    n_over = len(due(state.index.limits, paper.now_s))
    if n_over < len(state.index.limits):
        paper.wake_at(state.index.limits[n_over].at_s)
    if n_expired < len(state.index.deadlines):
        paper.wake_at(state.index.deadlines[n_expired].at_s)
    first_delayed = n_due(state, paper.now_s)
    if first_delayed < len(state.index.delayed):
        paper.wake_at(state.index.delayed[first_delayed].not_before_s)


def _start_reason(paper: Round, job: Job, placements: tuple[Placement, ...]) -> str:
    if not paper.blocked:
        return "first in the queue, and its devices are free"
    takes_s = run_s(paper.state, job)
    given = placement_masks(placements)
    rivals = (head for head in _heads_of(paper, job) if _within(given, head.wanted))
    for kept in (head.reservation for head in rivals if head.reservation is not None):
        if takes_s is None or not any(mask & kept.devices.get(node, 0) for node, mask in given.items()):
            return f"its devices are not among those that are kept for {kept.job_id}, which comes first"
        left_s = kept.at_s - paper.now_s
        return f"expected to end in {takes_s:.0f} s, before {kept.job_id} can start in {left_s:.0f} s"
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
