"""A turn that a slash command began: the tool is called, at once or once a person has agreed. No model is asked."""

from __future__ import annotations

from collections.abc import Sequence

from agent.chat.calling import carry_out
from agent.chat.entry import CallPart, Entry, EntryKind, ResultPart, TroublePart
from agent.chat.grammar import WrongUse, help_text, meant
from agent.chat.tool import ChatTool, Desk
from agent.chat.turn import Step, next_step
from agent.store.chats import TurnBook

UNSEEN = "who types a command sees what it costs before it is done"
"""Why a person is asked about what a model could just do."""


def go_on(book: TurnBook, desk: Desk, tools: Sequence[ChatTool]) -> None:
    """Tell what a person's command asks for; of one that acts, ask first, with its cost, and do it once answered."""
    turn = book.entries()
    match next_step(turn):
        case Step.ASK_MODEL:
            if _is_begun(book, turn[0], tools):
                carry_out(book, desk, tools, asks_always=UNSEEN, ends_turn=True)
        case Step.CALL:
            carry_out(book, desk, tools, asks_always=UNSEEN, ends_turn=True)
        case Step.WAIT | Step.OVER:
            return


def _is_begun(book: TurnBook, said: Entry, tools: Sequence[ChatTool]) -> bool:
    """Add the call that a command means; False: it needs none, or is used wrongly."""
    helped = help_text(said.text, tools)
    if helped is not None:
        part = ResultPart(call_id=_call_id(said), tool="help")
        book.add(EntryKind.RESULT, part, helped, ends_turn=True)
        return False
    try:
        found = meant(said.text, tools)
    except WrongUse as error:
        book.add(EntryKind.TROUBLE, TroublePart(code="wrong_use"), str(error), ends_turn=True)
        return False
    given = found.arguments.model_dump(mode="json", exclude_unset=True)
    call = CallPart(call_id=_call_id(said), tool=found.tool.name, arguments=given)
    book.add(EntryKind.CALL, call, said.text.strip(), by=said.by)
    return True


def _call_id(said: Entry) -> str:
    """A command makes one call, and no other of its chat has the same id."""
    return f"command-{said.number}"
