"""What a report or a request means as events. Pure: nothing here changes the state.

A report about an attempt that is over, or from an earlier registration of its node, means nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from runtime.engines.contract import AttemptKey, Checkpointed, DevicesSeen, Exited, NotLaunched, Started
from runtime.model.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSeen,
    DevicesBusySeen,
    Event,
    JobEnded,
    NodeJoined,
    NodeLeft,
    StopOrdered,
)
from runtime.model.evidence import ExitPattern
from runtime.model.leaving import grace_of
from runtime.model.nouns import Attempt, Job, Node
from runtime.model.outcome import (
    Ending,
    ExitFacts,
    RetryRules,
    classify,
    classify_lost,
    classify_unlaunched,
    disposition,
)
from runtime.model.state import State, displaced, holders
from runtime.model.states import LEAVING, ExitReason, JobState, StopCause

StateReport = Started | Checkpointed | Exited | NotLaunched
"""Reports that may change the state; metrics do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriteriaFacts:
    """What the records say about the success criteria of one job."""

    missing_metrics: tuple[str, ...] = ()
    non_finite_metrics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is fixed while the server runs."""

    retry: RetryRules
    patterns: tuple[ExitPattern, ...]


def events_from_report(
    state: State, report: StateReport, facts: CriteriaFacts, *, now_s: float, rules: Rules
) -> list[Event]:
    """The events that a report stands for; none when it is late."""
    job = _current(state, report.key, report.generation)
    if job is None or job.attempt is None:
        return []
    match report:
        case Started():
            if job.attempt.started_at_s is not None:
                return []
            return [
                AttemptStarted(
                    job_id=job.job_id,
                    attempt=report.key.attempt,
                    pid=report.pid,
                    launch=report.launch,
                    launch_why=report.launch_why,
                    sandbox=report.sandbox,
                )
            ]
        case Checkpointed():
            return _checkpoint(job, report.key, report.step)
        case Exited():
            seen = _checkpoint(job, report.key, report.checkpoint_step)
            if seen:
                job = job.but(checkpoint_step=report.checkpoint_step)
            ending = classify(_exit_facts(job, report, facts, rules))
            ended = _ended(job, ending, report.exit_code, now_s, rules.retry)
            return [*seen, replace(ended, run_s=report.run_s, cpu_s=report.cpu_s, peak_memory_mb=report.peak_memory_mb)]
        case NotLaunched():
            ending = classify_unlaunched(_stop_cause(job), report.exit_reason, report.evidence)
            return [_ended(job, ending, None, now_s, rules.retry)]
        case _ as unknown:
            assert_never(unknown)


def events_from_devices(state: State, report: DevicesSeen) -> list[Event]:
    """What a look at the devices of a node means; of devices that were not looked at, what was said before holds."""
    if report.node_id not in state.nodes:
        return []
    standing = state.standing(report.node_id)
    kept = {
        device: standing.busy_reason(device) or "used by others"
        for device in standing.busy_external
        if device not in report.devices
    }
    now = tuple(sorted((kept | dict(report.unfit)).items()))
    devices, reasons = tuple(device for device, _ in now), tuple(reason for _, reason in now)
    if (devices, reasons) == (standing.busy_external, standing.busy_reasons):
        return []
    return [DevicesBusySeen(node_id=report.node_id, devices=devices, reasons=reasons)]


def events_from_registration(state: State, node: Node, *, now_s: float, rules: Rules) -> list[Event]:
    """A node registers: attempts on devices that it no longer has are lost, then it joins."""
    lost = displaced(state, node)
    why = f"node {node.node_id} no longer has the devices it ran on"
    ended: list[Event] = [_lost(job, why, now_s, rules) for job in lost]
    return [*ended, NodeJoined(node=node)]


def events_from_departure(state: State, node_id: str, reason: str, *, now_s: float, rules: Rules) -> list[Event]:
    """A node is gone: what ran on it is lost, then it leaves."""
    ended: list[Event] = [_lost(job, reason, now_s, rules) for job in holders(state, node_id)]
    return [*ended, NodeLeft(node_id=node_id, generation=state.nodes[node_id].generation, reason=reason)]


def events_from_cancel(job: Job, reason: str) -> list[Event]:
    """A queued job ends at once; one that holds devices is asked to stop. Asking twice changes nothing."""
    why = reason or "cancelled by request"
    if job.attempt is None:
        return [JobEnded(job_id=job.job_id, end_state=JobState.CANCELLED, exit_reason=ExitReason.CANCELLED, reason=why)]
    if _stop_cause(job) is StopCause.CANCEL:
        return []
    return [stop_order(job, StopCause.CANCEL, why)]


def events_from_parting(state: State, cause: StopCause, reason: str) -> list[Event]:
    """Everything that holds devices is asked to stop; what is stopping already is asked again only to cancel it."""
    jobs = sorted((state.jobs[job_id] for job_id in state.index.holding), key=lambda job: job.order)
    already = {StopCause.CANCEL} if cause is StopCause.CANCEL else set(StopCause)
    return [stop_order(job, cause, reason) for job in jobs if _stop_cause(job) not in already]


def nodes_left(state: State, present: Sequence[Node]) -> list[str]:
    """Known nodes that an engine no longer reports."""
    ids = {node.node_id for node in present}
    return [node_id for node_id in state.nodes if node_id not in ids]


def _current(state: State, key: AttemptKey, generation: int) -> Job | None:
    """The job, if its present attempt is the one reported on by the present registration of its node."""
    job = state.jobs.get(key.job_id)
    if job is None or job.attempt is None or job.attempt.number != key.attempt:
        return None
    nodes = (state.nodes.get(placement.node_id) for placement in job.attempt.placements)
    is_current = any(node is not None and node.generation == generation for node in nodes)
    return job if is_current else None


def _checkpoint(job: Job, key: AttemptKey, step: int | None) -> list[Event]:
    if step is None or (job.checkpoint_step is not None and step <= job.checkpoint_step):
        return []
    return [CheckpointSeen(job_id=job.job_id, attempt=key.attempt, step=step)]


def _exit_facts(job: Job, report: Exited, facts: CriteriaFacts, rules: Rules) -> ExitFacts:
    return ExitFacts(
        stop=_stop_cause(job),
        stop_reason=job.attempt.stop.reason if job.attempt is not None and job.attempt.stop is not None else None,
        exit_code=report.exit_code,
        was_killed=report.was_killed,
        device_fault=report.device_fault,
        oom_killed=report.oom_killed,
        supervisor_lost=report.supervisor_lost,
        node_restarted=report.node_restarted,
        missing_metrics=facts.missing_metrics,
        non_finite_metrics=facts.non_finite_metrics,
        log_tail=report.log_tail,
        rank_tails=report.rank_tails,
        n_ranks=job.shape.n_devices,
        patterns=rules.patterns,
    )


def _lost(job: Job, why: str, now_s: float, rules: Rules) -> Event:
    return _ended(job, classify_lost(_stop_cause(job), why), None, now_s, rules.retry)


def _ended(job: Job, ending: Ending, exit_code: int | None, now_s: float, retry: RetryRules) -> AttemptEnded:
    follows = disposition(job, ending.outcome, ending.reason, now_s=now_s, policy=retry)
    return AttemptEnded(
        job_id=job.job_id,
        attempt=_attempt(job).number,
        outcome=ending.outcome,
        exit_reason=follows.exit_reason,
        exit_code=exit_code,
        evidence=ending.evidence,
        then=follows.then,
        end_state=follows.end_state,
        not_before_s=follows.not_before_s,
    )


def stop_order(job: Job, cause: StopCause, reason: str) -> StopOrdered:
    """Ask the attempt of a job that holds devices to stop, within its grace: a learned one, if it is to come back."""
    return StopOrdered(
        job_id=job.job_id,
        attempt=_attempt(job).number,
        cause=cause,
        reason=reason,
        beneficiary=None,
        grace_s=grace_of(job) if cause in LEAVING else job.grace_s,
    )


def _attempt(job: Job) -> Attempt:
    assert job.attempt is not None, "only an attempt that holds devices can end"
    return job.attempt


def _stop_cause(job: Job) -> StopCause | None:
    return job.attempt.stop.cause if job.attempt is not None and job.attempt.stop is not None else None
