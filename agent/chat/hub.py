"""From the threads in which turns are worked on to the streams that show them: tokens as they come, and "look again".

Nothing is kept but the reply that is being written: entries are read from the store. A reader that falls behind is let
go, and comes back with the number of its last entry.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

N_READERS = 64
"""Streams at once at most."""
N_BEHIND = 10_000
"""So many pieces behind, a reader is let go."""


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the reply that is being written."""

    offset: int
    """Characters of the reply before it; what a reader has beyond that is replaced."""
    text: str


class News:
    """There are more entries in the store."""


class LetGo:
    """The stream ends here."""


Piece = Text | News | LetGo


class TooManyReaders(Exception):
    pass


@dataclass(slots=True, eq=False)
class Reader:
    loop: asyncio.AbstractEventLoop
    pieces: asyncio.Queue[Piece] = field(default_factory=asyncio.Queue)

    def give(self, piece: Piece) -> None:
        """From any thread."""
        with suppress(RuntimeError):  # its loop has ended
            self.loop.call_soon_threadsafe(self._put, piece)

    def _put(self, piece: Piece) -> None:
        if self.pieces.qsize() < N_BEHIND:
            self.pieces.put_nowait(piece)
        elif self.pieces.qsize() == N_BEHIND:
            self.pieces.put_nowait(LetGo())


class Hub:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: dict[str, list[Reader]] = {}
        self._written: dict[str, str] = {}
        self._n_readers = 0

    def text(self, chat_id: str, piece: str) -> None:
        """More of the reply that is being written."""
        with self._lock:
            before = self._written.get(chat_id, "")
            self._written[chat_id] = before + piece
            for reader in self._readers.get(chat_id, ()):
                reader.give(Text(len(before), piece))

    def news(self, chat_id: str) -> None:
        """Entries were added; a reply that was being written is among them, or was dropped."""
        with self._lock:
            self._written.pop(chat_id, None)
            for reader in self._readers.get(chat_id, ()):
                reader.give(News())

    def written(self, chat_id: str) -> str:
        """What there is of the reply that is being written."""
        with self._lock:
            return self._written.get(chat_id, "")

    @contextmanager
    def reading(self, chat_id: str) -> Iterator[Reader]:
        """A reader in the running event loop; its first piece is what is written already.

        Raises:
            TooManyReaders: there are so many already.
        """
        reader = Reader(asyncio.get_running_loop())
        with self._lock:
            self._admit()
            self._n_readers += 1
            self._readers.setdefault(chat_id, []).append(reader)
            if chat_id in self._written:
                reader.pieces.put_nowait(Text(0, self._written[chat_id]))
        try:
            yield reader
        finally:
            with self._lock:
                self._n_readers -= 1
                self._readers[chat_id].remove(reader)
                if not self._readers[chat_id]:
                    del self._readers[chat_id]

    def admit(self) -> None:
        """
        Raises:
            TooManyReaders: there are so many already.
        """
        with self._lock:
            self._admit()

    def _admit(self) -> None:
        if self._n_readers >= N_READERS:
            raise TooManyReaders(f"{N_READERS} chat streams are open already; close one")

    def close(self) -> None:
        """End all streams."""
        with self._lock:
            for reader in [one for readers in self._readers.values() for one in readers]:
                reader.give(LetGo())
