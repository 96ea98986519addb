"""Entries of a chat as a terminal shows them. Pure: the text of models, jobs and people is made inert here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from agent.chat import entry as chat
from agent.chat.entry import CallPart, Entry, EntryKind, ReplyPart, ResultPart
from nightlab.chat import questions
from nightlab.chat.plot import plotted
from nightlab.inert import clean, clean_lines
from nightlab.output import table_of

QUIET = "bright_black"
WARNING = "yellow"
WRONG = "red"
ASKS = "bold yellow"
PERSON = "bold cyan"
N_ARGUMENT_CHARACTERS = 200
N_ROWS = 100
"""Of one table; the rest is counted."""


def shown(entry: Entry, *, width: int, now: float, has_colors: bool = True) -> Iterator[RenderableType]:
    """All lines of an entry, but the text of a reply, which is shown as it is written."""
    match entry.kind:
        case EntryKind.SAID:
            yield Text.assemble((f"{clean(entry.by)}> ", PERSON), clean_lines(entry.text))
        case EntryKind.REPLY:
            yield from _beside_reply(entry)
        case EntryKind.CALL:
            yield Text(f"→ {_call(entry)}", style=QUIET)
        case EntryKind.RESULT:
            yield from _result(entry, width, has_colors)
        case EntryKind.ASK:
            first, *rest = questions.lines(entry, now)
            yield Text(first, style=ASKS)
            yield from (Text(f"  {line}") for line in rest)
        case EntryKind.ANSWER:
            yield Text(questions.answered(entry), style=WARNING)
        case EntryKind.TROUBLE:
            yield Text(clean_lines(entry.text), style=WRONG)
        case EntryKind.STOPPED:
            yield Text(clean_lines(entry.text), style=WARNING)


def _beside_reply(entry: Entry) -> Iterator[Text]:
    part = entry.part
    assert isinstance(part, ReplyPart)
    if part.is_cut:
        yield Text("the answer broke off here", style=WARNING)
    if part.cites:
        named = ", ".join(f"{one.kind} {clean(one.id)}" for one in part.cites)
        yield Text(f"about: {named}", style=QUIET)
    if part.unknown:
        yield Text(f"names what does not exist: {', '.join(clean(one) for one in part.unknown)}", style=WARNING)


def _call(entry: Entry) -> str:
    part = entry.part
    assert isinstance(part, CallPart)
    given = " ".join(f"{clean(name)}={_value(value)}" for name, value in part.arguments.items())
    return f"{clean(part.tool)} {given}".rstrip()


def _value(value: object) -> str:
    text = clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return text if len(text) <= N_ARGUMENT_CHARACTERS else f"{text[:N_ARGUMENT_CHARACTERS]}..."


def _result(entry: Entry, width: int, has_colors: bool) -> Iterator[RenderableType]:
    part = entry.part
    assert isinstance(part, ResultPart)
    if entry.text:
        yield Text(clean_lines(entry.text), style=WRONG if part.is_error else "default")
    if part.table is not None and part.table.rows:
        yield _table(part.table)
        if len(part.table.rows) > N_ROWS:
            yield Text(f"and {len(part.table.rows) - N_ROWS} more rows; --json has all", style=QUIET)
    if part.plot is not None:
        yield from plotted(part.plot, width=width, has_colors=has_colors)


def _table(table: chat.Table) -> RenderableType:
    rows = table.rows[:N_ROWS]
    titles = [
        f"#{clean(title)}" if _is_numeric([row[index] for row in rows if index < len(row)]) else clean(title)
        for index, title in enumerate(table.columns)
    ]
    n = len(titles)
    return table_of(titles, [[_cell(value) for value in (*row, *[None] * n)[:n]] for row in rows])


def _is_numeric(values: Sequence[chat.Cell]) -> bool:
    told = [value for value in values if value is not None]
    return bool(told) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in told)


def _cell(value: chat.Cell) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return None if value is None else clean(str(value))
