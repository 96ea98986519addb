"""What was said: claims and their state, lessons, people's ideas, and what was refused. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agent.planner.hypothesis import Hypothesis
from agent.store.views import SuggestionView
from agent.thinking.lessons import Lesson

from .table import NOTHING, Table, more, number, shown


def claims(hypotheses: Sequence[Hypothesis], n: int) -> Table:
    """What is claimed, what was predicted, how it stands: open ones first, then the newest."""
    ordered = sorted(hypotheses, key=lambda h: (not h.is_open, -h.opened_at))
    rows = tuple(
        (
            h.hypothesis_id,
            h.statement,
            f"{h.prediction.probability:.2g}",
            NOTHING if h.prediction.effect is None else number(h.prediction.effect),
            h.status.value,
            f"{h.n_pairs} pairs",
        )
        for h in ordered[:n]
    )
    columns = ("claim", "statement", "predicted chance", "predicted gain", "state", "evidence")
    return Table(name="claims", columns=columns, rows=rows, note=more(len(hypotheses), len(rows), "claims"))


def lessons(known: Sequence[Lesson]) -> Table:
    rows = tuple((str(one.number), one.text, " ".join(one.evidence)) for one in known)
    return Table(name="lessons", columns=("lesson", "text", "shown by"), rows=rows, is_untrusted=True)


def ideas(suggestions: Sequence[SuggestionView], n: int) -> Table:
    """What people suggested, newest last."""
    rows = tuple(
        (
            str(one.suggestion_id),
            " ".join(f"{name}={shown(value)}" for name, value in one.params.items()),
            one.why,
            one.trial_id or (f"not tried: {one.note}" if one.note else "waits"),
        )
        for one in suggestions[max(len(suggestions) - n, 0) :]
    )
    columns = ("idea", "parameters", "why", "became")
    note = more(len(suggestions), len(rows), "ideas")
    return Table(name="people's ideas", columns=columns, rows=rows, note=note, is_untrusted=True)


def refusals(said: Sequence[str]) -> Table:
    """What was not taken of the last answer, and why."""
    return Table(name="refused", columns=("why",), rows=tuple((one,) for one in said), is_untrusted=True)
