"""One round of scheduling on paper: every waiting job in order gets devices, a promise of devices, or a reason. Pure.

Least disruption first: start on free devices; wait for devices that are being vacated anyway; ask lower ones to leave;
wait. The first job of a class that waits without a promise is a *blocked head*: devices are reserved for it from the
time at which they are expected to be free. What comes after it may use them only if it is expected to end before, or
as a strictly lower job that can itself be preempted. Where no time can be told, or the head has waited too long
already, that holds for all devices that the head could use.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from runtime.model.devices import Masks
from runtime.model.indexes import Lane
from runtime.model.leaving import grace_of
from runtime.model.nouns import Job, Placement
from runtime.model.state import State

from .budgeting import next_used_up_s
from .decision import Expire, Preempt, Start, TimeOut
from .fairshare import FairShares
from .finishing import next_hour_s
from .heads import allowed, block, reach
from .order import ClassQueue, Front, due, due_delayed, expired, n_due
from .paper import Promise, Round
from .policy import Policy
from .preempt import Search, choose_victims, may_gain, with_room_of
from .quotas import too_small, used_up
from .reasons import preempt_reason, start_reason
from .reserve import Release, holds_s
from .room import Room, free_room
from .tokens import ready_s


def play(state: State, *, now_s: float, policy: Policy) -> Round:
    """Decide a whole round; the state is only read."""
    over_time = list(_over_time(state, now_s))
    leaving = frozenset(action.job_id for action in over_time)
    free = free_room(state.index)
    paper = Round(
        state=state,
        now_s=now_s,
        policy=policy,
        free=free,
        at_hand=_at_hand(free, state, leaving),
        leaving=leaving,
        served=_served(state),
        in_use=dict(state.index.in_use),
        fair=FairShares(state=state, now_s=now_s, policy=policy),
    )
    paper.actions.extend(over_time)
    gone = expired(state, now_s)
    paper.actions.extend(_expire(state.jobs[deadline.job_id]) for deadline in gone)
    skip = frozenset(deadline.job_id for deadline in gone)
    late = due_delayed(state, now_s)
    for priority in sorted({*state.index.queue, *late}, reverse=True):
        lanes, back = state.index.queue.get(priority, {}), late.get(priority, {})
        _play_class(paper, ClassQueue(lanes, back, skip, state, paper.fair.of_class(priority)))
    _plan_wake(paper, n_expired=len(gone))
    return paper


def _play_class(paper: Round, queue: ClassQueue) -> None:
    while (front := queue.pop()) is not None:
        if _serve(paper, front):
            queue.advance(front.lane)
    for node, mask in paper.barred_same.items():
        paper.barred_above[node] = paper.barred_above.get(node, 0) | mask
    paper.barred_same = {}
    paper.barred_nodes_above |= paper.barred_nodes_same
    paper.barred_nodes_same = set()
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
    if _is_over_quota(paper, job, front.lane):
        return False
    if any(paper.covers(barred, shape) for barred in paper.barred_for):
        block(paper, job, front.lane, wanted)
        return False
    takes_s = holds_s(paper.state, job, paper.now_s)
    lasts_s = inf if takes_s is None else takes_s
    if (shape, job.is_preemptible) in paper.failed and lasts_s >= paper.failed[shape, job.is_preemptible]:
        return False
    free = allowed(paper, front.lane, paper.free.within(shape, wanted), paper.now_s + lasts_s)
    placements = paper.place_elsewhere(job, free)
    if placements is not None:
        _start(paper, job, placements)
        return True
    at_hand = allowed(paper, front.lane, paper.at_hand.within(shape, wanted))
    placements = paper.place(shape, at_hand)
    if placements is not None:
        _promise(paper, job, placements, ())
        return True
    if job.job_id not in paper.served and may_gain(paper.state, job.priority):
        reachable = reach(paper, front.lane, wanted)
        search = choose_victims(shape, job.priority, at_hand, reachable, paper.pool(), paper.now_s)
        if search.victims and not _is_throttled(paper, job):
            _preempt(paper, job, search, at_hand, reachable)
            return True
        paper.wake_at(search.mature_at_s)
    block(paper, job, front.lane, wanted)
    if job.job_id not in paper.served:
        paper.failed[shape, job.is_preemptible] = lasts_s
    return False


def _is_over_quota(paper: Round, job: Job, lane: Lane) -> bool:
    """Whether a quota holds it back. Then what comes after it under this quota waits too, or it would starve."""
    quota = used_up(paper.policy.quotas, paper.in_use, paper.closed, job)
    if quota is None:
        return False
    paper.over_quota[lane] = quota
    if too_small(paper.policy.quotas, job.project, job.priority_class, job.shape.n_devices) is None:
        paper.closed.add(quota)
    return True


def _is_throttled(paper: Round, job: Job) -> bool:
    """Whether its class has asked for so much lately that it has to wait."""
    n_now = paper.asked_for.get(job.priority_class, 0)
    from_s = ready_s(paper.state, job, paper.policy, paper.now_s, n_now=n_now)
    if from_s <= paper.now_s:
        return False
    paper.throttled[job.job_id] = from_s
    paper.wake_at(from_s)
    return True


def _start(paper: Round, job: Job, placements: tuple[Placement, ...]) -> None:
    paper.free.take(placements)
    paper.at_hand.take(placements)
    _note_given(paper, job, placements)
    reason = start_reason(paper, job, placements)
    paper.actions.append(Start(job_id=job.job_id, attempt=job.n_attempts + 1, placements=placements, reason=reason))


def _note_given(paper: Round, job: Job, placements: tuple[Placement, ...]) -> None:
    key = (job.project, job.priority_class)
    paper.in_use[key] = paper.in_use.get(key, 0) + job.shape.n_devices
    paper.fair.give(job.project, job.shape.n_devices)
    takes_s = holds_s(paper.state, job, paper.now_s)
    if takes_s is not None:
        paper.given.append(Release(paper.now_s + takes_s, placements))


def _promise(paper: Round, job: Job, placements: tuple[Placement, ...], victims: tuple[str, ...]) -> None:
    paper.at_hand.take(placements)
    paper.free.cap(paper.at_hand, [part.node_id for part in placements])
    _note_given(paper, job, placements)
    paper.promises[job.job_id] = Promise(placements=placements, victims=victims)


def _preempt(paper: Round, job: Job, search: Search, at_hand: Room, reachable: Masks) -> None:
    placements = paper.place(job.shape, with_room_of(search.victims, at_hand, reachable))
    assert placements is not None, "the search proved that it fits"
    for victim in search.victims:
        for part in victim.attempt.placements:
            paper.at_hand.give(part)
        n_asked = paper.asked_for.get(job.priority_class, 0)
        paper.asked_for[job.priority_class] = n_asked + victim.job.shape.n_devices
        paper.actions.append(
            Preempt(
                job_id=victim.job.job_id,
                attempt=victim.attempt.number,
                beneficiary=job.job_id,
                reason=preempt_reason(job, victim, placements),
                grace_s=grace_of(victim.job),
            )
        )
    paper.leave(frozenset(victim.job.job_id for victim in search.victims))
    paper.failed = {}
    _promise(paper, job, placements, tuple(victim.job.job_id for victim in search.victims))


def _over_time(state: State, now_s: float) -> Iterator[TimeOut]:
    over = (state.jobs[limit.job_id] for limit in due(state.index.limits, now_s))
    for job in sorted(over, key=lambda job: job.order):
        if job.attempt is not None:
            yield TimeOut(
                job_id=job.job_id,
                attempt=job.attempt.number,
                is_renewed=job.is_renewed,
                reason=_why_over(job),
                grace_s=grace_of(job),
            )


def _why_over(job: Job) -> str:
    if job.is_renewed:
        return f"its time limit of {job.timeout_s:g} s is over; it goes on as a new attempt"
    if job.max_total_s is not None and (job.timeout_s is None or job.limit_s != job.timeout_s):
        return f"its total running time of {job.max_total_s:g} s is over"
    return f"its time limit of {job.timeout_s:g} s is over"


def _expire(job: Job) -> Expire:
    return Expire(job_id=job.job_id, reason=f"waited longer than its queue timeout of {job.queue_timeout_s:g} s")


def _at_hand(free: Room, state: State, leaving: frozenset[str]) -> Room:
    """What is free, and what is being left."""
    room = free.copy()
    for job_id in state.index.stopping | leaving:
        attempt = state.jobs[job_id].attempt
        for part in attempt.placements if attempt is not None else ():
            room.give(part)
    return room


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
    paper.wake_at(next_used_up_s(state, paper.now_s))
    paper.wake_at(next_hour_s(state, paper.now_s))
    for standing in state.standings.values():
        for reservation in standing.reservations:
            paper.wake_at(reservation.until_s)
    first_delayed = n_due(state, paper.now_s)
    if first_delayed < len(state.index.delayed):
        paper.wake_at(state.index.delayed[first_delayed].not_before_s)
