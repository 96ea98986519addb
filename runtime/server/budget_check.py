"""Whether budgets have room for a job that is submitted."""

from __future__ import annotations

from runtime.model.budgets import Budget, BudgetScope, budget_key
from runtime.model.events import BudgetLifted, BudgetSet
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
    budgets = {budget.key: budget for budget in state.budgets.values() if budget.covers(job)}
    for event in brought_by(state, spec):
        if isinstance(event, BudgetSet):
            budgets[event.budget.key] = event.budget
        else:
            budgets.pop(budget_key(event.scope, event.name))
    asked = asked_s(state, job)
    for budget in budgets.values():
        found = bill(state, budget, now_s)
        if found.is_used_up or found.lacks_s(asked or 0.0) > 0:
            message = f"{explain_shortage(found, asked)}; ask for less, or raise it with `nightlab budget set`"
            has_room = not found.is_used_up and found.spent_s + (asked or 0.0) <= budget.limit_s
            raise refused(
                ErrorKind.OVER_BUDGET, "over_budget", message, path="compute.num_accelerators", retryable=has_room
            )


def brought_by(state: State, spec: JobSpec) -> list[BudgetSet | BudgetLifted]:
    """What a submission changes of its session's budget: it brings the first one, another one, or none any more.

    A person's word counts: what was set by hand is not changed by what a session brings.
    """
    if spec.session is None:
        return []
    name, limit_s = spec.session.session_id, spec.session.device_seconds
    known = state.budgets.get(budget_key(BudgetScope.SESSION, name))
    if known is not None and not known.is_brought:
        return []
    if limit_s is None:
        return [] if known is None else [BudgetLifted(scope=BudgetScope.SESSION, name=name)]
    budget = Budget(scope=BudgetScope.SESSION, name=name, limit_s=limit_s, is_brought=True)
    return [] if budget == known else [BudgetSet(budget=budget)]
