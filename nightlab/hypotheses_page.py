"""The plan of a session for a person, or as data: hypotheses with their status, calibration, held-out looks."""

from __future__ import annotations

import json
from dataclasses import asdict

from agent.planner.calibration import calibration
from agent.planner.held_out import HeldOutLedger
from agent.planner.history import History
from agent.planner.hypothesis import Hypothesis
from agent.planner.plan import Plan
from agent.planner.plan_text import UnknownPlanVersion, plan_from_json, plan_to_json
from agent.store.store import AgentStore
from agent.task import Task

from .output import plural, print_table


def newest_plan(store: AgentStore, session_id: str) -> Plan | None:
    """None: the session has no plan yet, or a newer nightlab wrote it."""
    plans = store.plans(session_id)
    if not plans:
        return None
    try:
        return plan_from_json(plans[-1].plan_json, _task(store, session_id))
    except UnknownPlanVersion:
        return None


def plan_data(store: AgentStore, session_id: str) -> dict[str, object]:
    """`plan` as in its artifact, and the ledger of the held-out metric."""
    plan = newest_plan(store, session_id)
    ledger = _ledger(store, session_id)
    return {
        "plan": None if plan is None else json.loads(plan_to_json(plan)),
        "held_out": {"metric": ledger.metric, "n_used": ledger.n_used, "n_allowed": ledger.n_allowed},
        "looks": [asdict(look) for look in store.looks(session_id)],
    }


def print_plan(store: AgentStore, session_id: str) -> None:
    plan = newest_plan(store, session_id)
    if plan is None:
        return
    print()
    print_table(
        ("claim", "status", "predicted", "evidence", "what is claimed"),
        [_row(claim) for claim in plan.hypotheses],
        state_column=1,
    )
    spent = 100 * sum(claim.alpha for claim in plan.hypotheses)
    print(f"  error budget {100 * plan.error_budget:g} %, {spent:.3g} % of chance given to claims")
    print(f"  {calibration(plan.hypotheses).words}")
    print(f"  {_ledger(store, session_id).words}")


def _row(claim: Hypothesis) -> tuple[str, ...]:
    needed = 1 / claim.alpha
    held = f"{claim.e_value:.3g} of {needed:.4g}, {plural(claim.n_pairs, 'pair')}" if claim.n_pairs else ""
    return (
        claim.hypothesis_id,
        claim.status.value,
        f"{claim.prediction.probability:.0%}",
        held,
        claim.statement,
    )


def _ledger(store: AgentStore, session_id: str) -> HeldOutLedger:
    return HeldOutLedger.of(_task(store, session_id), History.of(store.trials(session_id)))


def _task(store: AgentStore, session_id: str) -> Task:
    return Task.model_validate_json(store.session(session_id).task_json)
