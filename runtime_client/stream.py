"""The event stream as an iterator that survives lost connections. Used by `client` alone."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx_sse
from pydantic import ValidationError

from .errors import RuntimeClientError, ServerFault, TimedOut, Unreachable
from .models import EventView
from .transport import Transport

SILENCE_S = 45.0
"""The server sends a sign of life every 15 s; after this long without one the connection is taken for dead."""

LATE_S = 10.0
"""A bounded wait is ended by the server; on a busy machine that may come this much later than asked."""

PAUSE_MAX_S = 1.0


def read_events(transport: Transport, *, since: int, wait_s: float | None) -> Iterator[EventView]:
    """Yield events after `since`, connecting again from the last one seen.

    Raises:
        RuntimeClientError: the first connection failed, or the server refuses.
    """
    last_seq = since
    has_connected = False
    pause_s = 0.05
    last_event_at = time.monotonic()

    while True:
        remaining_s = None if wait_s is None else wait_s - (time.monotonic() - last_event_at)
        if remaining_s is not None and remaining_s <= 0 and has_connected:
            return
        try:
            for event in _connection(transport, last_seq, remaining_s):
                has_connected, pause_s = True, 0.05
                if event is None:
                    continue
                last_seq = last_seq if event.seq is None else event.seq
                yield event
                last_event_at = time.monotonic()
        except (Unreachable, TimedOut) as error:
            if not has_connected:
                raise
            if error.code == "bad_address":
                raise
            _pause(pause_s, wait_s, last_event_at)
            pause_s = min(PAUSE_MAX_S, pause_s * 2)
        except RuntimeClientError as error:
            if not (has_connected and error.retryable):
                raise
            _pause(pause_s, wait_s, last_event_at)
            pause_s = min(PAUSE_MAX_S, pause_s * 2)


def _connection(transport: Transport, since: int, wait_s: float | None) -> Iterator[EventView | None]:
    """One connection: None once it stands, then its events. Ends when the server ends it."""
    query: dict[str, str | int | float] = {"since": since}
    read_timeout_s = SILENCE_S
    if wait_s is not None:
        query["wait_s"] = round(max(0.0, wait_s), 3)
        read_timeout_s = min(SILENCE_S, max(0.0, wait_s) + LATE_S)
    headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
    with transport.stream("/v1/events", query=query, headers=headers, read_timeout_s=read_timeout_s) as answer:
        yield None
        try:
            for message in httpx_sse.EventSource(answer).iter_sse():
                if not message.data:
                    continue  # A sign of life: to the decoder, an event of the last id without content.
                yield EventView.model_validate_json(message.data)
        except (httpx_sse.SSEError, ValidationError) as error:
            raise ServerFault(f"the event stream is not understood: {error}", code="not_understood") from error


def _pause(pause_s: float, wait_s: float | None, last_event_at: float) -> None:
    if wait_s is not None:
        pause_s = max(0.0, min(pause_s, last_event_at + wait_s - time.monotonic()))
    time.sleep(pause_s)
