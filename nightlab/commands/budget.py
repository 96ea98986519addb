"""`nightlab budget ...`: how much device time a session or a project may use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import wrong_use
from nightlab.output import print_json, print_table

from .options import HomeOption, JsonOption, runtime
from .selectors import ProjectOption, SessionOption

if TYPE_CHECKING:
    from runtime_client.models import BudgetScope, BudgetView

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="How much device time a session or a project may use: list, set, lift.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example:  nightlab budget set --project vision --device-hours 200",
)


@app.callback()
def _budget() -> None:
    """How much device time a session or a project may use."""


@app.command("list", epilog="Example:  nightlab budget list --json")
def list_budgets(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show every budget, what was spent of it, and what its live jobs are expected to need."""
    with runtime(home) as client:
        _show(client.budgets(), as_json)


@app.command("set", epilog="Example:  nightlab budget set --session s1 --device-hours 8")
def set_budget(
    device_hours: Annotated[
        float, typer.Option(help="All that its jobs may use, with what they have used.", min=1e-6, show_default=False)
    ],
    session: SessionOption = None,
    project: ProjectOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Limit the device time of a session or a project.

    Jobs that it has no room for are refused. When it is used up, what runs gets its notice and its grace and ends,
    and what waits has ended (over_budget).
    """
    scope, name = _selected(session, project)
    with runtime(home) as client:
        _show(client.set_budget(scope, name, device_seconds=device_hours * 3600), as_json)


@app.command("lift", epilog="Example:  nightlab budget lift --project vision")
def lift_budget(
    session: SessionOption = None,
    project: ProjectOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a budget away; what was spent stays counted."""
    scope, name = _selected(session, project)
    with runtime(home) as client:
        _show(client.lift_budget(scope, name), as_json)


def _selected(session: str | None, project: str | None) -> tuple[BudgetScope, str]:
    """
    Raises:
        Failure: none or both are given.
    """
    from runtime_client.models import BudgetScope

    named = {BudgetScope.SESSION: session, BudgetScope.PROJECT: project}
    given = [(scope, name) for scope, name in named.items() if name]
    if len(given) != 1:
        raise wrong_use("give exactly one of --session, --project.", code="bad_selector")
    return given[0]


def _show(budgets: list[BudgetView], as_json: bool) -> None:
    if as_json:
        print_json(budgets)
        return
    if not budgets:
        print("there are no budgets")
        return
    rows = [
        (
            f"{budget.scope.value} {budget.name}",
            f"{budget.device_seconds / 3600:.4g}",
            f"{budget.spent / 3600:.4g}",
            f"{budget.committed / 3600:.4g}",
            "used up" if budget.is_used_up else f"{max(0.0, budget.device_seconds - budget.spent) / 3600:.4g}",
        )
        for budget in budgets
    ]
    print_table(("budget", "#device-hours", "#spent", "#expected", "#left"), rows)
