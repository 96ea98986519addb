"""Prints what happens in a chat, once each, and knows from it where the chat stands."""

from __future__ import annotations

import time

from rich.console import Console
from rich.text import Text

from agent.chat.entry import AnswerPart, ChatState, Entry, EntryKind, ReplyPart, ResultPart
from agent.web.chat_wire import ChatView, TextPiece
from nightlab.chat.following import Away, Back, Happening, Lost
from nightlab.chat.shown import WARNING, shown
from nightlab.chat.words import Ids
from nightlab.chat.writing import More, Writing
from nightlab.inert import clean_lines
from nightlab.output import print_json

PLOT_WIDTH = 100
"""At most, however wide the terminal is."""
FAILED = (EntryKind.TROUBLE, EntryKind.STOPPED)


class Screen:
    """
    Args:
        as_json: entries alone are printed, a line each.
    """

    def __init__(self, console: Console, *, as_json: bool = False) -> None:
        self.ids = Ids()
        self.number = 0
        """Of the last entry shown."""
        self.state = ChatState.IDLE
        self.is_typing = False
        """A person is being asked for a line: a reply of somebody else's turn is shown when it is whole."""
        self._console, self._as_json = console, as_json
        self._writing = Writing()
        self._last: Entry | None = None
        self._question: Entry | None = None
        self._own: set[int] = set()

    @property
    def question(self) -> Entry | None:
        """What a person has to answer now."""
        return self._question if self.state is ChatState.ASKING else None

    @property
    def has_failed(self) -> bool:
        """Whether the last turn came to nothing."""
        if self._last is None or self._last.kind is not EntryKind.RESULT:
            return self._last is not None and self._last.kind in FAILED
        part = self._last.part
        assert isinstance(part, ResultPart)
        return part.is_error

    def is_over(self, after: int) -> bool:
        """Whether the turn that begins with, or holds, entry `after` has ended."""
        return self.number > after and self._last is not None and self._last.ends_turn

    def own(self, said: Entry) -> None:
        """It was typed here, so it stands on the screen already."""
        self._own.add(said.number)
        self.state = ChatState.WORKING

    def settled(self) -> None:
        """The question was answered here, or before."""
        self._question = None

    def note(self, text: str) -> None:
        if not self._as_json:
            self._end_line()
            self._console.print(Text(text, style=WARNING))

    def show(self, happening: Happening) -> None:
        """
        Raises:
            RuntimeClientError, Failure: the stream is lost for good.
        """
        match happening:
            case Lost(error):
                raise error
            case Away():
                self.note("the agent service is away; waiting for it")
            case Back():
                self.note("the agent service is back")
            case TextPiece(offset=offset, text=text):
                if not self.is_typing and not self._as_json:
                    self._write(self._writing.piece(offset, text))
            case ChatView(state=state):
                self.state = state
            case Entry():
                self._show_entry(happening)

    def _show_entry(self, entry: Entry) -> None:
        if entry.number <= self.number:
            return
        self.number, self._last = entry.number, entry
        self._remember(entry)
        if self._as_json:
            print_json(entry)
            return
        if entry.kind is EntryKind.REPLY:
            self._write(self._writing.whole(entry.text))
        self._end_line()
        if entry.kind is EntryKind.SAID and entry.number in self._own:
            return
        console = self._console
        width = min(console.width, PLOT_WIDTH)
        for part in shown(entry, width=width, now=time.time(), has_colors=console.color_system is not None):
            console.print(part)

    def _remember(self, entry: Entry) -> None:
        part = entry.part
        if entry.kind is EntryKind.ASK:
            self._question = entry
        elif entry.ends_turn or isinstance(part, AnswerPart):
            self._question = None
        if isinstance(part, ResultPart) and part.table is not None:
            self.ids.learn_from(part.table)
        if isinstance(part, ReplyPart):
            for cite in part.cites:
                self.ids.learn(cite.kind, [cite.id])

    def _write(self, more: More) -> None:
        if more.is_anew:
            self._console.print()
        if more.text:
            self._console.out(clean_lines(more.text), end="", highlight=False)
            self._console.file.flush()

    def _end_line(self) -> None:
        """Begin a line of its own where a reply was being written."""
        if self._writing.end():
            self._console.print()
