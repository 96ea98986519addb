"""Report: say what was found, in the store, in MLflow and in the report file, and end the session."""

from __future__ import annotations

from dataclasses import replace

from agent.deps import Deps
from agent.planner.comparable import caveats, measured_apart
from agent.planner.curve import last_finite
from agent.planner.verdict import conclude
from agent.state import AgentState, Outcome
from agent.steps.gating import close_gates
from agent.steps.leaving import give_up
from agent.steps.publishing import close_runs, publish_plans
from agent.store.fenced import Line
from agent.store.views import FinalResult, SessionState, TrialFacts, TrialState, TrialView
from agent.tools.curves import read_points
from agent.tools.jobs import cancel_jobs, live_jobs
from agent.tools.trial_job import metric_of
from runtime_client.errors import RuntimeClientError


def report(state: AgentState, deps: Deps) -> AgentState:
    result = _with_caveats(conclude(deps.memory.plan, deps.task, deps.book.history()), deps)
    message = state.get("message", "")
    if state.get("outcome") == Outcome.DONE and result is None:
        message = _nothing_measured(deps)
    if message:
        return _end(deps, SessionState.FAILED, message, result)
    assert result is not None
    return _end(deps, SessionState.FINISHED, result.sentence, result)


def _with_caveats(result: FinalResult | None, deps: Deps) -> FinalResult | None:
    """A verdict says with it how far the training was from what measured it, and what it rests on unseen."""
    if result is None:
        return None
    sides = (result.best_configuration, result.default_configuration)
    trials = deps.book.history().trials
    measured = [t for t in trials if t.state is TrialState.MEASURED and t.configuration in sides]
    said = (result.sentence, measured_apart(measured), caveats(deps.task, measured))
    return replace(result, sentence=" ".join(filter(None, said)))


def _end(deps: Deps, end_state: SessionState, message: str, result: FinalResult | None) -> AgentState:
    publish_plans(deps)
    _end_what_is_left(deps)
    close_gates(deps, "the session ended")
    is_finished = end_state is SessionState.FINISHED
    close_runs(deps, result, status="FINISHED" if is_finished else "FAILED", message=message)
    if result is not None:
        deps.record.save_result(result)
    lines = [Line(step="report", text=message)]
    path = _written(deps, end_state, message, lines)
    deps.record.conclude(end_state, message, report_path=path, lines=lines)
    return {"outcome": Outcome.DONE if is_finished else Outcome.FAILED, "message": message}


def _end_what_is_left(deps: Deps) -> None:
    """Nothing of an ended session runs on or stays open. At a regular end there is nothing left."""
    history = deps.book.history()
    give_up(deps, history.ready, [], "the session ended")
    if not history.in_flight:
        return
    live = live_jobs(deps.runtime, deps.book.session_id)
    cancel_jobs(deps.runtime, sorted(live), reason=f"session {deps.book.session_id} has ended")
    now = deps.clock()
    cancelled = [
        replace(
            trial,
            state=TrialState.INVALID,
            is_submitting=False,
            note="cancelled: the session ended",
            exit_reason="cancelled",
            ended_at=now,
            device_seconds=trial.device_seconds
            + (live[trial.carried_by].device_seconds(now) if trial.carried_by in live else 0.0),
            facts=_with_partial_curve(trial, deps),
        )
        for trial in history.in_flight
    ]
    deps.book.record(cancelled)


def _with_partial_curve(trial: TrialView, deps: Deps) -> TrialFacts:
    """How far it came: evidence, never a value."""
    if trial.carried_by is None:
        return trial.facts
    jobs = (trial.carried_by,) if trial.facts.score_job_id is not None else trial.trained_by
    last = last_finite(read_points(deps.runtime, jobs, metric_of(deps.task, trial)))
    if last is None:
        return trial.facts
    return replace(trial.facts, partial_value=last.value, partial_step=last.step)


def _written(deps: Deps, end_state: SessionState, message: str, lines: list[Line]) -> str | None:
    """The report file's path. A report that can not be written does not take the result away."""
    if deps.write_report is None:
        return None
    view = replace(deps.record.session(), state=end_state, message=message, ended_at=deps.clock())
    try:
        path = deps.write_report(view)
    except RuntimeClientError as error:
        if error.retryable:
            raise
        lines.append(Line(step="report", text=f"the report could not be written: {error.message}"))
        return None
    except (OSError, ValueError, LookupError, ArithmeticError, RuntimeError, TypeError) as error:
        text = (
            f"the report could not be written ({type(error).__name__}: {error}); nightlab research report tries again"
        )
        lines.append(Line(step="report", text=text))
        return None
    if path is not None:
        lines.append(Line(step="report", text=f"the report is at {path}"))
    return path


def _nothing_measured(deps: Deps) -> str:
    spent = deps.memory.plan.spent
    notes = [trial.note for trial in deps.book.history().search if trial.note]
    seen = f"; the last one said: {notes[-1]}" if notes else ""
    because = f"the budget ended first ({spent})" if spent else "every search trial failed"
    return f"no trial gave a value of {deps.task.objective.metric!r}: {because}{seen}"
