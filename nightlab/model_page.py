"""The calls of a session's language model for a person: one by one, and summed by what they were for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent.llm.chat import Outcome
from agent.store.views import ModelCallView

from .output import ago, duration, plural, print_table


@dataclass(frozen=True, slots=True, kw_only=True)
class PurposeSum:
    """What the calls for one purpose came to."""

    purpose: str
    n_calls: int
    n_used: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float
    n_unpriced: int
    """Calls that used tokens whose price is unknown; their money is not in the sum."""


def by_purpose(calls: Iterable[ModelCallView]) -> list[PurposeSum]:
    """The sums, the most tokens first."""
    grouped: dict[str, list[ModelCallView]] = {}
    for call in calls:
        grouped.setdefault(call.purpose, []).append(call)
    sums = [
        PurposeSum(
            purpose=purpose,
            n_calls=len(group),
            n_used=sum(call.outcome == Outcome.USED for call in group),
            prompt_tokens=sum(call.prompt_tokens for call in group),
            completion_tokens=sum(call.completion_tokens for call in group),
            cost_usd=sum(call.cost_usd or 0.0 for call in group),
            n_unpriced=sum(call.cost_usd is None and call.prompt_tokens > 0 for call in group),
        )
        for purpose, group in grouped.items()
    ]
    return sorted(sums, key=lambda row: (-row.prompt_tokens - row.completion_tokens, row.purpose))


def model_lines(calls: Sequence[ModelCallView]) -> list[str]:
    """A sentence for each purpose; none where no model was asked."""
    return [
        f"model for {row.purpose}: {plural(row.n_calls, 'call')}, {row.n_used} used, "
        f"{row.prompt_tokens + row.completion_tokens:,} tokens, {_money(row)}"
        for row in by_purpose(calls)
    ]


def print_calls(calls: Sequence[ModelCallView], limit: int) -> None:
    if not calls:
        print("no model was asked")
        return
    print_table(
        ("#call", "asked", "for", "rung", "outcome", "#prompt", "#answer", "#USD", "took", "note"),
        [
            (
                str(call.call_id),
                ago(call.at),
                call.purpose,
                call.rung or "",
                call.outcome,
                f"{call.prompt_tokens:,}",
                f"{call.completion_tokens:,}",
                "?" if call.cost_usd is None else f"{call.cost_usd:.4f}",
                duration(call.took_s),
                call.note or "",
            )
            for call in calls[-limit:]
        ],
        state_column=4,
    )
    print()
    for line in model_lines(calls):
        print(line)


def _money(row: PurposeSum) -> str:
    if row.n_unpriced == row.n_calls:
        return "price unknown"
    unpriced = f" and {plural(row.n_unpriced, 'call')} of unknown price" if row.n_unpriced else ""
    return f"{row.cost_usd:.4f} USD{unpriced}"
