"""The event stream over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.responses import StreamingResponse

from runtime.server.services import Svc
from runtime.server.sse import event_stream
from runtime_client.doors.refusal import refused
from runtime_client.models import ErrorKind

router = APIRouter(prefix="/v1", tags=["events"])


@router.get("/events", response_class=StreamingResponse)
async def events(
    services: Svc,
    since: Annotated[int, Query(ge=0, lt=2**62)] = 0,
    wait_s: Annotated[float | None, Query(ge=0, le=86400)] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    """Server-sent events after `since` (or `Last-Event-ID`, which wins): replayed, then live.

    `wait_s` ends the stream after so many seconds without an event. An event of type `resync` says that `since` is
    not within the journal: look at the present state, and go on from there.
    """
    if last_event_id is not None and last_event_id.strip():
        since = _sequence_number(last_event_id.strip())
    stream = event_stream(
        services.hub,
        services.journal,
        since=since,
        wait_s=wait_s,
        keep_alive_s=services.config.keep_alive_s,
        now_s=services.clock(),
    )
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


def _sequence_number(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    raise refused(
        ErrorKind.INVALID, "invalid_value", f"Last-Event-ID: {text[:40]!r} is not a sequence number", path="since"
    )
