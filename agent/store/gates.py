"""Questions to people as rows: `GateStore` for everybody who reads and answers, `GateBook` for the session that asks.

The first answer counts, whoever gives it: a person, another person in the same instant, or the deadline. An answer that
comes after the deadline finds it passed, also where the session was not there to see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from agent.gates.freedom import Known, Ruling
from agent.gates.gate import DEADLINE, SESSION, Answer, Gate, GateKind
from agent.store import rows
from agent.store.fenced import FencedWriter, Line
from agent.store.schema import writing
from agent.store.store import AgentStore
from agent.store.tables import activity, gates

_OPEN = gates.c.answer.is_(None)


class GateNotFound(Exception):
    """There is no question of that number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    gate: Gate
    """As it is now."""
    is_first: bool
    """False: it was answered before, by a person or by its deadline; what was said now changes nothing."""


class GateStore:
    def __init__(self, store: AgentStore) -> None:
        self._store = store

    def gates(self, session_id: str | None = None) -> list[Gate]:
        """Every question, or those of one session, oldest first."""
        query = sa.select(gates).order_by(gates.c.gate_id)
        if session_id is not None:
            query = query.where(gates.c.session_id == session_id)
        with self._store.engine.connect() as connection:
            return [_gate(row) for row in connection.execute(query).mappings()]

    def waiting(self, session_id: str | None = None) -> list[Gate]:
        """Those that a person can still answer, the most urgent first."""
        now = self._store.clock()
        open_ones = [gate for gate in self.gates(session_id) if gate.is_waiting(now)]
        return sorted(open_ones, key=lambda gate: (gate.answer_by, gate.gate_id))

    def gate(self, gate_id: int) -> Gate:
        """
        Raises:
            GateNotFound: the message says how to find its number.
        """
        with self._store.engine.connect() as connection:
            return _read(connection, gate_id)

    def answer(self, gate_id: int, answer: Answer, *, by: str, note: str | None = None) -> Answered:
        """Answer a question; what the command line calls, and any other door to people.

        Args:
            by: user name of whoever answers.

        Raises:
            GateNotFound: as `gate`.
        """
        with writing(self._store.engine) as connection:
            now = self._store.clock()
            given = {"answer": answer.value, "answered_by": by, "answered_at": now, "note": note}
            in_time = gates.c.answer_by > now
            mine = gates.c.gate_id == gate_id
            done = connection.execute(sa.update(gates).where(mine, _OPEN, in_time).values(**given))
            if not done.rowcount:
                _settle_overdue(connection, mine, now)
            gate = _read(connection, gate_id)
            if done.rowcount:
                said = {"session_id": gate.session_id, "at": now, "step": "gate", "text": _line(gate).text}
                connection.execute(sa.insert(activity).values(**said))
            return Answered(gate=gate, is_first=bool(done.rowcount))


class GateBook:
    """The questions of one session, as its own process asks them and reads the answers."""

    def __init__(self, writer: FencedWriter) -> None:
        self._writer = writer
        self._mine = gates.c.session_id == writer.session_id

    def known(self) -> Known:
        with self._writer.store.engine.connect() as connection:
            found = [_gate(row) for row in connection.execute(sa.select(gates).where(self._mine)).mappings()]
        return {(gate.kind, gate.subject): gate for gate in found}

    def has_answers(self, gate_ids: Sequence[int]) -> bool:
        """Whether one of these has been answered, or its deadline has come."""
        is_over = sa.or_(sa.not_(_OPEN), gates.c.answer_by <= self._writer.store.clock())
        query = sa.select(gates.c.gate_id).where(gates.c.gate_id.in_(gate_ids), is_over).limit(1)
        with self._writer.store.engine.connect() as connection:
            return connection.execute(query).first() is not None

    def ask(self, rulings: Sequence[Ruling], *, answer_within_s: float, unanswered: Answer) -> list[Gate]:
        """Ask once about each, with a line of activity, in one transaction. What was withdrawn is asked anew."""
        if not rulings:
            return []
        now = self._writer.store.clock()
        made = []
        with self._writer.writing() as connection:
            for one in rulings:
                made.append(self._ask(connection, one, now, now + answer_within_s, unanswered))
            self._writer.say(connection, [_asked_line(gate, answer_within_s) for gate in made])
        return made

    def settle(self) -> list[Gate]:
        """Write the declared answer beside each question whose deadline has come; those that it was written to."""
        now = self._writer.store.clock()
        with self._writer.writing() as connection:
            settled = _settle_overdue(connection, self._mine, now)
            self._writer.say(connection, [_line(gate) for gate in settled])
        return settled

    def withdraw(self, unwanted: Sequence[Gate], why: str) -> None:
        """Close questions that nobody needs to answer any more; an answer that came in between stays."""
        if not unwanted:
            return
        now = self._writer.store.clock()
        ids = [gate.gate_id for gate in unwanted]
        given = {"answer": Answer.WITHDRAWN.value, "answered_by": SESSION, "answered_at": now, "note": why}
        with self._writer.writing() as connection:
            query = sa.update(gates).where(gates.c.gate_id.in_(ids), _OPEN).values(**given).returning(gates)
            closed = [_gate(row) for row in connection.execute(query).mappings()]
            self._writer.say(connection, [_line(gate) for gate in closed])

    def _ask(self, connection: sa.Connection, one: Ruling, now: float, answer_by: float, unanswered: Answer) -> Gate:
        assert one.kind is not None
        values = {
            "text": f"{one.action.what} [{one.why}]",
            "trial": None if one.action.trial is None else rows.trial_row(one.action.trial),
            "cost_device_s": one.action.cost_device_s,
            "asked_at": now,
            "answer_by": answer_by,
            "unanswered": unanswered.value,
            **dict.fromkeys(("answer", "answered_by", "answered_at", "note")),
        }
        which = {"session_id": self._writer.session_id, "kind": one.kind.value, "subject": one.action.subject}
        same = sa.and_(*(gates.c[name] == value for name, value in which.items()))
        again = sa.update(gates).where(same).values(**values).returning(gates)
        row = connection.execute(again).mappings().first()
        if row is None:
            row = connection.execute(sa.insert(gates).values(**which, **values).returning(gates)).mappings().one()
        return _gate(row)


def _settle_overdue(connection: sa.Connection, which: sa.ColumnElement[bool], now: float) -> list[Gate]:
    """The declared answer of what is open past its deadline, as of the deadline."""
    given = {"answer": gates.c.unanswered, "answered_by": DEADLINE, "answered_at": gates.c.answer_by}
    query = sa.update(gates).where(which, _OPEN, gates.c.answer_by <= now).values(**given).returning(gates)
    return [_gate(row) for row in connection.execute(query).mappings()]


def _asked_line(gate: Gate, answer_within_s: float) -> Line:
    text = (
        f"gate {gate.gate_id} asks: {gate.text}; answer with: nightlab gate approve {gate.gate_id} (or deny); "
        f"without an answer within {answer_within_s / 60:g} minutes: {gate.unanswered}"
    )
    return Line(step="review", text=text)


def _line(gate: Gate) -> Line:
    return Line(step="review", text=f"gate {gate.gate_id} is {gate.words}")


def _read(connection: sa.Connection, gate_id: int) -> Gate:
    row = connection.execute(sa.select(gates).where(gates.c.gate_id == gate_id)).mappings().first()
    if row is None:
        raise GateNotFound(f"no gate {gate_id}; find its number with: nightlab gate list")
    return _gate(row)


def _gate(row: sa.RowMapping) -> Gate:
    read = {
        "kind": GateKind(row["kind"]),
        "trial": None if row["trial"] is None else rows.trial_view(row["trial"]),
        "unanswered": Answer(row["unanswered"]),
        "answer": None if row["answer"] is None else Answer(row["answer"]),
    }
    return Gate(**{**row, **read})
