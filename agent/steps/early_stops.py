"""Early stops: a running trial that a model takes for lost is ended where its curve says the same."""

from __future__ import annotations

from dataclasses import replace

from agent.deps import Deps
from agent.gates.freedom import Course
from agent.gates.gate import Answer, GateKind
from agent.planner.curve import Point
from agent.planner.early_stop import behind
from agent.steps.gating import early_stop
from agent.store.fenced import Line
from agent.store.views import TrialState, TrialView
from agent.thinking.checking import StopWish
from agent.tools.curves import read_points
from agent.tools.errors import FixAndRetry
from agent.tools.jobs import cancel_jobs, read_job
from runtime_client.models import JobView

N_CURVES = 12
"""Newest measured trials whose curves the trial is held against."""


def end_early(wish: StopWish, by: str, deps: Deps) -> str | None:
    """End a trial, or say why not; where the task wants it, a person is asked first."""
    trial = next((t for t in deps.book.history().search if t.trial_id == wish.trial_id), None)
    if trial is None or not trial.is_in_flight or trial.is_submitting or trial.job_id is None:
        return "it does not run any more"
    if trial.facts.score_job_id is not None:
        return "its training is over"
    if trial.facts.stopped_early is not None:
        return "it is being ended already"
    job = read_job(deps.runtime, trial.job_id)
    if job.state != "running":
        return f"it does not run (its job is {job.state})"
    judged = behind(_curve(trial, deps), _measured_curves(deps), deps.task.objective.direction)
    if not judged.is_behind:
        return judged.reason
    why = f"{by} takes it for lost ({wish.why}); {judged.reason}"
    found = early_stop(trial, why, deps)
    match found.course:
        case Course.ASKS | Course.WAITS:
            return f"people are asked first ({found.why})"
        case Course.REFUSED:
            return found.why
    agreed = "" if found.gate is None else f"; {found.gate.words}"
    _end(trial, job, why + agreed, deps)
    return None


def end_approved(deps: Deps) -> None:
    """End the trials about which a person was asked and agreed, if they still run."""
    running = {t.trial_id: t for t in deps.book.history().search if t.is_in_flight and not t.is_submitting}
    for gate in deps.memory.gates:
        trial = running.get(gate.subject)
        is_agreed = gate.kind is GateKind.EARLY_STOP and gate.answer is Answer.APPROVE
        if trial is None or not is_agreed or trial.job_id is None or trial.facts.stopped_early is not None:
            continue
        job = read_job(deps.runtime, trial.job_id)
        if job.state == "running" and trial.facts.score_job_id is None:
            _end(trial, job, f"{gate.words}: {gate.text}", deps)


def _end(trial: TrialView, job: JobView, why: str, deps: Deps) -> None:
    """The reason is recorded before its job is asked to leave."""
    line = Line(
        step="think", text=f"{trial.trial_id} is ended early: {why}", trial_id=trial.trial_id, job_id=job.job_id
    )
    deps.book.record([replace(trial, facts=replace(trial.facts, stopped_early=why))], [line])
    cancel_jobs(deps.runtime, [job.job_id], reason="ended early: it can not become good any more")


def _measured_curves(deps: Deps) -> list[list[Point]]:
    measured = [t for t in deps.book.history().search if t.state is TrialState.MEASURED]
    return [_curve(trial, deps) for trial in measured[-N_CURVES:]]


def _curve(trial: TrialView, deps: Deps) -> list[Point]:
    """Of the objective, as the training logged it; empty where the runtime does not know the job any more."""
    try:
        return read_points(deps.runtime, trial.trained_by, deps.task.objective.metric)
    except FixAndRetry:
        return []
