"""The stream of a chat on a thread of its own, connected again whenever it breaks, into an inbox."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agent.chat.entry import Entry
from nightlab.chat.door import Door, Sent
from nightlab.failure import ExitCode, Failure
from runtime_client.errors import RuntimeClientError, ServerFault, TimedOut, Unreachable

PAUSE_S = 0.1
PAUSE_MAX_S = 1.0


class Away:
    """The service does not answer; it is tried again."""


class Back:
    """It answers again."""


@dataclass(frozen=True, slots=True)
class Lost:
    """It will not be tried again."""

    error: Exception


Happening = Sent | Away | Back | Lost


class Inbox:
    """What has come and was not shown yet. Filled by one thread, emptied by another."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Happening] = queue.SimpleQueue()
        self._bell: Callable[[], None] | None = None

    def put(self, happening: Happening) -> None:
        self._queue.put(happening)
        bell = self._bell
        if bell is not None:
            bell()

    def take(self) -> Happening:
        """The next one; waits for it."""
        return self._queue.get()

    def taken(self) -> Iterator[Happening]:
        """All that is there; waits for nothing."""
        while True:
            try:
                yield self._queue.get_nowait()
            except queue.Empty:
                return

    @contextmanager
    def ringing(self, bell: Callable[[], None]) -> Iterator[None]:
        """`bell` is called, from whatever thread, when something has come; at once where something is there."""
        self._bell = bell
        try:
            if not self._queue.empty():
                bell()
            yield
        finally:
            self._bell = None


class Follower:
    """
    Args:
        patience_s: for so long the service may be away; None: for ever.
    """

    def __init__(self, door: Door, chat_id: str, *, after: int, inbox: Inbox, patience_s: float | None) -> None:
        self._door, self._chat_id, self._number, self._inbox = door, chat_id, after, inbox
        self._patience_s = patience_s
        self._is_closed = threading.Event()
        threading.Thread(target=self._work, name="chat-stream", daemon=True).start()

    def close(self) -> None:
        """The thread ends by itself, with the next sign of life."""
        self._is_closed.set()

    def _work(self) -> None:
        away_since: float | None = None
        has_told = False
        pause_s = PAUSE_S
        while not self._is_closed.is_set():
            try:
                if away_since is not None:
                    self._door.look_again()
                for sent in self._door.stream(self._chat_id, after=self._number):
                    if self._is_closed.is_set():
                        return
                    if has_told:
                        self._inbox.put(Back())
                    away_since, has_told, pause_s = None, False, PAUSE_S
                    if isinstance(sent, Entry):
                        self._number = sent.number
                    self._inbox.put(sent)
            except (RuntimeClientError, Failure) as error:
                if away_since is None:
                    away_since = time.monotonic()
                elif not has_told:  # a connection that broke, and could not be made again
                    self._inbox.put(Away())
                    has_told = True
                is_late = self._patience_s is not None and time.monotonic() - away_since > self._patience_s
                if is_late or not may_pass(error):
                    self._inbox.put(Lost(error))
                    return
            self._is_closed.wait(pause_s)
            pause_s = min(PAUSE_MAX_S, pause_s * 2)


def may_pass(error: Exception) -> bool:
    """Whether it is for want of the service, which may come back."""
    if isinstance(error, Failure):
        return error.exit_code is ExitCode.UNREACHABLE
    if isinstance(error, ServerFault):
        return error.retryable
    return isinstance(error, Unreachable | TimedOut) and error.code != "bad_address"
