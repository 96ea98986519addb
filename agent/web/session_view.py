"""Everything that the page of a session draws, from the store. It changes nothing and asks no runtime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from agent.llm.turns import turns
from agent.planner.calibration import bins, calibration
from agent.planner.effects import Effect, effects
from agent.planner.held_out import HeldOutLedger
from agent.planner.history import History
from agent.planner.hypothesis import Hypothesis
from agent.planner.plan import Plan
from agent.planner.plan_text import UnknownPlanVersion, plan_from_json
from agent.planner.trial_search import Shelf, matching
from agent.report.proposers_table import CONTROL_ARM
from agent.store.calls import model_calls_of
from agent.store.gates import GateStore
from agent.store.journal import Journal
from agent.store.plan_reading import newest_plan, newest_revisions
from agent.store.steering import SteeringStore
from agent.store.store import AgentStore
from agent.store.views import PlanView, TrialView
from agent.task import Direction, Task
from agent.web.events import event_of
from agent.web.reading import arms_of, budgets_of, steering_view, summary
from agent.web.session_claims import claims, ideas, revision_lines
from agent.web.session_progress import progress, shown
from agent.web.session_sorting import Order, sorted_trials
from agent.web.session_wire import Calibrated, EffectLine, SessionPicture, TrialLine, TrialTable

MOST_REVISIONS = 200
MOST_WORDS = 50
MOST_LINES = 60


def picture(store: AgentStore, session_id: str) -> SessionPicture:
    """
    Raises:
        SessionNotFound: there is none of this id.
    """
    session = store.session(session_id)
    people = SteeringStore(store)
    course, said = people.course(session_id), people.steerings(session_id)
    task = course.task
    history = History.of(store.trials(session_id))
    plan = _read(newest_plan(store, session_id), task)
    found, points = progress(task, history)
    return SessionPicture(
        session=summary(session),
        description=task.description,
        metric=task.objective.metric,
        direction=task.objective.direction.value,
        min_effect=task.objective.min_effect,
        target=task.objective.target,
        held_out_metric=None if task.held_out is None else task.held_out.metric,
        parameters=task.space,
        at=store.clock(),
        is_held=store.is_held(session_id),
        activity=tuple(event_of(row) for row in Journal(store).last(session_id, MOST_LINES)),
        n_by_state=Counter(trial.state for trial in history.trials),
        n_by_purpose=Counter(trial.purpose for trial in history.trials),
        phase=None if plan is None else plan.phase.value,
        search_closed=None if plan is None else plan.search_closed,
        spent=None if plan is None else plan.spent,
        claims=() if plan is None else claims(plan, task, history.trials),
        n_claims=0 if plan is None else len(plan.hypotheses),
        ideas=ideas(said, store.suggestions(session_id), history.trials, plan),
        revisions=revision_lines(newest_revisions(store, session_id, MOST_REVISIONS), said),
        waiting_words=tuple(steering_view(one) for one in said if one.taken_at is None)[-MOST_WORDS:],
        forbidden=task.forbid,
        is_paused=course.is_paused,
        is_taken_over=course.is_taken_over,
        progress=found,
        points=shown(points, found),
        n_points=len(points),
        effects=tuple(_effect_line(one) for one in effects(task, history.search)),
        arms=arms_of(history.trials, task.objective.direction is Direction.MAXIMIZE),
        control_arm=CONTROL_ARM,
        budgets=budgets_of(session, task),
        error_budget=None if plan is None else plan.error_budget,
        error_spent=0.0 if plan is None else sum(one.alpha for one in plan.hypotheses),
        calibration=_calibrated(() if plan is None else plan.hypotheses),
        looks=HeldOutLedger.of(task, history).words,
        model=turns(model_calls_of(store, session_id)),
        n_gates_waiting=len(GateStore(store).waiting(session_id)),
    )


def trial_table(
    store: AgentStore, session_id: str, *, words: str, order: Order, descending: bool, offset: int, limit: int
) -> TrialTable:
    """The trials in which every word occurs, in an order.

    Raises:
        SessionNotFound: there is none of this id.
    """
    task = Task.model_validate_json(store.session(session_id).task_json)
    trials = store.trials(session_id)
    found = matching(Shelf(task=task, trials=trials, suggestions=store.suggestions(session_id)), words)
    page = sorted_trials(found, order, descending=descending)[offset : offset + limit]
    return TrialTable(items=tuple(_line(trial) for trial in page), n_found=len(found), n_all=len(trials))


def _read(newest: PlanView | None, task: Task) -> Plan | None:
    try:
        return None if newest is None else plan_from_json(newest.plan_json, task)
    except UnknownPlanVersion:
        return None


def _effect_line(one: Effect) -> EffectLine:
    return EffectLine(
        name=one.name, share=one.share, p_value=one.p_value, trend=one.trend, words=one.words, parts=one.parts
    )


def _calibrated(hypotheses: Sequence[Hypothesis]) -> Calibrated:
    found = calibration(hypotheses)
    return Calibrated(**asdict(found), words=found.words, bins=bins(hypotheses))


def _line(trial: TrialView) -> TrialLine:
    edited = trial.facts.edited
    named = {name: getattr(trial, name) for name in TrialLine.model_fields if name != "code"}
    return TrialLine(**named, code=None if edited is None else edited.size)
