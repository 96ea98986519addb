"""Leaving: what becomes of trials whose jobs had to go before they were done, and how a session ends by its hour.

Such a trial is ready again, with what it has used; where its job left a checkpoint, its next one goes on from there.
So nothing is lost and nothing is run twice. A trial whose scorer had to go keeps its training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.deps import Deps
from agent.planner.history import History
from agent.planner.hour import Hour
from agent.state import AgentState, Outcome
from agent.steps.circumstances import device_model, model_of_all
from agent.store.fenced import Line
from agent.store.views import SessionState, SessionView, TrialFacts, TrialState, TrialView
from agent.tools.jobs import cancel_jobs, list_jobs, read_job
from runtime_client.models import JobView, NodeView

DEADLINE = "deadline"
"""Exit reason of a job that had to leave for its hour; also of a trial that was never gone on with."""


def hour_of(deps: Deps) -> Hour | None:
    """As it is now; None: the session has none."""
    return Hour.of(deps.memory.session.finish_by, deps.book.history(), deps.clock())


def had_to_leave(trial: TrialView, job: JobView) -> bool:
    """Whether an ended job was not to blame for its end: asked back by us, or over by its hour."""
    return job.state == "cancelled" and (trial.is_recalled or job.exit_reason == DEADLINE)


def put_back(trial: TrialView, job: JobView, deps: Deps, nodes: Sequence[NodeView]) -> TrialView:
    """The trial as it is after its job had to leave: ready for the next one."""
    used_s = trial.device_seconds + job.device_seconds(job.ended_at or deps.clock())
    again = replace(trial, submission=trial.submission + 1, is_recalled=False, device_seconds=used_s)
    left_for = _left_for(trial, job, deps)
    if trial.facts.score_job_id is not None:
        return replace(again, facts=replace(trial.facts, score_job_id=None, left_for=left_for))
    return replace(
        again,
        state=TrialState.PROPOSED,
        is_submitting=False,
        job_id=None,
        launched_at=None,
        facts=replace(_with_checkpoint(trial, job, nodes), left_for=left_for),
    )


def _left_for(trial: TrialView, job: JobView, deps: Deps) -> float | None:
    """The hour that made it leave, which may be that of an earlier night; a stop that somebody asked for is none."""
    if job.exit_reason == DEADLINE:
        return job.spec.finish_by
    finish_by = deps.memory.session.finish_by
    return finish_by if finish_by is not None and deps.clock() >= finish_by else trial.facts.left_for


def _with_checkpoint(trial: TrialView, job: JobView, nodes: Sequence[NodeView]) -> TrialFacts:
    """What the next job needs to know of this one, if there is anything to go on from."""
    made_one = any(attempt.checkpoint_step is not None for attempt in job.attempts)
    if not made_one:
        return trial.facts
    return replace(
        trial.facts,
        continues=(*trial.facts.continues, job.job_id),
        checkpoint_step=job.checkpoint_step,
        device_model=model_of_all(trial, device_model(job, nodes)),
    )


def waits(trial: TrialView) -> bool:
    """Whether a trial has begun and goes on after a resume."""
    return not trial.is_ended and (trial.has_begun or trial.state is TrialState.LAUNCHED or trial.is_submitting)


def words_for(session: SessionView, trials: Sequence[TrialView], now: float) -> str:
    """What a session says that ends with trials that may go on later."""
    n = sum(1 for trial in trials if waits(trial))
    left = "no trial waits to go on" if n == 0 else f"{n} {'trial waits' if n == 1 else 'trials wait'} to go on"
    hour = Hour.of(session.finish_by, History.of(trials), now)
    if hour is None or session.state is SessionState.STOPPING:
        return f"stopped, with all of its jobs; {left}"
    if hour.is_closed:
        return f"the hour by which it had to be over has come; {left}"
    return f"nothing more would end before the hour by which it has to be over; {left}"


def wind_down(deps: Deps, *, must_go: bool) -> AgentState:
    """Launch nothing; end when the last job is gone.

    Args:
        must_go: jobs that are still there are cancelled; else they are given the time to leave by themselves.
    """
    if _take_up_answers(deps):
        return {"ready": [], "wait_s": 0.0}
    live = [trial for trial in deps.book.history().in_flight if _is_live(trial, deps)]
    if not live:
        text = words_for(deps.memory.session, deps.book.history().trials, deps.clock())
        return {"outcome": Outcome.STOPPED, "ready": [], "message": text}
    if not must_go:
        return {"ready": []}
    going = [trial for trial in live if deps.memory.jobs[trial.carried_by or ""].state != "stopping"]
    deps.book.record([replace(trial, is_recalled=True) for trial in going if not trial.is_recalled])
    views = cancel_jobs(
        deps.runtime, [t.carried_by for t in going if t.carried_by], reason="the session has to be over"
    )
    deps.memory.jobs.update({view.job_id: view for view in views})
    return {"ready": [], "wait_s": 0.0} if any(view.is_ended for view in views) else {"ready": []}


def _is_live(trial: TrialView, deps: Deps) -> bool:
    """Whether a job of it may still run or wait. Its view is kept."""
    job_id = trial.carried_by
    if job_id is None or trial.is_submitting:
        return False
    view = deps.memory.jobs.get(job_id)
    if view is None:
        view = deps.memory.jobs[job_id] = read_job(deps.runtime, job_id)
    return not view.is_ended


def _take_up_answers(deps: Deps) -> bool:
    """Submissions whose answer a killed process did not record: the job that they made; whether there was one.

    One that made none stays as it is: it is submitted again after a resume, with the same token.
    """
    pending = {
        f"{deps.memory.session.key}/{t.trial_id}/{t.purpose.value}/{t.submission}": t
        for t in deps.book.history().trials
        if t.is_submitting
    }
    if not pending:
        return False
    found = [
        (pending[token], job)
        for job in list_jobs(deps.runtime, session_id=deps.book.session_id)
        if (token := job.spec.idempotency_token or "") in pending
    ]
    deps.memory.jobs.update({job.job_id: job for _, job in found})
    deps.book.record([launched(trial, job, deps.clock()) for trial, job in found])
    return bool(found)


def launched(trial: TrialView, job: JobView, now: float) -> TrialView:
    """The trial with the job that carries it; one whose answer a killed process never saw was launched before now."""
    launched_at = min(now, job.submitted_at)
    return replace(trial, state=TrialState.LAUNCHED, is_submitting=False, job_id=job.job_id, launched_at=launched_at)


def give_up(deps: Deps, trials: Sequence[TrialView], lines: Sequence[Line], why: str) -> None:
    """Take ready trials out of the plan: those that have begun end without a value, the others were nothing yet."""
    begun = [trial for trial in trials if trial.has_begun]
    deps.book.withdraw([trial for trial in trials if not trial.has_begun], lines)
    now = deps.clock()
    note = f"had to leave at the end of a night, and was not gone on with: {why}"
    deps.book.record(
        [replace(trial, state=TrialState.INVALID, note=note, exit_reason=DEADLINE, ended_at=now) for trial in begun]
    )
