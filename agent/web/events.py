"""The event stream: the store's activity as server-sent events, from any number on, without a gap or a duplicate.

Nothing is kept for a reader: each reads the store at its own pace, from the last number that it was sent. While
somebody listens, one task for all asks the store every `LOOK_EVERY_S` for its newest number, and not at all otherwise:
so an event is late by that much at most, and by the time of one read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import RowMapping

from agent.store.journal import Journal
from agent.web.wire import Event
from runtime_client.doors.refusal import refused
from runtime_client.models import ErrorKind

LOOK_EVERY_S = 0.1
KEEP_ALIVE_S = 15.0
N_READERS = 64
"""Streams at once at most."""
PAGE = 500
HELLO = b": connected\n\n"
SIGN_OF_LIFE = b": still here\n\n"


class Pulse:
    """Tells those who listen that there is more to read. For one event loop."""

    def __init__(self, newest: Callable[[], int], *, look_every_s: float = LOOK_EVERY_S) -> None:
        self._newest = newest
        self._look_every_s = look_every_s
        self._n_readers = 0
        self._task: asyncio.Task[None] | None = None
        self._seq = 0
        self._beat = asyncio.Event()
        self.is_closed = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """
        Raises:
            Refused: there are too many streams already.
        """
        self.admit()
        self._n_readers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look())
        try:
            yield
        finally:
            self._n_readers -= 1

    def admit(self) -> None:
        """
        Raises:
            Refused: there are too many streams already.
        """
        if self._n_readers >= N_READERS:
            said = f"{N_READERS} event streams are open already; close one, or read /v1/events/page instead"
            raise refused(ErrorKind.UNAVAILABLE, "too_many_streams", said)

    async def beyond(self, seq: int, timeout_s: float) -> bool:
        """Wait until there is a line beyond this number; False: not within the time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._seq <= seq and not self.is_closed:
                    await self._beat.wait()
        return self._seq > seq

    def close(self) -> None:
        """End all streams."""
        self.is_closed = True
        self._wake()

    def _wake(self) -> None:
        self._beat.set()
        self._beat = asyncio.Event()

    async def _look(self) -> None:
        while self._n_readers and not self.is_closed:
            newest = await asyncio.to_thread(self._newest)
            if newest > self._seq:
                self._seq = newest
                self._wake()
            await asyncio.sleep(self._look_every_s)


async def event_stream(
    pulse: Pulse, journal: Journal, *, after: int, session_id: str | None, keep_alive_s: float = KEEP_ALIVE_S
) -> AsyncIterator[bytes]:
    """Server-sent events beyond `after`; ends when the service does, and else only by the reader."""
    with pulse.listening():
        yield HELLO
        seq = after
        while not pulse.is_closed:
            newest = await asyncio.to_thread(journal.newest)
            rows = await asyncio.to_thread(journal.after, seq, PAGE, session_id)
            if rows:
                seq = int(rows[-1]["id"])
                yield b"".join(_message(event_of(row)) for row in rows)
            if len(rows) == PAGE:
                continue
            seq = max(seq, newest)  # what other sessions said up to there is not looked at again
            if not await pulse.beyond(seq, keep_alive_s) and not pulse.is_closed:
                yield SIGN_OF_LIFE


def event_of(row: RowMapping) -> Event:
    return Event(
        seq=row["id"],
        session_id=row["session_id"],
        at=row["at"],
        step=row["step"],
        text=row["text"],
        trial_id=row["trial_id"],
        job_id=row["job_id"],
    )


def _message(event: Event) -> bytes:
    return f"id: {event.seq}\nevent: activity\ndata: {event.model_dump_json()}\n\n".encode()
