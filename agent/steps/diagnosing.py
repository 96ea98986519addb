"""Diagnosing: a trial whose job has failed gets its diagnosis, by rules, into its facts and its note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.deps import Deps
from agent.doctor.changes import change_for
from agent.doctor.diagnosis import Diagnosis, FailureClass
from agent.doctor.gather import gather, last_ended
from agent.doctor.naming import in_words
from agent.doctor.rules import diagnose
from agent.planner.proposers.doctor import DOCTOR
from agent.store.views import ParamValue, Purpose, TrialState, TrialView
from agent.thinking.lessons import Learned
from agent.tools.trial_job import metric_of
from runtime_client.models import JobView

NOTE_LIMIT = 700


def diagnosed(trial: TrialView, job: JobView, deps: Deps) -> TrialView:
    """The trial with what the rules find; as it is where it has a value, or nothing has failed."""
    if trial.state is not TrialState.INVALID:
        return trial
    evidence = gather(deps.runtime, job, last_ended(job), wanted_metric=metric_of(deps.task, trial))
    found = diagnose(evidence)
    if found.failure is FailureClass.STOPPED:
        return trial
    found = replace(found, change=change_of(found, trial, job, deps))
    note = trial.note
    if job.state == "failed" and found.failure is not FailureClass.NO_METRIC:
        note = f"{note}; {in_words(found)}"[:NOTE_LIMIT]
    return replace(trial, note=note, facts=replace(trial.facts, diagnosis=found))


def learn_from_fixes(changed: Sequence[TrialView], deps: Deps) -> None:
    """A fix that gave a value is a lesson: what failed, what was changed, that it worked."""
    trial_ids = {trial.trial_id for trial in deps.book.history().trials}
    for fix in changed:
        if fix.state is not TrialState.MEASURED or fix.facts.fixes not in trial_ids:
            continue
        failed = deps.book.trial(fix.facts.fixes or "")
        lesson = Learned(text=_lesson(failed, fix), evidence=(failed.trial_id, fix.trial_id))
        deps.lessons.offer([lesson], trial_ids, by=DOCTOR)


def _lesson(failed: TrialView, fix: TrialView) -> str:
    found = failed.facts.diagnosis
    what = "failed" if found is None else found.failure.value.replace("_", " ")
    names = [name for name, value in fix.params.items() if failed.params.get(name) != value]
    before = ", ".join(f"{name}={shown(failed.params.get(name))}" for name in names)
    after = ", ".join(f"{name}={shown(fix.params[name])}" for name in names)
    return f"{what} at {before}; {after} works there"


def shown(value: ParamValue) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def change_of(found: Diagnosis, trial: TrialView, job: JobView, deps: Deps) -> dict[str, ParamValue] | None:
    """Of a search trial's own training alone: what a scorer died of is not changed by the trial's parameters."""
    if trial.purpose is not Purpose.SEARCH or trial.facts.score_job_id is not None:
        return None
    fills_memory = None if job.suggestion is None else job.suggestion.change
    return change_for(found.failure, trial.params, deps.task, fills_memory=fills_memory)
