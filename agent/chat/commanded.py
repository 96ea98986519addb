"""A turn that a slash command began: the tool is called, at once or once a person has agreed. No model is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.chat.entry import AnswerPart, AskPart, CallPart, Entry, EntryKind, ResultPart, TroublePart, Verdict
from agent.chat.grammar import WrongUse, help_text, meant
from agent.chat.tool import ChatTool, Desk, Foreseen, Result
from agent.store.chats import ChatStore
from agent.tools.errors import ToolError
from runtime_client.errors import RuntimeClientError

ANSWER_WITHIN_S = 600.0
COMMAND = "command"
"""The call's id: a command makes one call."""
UNSEEN = "who types a command sees what it costs before it is done"
"""Why a person is asked about what a model could just do."""


def begin(chats: ChatStore, desk: Desk, said: Entry, tools: Sequence[ChatTool], now: float) -> None:
    """Tell what a person's command asks for; of one that acts, ask whether it is to be done, with its cost."""
    helped = help_text(said.text, tools)
    if helped is not None:
        part = ResultPart(call_id=COMMAND, tool="help")
        chats.add(desk.chat_id, EntryKind.RESULT, part, helped, ends_turn=True)
        return
    try:
        found = meant(said.text, tools)
    except WrongUse as error:
        chats.add(desk.chat_id, EntryKind.TROUBLE, TroublePart(code="wrong_use"), str(error), ends_turn=True)
        return
    tool, arguments = found.tool, found.arguments
    given = arguments.model_dump(mode="json", exclude_unset=True)
    call = CallPart(call_id=COMMAND, tool=tool.name, arguments=given)
    chats.add(desk.chat_id, EntryKind.CALL, call, said.text.strip(), by=said.by)
    if not tool.acts:
        _told(chats, desk, tool, lambda: tool.read(desk, arguments))
        return
    try:
        foreseen = tool.foresee(desk, arguments)
    except (ToolError, RuntimeClientError) as error:
        _failed(chats, desk, tool, error)
        return
    seen = foreseen if foreseen.asks else replace(foreseen, why=UNSEEN)
    chats.add(desk.chat_id, EntryKind.ASK, asked(tool, COMMAND, given, seen, now), foreseen.what)


def go_on(chats: ChatStore, desk: Desk, ask: Entry, answer: Entry, tools: Sequence[ChatTool]) -> None:
    """A person has answered, or the deadline has."""
    part, said = ask.part, answer.part
    assert isinstance(part, AskPart)
    assert isinstance(said, AnswerPart)
    tool = next(one for one in tools if one.name == part.tool)
    if said.answer is not Verdict.APPROVE:
        text = "nobody agreed in time; nothing was done" if said.answer is Verdict.EXPIRED else "nothing was done"
        result = ResultPart(call_id=part.call_id, tool=tool.name)
        chats.add(desk.chat_id, EntryKind.RESULT, result, text, ends_turn=True)
        return
    arguments = tool.arguments.model_validate(part.arguments)
    _told(chats, desk, tool, lambda: tool.act(desk, arguments, answer.by))


def asked(tool: ChatTool, call_id: str, arguments: dict[str, object], foreseen: Foreseen, now: float) -> AskPart:
    return AskPart(
        call_id=call_id,
        tool=tool.name,
        arguments=arguments,
        device_seconds=foreseen.device_seconds,
        cost_usd=foreseen.cost_usd,
        victims=foreseen.victims,
        why=foreseen.why,
        expires_at=now + ANSWER_WITHIN_S,
    )


def _told(chats: ChatStore, desk: Desk, tool: ChatTool, done: Callable[[], Result]) -> None:
    try:
        result = done()
    except (ToolError, RuntimeClientError) as error:
        _failed(chats, desk, tool, error)
        return
    part = ResultPart(call_id=COMMAND, tool=tool.name, table=result.table, plot=result.plot)
    chats.add(desk.chat_id, EntryKind.RESULT, part, result.text, ends_turn=True)


def _failed(chats: ChatStore, desk: Desk, tool: ChatTool, error: Exception) -> None:
    part = ResultPart(call_id=COMMAND, tool=tool.name, is_error=True)
    chats.add(desk.chat_id, EntryKind.RESULT, part, str(error), ends_turn=True)
