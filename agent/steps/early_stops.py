"""Early stops: a running trial that a model takes for lost is ended where its curve says the same."""

from __future__ import annotations

from dataclasses import replace

from agent.deps import Deps
from agent.planner.curve import Point
from agent.planner.early_stop import behind
from agent.store.fenced import Line
from agent.store.views import TrialState, TrialView
from agent.thinking.checking import StopWish
from agent.tools.curves import read_points
from agent.tools.errors import FixAndRetry
from agent.tools.jobs import cancel_jobs, read_job

N_CURVES = 12
"""Newest measured trials whose curves the trial is held against."""


def end_early(wish: StopWish, by: str, deps: Deps) -> str | None:
    """End a trial, or say why not. The reason is recorded before its job is asked to leave."""
    trial = next((t for t in deps.book.history().search if t.trial_id == wish.trial_id), None)
    if trial is None or not trial.is_in_flight or trial.is_submitting or trial.job_id is None:
        return "it does not run any more"
    if trial.facts.score_job_id is not None:
        return "its training is over"
    if trial.facts.stopped_early is not None:
        return "it is being ended already"
    if deps.task.autonomy.early_stops != "run":
        return f"only people end trials here (autonomy.early_stops: {deps.task.autonomy.early_stops})"
    job = read_job(deps.runtime, trial.job_id)
    if job.state != "running":
        return f"it does not run (its job is {job.state})"
    judged = behind(_curve(trial, deps), _measured_curves(deps), deps.task.objective.direction)
    if not judged.is_behind:
        return judged.reason
    why = f"{by} takes it for lost ({wish.why}); {judged.reason}"
    line = Line(
        step="think", text=f"{trial.trial_id} is ended early: {why}", trial_id=trial.trial_id, job_id=job.job_id
    )
    deps.book.record([replace(trial, facts=replace(trial.facts, stopped_early=why))], [line])
    cancel_jobs(deps.runtime, [trial.job_id], reason="ended early: it can not become good any more")
    return None


def _measured_curves(deps: Deps) -> list[list[Point]]:
    measured = [t for t in deps.book.history().search if t.state is TrialState.MEASURED]
    return [_curve(trial, deps) for trial in measured[-N_CURVES:]]


def _curve(trial: TrialView, deps: Deps) -> list[Point]:
    """Of the objective, as the training logged it; empty where the runtime does not know the job any more."""
    try:
        return read_points(deps.runtime, trial.trained_by, deps.task.objective.metric)
    except FixAndRetry:
        return []
