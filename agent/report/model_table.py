"""What came of asking the session's language model: calls, lost turns with their reasons, money, steps. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent.llm.turns import RungStep, Turns, rung_steps, turns

from . import wording
from .facts import ReportInput


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTable:
    name: str
    turns: Turns
    rows: tuple[tuple[str, str], ...]
    """What, and how much of it."""
    steps: tuple[RungStep, ...]


def model_table(facts: ReportInput) -> ModelTable | None:
    """None: the task names no model, or it was never to be asked."""
    model = facts.task.model
    if model is None or not facts.model_calls:
        return None
    found = turns(facts.model_calls)
    return ModelTable(name=model.name, turns=found, rows=_rows(found), steps=rung_steps(facts.model_calls, model.rung))


def _rows(found: Turns) -> tuple[tuple[str, str], ...]:
    percent = wording.NONE if found.lost_turns_percent is None else f"{found.lost_turns_percent:g} %"
    price = f" and {found.n_without_price} calls of unknown price" if found.n_without_price else ""
    return (
        ("calls", str(found.n_calls)),
        ("answered", str(found.n_answered)),
        ("lost", f"{found.n_lost} ({percent})"),
        *((f"lost: {one.reason.replace('_', ' ')}", str(one.n_calls)) for one in found.lost),
        *((("not made (over budget or forbidden)", str(found.n_not_made)),) if found.n_not_made else ()),
        ("tokens", f"{found.tokens:,}"),
        ("cost in USD", f"{found.cost_usd:.4g}{price}"),
    )
