"""The event stream: replay from the journal, then live, without a gap or a duplicate where they meet.

The reader subscribes before the replay starts; what is committed meanwhile waits in its queue, and sequence numbers
tell what the replay has already shown.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from runtime_client.models import EventView

from .hub import EventHub, Message, message_of

PAGE = 500
HELLO = b": connected\n\n"
SIGN_OF_LIFE = b": still here\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSpan:
    oldest_seq: int
    """The first event that can be replayed; `last_seq + 1` when none can."""
    last_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """How the stream reads what was committed."""

    span: Callable[[], Awaitable[JournalSpan]]
    page: Callable[[int, int], Awaitable[Sequence[EventView]]]
    """Events after a sequence number, in order, at most so many."""


async def event_stream(
    hub: EventHub, journal: Journal, *, since: int, wait_s: float | None, keep_alive_s: float, now_s: float
) -> AsyncIterator[bytes]:
    """Server-sent events after `since`.

    Ends when the hub closes, when the reader is too slow, or after `wait_s` seconds without an event (None: never).
    """
    with hub.subscribe() as subscription:
        yield HELLO
        span = await journal.span()
        last_seq = since
        if not span.oldest_seq - 1 <= since <= span.last_seq:
            yield message_of(_resync(span, now_s)).data
            last_seq = span.last_seq
        while page := await journal.page(last_seq, PAGE):
            yield b"".join(message_of(event).data for event in page)
            last_seq = page[-1].seq or last_seq
            if len(page) < PAGE:
                break
        quiet_since = time.monotonic()
        while not subscription.is_over:
            batch = await subscription.next_batch(_patience(keep_alive_s, wait_s, quiet_since))
            fresh, last_seq = _fresh(batch, last_seq)
            if fresh:
                yield b"".join(message.data for message in fresh)
                quiet_since = time.monotonic()
            elif wait_s is not None and time.monotonic() - quiet_since >= wait_s:
                return
            elif not batch and not subscription.is_over:
                yield SIGN_OF_LIFE


def _patience(keep_alive_s: float, wait_s: float | None, quiet_since: float) -> float:
    if wait_s is None:
        return keep_alive_s
    return max(0.0, min(keep_alive_s, quiet_since + wait_s - time.monotonic()))


def _fresh(batch: Sequence[Message], last_seq: int) -> tuple[list[Message], int]:
    """What the reader has not seen yet, and the last sequence number after it."""
    fresh: list[Message] = []
    for message in batch:
        if message.seq is not None:
            if message.seq <= last_seq:
                continue
            last_seq = message.seq
        fresh.append(message)
    return fresh, last_seq


def _resync(span: JournalSpan, now_s: float) -> EventView:
    return EventView(
        seq=span.last_seq,
        type="resync",
        at=now_s,
        actor="server",
        data={"oldest_seq": span.oldest_seq, "last_seq": span.last_seq},
    )
