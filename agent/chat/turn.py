"""One turn by its entries: what is due next in it, and how much it has asked for. Pure; nothing else remembers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from agent.chat.entry import AnswerPart, AskPart, CallPart, Entry, EntryKind, ResultPart


class Step(StrEnum):
    ASK_MODEL = "ask_model"
    """It is the model's turn to speak."""
    CALL = "call"
    """A call has no result yet."""
    WAIT = "wait"
    """A person has to answer first."""
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A call without a result."""

    call: Entry
    part: CallPart
    ask: Entry | None = None
    """The newest question about it; None: nobody was asked."""
    answer: Entry | None = None
    """What was answered to that question."""


def turns(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The entries by turns, oldest first; each begins with what a person said."""
    found: list[list[Entry]] = []
    for one in entries:
        if one.kind is EntryKind.SAID or not found:
            found.append([])
        found[-1].append(one)
    return found


def next_step(turn: Sequence[Entry]) -> Step:
    if not turn or turn[-1].ends_turn:
        return Step.OVER
    found = pending(turn)
    if found is None:
        return Step.ASK_MODEL
    return Step.WAIT if found.ask is not None and found.answer is None else Step.CALL


def pending(turn: Sequence[Entry]) -> Pending | None:
    """The first call that has no result; calls are done one after the other."""
    done = {part.call_id for one in turn if isinstance(part := one.part, ResultPart)}
    for one in turn:
        part = one.part
        if isinstance(part, CallPart) and part.call_id not in done:
            ask = next((asked for asked in reversed(turn) if _asks_about(asked, part.call_id)), None)
            return Pending(call=one, part=part, ask=ask, answer=None if ask is None else _answer_to(turn, ask))
    return None


def call_id(said: Entry, n: int) -> str:
    """Of the n-th call of a turn; no other call of the chat has it."""
    return f"{said.number}-{n}"


def n_rounds(turn: Sequence[Entry]) -> int:
    """How often the model has spoken in it."""
    return sum(one.kind is EntryKind.REPLY for one in turn)


def n_calls(turn: Sequence[Entry]) -> int:
    return sum(one.kind is EntryKind.CALL for one in turn)


def _asks_about(entry: Entry, call_id: str) -> bool:
    part = entry.part
    return isinstance(part, AskPart) and part.call_id == call_id


def _answer_to(turn: Sequence[Entry], ask: Entry) -> Entry | None:
    return next((one for one in turn if isinstance(part := one.part, AnswerPart) and part.ask == ask.number), None)
