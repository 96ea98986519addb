"""Assess: give every trial whose job has ended its value, or say why it has none.

Where the task has a scorer, a training that ended well is followed by the job that measures it (`agent.steps.scoring`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.deps import Deps
from agent.planner.comparable import why_invalid
from agent.planner.curve import Point, alike, last_finite, renamed_to
from agent.planner.early_stop import STOPPED_EARLY
from agent.planner.edited import NotCounted, Refusal, left_unjudged, not_counted, why_not_counted
from agent.planner.history import SLOT_NEEDED
from agent.planner.objective import Reading, read_value
from agent.state import AgentState
from agent.steps.circumstances import after_data, after_end, checked_later
from agent.steps.diagnosing import diagnosed, learn_from_fixes
from agent.steps.leaving import DEADLINE, had_to_leave, hour_of, put_back
from agent.steps.scoring import CHANGED, SCORER_CHANGED, is_another, is_to_be_scored, submit_score
from agent.store.fenced import Line
from agent.store.views import Purpose, TrialFacts, TrialState, TrialView
from agent.task import Objective, ValidRange
from agent.tools.curves import arrivals, logged_names, metric_names, read_points
from agent.tools.jobs import read_job
from agent.tools.trial_job import metric_of
from runtime_client.models import JobView, NodeView

_N_NAMES = 12
_NOTE_LIMIT = 500


def assess(state: AgentState, deps: Deps) -> AgentState:
    ended = [deps.book.trial(trial_id) for trial_id in state.get("ended", [])]
    ended = [trial for trial in ended if not trial.is_ended and trial.carried_by is not None]
    nodes = deps.runtime.nodes() if ended else []
    left = {trial.trial_id for trial in deps.book.history().in_flight} - {trial.trial_id for trial in ended}
    changed: list[TrialView] = []
    lines: list[Line] = []
    for trial in ended:
        after, line = _assessed(trial, nodes, deps, is_last=not left)
        changed.append(after)
        lines.extend([line] if line is not None else [])
    deps.book.record(changed, lines)
    learn_from_fixes(changed, deps)
    for trial in changed:
        deps.memory.jobs.pop(trial.job_id or "", None)
        if trial.is_ended:
            deps.memory.jobs.pop(trial.carried_by or "", None)
    _look_again(deps)
    return {"ended": []}


def _assessed(
    trial: TrialView, nodes: Sequence[NodeView], deps: Deps, *, is_last: bool
) -> tuple[TrialView, Line | None]:
    job_id = trial.carried_by or ""
    job = deps.memory.jobs.get(job_id) or read_job(deps.runtime, job_id)
    if had_to_leave(trial, job):
        facts = _facts(trial, job, nodes, deps, is_last=is_last)
        after = _cut(_judged(trial, job, facts, deps)) if trial.is_idle_work else put_back(trial, job, deps, nodes)
    elif is_to_be_scored(trial, job, deps):
        if _is_too_late(deps):
            return trial, None
        trained = replace(trial, facts=after_end(trial, job, deps, nodes), is_recalled=False)
        return submit_score(trained, job, deps)
    else:
        judged = _judged(trial, job, _facts(trial, job, nodes, deps, is_last=is_last), deps)
        after = judged if judged.exit_reason in set(Refusal) else diagnosed(judged, job, deps)
    return after, Line(step="assess", text=_told(after, deps), trial_id=trial.trial_id, job_id=job_id)


def _facts(trial: TrialView, job: JobView, nodes: Sequence[NodeView], deps: Deps, *, is_last: bool) -> TrialFacts:
    """Of the job that trained; where speed or memory is scored, device and neighbors are those of the scorer's job."""
    facts = trial.facts
    if facts.score_job_id is None:
        facts = after_end(trial, job, deps, nodes)
    elif deps.task.objective.kind != "quality":
        scored = after_end(trial, job, deps, nodes)
        facts = replace(facts, device_model=scored.device_model, is_alone=scored.is_alone)
    return after_data(facts, deps, is_last=is_last)


def _look_again(deps: Deps) -> None:
    """Trials whose data could not be looked at when they ended, and edited ones that the base now tells more of."""
    checked = [_valid_or_not(trial, deps) for trial in checked_later(deps)]
    known = {trial.trial_id for trial in checked}
    found = [(t, why) for t, why in not_counted(deps.task, deps.book.history()) if t.trial_id not in known]
    checked += [_refused(trial, why) for trial, why in found]
    lines = [
        Line(step="assess", text=f"{trial.trial_id} does not count any more: {trial.note}", trial_id=trial.trial_id)
        for trial in checked
        if trial.state is TrialState.INVALID
    ]
    deps.book.record(checked, lines)


def _valid_or_not(trial: TrialView, deps: Deps) -> TrialView:
    reason = why_invalid(trial.facts, deps.task)
    if reason is not None:
        return _worthless(trial, reason)
    refused = why_not_counted(trial, deps.task, deps.book.history())
    return trial if refused is None else _refused(trial, refused)


def _refused(trial: TrialView, why: NotCounted) -> TrialView:
    return replace(_worthless(trial, why.text), exit_reason=why.refusal.value)


def _worthless(trial: TrialView, reason: str) -> TrialView:
    note = reason if trial.value is None else f"{reason}; the value {trial.value:.6g} does not count"
    return replace(trial, state=TrialState.INVALID, value=None, note=note)


def _with_remark(trial: TrialView, remark: str | None) -> TrialView:
    """Of a value that counts: what a reader should know beside it."""
    if trial.value is None or remark is None:
        return trial
    return replace(trial, note=remark if trial.note is None else f"{trial.note}; {remark}")


def _is_too_late(deps: Deps) -> bool:
    """Whether the hour has come; a scorer is then submitted after a resume."""
    hour = hour_of(deps)
    return hour is not None and hour.is_closed


def _cut(judged: TrialView) -> TrialView:
    """Idle work that gave way: it says nothing about its configuration."""
    is_late = judged.exit_reason == DEADLINE
    note = "idle time ended: the hour came" if is_late else "idle time ended: its slot was needed"
    return replace(judged, note=note, exit_reason=SLOT_NEEDED)


def _judged(trial: TrialView, job: JobView, facts: TrialFacts, deps: Deps) -> TrialView:
    is_early = job.state == "cancelled" and trial.facts.stopped_early is not None
    reading = Reading(note=f"ended early: {trial.facts.stopped_early}") if is_early else _reading(trial, job, deps)
    seconds = job.device_seconds(job.ended_at or deps.clock())
    facts = facts if is_early else replace(facts, stopped_early=None)
    partial = None if reading.value is not None else last_finite(_points(trial, job, deps))
    if partial is not None:
        facts = replace(facts, partial_value=partial.value, partial_step=partial.step)
    judged = replace(
        trial,
        state=TrialState.INVALID if reading.value is None else TrialState.MEASURED,
        value=reading.value,
        note=reading.note,
        exit_reason=STOPPED_EARLY if is_early else job.exit_reason,
        device_seconds=trial.device_seconds + seconds,
        ended_at=job.ended_at or deps.clock(),
        is_recalled=False,
        facts=facts,
    )
    if judged.value is not None and trial.facts.score_job_id is not None and is_another(facts, deps):
        return replace(_worthless(judged, CHANGED), exit_reason=SCORER_CHANGED)
    if judged.value is None:
        return judged
    return _with_remark(_valid_or_not(judged, deps), left_unjudged(judged, deps.task))


def _reading(trial: TrialView, job: JobView, deps: Deps) -> Reading:
    metric = metric_of(deps.task, trial)
    if job.state == "succeeded":
        objective = _read_as(deps.task.objective, metric)
        reading = read_value([point.value for point in _points(trial, job, deps)], objective)
        if reading.value is not None:
            return _unless_renamed(reading, trial, job, deps)
        return Reading(note=_with_names(reading.note or "", trial, job, deps))
    if job.exit_reason == "criteria_not_met":
        return Reading(note=_with_names(f"metric {metric!r} never appeared", trial, job, deps))
    evidence = next((a.evidence for a in reversed(job.attempts) if a.evidence), None) or job.state_reason or ""
    reason = job.exit_reason or job.state
    note = f"{reason}: {evidence}"[:_NOTE_LIMIT] if evidence else reason
    if trial.facts.score_job_id is not None:
        note = f"its scorer failed ({job.job_id}): {note}"
    return Reading(note=note if job.suggestion is None else f"{note}; suggestion: {job.suggestion.why}")


def _points(trial: TrialView, job: JobView, deps: Deps) -> list[Point]:
    return read_points(deps.runtime, _measured_by(trial, job), metric_of(deps.task, trial))


def _measured_by(trial: TrialView, job: JobView) -> tuple[str, ...]:
    """The jobs whose curves make the trial's: the scorer's alone, where there is one."""
    return (job.job_id,) if trial.facts.score_job_id is not None else trial.trained_by


def _read_as(objective: Objective, metric: str) -> Objective:
    """A held-out metric has no direction and no range of its own: its last value counts."""
    if objective.metric == metric:
        return objective
    return objective.model_copy(update={"metric": metric, "read": "last", "valid": ValidRange()})


def _unless_renamed(reading: Reading, trial: TrialView, job: JobView, deps: Deps) -> Reading:
    """A metric whose name the script changed on the way ends early: its last value is not that of the end."""
    metric = metric_of(deps.task, trial)
    held_out = deps.task.held_out.metric if deps.task.held_out is not None else None
    names = [name for name in alike(metric, logged_names(deps.runtime, job.run_id)) if name != held_out]
    if trial.purpose is Purpose.HELD_OUT or not names:
        return reading
    other = renamed_to(metric, arrivals(deps.runtime, _measured_by(trial, job), [metric, *names]), names)
    if other is None:
        return reading
    return Reading(
        note=f"the curve of {metric!r} ended early and went on as {other!r}: {reading.value:.6g} is not the value "
        f"of the end; log {metric!r} to the end of the run"
    )


def _with_names(note: str, trial: TrialView, job: JobView, deps: Deps) -> str:
    names = metric_names(deps.runtime, _measured_by(trial, job))
    if not names:
        return f"{note}; the job logged no metric at all"
    more = f" and {len(names) - _N_NAMES} more" if len(names) > _N_NAMES else ""
    return f"{note}; metrics that did appear: {', '.join(names[:_N_NAMES])}{more}"


def _told(trial: TrialView, deps: Deps) -> str:
    if trial.state is TrialState.PROPOSED:
        if trial.facts.left_for is None and not trial.has_begun:
            return f"{trial.trial_id} was asked back from the queue; it is launched again after the resume"
        return f"{trial.trial_id} had to leave before it was done; {_how_on(trial)}"
    if not trial.is_ended:
        return f"the scorer of {trial.trial_id} had to leave; another one measures it after a resume"
    if trial.value is None:
        return f"{trial.trial_id} gave no value: {trial.note}{_evidence(trial)}"
    remark = f" ({trial.note})" if trial.note else ""
    return f"{trial.trial_id}: {metric_of(deps.task, trial)} = {trial.value:.6g}{remark}"


def _how_on(trial: TrialView) -> str:
    if trial.facts.continues:
        return f"it goes on from the checkpoint of {trial.facts.continues[-1]}"
    return "it left no checkpoint and begins anew"


def _evidence(trial: TrialView) -> str:
    """How far it came: never its value."""
    if trial.facts.partial_value is None:
        return ""
    return f" (seen before that: {trial.facts.partial_value:.6g} at step {trial.facts.partial_step})"
