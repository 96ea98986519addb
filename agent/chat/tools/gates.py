"""Questions that sessions ask of people: which wait, and answering them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import Field

from agent.chat.tool import Desk, Foreseen, Result, Slash
from agent.gates.gate import Answer, Gate
from agent.planner.budget import HOUR_S
from agent.store.gates import GateNotFound, GateStore
from agent.task import Task
from agent.tools.errors import FixAndRetry, ToolFailed

from .finding import session_id_of
from .made import Acts, Reads
from .showing import duration, line, number, plural, result, table
from .words import Arguments, OfSession, Words, of_session


class OfGate(Arguments):
    gate: int = Field(description="Number of the question.", ge=1)
    note: str | None = Field(default=None, description="Said with the answer; the session reads it.", max_length=500)


def _gates(desk: Desk, arguments: OfSession) -> Result:
    wanted = desk.session_id if arguments.session is None else session_id_of(desk, arguments.session)
    waiting, now = GateStore(desk.store).waiting(wanted), desk.store.clock()
    whose = "" if wanted is None else f" of {wanted}"
    if not waiting:
        return result(f"no question{whose} waits for a person")
    rows = [
        (
            one.gate_id,
            one.session_id,
            one.kind.value,
            one.text,
            number(one.cost_device_s),
            f"in {duration(max(one.answer_by - now, 0.0))}, then {one.unanswered.value}",
        )
        for one in waiting
    ]
    columns = ("question", "session", "about", "what is asked", "device-seconds", "answer")
    said = f"{plural(len(waiting), 'question')}{whose}: /approve N or /deny N"
    return result(said, table=table(columns, rows))


def _ahead(answer: Answer) -> Callable[[Desk, OfGate], Foreseen]:
    def foreseen(desk: Desk, arguments: OfGate) -> Foreseen:
        gate = _gate(desk, arguments.gate)
        if not gate.is_waiting(desk.store.clock()):
            raise ToolFailed(f"question {gate.gate_id} is over: {gate.words}", code="answered_before")
        what = f"{answer.value} question {gate.gate_id} of {gate.session_id}: {line(gate.text)}"
        if answer is not Answer.APPROVE:
            return Foreseen(what=what, asks=True, why="it changes what the session does", device_seconds=0.0)
        rate = Task.model_validate_json(desk.store.session(gate.session_id).task_json).budgets.usd_per_device_hour
        seconds = gate.cost_device_s
        usd = None if seconds is None or rate is None else seconds / HOUR_S * rate
        return Foreseen(what=what, asks=True, why="it lets the session do it", device_seconds=seconds, cost_usd=usd)

    return foreseen


def _answer(answer: Answer) -> Callable[[Desk, OfGate, str], Result]:
    def done(desk: Desk, arguments: OfGate, by: str) -> Result:
        _gate(desk, arguments.gate)
        told = GateStore(desk.store).answer(arguments.gate, answer, by=by, note=arguments.note)
        if not told.is_first:
            raise ToolFailed(f"question {arguments.gate} is over: {told.gate.words}", code="answered_before")
        return result(f"question {arguments.gate} of {told.gate.session_id} is {told.gate.words}")

    return done


def _gate(desk: Desk, gate_id: int) -> Gate:
    try:
        return GateStore(desk.store).gate(gate_id)
    except GateNotFound as error:
        waiting = ", ".join(str(one.gate_id) for one in GateStore(desk.store).waiting()) or "none"
        raise FixAndRetry(f"there is no question {gate_id}; waiting: {waiting}", code="unknown_gate") from error


def _of_gate(words: Words) -> dict[str, Any]:
    if not words:
        raise ValueError("N is missing: the number of a question, as /gates tells")
    note = " ".join(words[1:])
    return {"gate": words[0], **({"note": note} if note else {})}


TOOLS = (
    Reads(
        name="list_gates",
        description="Questions of sessions that wait for a person, with cost and deadline.",
        arguments=OfSession,
        slash=Slash(name="gates", usage="/gates [SESSION]", summary="questions that wait for you", parse=of_session),
        look=_gates,
    ),
    Acts(
        name="approve_gate",
        description="Approve what a session asks of people.",
        arguments=OfGate,
        slash=Slash(name="approve", usage="/approve N [NOTE]", summary="approve what a session asks", parse=_of_gate),
        ahead=_ahead(Answer.APPROVE),
        do=_answer(Answer.APPROVE),
    ),
    Acts(
        name="deny_gate",
        description="Deny what a session asks of people; a note tells it why.",
        arguments=OfGate,
        slash=Slash(name="deny", usage="/deny N [NOTE]", summary="deny what a session asks", parse=_of_gate),
        ahead=_ahead(Answer.DENY),
        do=_answer(Answer.DENY),
    ),
)
