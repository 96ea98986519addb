"""Whether budgets have room for a job that is submitted."""

from __future__ import annotations

from runtime.model.budgets import Budget, BudgetScope
from runtime.model.nouns import Job
from runtime.model.state import State
from runtime.scheduling.budgeting import asked_s, bill, explain_shortage
from runtime_client.doors.refusal import refused
from runtime_client.models import ErrorKind, JobSpec


def check_budgets(state: State, job: Job, spec: JobSpec, *, now_s: float) -> None:
    """
    Raises:
        Refused: a budget has no room for it; with the arithmetic. Retryable when there will be, should live jobs end
            sooner than they are expected to.
    """
    brought = new_budget(state, spec)
    budgets = {budget.key: budget for budget in state.budgets.values() if budget.covers(job)}
    if brought is not None:
        budgets[brought.key] = brought
    asked = asked_s(state, job)
    for budget in budgets.values():
        found = bill(state, budget, now_s)
        if found.is_used_up or found.lacks_s(asked or 0.0) > 0:
            message = f"{explain_shortage(found, asked)}; ask for less, or raise it with `nightlab budget set`"
            has_room = not found.is_used_up and found.spent_s + (asked or 0.0) <= budget.limit_s
            raise refused(
                ErrorKind.OVER_BUDGET, "over_budget", message, path="compute.num_accelerators", retryable=has_room
            )


def new_budget(state: State, spec: JobSpec) -> Budget | None:
    """The budget that a submission brings for its session, which has none yet; None: it brings none, or one is set.

    A person's word counts: what was set by hand is not changed by what a session brings.
    """
    if spec.session is None or spec.session.device_seconds is None:
        return None
    budget = Budget(scope=BudgetScope.SESSION, name=spec.session.session_id, limit_s=spec.session.device_seconds)
    return None if budget.key in state.budgets else budget
