"""Launch: submit ready trials for the slots that are free; at a stop, ask queued jobs back.

The intent is recorded before the request and the answer after it. A trial with an intent and no answer is submitted
again with the same idempotency token, so it is neither lost nor launched twice.
"""

from __future__ import annotations

from dataclasses import replace

from agent.deps import Deps
from agent.planner.filler import to_cut
from agent.state import AgentState, Outcome
from agent.steps.circumstances import before_launch
from agent.steps.propose import n_free
from agent.store.fenced import Line
from agent.store.views import Purpose, TrialState, TrialView
from agent.tools.jobs import OVER_BUDGET, Submitted, cancel_jobs, submit_trials
from agent.tools.trial_job import IDLE_CLASS, trial_job
from runtime_client.models import JobView


def launch(state: AgentState, deps: Deps) -> AgentState:
    if state.get("outcome") == Outcome.STOP:
        _recall_queued(deps)
        return {"outcome": Outcome.STOPPED, "ready": []}
    pending = [trial for trial in deps.book.history().trials if trial.is_submitting]
    ready = [deps.book.trial(trial_id) for trial_id in state.get("ready", [])]
    wanted = [trial for trial in ready if not trial.is_idle_work][: n_free(deps)]
    idle = [trial for trial in ready if trial.is_idle_work]
    n_left = deps.memory.n_slots - len(deps.book.history().in_flight) - len(wanted)
    chosen = [*wanted, *idle[: max(n_left, 0)]]
    _make_room(len(wanted), deps)
    if not pending and not chosen:
        return {"ready": []}
    has_refusals = _submit([*pending, *chosen], deps)
    return {"ready": [], "wait_s": 0.0} if has_refusals else {"ready": []}


def _make_room(n_more: int, deps: Deps) -> None:
    """Cut idle work short that stands in the way of wanted trials of the same class.

    Where the task's class is higher, the scheduler has it leave for them.
    """
    history = deps.book.history()
    n_wanted = sum(1 for trial in history.in_flight if not trial.is_idle_work) + n_more
    if deps.task.priority_class != IDLE_CLASS:
        return
    cut = [trial for trial in to_cut(history, deps.memory.n_slots, n_wanted) if trial.carried_by is not None]
    if not cut:
        return
    deps.book.record(
        [replace(trial, is_recalled=True) for trial in cut],
        [
            Line(step="launch", text=f"{t.trial_id} (idle time) gives way to wanted work", trial_id=t.trial_id)
            for t in cut
        ],
    )
    cancel_jobs(deps.runtime, [trial.carried_by for trial in cut if trial.carried_by], reason="its slot is needed")


def _submit(trials: list[TrialView], deps: Deps) -> bool:
    """Returns whether any was refused for good, so that the plan should be looked at again at once."""
    held_out = deps.task.held_out.metric if deps.task.held_out is not None else None
    intended = deps.book.intend(before_launch(trials, deps), held_out)
    session = deps.memory.session
    specs = [trial_job(deps.task, session, trial, fence=deps.book.fence) for trial in intended]
    answers = submit_trials(deps.runtime, specs)
    lines: list[Line] = []
    launched: list[TrialView] = []
    refused: list[TrialView] = []
    for trial, answer in zip(intended, answers, strict=True):
        if answer.job is not None:
            launched.append(_launched(trial, answer.job, deps))
            deps.memory.refusal = None
            deps.memory.jobs[answer.job.job_id] = answer.job
            lines.append(_launched_line(trial, answer.job.job_id))
        elif not answer.is_retryable:
            if answer.code == OVER_BUDGET:
                deps.memory.over_budget = answer.refusal
            refused.append(_refused(trial, answer, deps))
            text = f"{trial.trial_id} was refused by the runtime: {answer.refusal}"
            lines.append(Line(step="launch", text=text, trial_id=trial.trial_id))
        elif answer.refusal != deps.memory.refusal:  # it may last for hours, and is said once
            deps.memory.refusal = answer.refusal
            text = f"{trial.trial_id} can not be submitted now: {answer.refusal}"
            lines.append(Line(step="launch", text=text, trial_id=trial.trial_id))
    deps.book.record([*launched, *refused], lines)
    return bool(refused)


def _launched(trial: TrialView, job: JobView, deps: Deps) -> TrialView:
    return replace(trial, state=TrialState.LAUNCHED, is_submitting=False, job_id=job.job_id, launched_at=deps.clock())


def _launched_line(trial: TrialView, job_id: str) -> Line:
    params = ", ".join(f"{name}={_shown(value)}" for name, value in trial.params.items())
    what = (
        " (idle time)"
        if trial.is_idle_work
        else {Purpose.SEARCH: "", Purpose.REPLICATE: " (fresh seed)", Purpose.HELD_OUT: " (held-out look)"}[
            trial.purpose
        ]
    )
    text = f"{trial.trial_id} launched as {job_id}{what}: {params}, seed {trial.seed}"
    return Line(step="launch", text=text, trial_id=trial.trial_id, job_id=job_id)


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _refused(trial: TrialView, answer: Submitted, deps: Deps) -> TrialView:
    return replace(
        trial,
        state=TrialState.INVALID,
        is_submitting=False,
        note=f"refused by the runtime: {answer.refusal}",
        exit_reason="refused",
        ended_at=deps.clock(),
    )


def _recall_queued(deps: Deps) -> None:
    """Queued jobs hold nothing and lose nothing: they are cancelled, and launched again after a resume.

    Running ones are left to finish; their values are read after a resume.
    """
    queued = [
        trial
        for trial in deps.book.history().in_flight
        if trial.job_id is not None and not trial.is_submitting and _is_queued(trial.job_id, deps)
    ]
    deps.book.record([replace(trial, is_recalled=True) for trial in queued])
    views = cancel_jobs(deps.runtime, [t.job_id for t in queued if t.job_id], reason="the session stops")
    again, lines = [], []
    for trial, view in zip(queued, views, strict=True):
        if view.state == "cancelled":
            ready = replace(
                trial,
                state=TrialState.PROPOSED,
                submission=trial.submission + 1,
                is_recalled=False,
                job_id=None,
                launched_at=None,
            )
            again.append(ready)
            text = f"{trial.trial_id} asked back from the queue ({trial.job_id}); a resume launches it again"
            lines.append(Line(step="launch", text=text, trial_id=trial.trial_id, job_id=trial.job_id))
    deps.book.record(again, lines)


def _is_queued(job_id: str, deps: Deps) -> bool:
    view = deps.memory.jobs.get(job_id)
    return view is not None and view.state == "queued" and not view.attempts
