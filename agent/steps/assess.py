"""Assess: give every trial whose job has ended its value, or say why it has none."""

from __future__ import annotations

from dataclasses import replace

from agent.deps import Deps
from agent.planner.history import SLOT_NEEDED
from agent.planner.objective import Reading, read_value
from agent.state import AgentState
from agent.store.fenced import Line
from agent.store.views import TrialState, TrialView
from agent.task import Objective
from agent.tools.curves import metric_names, read_curve
from agent.tools.jobs import read_job
from agent.tools.trial_job import metric_of
from runtime_client.models import JobView

_N_NAMES = 12
_NOTE_LIMIT = 500


def assess(state: AgentState, deps: Deps) -> AgentState:
    changed, lines = [], []
    for trial_id in state.get("ended", []):
        trial = deps.book.trial(trial_id)
        if trial.is_ended or trial.job_id is None:
            continue
        job = deps.memory.jobs.get(trial.job_id) or read_job(deps.runtime, trial.job_id)
        after = _judged(trial, job, deps)
        if trial.is_recalled and job.state == "cancelled":
            after = _cut(after) if trial.is_idle_work else _recalled(trial)
        changed.append(after)
        lines.append(Line(step="assess", text=_told(after, deps), trial_id=trial_id, job_id=trial.job_id))
    deps.book.record(changed, lines)
    for trial in changed:
        deps.memory.jobs.pop(trial.job_id or "", None)
    return {"ended": []}


def _recalled(trial: TrialView) -> TrialView:
    """Its queued job was asked back at a stop: the trial is ready again and gets a new job."""
    return replace(
        trial,
        state=TrialState.PROPOSED,
        submission=trial.submission + 1,
        is_recalled=False,
        job_id=None,
        launched_at=None,
    )


def _cut(judged: TrialView) -> TrialView:
    """Idle work that gave way to wanted work: it says nothing about its configuration."""
    return replace(judged, note="idle time ended: its slot was needed", exit_reason=SLOT_NEEDED)


def _judged(trial: TrialView, job: JobView, deps: Deps) -> TrialView:
    reading = _reading(trial, job, deps)
    return replace(
        trial,
        state=TrialState.INVALID if reading.value is None else TrialState.MEASURED,
        value=reading.value,
        note=reading.note,
        exit_reason=job.exit_reason,
        device_seconds=job.device_seconds(job.ended_at or deps.clock()),
        ended_at=job.ended_at or deps.clock(),
        is_recalled=False,
    )


def _reading(trial: TrialView, job: JobView, deps: Deps) -> Reading:
    metric = metric_of(deps.task, trial)
    if job.state == "succeeded":
        objective = deps.task.objective.model_copy(update={"metric": metric})
        reading = read_value(read_curve(deps.runtime, job.job_id, metric), _read_as(objective, deps.task.objective))
        if reading.value is not None:
            return reading
        return Reading(note=_with_names(reading.note or "", job, deps))
    if job.exit_reason == "criteria_not_met":
        return Reading(note=_with_names(f"metric {metric!r} never appeared", job, deps))
    evidence = next((a.evidence for a in reversed(job.attempts) if a.evidence), None) or job.state_reason or ""
    reason = job.exit_reason or job.state
    note = f"{reason}: {evidence}"[:_NOTE_LIMIT] if evidence else reason
    return Reading(note=note if job.suggestion is None else f"{note}; suggestion: {job.suggestion.why}")


def _read_as(objective: Objective, main: Objective) -> Objective:
    """A held-out metric has no direction of its own: its last value counts."""
    return objective if objective.metric == main.metric else objective.model_copy(update={"read": "last"})


def _with_names(note: str, job: JobView, deps: Deps) -> str:
    names = metric_names(deps.runtime, job.job_id)
    if not names:
        return f"{note}; the job logged no metric at all"
    more = f" and {len(names) - _N_NAMES} more" if len(names) > _N_NAMES else ""
    return f"{note}; metrics that did appear: {', '.join(names[:_N_NAMES])}{more}"


def _told(trial: TrialView, deps: Deps) -> str:
    if trial.state is TrialState.PROPOSED:
        return f"{trial.trial_id} was asked back from the queue; it is launched again after the resume"
    if trial.value is None:
        return f"{trial.trial_id} gave no value: {trial.note}"
    return f"{trial.trial_id}: {metric_of(deps.task, trial)} = {trial.value:.6g}"
