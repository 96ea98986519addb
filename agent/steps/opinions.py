"""Taking up second opinions: what a model says about failures that the rules can not tell, into the facts of trials."""

from __future__ import annotations

from dataclasses import replace

from agent.deps import Deps
from agent.doctor.diagnosis import BY_RULES, Diagnosis, FailureClass
from agent.doctor.gather import gather, last_ended
from agent.doctor.naming import NOT_TOLD, in_words
from agent.doctor.second import Failed, Opinion, SecondOpinions
from agent.steps.diagnosing import NOTE_LIMIT
from agent.store.fenced import Line
from agent.store.views import TrialState, TrialView
from agent.tools.errors import FixAndRetry
from agent.tools.jobs import read_job
from agent.tools.trial_job import metric_of

STEP = "doctor"


def take_up_opinions(deps: Deps) -> None:
    """Record what came, hand over what the rules could not tell, put the next question. Nothing waits."""
    opinions = deps.memory.opinions
    if opinions is None:
        return
    if opinions.has_news:
        _record(opinions.take(), opinions, deps)
    for trial in _untold(deps):
        if opinions.is_new(trial.trial_id):
            failed = _failed(trial, deps)
            known = None if failed is None else opinions.consider(failed)
            if known is not None:
                deps.book.record([_with(trial, replace(known, change=None))], [])
    opinions.begin()


def _record(opinion: Opinion, opinions: SecondOpinions, deps: Deps) -> None:
    """The change is for the trial that was asked about; those that failed alike get the rest."""
    failed, found = opinion.failed, opinion.diagnosis
    changed = []
    for trial in _untold(deps) if found is not None else ():
        if trial.trial_id == failed.trial_id and found is not None:
            changed.append(_with(trial, found))
        elif opinions.is_alike(trial.trial_id, failed) and found is not None:
            changed.append(_with(trial, replace(found, change=None)))
    deps.book.record(changed, [Line(step=STEP, text=text, trial_id=failed.trial_id) for text in opinion.lines])


def _with(trial: TrialView, found: Diagnosis) -> TrialView:
    note = (trial.note or "").removesuffix(NOT_TOLD)
    told = f"{note}{in_words(found)} (told by {found.made_by})"[:NOTE_LIMIT]
    return replace(trial, note=told, facts=replace(trial.facts, diagnosis=found))


def _untold(deps: Deps) -> list[TrialView]:
    """Failed search trials of which the rules could not tell why, and nobody else has said anything."""
    return [
        trial
        for trial in deps.book.history().search
        if trial.state is TrialState.INVALID
        and trial.facts.diagnosis is not None
        and trial.facts.diagnosis.failure is FailureClass.UNKNOWN
        and trial.facts.diagnosis.made_by == BY_RULES
    ]


def _failed(trial: TrialView, deps: Deps) -> Failed | None:
    """None: the runtime does not know its job any more."""
    try:
        job = read_job(deps.runtime, trial.carried_by or "")
    except FixAndRetry:
        return None
    evidence = gather(deps.runtime, job, last_ended(job), wanted_metric=metric_of(deps.task, trial))
    return Failed(trial_id=trial.trial_id, params=trial.params, evidence=evidence)
