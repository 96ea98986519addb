"""The model speaks: what it is shown, and what becomes of its reply or of its trouble, as entries.

No entry is written and no lock of the store taken between the model's token and the streams that show it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import prompts
from agent.chat.calling import UNREADABLE
from agent.chat.citing import cited
from agent.chat.context import SEARCH, Context, context_of
from agent.chat.entry import CallPart, Entry, EntryKind, ReplyPart, TroublePart
from agent.chat.hub import Hub
from agent.chat.models import Opened
from agent.chat.tool import ChatTool, Desk
from agent.chat.toolbox import Toolbox, toolbox
from agent.chat.turn import call_id, n_calls, n_rounds
from agent.llm.chat import Finish, Message, ModelError, Reply, Request, Role, ToolCall, Trouble, Usage
from agent.llm.counting import estimated_usage, tokens_of
from agent.llm.pace import patience_s
from agent.llm.untrusted import clean, fenced
from agent.planner.budget import usd_of
from agent.store.chats import TurnBook, storable
from agent.store.store import SessionNotFound

MOST_ROUNDS = 12
"""Replies in one turn; the last has to do without tools."""
MOST_CALLS = 24
CONTEXT_TOKENS = 8_192
"""Where nobody says what fits into the model."""
NO_TOOLS = "no_tools"
_TOOLS_SHARE = 0.4
"""Of the window, at most, for what tools look like."""
_MARGIN_SHARE = 0.08
_LEAST_ROOM = 300
_SMALLER = (1.0, 0.6, 0.35)
"""Of the room, where an endpoint finds that more does not fit than was estimated."""
_BUDGET = re.compile(r"budgets\.(?P<name>\w+)")
_NAME_CHARACTERS = 100
_ARGUMENTS_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """Of one turn."""

    book: TurnBook
    desk: Desk
    hub: Hub
    opened: Opened
    tools: Sequence[ChatTool]

    def answer(self) -> None:
        """Ask the model once, and add its reply with the calls that it wants, or its trouble.

        Raises:
            TurnOver: somebody has stopped the turn.
        """
        entries, turn = self.book.entries_so_far(), self.book.entries()
        is_refused = any(isinstance(one.part, TroublePart) and one.part.code == NO_TOOLS for one in turn)
        may_call = not is_refused and n_rounds(turn) < MOST_ROUNDS - 1 and n_calls(turn) < MOST_CALLS
        heard: list[str] = []
        request: Request | None = None
        for share in _SMALLER:
            request = self._request(entries, share, may_call=may_call)
            try:
                reply = self._complete(request, heard)
            except ModelError as error:
                if error.trouble is Trouble.TOO_LONG and share != _SMALLER[-1]:
                    continue
                if error.trouble is Trouble.REFUSED and may_call and not heard:
                    self._say_without_tools(error)
                else:
                    self._trouble(error, request, "".join(heard))
                return
            self._take(reply, turn, may_call=may_call)
            return

    def _complete(self, request: Request, heard: list[str]) -> Reply:
        chat_id, say = self.desk.chat_id, self.hub.text

        def on_text(piece: str) -> None:
            heard.append(piece)
            say(chat_id, storable(piece))

        deadline_s = patience_s(self.opened.settings.call_seconds, ())
        return self.opened.model.complete(request, deadline_s=deadline_s, on_text=on_text)

    def _request(self, entries: Sequence[Entry], share: float, *, may_call: bool) -> Request:
        settings = self.opened.settings
        window = settings.context_tokens or CONTEXT_TOKENS
        box = toolbox(self.tools, int(window * _TOOLS_SHARE)) if may_call else Toolbox()
        bare = self._system(Context(messages=(), n_left_out=9_999, n_shortened=99), box)
        beside = settings.max_tokens + tokens_of(bare.system) + box.tokens
        room = int((window * (1 - _MARGIN_SHARE) - beside) * share)
        context = context_of(entries, room_tokens=max(room, _LEAST_ROOM), as_text=not may_call)
        prompt = self._system(context, box)
        return Request(
            messages=(Message(role=Role.SYSTEM, text=prompt.system), *context.messages),
            purpose=prompt.name,
            prompt_version=prompt.version,
            tools=box.tools,
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
        )

    def _system(self, context: Context, box: Toolbox) -> prompts.Rendered:
        return prompts.load("chat").render(
            session=self._session(),
            tools=bool(box.tools),
            missing=context.missing(can_search=box.has(SEARCH)),
            left_out=", ".join(box.left_out),
            said=next((one.text for one in reversed(context.messages) if one.role is Role.USER), ""),
        )

    def _session(self) -> str:
        session_id = self.desk.session_id
        if session_id is None:
            return ""
        try:
            session = self.desk.store.session(session_id)
        except SessionNotFound:
            return ""
        found = f"; result: {session.result.sentence}" if session.result is not None else ""
        text = f"{session.session_id}: task {session.task_name}, {session.state}, {session.n_trials} trials{found}"
        return fenced(text, label=f"session {session_id}", limit=600)

    def _take(self, reply: Reply, turn: Sequence[Entry], *, may_call: bool) -> None:
        calls = reply.tool_calls[: MOST_CALLS - n_calls(turn)] if may_call else ()
        is_over = not calls and bool(reply.text.strip())
        self._add_reply(reply.text, reply.usage, reply, is_cut=reply.finish is Finish.LENGTH, ends_turn=is_over)
        for at, call in enumerate(calls, n_calls(turn) + 1):
            part = CallPart(
                call_id=call_id(turn[0], at), tool=clean(call.name)[:_NAME_CHARACTERS], arguments=_read(call)
            )
            self.book.add(EntryKind.CALL, part, _words(part), by=clean(reply.model))
        if not calls and not is_over:
            is_filtered = reply.finish is Finish.FILTERED
            said = "the model's endpoint held its answer back" if is_filtered else "the model said nothing"
            self._end("empty", f"{said}; say it again in other words")

    def _add_reply(self, text: str, usage: Usage, reply: Reply | None, *, is_cut: bool, ends_turn: bool) -> None:
        ids = cited(text, self.desk)
        part = ReplyPart(
            cites=ids.cites,
            unknown=ids.unknown,
            model=self.opened.model.name if reply is None else reply.model,
            first_token_s=None if reply is None else reply.first_token_s,
            took_s=None if reply is None else reply.took_s,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cost_usd=usd_of(self.opened.price, usage.prompt_tokens, usage.completion_tokens),
            is_cut=is_cut,
        )
        by = clean(part.model or "model")
        self.book.add(EntryKind.REPLY, part, text, by=by, ends_turn=ends_turn)

    def _say_without_tools(self, error: ModelError) -> None:
        text = (
            f"{self.opened.model.name} takes no tools, so it looks nothing up and answers from this chat alone "
            f"({error}); commands work all the same: /help lists them"
        )
        self.book.add(EntryKind.TROUBLE, TroublePart(code=NO_TOOLS), text)

    def _trouble(self, error: ModelError, request: Request, heard: str) -> None:
        if heard:
            self._add_reply(heard, estimated_usage(request, heard, ()), None, is_cut=True, ends_turn=False)
        how = "commands work all the same: /help lists them"
        budget = _BUDGET.search(str(error))
        session_id = self.desk.session_id
        if error.trouble is Trouble.OVER_BUDGET and budget is not None:
            limit = f"{budget['name']}=N"
            how = f"raise it: /budget {session_id} {limit}, or nightlab research steer {session_id} --budget {limit}"
        self._end(error.trouble.value, f"{error}; {how}")

    def _end(self, code: str, text: str) -> None:
        self.book.add(EntryKind.TROUBLE, TroublePart(code=code), text, ends_turn=True)


def _read(call: ToolCall) -> dict[str, object]:
    try:
        found = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and len(call.arguments) <= _ARGUMENTS_CHARACTERS:
        return found
    return {UNREADABLE: call.arguments[:_ARGUMENTS_CHARACTERS]}


def _words(part: CallPart) -> str:
    """`cancel_job job=j3`, for people."""
    given = " ".join(f"{name}={value}" for name, value in part.arguments.items())
    return clean(f"{part.tool} {given}".strip())[:300]
