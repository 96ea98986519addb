"""`CallBook`: each call of a language model as a row, with what it used, in one transaction with the session's sums."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa

from agent.store import rows
from agent.store.fenced import FencedWriter
from agent.store.store import AgentStore
from agent.store.tables import model_calls, sessions
from agent.store.views import ModelCallView, SessionView

OPEN = "open"
"""Outcome of a call that was begun: it lasts, or its process was killed."""
CUT_OFF = "cut_off"
"""Outcome of a call whose process ended before it: nobody will ever know what came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """What is known of a call before it is made."""

    purpose: str
    model: str
    prompt_version: str | None = None
    rung: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Tokens, and what they cost."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    """None: the price is unknown; nothing is added to the money of the session."""

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a call ended."""

    outcome: str
    used: Used
    took_s: float
    model: str | None = None
    """As the endpoint names it; None: as it was asked for."""
    note: str | None = None


class CallBook:
    """Of one session; fenced. May be used from several threads."""

    def __init__(self, writer: FencedWriter) -> None:
        self._writer = writer

    def begin(
        self, facts: CallFacts, decide: Callable[[SessionView], Used | str], refused: str
    ) -> tuple[int, Used | str]:
        """Write a call down with what it may use at most, or that it was not allowed; its number, and which of both.

        Args:
            decide: given the session, what is booked, or the reason why the call may not be made.
            refused: outcome of a call that may not be made.

        Raises:
            FenceLost: another process works on the session; nothing was written.
        """
        mine = sessions.c.session_id == self._writer.session_id
        with self._writer.writing() as connection:
            row = connection.execute(sa.select(sessions).where(mine)).mappings().one()
            decided = decide(rows.session_view(row))
            is_refused = isinstance(decided, str)
            used = Used() if isinstance(decided, str) else decided
            values = {
                "session_id": self._writer.session_id,
                "at": self._writer.store.clock(),
                "purpose": _fit(facts.purpose, 60),
                "prompt_version": _fit(facts.prompt_version, 80),
                "model": _fit(facts.model, 200),
                "rung": facts.rung,
                "outcome": refused if is_refused else OPEN,
                "note": decided if isinstance(decided, str) else None,
                **_amounts(used),
            }
            made = connection.execute(sa.insert(model_calls).returning(model_calls.c.call_id), values)
            call_id = int(made.scalar_one())
            self._writer.add(connection, tokens=used.tokens, cost_usd=used.cost_usd or 0.0)
        return call_id, decided

    def end(self, call_id: int, ended: Ended) -> None:
        """Correct what was booked to what was used, and tell how it ended.

        Raises:
            FenceLost: another process works on the session; what was booked stays.
        """
        this = self._is(call_id)
        with self._writer.writing() as connection:
            booked = connection.execute(sa.select(model_calls).where(this)).mappings().one()
            more = ended.used.tokens - booked["prompt_tokens"] - booked["completion_tokens"]
            more_usd = (ended.used.cost_usd or 0.0) - (booked["cost_usd"] or 0.0)
            self._writer.add(connection, tokens=more, cost_usd=more_usd)
            values = {
                "outcome": ended.outcome,
                "took_s": ended.took_s,
                "note": _fit(ended.note, 2000),
                "model": _fit(ended.model, 200) or booked["model"],
                **_amounts(ended.used),
            }
            connection.execute(sa.update(model_calls).where(this).values(**values))

    def judge(self, call_id: int, outcome: str, note: str | None) -> None:
        """Tell what became of a reply once it has been read.

        Raises:
            FenceLost: another process works on the session.
        """
        values = {"outcome": outcome, "note": _fit(note, 2000)}
        with self._writer.writing() as connection:
            connection.execute(sa.update(model_calls).where(self._is(call_id)).values(**values))

    def close_open(self) -> int:
        """Write down that the calls of earlier processes are lost; how many. What was booked for them stays.

        To be called before the first call of this process: the fence says that no other one makes any.

        Raises:
            FenceLost: another process works on the session; nothing was written.
        """
        values = {"outcome": CUT_OFF, "note": "its process ended before an answer came; what was booked for it stays"}
        mine = (model_calls.c.session_id == self._writer.session_id) & (model_calls.c.outcome == OPEN)
        with self._writer.writing() as connection:
            return connection.execute(sa.update(model_calls).where(mine).values(**values)).rowcount

    def calls(self) -> list[ModelCallView]:
        return model_calls_of(self._writer.store, self._writer.session_id)

    def _is(self, call_id: int) -> sa.ColumnElement[bool]:
        return (model_calls.c.session_id == self._writer.session_id) & (model_calls.c.call_id == call_id)


def model_calls_of(store: AgentStore, session_id: str) -> list[ModelCallView]:
    """All calls of a session, oldest first."""
    query = sa.select(model_calls).where(model_calls.c.session_id == session_id).order_by(model_calls.c.call_id)
    with store.engine.connect() as connection:
        return [_view(row) for row in connection.execute(query).mappings()]


def _view(row: sa.RowMapping) -> ModelCallView:
    return ModelCallView(
        call_id=row["call_id"],
        at=row["at"],
        purpose=row["purpose"],
        prompt_version=row["prompt_version"],
        model=row["model"],
        rung=row["rung"],
        outcome=row["outcome"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        cost_usd=row["cost_usd"],
        took_s=row["took_s"],
        note=row["note"],
    )


def _amounts(used: Used) -> dict[str, float | int | None]:
    return {
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
        "cost_usd": used.cost_usd,
    }


def _fit(text: str | None, length: int) -> str | None:
    """What endpoints say is cut to what a column takes, without signs that no database takes."""
    if text is None:
        return None
    return "".join(sign for sign in text if unicodedata.category(sign) not in ("Cc", "Cs"))[:length]
