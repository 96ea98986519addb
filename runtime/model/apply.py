"""The one way the state changes: `apply(state, recorded)`, driven by a table of legal transitions. Pure.

Every check comes before the first change, so that an event that is refused leaves the state as it was. Reports of an
attempt that is over change nothing: that is what the attempt number is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from .budgets import accounts_of, budget_key, held_s
from .dependencies import tell_dependents
from .devices import mask_of
from .errors import IllegalTransition, OutOfSequence
from .events import (
    AgentsAllowed,
    AgentsStopped,
    AttemptEnded,
    AttemptStarted,
    BudgetLifted,
    BudgetSet,
    CheckpointSeen,
    DevicesBusySeen,
    DevicesReserved,
    DevicesUnreserved,
    Event,
    HoldLifted,
    HoldPlaced,
    JobEnded,
    JobSubmitted,
    NodeJoined,
    NodeLeft,
    NodeStateSet,
    Recorded,
    SessionFenced,
    StartOrdered,
    StopOrdered,
    Then,
)
from .evictions import with_eviction
from .holds import AgentsStop, hold_key
from .indexes import Indexes
from .names import event_type_name
from .nouns import WHOLE, Attempt, Job, Placement, StopOrder
from .state import N_RECENT, State, displaced, holders
from .states import ENDED, AttemptOutcome, ExitReason, FailureClass, JobState, StopCause, failure_class

AttemptReport = AttemptStarted | CheckpointSeen | StopOrdered | AttemptEnded
"""Events that name an attempt which exists; late ones change nothing."""
StandingEvent = NodeStateSet | DevicesReserved | DevicesUnreserved | DevicesBusySeen
"""What is said about a node, whether it is there or away."""
JobEvent = JobSubmitted | StartOrdered | AttemptReport | JobEnded

_Q, _S, _R, _X = JobState.QUEUED, JobState.STARTING, JobState.RUNNING, JobState.STOPPING
_OVER = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)

TRANSITIONS: Mapping[tuple[JobState | None, type[JobEvent]], tuple[JobState, ...]] = MappingProxyType(
    {
        (None, JobSubmitted): (_Q,),
        (_Q, StartOrdered): (_S,),
        (_Q, JobEnded): (JobState.FAILED, JobState.CANCELLED),
        (_S, AttemptStarted): (_R,),
        (_S, CheckpointSeen): (_S,),
        (_S, StopOrdered): (_X,),
        (_S, AttemptEnded): (_Q, *_OVER),
        (_R, AttemptStarted): (_R,),
        (_R, CheckpointSeen): (_R,),
        (_R, StopOrdered): (_X,),
        (_R, AttemptEnded): (_Q, *_OVER),
        (_X, AttemptStarted): (_X,),
        (_X, CheckpointSeen): (_X,),
        (_X, StopOrdered): (_X,),
        (_X, AttemptEnded): (_Q, *_OVER),
    }
)
"""(state, event) -> states it may lead to. None: the job is not there yet. What is not listed is illegal.

A second `AttemptStarted` is how an adopted attempt reports; a second `StopOrdered` overtakes a weaker cause.
"""

STALLING = frozenset({ExitReason.REQUEUE_ASKED, ExitReason.SUPERVISOR_LOST, ExitReason.RUN_TIMEOUT})
"""Endings that a job may bring on itself for ever, and that are therefore bounded by checkpoint progress."""

SUSPICIOUS = frozenset({ExitReason.DEVICE_FAULT, ExitReason.HUNG})
"""The job's own as far as is known; but should it be run again, then elsewhere first."""
N_AVOIDED = 16
"""Places remembered per job."""

_STRENGTH = {
    StopCause.SHUTDOWN: 0,
    StopCause.PREEMPT: 1,
    StopCause.PAUSE: 1,
    StopCause.DRAIN: 1,
    StopCause.RENEW: 1,
    StopCause.HANG: 2,
    StopCause.BUDGET: 3,
    StopCause.DEADLINE: 3,
    StopCause.TIMEOUT: 3,
    StopCause.CANCEL: 4,
}


def apply(state: State, recorded: Recorded) -> None:
    """Change the state by one fact, in place.

    Raises:
        OutOfSequence: it is not the event after `state.last_seq`.
        IllegalTransition: the event does not fit; the state is unchanged.
    """
    if recorded.seq != state.last_seq + 1:
        raise OutOfSequence(seq=recorded.seq, last_seq=state.last_seq)
    match recorded.event:
        case NodeJoined() as event:
            _join(state, event)
        case NodeLeft() as event:
            _leave(state, event)
        case SessionFenced() as event:
            state.fences[event.session_id] = max(event.fence, state.fences.get(event.session_id, 0))
        case HoldPlaced() as event:
            state.put_hold(event.hold)
        case HoldLifted() as event:
            state.drop_hold(hold_key(event.scope, event.name))
        case AgentsStopped() as event:
            state.agents_stop = AgentsStop(reason=event.reason, since_s=recorded.at_s)
        case AgentsAllowed():
            state.agents_stop = None
        case BudgetSet() as event:
            state.budgets[event.budget.key] = event.budget
        case BudgetLifted() as event:
            state.budgets.pop(budget_key(event.scope, event.name), None)
        case NodeStateSet() | DevicesReserved() | DevicesUnreserved() | DevicesBusySeen() as event:
            _stand(state, event)
        case event:
            _apply_to_job(state, event, recorded)
    state.last_seq = recorded.seq
    state.advance(recorded.at_s)


def is_late(state: State, event: AttemptReport) -> bool:
    """Whether a report is about an attempt (or a job) that is over."""
    job = state.jobs.get(event.job_id)
    if job is None:
        return True
    return event.attempt < job.n_attempts or (event.attempt == job.n_attempts and job.attempt is None)


def stalls(job: Job, reason: ExitReason) -> bool:
    """Whether an ending for this reason is a restart without a newer checkpoint."""
    return reason in STALLING and not has_progressed(job)


def has_progressed(job: Job) -> bool:
    """Whether the current attempt made a checkpoint newer than the one it began with."""
    if job.checkpoint_step is None:
        return False
    return job.attempt_start_checkpoint is None or job.checkpoint_step > job.attempt_start_checkpoint


def _apply_to_job(state: State, event: JobEvent, recorded: Recorded) -> None:
    if isinstance(event, AttemptStarted | CheckpointSeen | StopOrdered | AttemptEnded) and is_late(state, event):
        return
    job_id = event.job.job_id if isinstance(event, JobSubmitted) else event.job_id
    job = state.jobs.get(job_id)
    targets = TRANSITIONS.get((job.state if job else None, type(event)))
    if targets is None:
        raise _illegal(state, job_id, event, "this state does not know this event")
    changed = _next_job(state, job, event, recorded.at_s)
    if changed.state not in targets:
        raise _illegal(state, job_id, event, f"can not lead to {changed.state}")
    if isinstance(event, StopOrdered) and job is not None and changed is not job:
        _note_eviction(state, job, event, recorded.at_s)
    if isinstance(event, AttemptEnded) and job is not None:
        state.leaving.learn(job, event, recorded.at_s)
        for account in accounts_of(job):
            state.spent[account] = state.spent.get(account, 0.0) + held_s(job, recorded.at_s)
    _note_usage(state, job, changed, recorded.at_s)
    if changed.state in ENDED:
        if job is not None and changed.state is JobState.SUCCEEDED:
            state.estimates.learn(job, job.done_s + worked_s(job, recorded.at_s))
        state.drop_job(job_id)
        if job is not None:
            tell_dependents(state, job, changed.state, recorded.at_s)
        return
    state.put_job(changed)
    note = f"{recorded.seq} {event_type_name(event)}"
    if not isinstance(event, JobSubmitted | JobEnded):
        note += f" #{event.attempt}"
    state.recent[job_id] = (*state.recent.get(job_id, ()), note)[-N_RECENT:]


def _note_usage(state: State, old: Job | None, new: Job, at_s: float) -> None:
    """What its project holds, when that changes."""
    change = _n_held(new) - (0 if old is None else _n_held(old))
    if change:
        state.usages.change(new.project, new.priority, change, max(at_s, state.clock_s))


def _n_held(job: Job) -> int:
    return job.shape.n_devices if job.attempt is not None and job.state not in ENDED else 0


def _note_eviction(state: State, victim: Job, event: StopOrdered, at_s: float) -> None:
    beneficiary = state.jobs.get(event.beneficiary or "")
    if event.cause is StopCause.PREEMPT and beneficiary is not None:
        name = beneficiary.priority_class
        state.evictions[name] = with_eviction(state.evictions.get(name, ()), victim, at_s)


def _next_job(state: State, job: Job | None, event: JobEvent, at_s: float) -> Job:
    """The job after the event."""
    if isinstance(event, JobSubmitted):
        return _submitted(state, event)
    assert job is not None, "the table lists no other event for an absent job"
    match event:
        case StartOrdered():
            return _ordered(state, job, event, at_s)
        case JobEnded():
            return job.but(state=event.end_state)
        case AttemptStarted() | CheckpointSeen() | StopOrdered() | AttemptEnded():
            if event.attempt != job.n_attempts or job.attempt is None:
                raise _illegal(state, job.job_id, event, f"attempt {event.attempt} was never ordered")
            return _reported(state, job, job.attempt, event, at_s)


def _submitted(state: State, event: JobSubmitted) -> Job:
    job = event.job
    if job.state is not JobState.QUEUED or job.attempt is not None or job.n_attempts:
        raise _illegal(state, job.job_id, event, "a new job is queued and has no attempt")
    gone = [dependency.on for dependency in job.waits_for if not state.is_there(dependency.on)]
    if gone:
        raise _illegal(state, job.job_id, event, f"waits for {', '.join(gone)}, which is not live")
    return job.but(queued_since_s=job.submitted_at_s)


def _ordered(state: State, job: Job, event: StartOrdered, at_s: float) -> Job:
    if event.attempt != job.n_attempts + 1:
        raise _illegal(state, job.job_id, event, f"the next attempt is {job.n_attempts + 1}, not {event.attempt}")
    hold = state.hold_on(job)
    if hold is not None:
        raise _illegal(state, job.job_id, event, f"there is a hold on {hold.key}")
    fault = _wait_fault(state, job) or _placement_fault(state, job, event.placements)
    if fault is not None:
        raise _illegal(state, job.job_id, event, fault)
    return job.but(
        state=JobState.STARTING,
        n_attempts=event.attempt,
        attempt_start_checkpoint=job.checkpoint_step,
        attempt=Attempt(
            number=event.attempt,
            placements=event.placements,
            ordered_at_s=at_s,
            expected_s=state.estimates.expected_s(job.project, job.experiment, job.shape),
            leave_s=state.leaving.longest_s(job),
        ),
    )


def _wait_fault(state: State, job: Job) -> str | None:
    """Whom it has to let end first; None: nobody."""
    if job.is_waiting:
        return "it waits for others to end"
    place = job.array
    line = state.index.arrays[place.array_id] if place is not None else None
    if place is not None and line is not None and place.parallel is not None and line.n_holding >= place.parallel:
        return f"{line.n_holding} tasks of {place.array_id} hold devices, and {place.parallel} may"
    return None


def _placement_fault(state: State, job: Job, placements: tuple[Placement, ...]) -> str | None:
    """Why these placements can not be taken; None: they can."""
    for placement in placements:
        fault = _part_fault(state.index, placement)
        if fault is not None:
            return fault
    n_devices = sum(mask_of(placement.devices).bit_count() for placement in placements)
    if n_devices != job.shape.n_devices or len({placement.node_id for placement in placements}) != len(placements):
        return f"placed on {n_devices} devices, asked for {job.shape.n_devices}"
    return None


def _part_fault(index: Indexes, part: Placement) -> str | None:
    free = index.free.get(part.node_id)
    if free is None:
        return f"node {part.node_id} is not known"
    if part.device_thousandths < WHOLE:
        used = index.used_shares.get(part.node_id, {})
        offered = index.offered[part.node_id][None]
        for device in part.devices:
            if 0 < used.get(device, 0) <= WHOLE - part.device_thousandths:
                free |= 1 << device & offered
    taken = [device for device in (*part.devices, *part.kept) if not free >> device & 1]
    if taken:
        return f"devices {taken} of node {part.node_id} are not free or take no new work"
    ground = index.grounds[part.node_id]
    cpu_left = ground.cpu_milli - index.used_cpu.get(part.node_id, 0)
    memory_left = ground.memory_mb - index.used_memory.get(part.node_id, 0)
    if part.cpu_milli > max(0, cpu_left) or part.memory_mb > max(0, memory_left):
        return (
            f"node {part.node_id} has {cpu_left} thousandths of a core and {memory_left} MiB left; "
            f"placed with {part.cpu_milli} and {part.memory_mb}"
        )
    return None


def _reported(state: State, job: Job, attempt: Attempt, event: AttemptReport, at_s: float) -> Job:
    match event:
        case AttemptStarted():
            if attempt.started_at_s is not None:
                return job
            running = JobState.RUNNING if job.state is JobState.STARTING else job.state
            return job.but(state=running, attempt=replace(attempt, started_at_s=at_s))
        case CheckpointSeen():
            if job.checkpoint_step is not None and event.step <= job.checkpoint_step:
                return job
            return job.but(checkpoint_step=event.step, attempt=replace(attempt, checkpoint_at_s=at_s))
        case StopOrdered():
            return _stopped(job, attempt, event, at_s)
        case AttemptEnded():
            return _ended(state, job, event, at_s)


def _stopped(job: Job, attempt: Attempt, event: StopOrdered, at_s: float) -> Job:
    if attempt.stop is not None and _STRENGTH[event.cause] <= _STRENGTH[attempt.stop.cause]:
        return job
    earlier = attempt.stop.beneficiary if attempt.stop else None
    order = StopOrder(
        cause=event.cause,
        reason=event.reason,
        beneficiary=event.beneficiary or earlier,
        ordered_at_s=at_s,
        grace_s=event.grace_s,
    )
    return job.but(state=JobState.STOPPING, attempt=replace(attempt, stop=order))


def _ended(state: State, job: Job, event: AttemptEnded, at_s: float) -> Job:
    if event.then is Then.END:
        if event.end_state not in ENDED:
            raise _illegal(state, job.job_id, event, f"ends the job, but its end state is {event.end_state}")
        return job.but(state=event.end_state, attempt=None)
    if event.end_state is not None:
        raise _illegal(state, job.job_id, event, f"does not end the job, but names {event.end_state}")
    n_stalled = 0 if has_progressed(job) else job.n_stalled + stalls(job, event.exit_reason)
    n_infrastructure, avoid = _after_fault(job, event)
    return job.but(
        state=JobState.QUEUED,
        attempt=None,
        attempt_start_checkpoint=None,
        not_before_s=event.not_before_s,
        queued_since_s=at_s,
        n_retries=job.n_retries + (event.then is Then.RETRY),
        n_preemptions=job.n_preemptions + (event.outcome is AttemptOutcome.PREEMPTED and _was_preempted(job)),
        n_stalled=n_stalled,
        n_infrastructure=n_infrastructure,
        avoid=avoid,
        done_s=job.done_s + _saved_s(job),
        ran_s=job.ran_s + worked_s(job, at_s),
    )


def _after_fault(job: Job, event: AttemptEnded) -> tuple[int, tuple[Placement, ...]]:
    """How many failures of the machine it has met in a row, and which places it avoids from now on."""
    n_earlier, avoid = (0, ()) if has_progressed(job) else (job.n_infrastructure, job.avoid)
    is_infrastructure = failure_class(event.outcome, event.exit_reason) is FailureClass.INFRASTRUCTURE
    if is_infrastructure or event.exit_reason in SUSPICIOUS:
        avoid = _places(job, avoid)
    has_failed = event.outcome in (AttemptOutcome.FAILED, AttemptOutcome.LAUNCH_FAILED)
    return n_earlier + (is_infrastructure and has_failed), avoid


def _places(job: Job, earlier: tuple[Placement, ...]) -> tuple[Placement, ...]:
    placements = job.attempt.placements if job.attempt else ()
    return (*placements, *(place for place in earlier if place not in placements))[:N_AVOIDED]


def worked_s(job: Job, at_s: float) -> float:
    """How long the present attempt has run by then."""
    started_at_s = job.attempt.started_at_s if job.attempt else None
    return 0.0 if started_at_s is None else max(0.0, at_s - started_at_s)


def _saved_s(job: Job) -> float:
    """How long it had run when it made its newest checkpoint."""
    saved_at_s = job.attempt.checkpoint_at_s if job.attempt else None
    return 0.0 if saved_at_s is None else worked_s(job, saved_at_s)


def _was_preempted(job: Job) -> bool:
    stop = job.attempt.stop if job.attempt else None
    return stop is not None and stop.cause is StopCause.PREEMPT


def _join(state: State, event: NodeJoined) -> None:
    node = event.node
    old = state.nodes.get(node.node_id)
    if old is not None and node.generation <= old.generation:
        return
    lost = displaced(state, node)
    if lost:
        ids = ", ".join(job.job_id for job in lost)
        raise _illegal_node(node.node_id, event, f"its devices changed while held by {ids}; end those attempts first")
    state.put_node(node)


def _leave(state: State, event: NodeLeft) -> None:
    old = state.nodes.get(event.node_id)
    if old is None or event.generation < old.generation:
        return
    lost = holders(state, event.node_id)
    if lost:
        ids = ", ".join(job.job_id for job in lost)
        raise _illegal_node(event.node_id, event, f"{ids} still hold its devices; end those attempts first")
    state.drop_node(event.node_id)


def _stand(state: State, event: StandingEvent) -> None:
    standing = state.standing(event.node_id)
    match event:
        case NodeStateSet():
            state.put_standing(replace(standing, state=event.state, reason=event.reason))
        case DevicesReserved():
            kept = standing.without(event.reservation.devices)
            state.put_standing(replace(kept, reservations=(*kept.reservations, event.reservation)))
        case DevicesUnreserved():
            state.put_standing(standing.without(event.devices))
        case DevicesBusySeen():
            state.put_standing(standing.with_busy(event.devices, event.reasons))


def _illegal(state: State, job_id: str, event: Event, why: str) -> IllegalTransition:
    job = state.jobs.get(job_id)
    return IllegalTransition(
        subject=job_id,
        from_state=job.state if job else None,
        event=event_type_name(event),
        why=why,
        recent=state.recent.get(job_id, ()),
    )


def _illegal_node(node_id: str, event: Event, why: str) -> IllegalTransition:
    return IllegalTransition(subject=f"node {node_id}", from_state="known", event=event_type_name(event), why=why)
