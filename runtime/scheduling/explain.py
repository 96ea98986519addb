"""Why a job is where it is, told by the functions that decide. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from runtime.model.holds import Hold, NodeState, Standing
from runtime.model.indexes import lane_of
from runtime.model.nouns import Attempt, Job, Shape, StopOrder
from runtime.model.state import State, holders
from runtime.model.states import JobState, StopCause

from .asking import describe_placements, describe_shape, impossible, lacks, left_over
from .decision import Expire, Preempt, Reasons, Start, TimeOut
from .fairshare import describe_share
from .finishing import describe, has_no_time
from .order import queue_position
from .paper import Blocked, Promise, Round
from .policy import Policy
from .quotas import explain_quota
from .room import free_room
from .round import play
from .waits import others_first


class UnknownJob(LookupError):
    """No live job has this id."""


def feasible(state: State, shape: Shape) -> str | None:
    """None: a gang of this shape could run if the cluster were empty. Else what it asks for and what there is."""
    return impossible(shape, state.index.kinds, state.index)


def explain(state: State, job_id: str, *, now_s: float, policy: Policy) -> Reasons:
    """Say why a live job waits, what it waits for, or for whom it leaves.

    Raises:
        UnknownJob: the job has ended or never was.
    """
    job = state.jobs.get(job_id)
    if job is None:
        raise UnknownJob(f"no live job {job_id}")
    return explain_in(play(state, now_s=now_s, policy=policy), job)


def explain_in(paper: Round, job: Job) -> Reasons:
    """The same, from a round that was played already."""
    if job.attempt is not None:
        return _explain_attempt(job, job.attempt, paper)
    return _explain_wait(paper.state, job, paper)


def _explain_attempt(job: Job, attempt: Attempt, paper: Round) -> Reasons:
    where = describe_placements(attempt.placements)
    stop = attempt.stop
    if stop is not None:
        words = {
            StopCause.PREEMPT: f"leaves for {stop.beneficiary}",
            StopCause.CANCEL: "is being cancelled",
            StopCause.TIMEOUT: "reached its time limit",
            StopCause.BUDGET: "ends because a budget is used up",
            StopCause.DEADLINE: "leaves because it has to be over by its hour",
            StopCause.HANG: "made no progress and is being stopped",
            StopCause.SHUTDOWN: "stops because the runtime goes down",
            StopCause.PAUSE: "is being paused",
            StopCause.DRAIN: "leaves its node",
            StopCause.RENEW: "reached its time limit and goes on as a new attempt",
        }
        left_s = _left_s(stop, paper.now_s)
        details = (stop.reason, f"has {left_s:.0f} s left of {stop.grace_s:g} s to checkpoint and leave {where}")
        return Reasons(
            summary=f"{job.job_id} {words[stop.cause]}",
            queue_position=None,
            details=details,
            beneficiary=stop.beneficiary,
        )
    for action in paper.actions:
        if isinstance(action, Preempt | TimeOut) and action.job_id == job.job_id:
            beneficiary = action.beneficiary if isinstance(action, Preempt) else None
            summary = f"{job.job_id} is about to be stopped on {where}"
            return Reasons(summary=summary, queue_position=None, details=(action.reason,), beneficiary=beneficiary)
    verb = "runs on" if job.state is JobState.RUNNING else "starts on"
    hour = tuple(_hour_lines(job, paper))
    return Reasons(summary=f"{job.job_id} {verb} {where}", queue_position=None, details=hour, beneficiary=None)


def _explain_wait(state: State, job: Job, paper: Round) -> Reasons:
    reason = feasible(state, job.shape)
    if reason is not None:
        return Reasons(
            summary=f"{job.job_id} can not run on the nodes there are: it {reason}",
            queue_position=None,
            details=(),
            beneficiary=None,
        )
    if (waits := others_first(state, job)) is not None:
        return Reasons(summary=f"{job.job_id} {waits}", queue_position=None, details=(), beneficiary=None)
    if has_no_time(state, job, paper.now_s):
        summary = f"{job.job_id} is about to end without a start: there is too little time left"
        return Reasons(summary=summary, queue_position=None, details=(describe(job, paper.now_s),), beneficiary=None)
    hold = state.hold_on(job)
    if hold is not None:
        return Reasons(summary=describe_hold(job.job_id, hold), queue_position=None, details=(), beneficiary=None)
    if job.not_before_s > paper.now_s:
        summary = f"{job.job_id} backs off for another {job.not_before_s - paper.now_s:.0f} s before its next attempt"
        return Reasons(summary=summary, queue_position=None, details=(), beneficiary=None)
    if not paper.usable(job.shape):
        return _explain_closed(state, job, paper)
    summary, notes = _why_waiting(job, paper)
    return Reasons(
        summary=summary,
        queue_position=queue_position(state, job.job_id, paper.now_s, paper.policy),
        details=(
            *notes,
            *_hour_lines(job, paper),
            *_share_lines(job, paper),
            *_leaving_lines(state, job.job_id, paper.now_s),
            *_node_lines(state, job, paper),
        ),
        beneficiary=None,
    )


def _hour_lines(job: Job, paper: Round) -> Iterator[str]:
    if job.finish_by_s is not None:
        yield describe(job, paper.now_s)


def _share_lines(job: Job, paper: Round) -> Iterator[str]:
    """What its project is entitled to, where that decides with whom others are served first."""
    standing = paper.fair.of_class(job.priority).by_project.get(job.project)
    if standing is not None:
        yield describe_share(job.project, standing)


def describe_hold(subject: str, hold: Hold) -> str:
    """`j1 is paused (class exploratory, by user:owner): reason`."""
    return f"{subject} is paused ({hold.key}, by {hold.placed_by}): {hold.reason}"


def describe_standing(standing: Standing) -> str | None:
    """`cordoned: new fan`, `0,1 reserved for alice`, ...; None: nothing is the matter."""
    parts = []
    if standing.state is not NodeState.HEALTHY:
        parts.append(f"{standing.state}: {standing.reason}" if standing.reason else standing.state.value)
    for reservation in standing.reservations:
        parts.append(f"{_devices(reservation.devices)} reserved for {reservation.holder}")
    if standing.busy_external:
        parts.append(_describe_busy(standing))
    return "; ".join(parts) or None


def _describe_busy(standing: Standing) -> str:
    reasons: dict[str, list[int]] = {}
    for device in standing.busy_external:
        reasons.setdefault(standing.busy_reason(device) or "used by others", []).append(device)
    return "; ".join(f"{_devices(indexes)} {reason} (busy_external)" for reason, indexes in reasons.items())


def _devices(indexes: Iterable[int]) -> str:
    return ",".join(str(index) for index in indexes)


def _explain_closed(state: State, job: Job, paper: Round) -> Reasons:
    needs = f"{job.job_id} needs {describe_shape(job.shape)}"
    return Reasons(
        summary=f"{needs}; too few of the devices there are take new work",
        queue_position=None,
        details=tuple(_node_lines(state, job, paper)),
        beneficiary=None,
    )


def _why_waiting(job: Job, paper: Round) -> tuple[str, tuple[str, ...]]:
    for action in paper.actions:
        if isinstance(action, Start | Expire) and action.job_id == job.job_id:
            verb = "is about to start" if isinstance(action, Start) else "is about to give up"
            return f"{job.job_id} {verb}", (action.reason,)
    promise = paper.promises.get(job.job_id)
    if promise is not None:
        return _why_promised(job, promise, paper.state), ()
    needs = f"needs {describe_shape(job.shape)}"
    quota = paper.over_quota.get(lane_of(job))
    if quota is not None and quota.covers(job.project, job.priority_class):
        return f"{job.job_id} {needs}; {explain_quota(quota, paper.in_use, job)}", ()
    for block in paper.blocked:
        if block.job_id == job.job_id:
            return f"{job.job_id} {needs}; {_why_blocked(block, paper)}", ()
    ahead = next((block for block in paper.blocked if _is_behind(job, block)), None)
    if ahead is not None:
        return f"{job.job_id} {needs}, and waits behind {ahead.job_id}: {_why_blocked(ahead, paper)}", ()
    return f"{job.job_id} {needs}, and waits for its turn", ()


def _is_behind(job: Job, block: Blocked) -> bool:
    is_same = (block.lane.shape, block.lane.is_preemptible) == (job.shape, job.is_preemptible)
    return is_same and block.priority == job.priority


def _why_promised(job: Job, promise: Promise, state: State) -> str:
    where = describe_placements(promise.placements)
    waits_for = promise.victims or tuple(_leaving_from(state, promise))
    verb = "has" if len(waits_for) == 1 else "have"
    return f"{job.job_id} gets {where} as soon as {', '.join(waits_for)} {verb} left"


def _leaving_from(state: State, promise: Promise) -> Iterator[str]:
    for placement in promise.placements:
        for holder in holders(state, placement.node_id):
            held = holder.attempt.placements if holder.attempt else ()
            if any(p.node_id == placement.node_id and set(p.devices) & set(placement.devices) for p in held):
                yield holder.job_id


def _why_blocked(block: Blocked, paper: Round) -> str:
    if block.is_waiting_for_victims:
        return f"waits for {', '.join(job.job_id for job in leaving_for(paper.state, block.job_id))} to leave"
    if block.behind is not None:
        head = paper.state.jobs[block.behind]
        return f"there is room, but a start could delay {head.job_id} ({head.priority_class}), which comes first"
    if block.job_id in paper.throttled:
        left_s = paper.throttled[block.job_id] - paper.now_s
        return f"may have others leave in {left_s:.0f} s again: its class asked for many devices of late"
    return "too few devices are free or held by lower, preemptible jobs"


def leaving_for(state: State, job_id: str) -> list[Job]:
    """Jobs whose attempt was asked to leave for this one and is not gone yet, in order of submission."""
    stopping = (state.jobs[each] for each in state.index.stopping)
    found = (job for job in stopping if job.attempt and job.attempt.stop and job.attempt.stop.beneficiary == job_id)
    return sorted(found, key=lambda job: job.order)


def _leaving_lines(state: State, job_id: str, now_s: float) -> Iterator[str]:
    """`j1 (exploratory) leaves for it: 18 s left of 30 s`."""
    for job in leaving_for(state, job_id):
        assert job.attempt is not None and job.attempt.stop is not None, "it is leaving"  # noqa: PT018
        stop = job.attempt.stop
        left = f"{_left_s(stop, now_s):.0f} s left of {stop.grace_s:g} s"
        yield f"{job.job_id} ({job.priority_class}) leaves for it: {left}"


def _left_s(stop: StopOrder, now_s: float) -> float:
    return max(0.0, stop.ordered_at_s + stop.grace_s - now_s)


def _node_lines(state: State, job: Job, paper: Round) -> Iterator[str]:
    """`a: 3 of 8 usable devices free; j1 (normal) holds 4, j2 (exploratory, leaving) holds 1`."""
    wanted = paper.usable(job.shape)
    for node_id in sorted(state.nodes):
        mask = wanted.get(node_id)
        standing = describe_standing(state.standing(node_id))
        remark = f" [{standing}]" if standing else ""
        if mask is None:
            lack = lacks(job.shape, state.index.kinds, state.index, node_id)
            yield f"{node_id}: {lack or f'has no devices for it ({_kinds(state, node_id)})'}{remark}"
            continue
        n_free = (state.index.free[node_id] & mask).bit_count()
        held = ", ".join(_hold(holder, node_id, job.priority) for holder in holders(state, node_id))
        yield (
            f"{node_id}: {n_free} of {mask.bit_count()} usable devices free"
            + "".join(f"; {part}" for part in (left_over(job.shape, free_room(state.index), node_id), held) if part)
            + remark
        )


def _hold(job: Job, node_id: str, priority: int) -> str:
    """What a job holds, and why it does not make room for one of this priority where one might think that it would."""
    placements = job.attempt.placements if job.attempt else ()
    n = sum(len(p.devices) for p in placements if p.node_id == node_id)
    remark = ", leaving" if job.state is JobState.STOPPING else ""
    if job.priority < priority and not job.is_preemptible:
        remark += ", not preemptible"
    return f"{job.job_id} ({job.priority_class}{remark}) holds {n}"


def _kinds(state: State, node_id: str) -> str:
    kinds = state.index.kinds[node_id]
    return ", ".join(f"{mask.bit_count()} {kind}" for kind, mask in kinds.items() if kind is not None) or "no devices"
