"""Budgets over HTTP: set, lift, look."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from runtime.model.budgets import Budget, BudgetScope
from runtime.scheduling.budgeting import bill
from runtime.server import operator
from runtime.server.api.strict_json import StrictRoute
from runtime.server.envelope import answer
from runtime.server.services import Services, Svc
from runtime_client.models import BudgetRequest, BudgetSelector, BudgetView, Envelope
from runtime_client.models import BudgetScope as WireScope

router = APIRouter(prefix="/v1/budgets", tags=["operator"], route_class=StrictRoute)


@router.get("", response_model=Envelope[list[BudgetView]])
async def list_budgets(services: Svc) -> Response:
    return answer(_views(services))


@router.post("", response_model=Envelope[list[BudgetView]])
async def set_budget(request: BudgetRequest, services: Svc) -> Response:
    """Limit what a session or a project may use. Beyond it jobs are refused, and those that are there end."""
    budget = Budget(scope=BudgetScope(request.scope.value), name=request.name, limit_s=request.device_seconds)
    await services.loop.instruct(operator.set_budget(budget))
    return answer(_views(services))


@router.post("/lift", response_model=Envelope[list[BudgetView]])
async def lift_budget(selector: BudgetSelector, services: Svc) -> Response:
    await services.loop.instruct(operator.lift_budget(BudgetScope(selector.scope.value), selector.name))
    return answer(_views(services))


def _views(services: Services) -> list[BudgetView]:
    state, now_s = services.loop.state, services.loop.clock()
    bills = [bill(state, budget, now_s) for _, budget in sorted(state.budgets.items())]
    return [
        BudgetView(
            scope=WireScope(found.budget.scope.value),
            name=found.budget.name,
            device_seconds=found.budget.limit_s,
            spent=found.spent_s,
            committed=found.committed_s,
            n_unknown=found.n_unknown,
            is_used_up=found.is_used_up,
        )
        for found in bills
    ]
