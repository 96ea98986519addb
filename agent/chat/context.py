"""What a model is shown of a chat: its entries as messages that fit its window. Pure.

The newest turn is whole. Before it, turns are whole up to half of the room, then with short results, then left out, the
oldest first; how much was left out is said in numbers and never summed up, for nobody knows what mattered in it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.chat.entry import CallPart, Cell, Entry, EntryKind, Plot, ResultPart, Table
from agent.chat.turn import turns
from agent.llm.chat import Message, Role, ToolCall
from agent.llm.counting import tokens_of
from agent.llm.untrusted import clean, fenced

SEARCH = "search_chat"
"""Name of the tool that finds words in chats."""
RESULT_CHARACTERS = 6_000
"""Of one result in the newest turn."""
SHORT_CHARACTERS = 300
"""Of a result in an old turn, and of older results in a turn that is too long by itself."""
SAID_CHARACTERS = 8_000
_SHARE_WHOLE = 0.5
_PER_MESSAGE = 12
_CELL_CHARACTERS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    messages: tuple[Message, ...]
    n_left_out: int
    """Entries, from the first on."""
    n_shortened: int
    """Results that are shown shorter than they were."""

    def missing(self, *, can_search: bool) -> str:
        """What is not shown, for the model; empty: nothing.

        Args:
            can_search: the model has the tool that finds words in chats.
        """
        said = []
        if self.n_left_out:
            which = "entry 1 is" if self.n_left_out == 1 else f"entries 1 to {self.n_left_out} are"
            search = f" The tool {SEARCH} finds words in it." if can_search else ""
            said.append(
                f"This chat is longer than what you see: {which} left out, unread and not summed up. "
                f"Never guess what was said there.{search}"
            )
        if self.n_shortened:
            what = "1 result is" if self.n_shortened == 1 else f"{self.n_shortened} results are"
            said.append(f"{what} cut, where it says so: call the tool again for the whole.")
        return " ".join(said)


def context_of(entries: Sequence[Entry], *, room_tokens: int, as_text: bool = False) -> Context:
    """The messages of a chat, oldest first.

    Args:
        as_text: calls and results as plain text, for endpoints that take no tools.
    """
    all_turns = turns(entries)
    if not all_turns:
        return Context(messages=(), n_left_out=0, n_shortened=0)
    names = len({one.by for one in entries if one.kind is EntryKind.SAID}) > 1
    newest = _newest(all_turns[-1], room_tokens, as_text=as_text, names=names)
    shown, used, n_left = [newest], newest.tokens, 0
    is_whole = True
    for at in range(len(all_turns) - 2, -1, -1):
        turn = _shown(all_turns[at], RESULT_CHARACTERS, as_text=as_text, names=names)
        is_whole = is_whole and used + turn.tokens <= room_tokens * _SHARE_WHOLE
        if not is_whole:
            turn = _shown(all_turns[at], SHORT_CHARACTERS, as_text=as_text, names=names)
        if used + turn.tokens > room_tokens:
            n_left = all_turns[at][-1].number
            break
        shown.insert(0, turn)
        used += turn.tokens
    return Context(
        messages=tuple(message for turn in shown for message in turn.messages),
        n_left_out=n_left,
        n_shortened=sum(turn.n_cut for turn in shown),
    )


def result_text(entry: Entry) -> str:
    """A result as a model reads it: words, then the table or what a plot shows."""
    part = entry.part
    assert isinstance(part, ResultPart)
    parts = [("error: " if part.is_error else "") + entry.text]
    if part.table is not None:
        parts.append(_table(part.table))
    if part.plot is not None:
        parts.append(_plot(part.plot))
    return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class _Turn:
    messages: tuple[Message, ...]
    n_cut: int

    @property
    def tokens(self) -> int:
        return sum(
            _PER_MESSAGE
            + tokens_of(one.text)
            + sum(_PER_MESSAGE + tokens_of(call.name + call.arguments) for call in one.tool_calls)
            for one in self.messages
        )


def _newest(turn: Sequence[Entry], room_tokens: int, *, as_text: bool, names: bool) -> _Turn:
    """Whole where it fits; else its results are shorter, the oldest the shortest."""
    limit = RESULT_CHARACTERS
    shown = _shown(turn, limit, as_text=as_text, names=names)
    while shown.tokens > room_tokens and limit > SHORT_CHARACTERS:
        limit = max(limit // 2, SHORT_CHARACTERS)
        shown = _shown(turn, limit, as_text=as_text, names=names)
    return shown


def _shown(turn: Sequence[Entry], limit: int, *, as_text: bool, names: bool) -> _Turn:
    results = _results(turn)
    messages: list[Message] = []
    waiting: list[ToolCall] = []
    text, n_cut = "", 0

    def flush() -> None:
        """The assistant's words with the calls beside them, then what came of each."""
        nonlocal text, waiting, n_cut
        if waiting and not as_text:
            messages.append(Message(role=Role.ASSISTANT, text=text, tool_calls=tuple(waiting)))
        elif text:
            messages.append(Message(role=Role.ASSISTANT, text=text))
        for call in waiting:
            said, is_cut = _result(results.get(call.call_id), call, limit)
            n_cut += is_cut
            role = Role.USER if as_text else Role.TOOL
            messages.append(Message(role=role, text=said, call_id=None if as_text else call.call_id))
        text, waiting = "", []

    for one in turn:
        match one.kind:
            case EntryKind.SAID:
                who = f"{clean(one.by)}: " if names else ""
                messages.append(Message(role=Role.USER, text=who + clean(one.text)[:SAID_CHARACTERS]))
            case EntryKind.REPLY:
                flush()
                text = clean(one.text)
            case EntryKind.CALL:
                waiting.append(_call(one))
            case EntryKind.TROUBLE | EntryKind.STOPPED:
                flush()
                text = f"[the turn ended here: {clean(one.text)[:SHORT_CHARACTERS]}]" if one.ends_turn else ""
            case EntryKind.RESULT | EntryKind.ASK | EntryKind.ANSWER:
                continue
    flush()
    if turn[-1].ends_turn and messages[-1].role is Role.USER:
        messages.append(Message(role=Role.ASSISTANT, text="(nightlab itself answered this command)"))
    return _Turn(tuple(_joined(messages)), n_cut)


def _joined(messages: Sequence[Message]) -> list[Message]:
    """Of two messages of one speaker behind each other, one: some models take turns strictly."""
    joined: list[Message] = []
    for one in messages:
        last = joined[-1] if joined else None
        if last is not None and one.role is last.role is not Role.TOOL and not last.tool_calls:
            joined[-1] = replace(one, text="\n\n".join(text for text in (last.text, one.text) if text))
        else:
            joined.append(one)
    return joined


def _call(entry: Entry) -> ToolCall:
    """Its id is of its number, so that none is there twice; nine letters and digits, which all endpoints take."""
    part = entry.part
    assert isinstance(part, CallPart)
    arguments = json.dumps(part.arguments, ensure_ascii=False)
    return ToolCall(call_id=_id(entry), name=part.tool, arguments=arguments)


def _id(call: Entry) -> str:
    return f"call{call.number:05d}"


def _results(turn: Sequence[Entry]) -> dict[str, Entry]:
    """By the ids that calls have in messages."""
    by_call = {part.call_id: one for one in turn if isinstance(part := one.part, ResultPart)}
    calls = [(one, part) for one in turn if isinstance(part := one.part, CallPart)]
    return {_id(one): by_call[part.call_id] for one, part in calls if part.call_id in by_call}


def _result(entry: Entry | None, call: ToolCall, limit: int) -> tuple[str, bool]:
    if entry is None:
        return f"{call.name}: not done, the turn was ended before", False
    text = result_text(entry)
    return fenced(text, label=f"result of {call.name}", limit=limit), len(clean(text)) > limit


def _table(table: Table) -> str:
    rows = [" | ".join(table.columns), *(" | ".join(_cell(cell) for cell in row) for row in table.rows)]
    return "\n".join(rows)


def _cell(cell: Cell) -> str:
    if cell is None:
        return "-"
    return f"{cell:.6g}" if isinstance(cell, float) else " ".join(str(cell).split())[:_CELL_CHARACTERS]


def _plot(plot: Plot) -> str:
    """Its ends and its extremes: a model reads no curve."""
    lines = [f"plot shown to the person: {plot.title} ({plot.y_label} over {plot.x_label})"]
    for series in plot.series:
        known = [(x, y) for x, y in series.points if y is not None]
        if not known:
            lines.append(f"{series.name}: no values")
            continue
        low, high = min(known, key=lambda one: one[1]), max(known, key=lambda one: one[1])
        marks = (("first", known[0]), ("lowest", low), ("highest", high), ("last", known[-1]))
        said = ", ".join(f"{name} {y:.6g} at {x:g}" for name, (x, y) in marks)
        lines.append(f"{series.name}: {len(series.points)} points; {said}")
    return "\n".join(lines)
