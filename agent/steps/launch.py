"""Launch: submit ready trials for the slots that are free; at a stop, ask queued jobs back.

The intent is recorded before the request and the answer after it. A trial with an intent and no answer is submitted
again with the same idempotency token, so it is neither lost nor launched twice.
"""

from __future__ import annotations

from dataclasses import replace

from agent.deps import Deps
from agent.planner.failure import NOT_SEALED
from agent.planner.filler import to_cut
from agent.planner.hour import fits
from agent.planner.seeds import is_fresh
from agent.state import AgentState, Outcome
from agent.steps.circumstances import before_launch
from agent.steps.code_states import code_root, tidy_up
from agent.steps.leaving import hour_of, launched, put_back, wind_down
from agent.steps.propose import n_free
from agent.store.fenced import Line
from agent.store.views import Purpose, TrialState, TrialView
from agent.task import Task
from agent.tools.errors import FixAndRetry
from agent.tools.jobs import OVER_BUDGET, TOO_LATE, Submitted, cancel_jobs, read_job, submit_trials
from agent.tools.trial_job import IDLE_CLASS, trial_job
from runtime_client.models import JobView


def launch(state: AgentState, deps: Deps) -> AgentState:
    if state.get("outcome") == Outcome.STOP:
        if deps.memory.session.night_id is not None:  # nobody is there to wait for what would run on
            return wind_down(deps, must_go=True)
        _recall_queued(deps)
        return {"outcome": Outcome.STOPPED, "ready": []}
    hour = hour_of(deps)
    if hour is not None and hour.is_closed:
        return wind_down(deps, must_go=hour.has_come)
    pending = [trial for trial in deps.book.history().trials if trial.is_submitting]
    history = deps.book.history()
    proposed = [deps.book.trial(trial_id) for trial_id in state.get("ready", [])]
    n_slots = deps.memory.n_slots
    ready = [trial for trial in proposed if not deps.is_paused and fits(deps.task, history, hour, n_slots, trial)]
    wanted = [trial for trial in ready if not trial.is_idle_work][: n_free(deps)]
    idle = [trial for trial in ready if trial.is_idle_work]
    n_left = deps.memory.n_slots - len(deps.book.history().in_flight) - len(wanted)
    chosen = [*wanted, *idle[: max(n_left, 0)]]
    _make_room(len(wanted), deps)
    if not pending and not chosen:
        if not history.in_flight and not fits(deps.task, history, hour, n_slots) and not ready:
            return wind_down(deps, must_go=False)
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
    before = {trial.trial_id: _gone_on_from(trial, deps) for trial in trials}
    known = [trial if before[trial.trial_id] is not None else _anew(trial) for trial in trials]
    intended = deps.book.intend(before_launch(known, deps), held_out)
    session = deps.memory.session
    specs = [
        trial_job(
            deps.task,
            session,
            trial,
            fence=deps.book.fence,
            before=before[trial.trial_id],
            code_root=code_root(trial, deps),
        )
        for trial in intended
    ]
    answers = submit_trials(deps.runtime, specs)
    lines: list[Line] = []
    going: list[TrialView] = []
    late: list[TrialView] = []
    refused: list[TrialView] = []
    for trial, answer in zip(intended, answers, strict=True):
        if answer.job is not None:
            going.append(launched(trial, answer.job, deps.clock()))
            deps.memory.refusal = None
            deps.memory.jobs[answer.job.job_id] = answer.job
            lines.append(_launched_line(trial, answer.job.job_id, deps.task))
        elif answer.code == TOO_LATE:
            late.append(replace(trial, is_submitting=False, facts=replace(trial.facts, left_for=session.finish_by)))
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
    deps.book.record([*going, *late, *refused], lines)
    tidy_up(intended, deps)
    return bool(refused)


def _gone_on_from(trial: TrialView, deps: Deps) -> JobView | None:
    """The job whose checkpoint it goes on from; None: there is none, or the runtime does not know it any more."""
    if not trial.facts.continues:
        return None
    try:
        return read_job(deps.runtime, trial.facts.continues[-1])
    except FixAndRetry:
        return None


def _anew(trial: TrialView) -> TrialView:
    """A trial that has nothing to go on from: of what its earlier jobs did, only what they used counts."""
    return (
        replace(trial, facts=replace(trial.facts, continues=(), device_model=None)) if trial.facts.continues else trial
    )


def _launched_line(trial: TrialView, job_id: str, task: Task) -> Line:
    code = trial.facts.edited
    edit = [] if code is None else [f"an edit of {code.parent or 'the base'} (+{code.added} -{code.removed})"]
    what = ", ".join(
        [*edit, *(f"{name}={_shown(value)}" for name, value in trial.params.items()), f"seed {trial.seed}"]
    )
    text = f"{trial.trial_id} launched as {job_id}{_kind(trial, task)}: {what}"
    return Line(step="launch", text=text, trial_id=trial.trial_id, job_id=job_id)


def _kind(trial: TrialView, task: Task) -> str:
    if trial.facts.continues:
        return f" (goes on from {trial.facts.continues[-1]})"
    if trial.is_idle_work:
        return " (idle time)"
    match trial.purpose:
        case Purpose.SEARCH:
            return ""
        case Purpose.REPLICATE:
            return " (fresh seed)" if is_fresh(task, trial.seed) else " (racing seed)"
        case Purpose.HELD_OUT:
            return " (held-out look)"
        case Purpose.RUNG:
            return f" (rung {trial.facts.rung})"


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _refused(trial: TrialView, answer: Submitted, deps: Deps) -> TrialView:
    is_unsealed = answer.code == NOT_SEALED
    way_out = "; on your own risk, it runs with your rights by code.sandbox: user (docs/sandbox.md)"
    return replace(
        trial,
        state=TrialState.INVALID,
        is_submitting=False,
        note=f"refused by the runtime: {answer.refusal}{way_out if is_unsealed else ''}",
        exit_reason=NOT_SEALED if is_unsealed else "refused",
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
            again.append(put_back(trial, view, deps, ()))
            text = f"{trial.trial_id} asked back from the queue ({trial.job_id}); a resume launches it again"
            lines.append(Line(step="launch", text=text, trial_id=trial.trial_id, job_id=trial.job_id))
    deps.book.record(again, lines)


def _is_queued(job_id: str, deps: Deps) -> bool:
    view = deps.memory.jobs.get(job_id)
    return view is not None and view.state == "queued" and not view.attempts
