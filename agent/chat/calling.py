"""The next call of a turn, carried out; or asked about first. The same for a model's calls and for typed commands.

What may be done is decided here and by the tool, never by the model: it only names a tool and its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel, ValidationError

from agent.chat.entry import AnswerPart, AskPart, Entry, EntryKind, ResultPart, Verdict
from agent.chat.tool import ChatTool, Desk, Foreseen, Result
from agent.chat.turn import Pending, pending
from agent.llm.shape import sentences
from agent.store.chats import TurnBook
from agent.tools.errors import ToolError
from runtime_client.errors import RuntimeClientError

ANSWER_WITHIN_S = 600.0
UNREADABLE = "unreadable"
"""In the place of arguments that were no JSON object: what was written instead."""
DEARER = 1.1
"""Up to so many times what was agreed to, nobody is asked again: expectations move while a person thinks."""
AFTER_READING = "the model wants it, and it has read text that comes from jobs and files"


def carry_out(
    book: TurnBook,
    desk: Desk,
    tools: Sequence[ChatTool],
    *,
    asks_always: str | None = None,
    ends_turn: bool = False,
) -> None:
    """Add what came of the first pending call of a turn, or the question that has to be answered first.

    Args:
        asks_always: why a person is asked, even where the tool would not; None: the tool decides.
        ends_turn: with the result, the turn is over.

    Raises:
        TurnOver: somebody has stopped it.
    """
    turn = book.entries()
    found = pending(turn)
    assert found is not None
    try:
        tool = _tool(found.part.tool, tools)
        arguments = _arguments(tool, found.part.arguments)
        done = _done(book, desk, turn, found, tool, arguments, asks_always)
    except (_Wrong, ToolError, RuntimeClientError) as error:
        failed = ResultPart(call_id=found.part.call_id, tool=found.part.tool, is_error=True)
        book.add(EntryKind.RESULT, failed, str(error), ends_turn=ends_turn)
        return
    if isinstance(done, Result):
        part = ResultPart(call_id=found.part.call_id, tool=tool.name, table=done.table, plot=done.plot)
        book.add(EntryKind.RESULT, part, done.text, ends_turn=ends_turn)
        return
    ask = AskPart(
        call_id=found.part.call_id,
        tool=tool.name,
        arguments=found.part.arguments,
        device_seconds=done.device_seconds,
        cost_usd=done.cost_usd,
        victims=done.victims,
        why=done.why,
        expires_at=desk.store.clock() + ANSWER_WITHIN_S,
    )
    book.add(EntryKind.ASK, ask, done.what)


def worse(agreed: AskPart, now: Foreseen) -> str | None:
    """Why what would be done now is not what a person has agreed to; None: it is."""
    for name, before, after in (
        ("device-seconds", agreed.device_seconds, now.device_seconds),
        ("US dollars", agreed.cost_usd, now.cost_usd),
    ):
        if before is not None and after is None:
            return f"what it costs is not known any more (you agreed to {before:g} {name})"
        if after is not None and (before is None or after > before * DEARER):
            was = "an unknown number" if before is None else f"{before:g}"
            return f"it would cost {after:g} {name} now; you agreed to {was}"
    more = {one.job_id for one in now.victims} - {one.job_id for one in agreed.victims}
    if more:
        return f"it would now take devices from, or end, {', '.join(sorted(more))} too"
    return None


class _Wrong(Exception):
    """A call that can not be made; the message says what would do."""


def _tool(name: str, tools: Sequence[ChatTool]) -> ChatTool:
    for one in tools:
        if one.name == name:
            return one
    raise _Wrong(f"there is no tool {name!r}; there are: {', '.join(one.name for one in tools)}")


def _arguments(tool: ChatTool, given: dict[str, object]) -> BaseModel:
    if UNREADABLE in given:
        raise _Wrong(f"the arguments of {tool.name} are no JSON object; write them as one")
    try:
        return tool.arguments.model_validate(given)
    except ValidationError as error:
        raise _Wrong(f"arguments of {tool.name}: {'; '.join(sentences(error))}") from error


def _done(
    book: TurnBook,
    desk: Desk,
    turn: Sequence[Entry],
    found: Pending,
    tool: ChatTool,
    arguments: BaseModel,
    asks_always: str | None,
) -> Result | Foreseen:
    """What came of it, or what has to be agreed to first."""
    if not tool.acts:
        return tool.read(desk, arguments)
    by = turn[0].by
    if found.ask is not None and found.answer is not None:
        said, agreed = found.answer.part, found.ask.part
        assert isinstance(said, AnswerPart)
        assert isinstance(agreed, AskPart)
        if said.answer is not Verdict.APPROVE:
            return Result(text=_refused(said, found.answer.by))
        foreseen = tool.foresee(desk, arguments)
        why = worse(agreed, foreseen)
        if why is not None:
            return replace(foreseen, asks=True, why=f"asked again: {why}")
        by = found.answer.by
    else:
        foreseen = tool.foresee(desk, arguments)
        if foreseen.asks:
            return foreseen
        if asks_always is not None:
            return replace(foreseen, asks=True, why=asks_always)
    book.check()
    return tool.act(desk, arguments, by)


def _refused(said: AnswerPart, by: str) -> str:
    if said.answer is Verdict.EXPIRED:
        return "nobody agreed in time; nothing was done"
    note = f": {said.note}" if said.note else ""
    return f"{by} did not agree{note}; nothing was done"
