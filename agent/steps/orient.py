"""Orient: read the facts. Which jobs have ended, how many slots there are, whether somebody asked to stop."""

from __future__ import annotations

from agent.deps import Deps
from agent.planner.budget import is_device_time_limited
from agent.planner.history import History
from agent.state import NOT_DECIDED_S, AgentState, Outcome
from agent.steps.gating import recall_gates
from agent.steps.publishing import open_runs, publish_plans
from agent.store.fenced import Line
from agent.store.views import SessionState, TrialView
from agent.tools.jobs import live_jobs, read_job
from runtime_client.models import JobView


def orient(state: AgentState, deps: Deps) -> AgentState:
    memory = deps.memory
    memory.session = deps.record.session()
    woken_by = state.get("woken_by", [])
    is_full = not woken_by or is_device_time_limited(deps.task.budgets)
    is_start = memory.n_slots == 0
    if is_start or not woken_by:
        memory.n_slots = _n_slots(deps)
    if is_start:
        open_runs(deps)
        recall_gates(deps)
    publish_plans(deps)
    history = deps.book.history()
    views = _all_views(deps, history) if is_full else _views(deps, history, woken_by)
    _tell_preemptions(deps, history, views)
    memory.jobs.update(views)
    ended = [
        trial.trial_id for trial in _carried(history) if trial.carried_by in views and views[trial.carried_by].is_ended
    ]
    return {
        "n_wakes": state.get("n_wakes", 0) + 1,
        "n_slots": memory.n_slots,
        "ended": ended,
        "ready": [],
        "outcome": _outcome(deps, history, has_ended=bool(ended), is_start=is_start),
        "message": "",
        "wait_s": NOT_DECIDED_S,
    }


def _outcome(deps: Deps, history: History, *, has_ended: bool, is_start: bool) -> str:
    if deps.memory.session.state is SessionState.STOPPING:
        return Outcome.STOP
    n_free = deps.memory.n_slots + 1 - len(history.in_flight)
    is_timed = deps.task.budgets.wall_minutes is not None or deps.memory.session.finish_by is not None
    is_limited = is_device_time_limited(deps.task.budgets) or is_timed
    has_pending = any(trial.is_submitting for trial in history.trials)
    has_news = deps.memory.has_thoughts or bool(deps.memory.open_gates)
    if has_ended or is_start or n_free > 0 or is_limited or has_pending or has_news:
        return Outcome.GO_ON
    return Outcome.QUIET


def _n_slots(deps: Deps) -> int:
    if deps.task.slots is not None:
        return deps.task.slots
    return max(1, deps.runtime.info().n_devices // deps.task.job.compute.num_accelerators)


def _carried(history: History) -> list[TrialView]:
    return [trial for trial in history.in_flight if trial.carried_by is not None and not trial.is_submitting]


def _all_views(deps: Deps, history: History) -> dict[str, JobView]:
    """Every job in flight: one list of the live ones, and one look at each of the others."""
    ids = {trial.carried_by for trial in _carried(history) if trial.carried_by is not None}
    if not ids:
        return {}
    live = live_jobs(deps.runtime, deps.book.session_id)
    return {job_id: live.get(job_id) or read_job(deps.runtime, job_id) for job_id in sorted(ids)}


def _views(deps: Deps, history: History, job_ids: list[str]) -> dict[str, JobView]:
    ids = {trial.carried_by for trial in _carried(history)} & set(job_ids)
    return {job_id: read_job(deps.runtime, job_id) for job_id in sorted(i for i in ids if i is not None)}


def _tell_preemptions(deps: Deps, history: History, views: dict[str, JobView]) -> None:
    lines = []
    for trial in _carried(history):
        view = views.get(trial.carried_by or "")
        before = deps.memory.jobs.get(trial.carried_by or "")
        if view is None or before is None or view.n_preemptions <= before.n_preemptions:
            continue
        left = [attempt for attempt in view.attempts if attempt.outcome == "preempted"]
        whom = f" for {left[-1].beneficiary}" if left and left[-1].beneficiary else ""
        kept = f" with its checkpoint of step {view.checkpoint_step}" if view.checkpoint_step is not None else ""
        text = f"{trial.trial_id} was preempted{whom} and waits in the queue{kept}"
        lines.append(Line(step="orient", text=text, trial_id=trial.trial_id, job_id=view.job_id))
    deps.record.say(lines)
