"""From the store to what the API says. It changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agent.gates.gate import Gate
from agent.llm.turns import turns
from agent.planner.budget import Cap, Spend, caps
from agent.planner.hypothesis import Hypothesis
from agent.planner.plan_text import UnknownPlanVersion, plan_from_json
from agent.store.calls import model_calls_of
from agent.store.gates import GateStore
from agent.store.steering import Steering, SteeringStore
from agent.store.store import AgentStore
from agent.store.views import PlanView, SessionView, TrialState, TrialView
from agent.task import Direction, Task
from agent.web.wire import (
    Arm,
    Best,
    GateDiff,
    GateView,
    Revision,
    SessionDetail,
    SessionSummary,
    SteeringView,
    SteeringWord,
)


def summary(session: SessionView) -> SessionSummary:
    return SessionSummary(**{name: getattr(session, name) for name in SessionSummary.model_fields})


def detail(store: AgentStore, session_id: str) -> SessionDetail:
    """
    Raises:
        SessionNotFound: there is none of this id.
    """
    session = store.session(session_id)
    course = SteeringStore(store).course(session_id)
    task = course.task
    trials, plans = store.trials(session_id), store.plans(session_id)
    is_maximized = task.objective.direction is Direction.MAXIMIZE
    top = _best(trials, is_maximized)
    return SessionDetail(
        **{name: getattr(session, name) for name in SessionSummary.model_fields},
        metric=task.objective.metric,
        direction=task.objective.direction.value,
        best=None if top is None else Best(trial_id=top.trial_id, value=top.value or 0.0, params=top.params),
        phase=plans[-1].phase if plans else None,
        hypotheses=_hypotheses(plans, task),
        revisions=tuple(Revision(revision=p.revision, at=p.at, phase=p.phase, reason=p.reason) for p in plans),
        budgets=budgets_of(session, task),
        arms=arms_of(trials, is_maximized),
        model=turns(model_calls_of(store, session_id)),
        n_gates_waiting=len(GateStore(store).waiting(session_id)),
        forbidden=task.forbid,
        is_paused=course.is_paused,
        is_taken_over=course.is_taken_over,
    )


def gate_view(gate: Gate, now: float) -> GateView:
    return GateView(gate=gate, is_waiting=gate.is_waiting(now))


def gate_diff(store: AgentStore, home: Path | None, gate: Gate) -> GateDiff | None:
    """None: it is about no edited code, or that is not there any more."""
    from agent.coding.diff import diff_of

    code = None if gate.trial is None else gate.trial.facts.edited
    if code is None or home is None:
        return None
    task = Task.model_validate_json(store.session(gate.session_id).task_json)
    found = diff_of(code, task, home, gate.session_id)
    return None if found is None else GateDiff(diff=found.text, is_cut=found.is_cut)


def steering_view(one: Steering) -> SteeringView:
    word = SteeringWord(**{name: getattr(one.word, name) for name in SteeringWord.model_fields})
    return SteeringView(
        steering_id=one.steering_id,
        session_id=one.session_id,
        at=one.at,
        by=one.by,
        word=word,
        words=one.words,
        taken_at=one.taken_at,
    )


def _hypotheses(plans: Sequence[PlanView], task: Task) -> tuple[Hypothesis, ...]:
    """Of the newest revision; none where a newer nightlab wrote it."""
    try:
        return plan_from_json(plans[-1].plan_json, task).hypotheses if plans else ()
    except UnknownPlanVersion:
        return ()


def budgets_of(session: SessionView, task: Task) -> tuple[Cap, ...]:
    spend = Spend.of(session)
    return caps(task.budgets, spend)


def _best(trials: Sequence[TrialView], is_maximized: bool) -> TrialView | None:
    measured = [t for t in trials if t.state is TrialState.MEASURED and t.value is not None]
    if not measured:
        return None
    return (max if is_maximized else min)(measured, key=lambda trial: trial.value or 0.0)


def arms_of(trials: Sequence[TrialView], is_maximized: bool) -> tuple[Arm, ...]:
    """In the order in which they first suggested something."""
    by_name: dict[str, list[TrialView]] = {}
    for trial in trials:
        by_name.setdefault(trial.suggested_by, []).append(trial)
    found = []
    for name, mine in by_name.items():
        top = _best(mine, is_maximized)
        n_measured = sum(1 for trial in mine if trial.state is TrialState.MEASURED)
        best_value = None if top is None else top.value
        found.append(Arm(suggested_by=name, n_trials=len(mine), n_measured=n_measured, best_value=best_value))
    return tuple(found)
