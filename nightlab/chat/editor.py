"""The line editor on a terminal: history, several lines, completion. Imported where there is one: it costs 0.3 s."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app, run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from agent.web.chat_wire import SlashView
from nightlab.chat.following import Inbox
from nightlab.chat.lines import GOES_ON, OnNews, Typed
from nightlab.chat.words import Ids, words
from nightlab.failure import Failure
from runtime_client.errors import RuntimeClientError

HISTORY_FILE = "chat-history"


class Editor:
    """A line editor: Enter sends, Alt-Enter or a backslash at the end begins another line, Tab completes."""

    has_person = True

    def __init__(self, home: Path, slashes: Sequence[SlashView], ids: Ids) -> None:
        self._session: PromptSession[str] = PromptSession(
            history=_history(home / HISTORY_FILE),
            completer=_Words(slashes, ids),
            complete_while_typing=False,
            multiline=True,
            prompt_continuation="... ",
            key_bindings=_keys(),
            enable_history_search=True,
        )
        self._answers: PromptSession[str] = PromptSession(history=InMemoryHistory())

    def ask(self, prompt: str, *, draft: str, inbox: Inbox, on_news: OnNews, is_answer: bool) -> Typed:
        session = self._answers if is_answer else self._session
        text: str | None = session.prompt(
            prompt,
            default=draft,
            pre_run=lambda: _listen(inbox, on_news),
        )
        return Typed(session.default_buffer.text, is_done=False) if text is None else Typed(text)


class _Words(Completer):
    def __init__(self, slashes: Sequence[SlashView], ids: Ids) -> None:
        self._slashes, self._ids = slashes, ids

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        for word in words(document.text_before_cursor, self._slashes, self._ids):
            yield Completion(word.text, start_position=-word.n_typed, display_meta=word.meaning)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith(GOES_ON):
            buffer.delete_before_cursor(len(GOES_ON))
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _listen(inbox: Inbox, on_news: OnNews) -> None:
    """Show what comes while a line is typed, above it."""
    app = get_app()

    async def listen() -> None:
        rang = asyncio.Event()
        loop = asyncio.get_running_loop()
        with inbox.ringing(lambda: _ring(loop, rang)):
            while not app.is_done:
                await rang.wait()
                rang.clear()
                try:
                    is_left = await run_in_terminal(on_news)
                except (RuntimeClientError, Failure) as error:
                    app.exit(exception=error)
                    return
                if is_left and not app.is_done:
                    app.exit(result=None)

    app.create_background_task(listen())


def _ring(loop: asyncio.AbstractEventLoop, rang: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the line was sent meanwhile, and its loop has ended
        loop.call_soon_threadsafe(rang.set)


def _history(path: Path) -> FileHistory:
    """Of this person alone: what was typed may name what others should not read."""
    os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    return FileHistory(str(path))
