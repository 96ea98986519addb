"""The output of attempts over HTTP: in pieces, by rank, and its error lines alone."""

from __future__ import annotations

from typing import Annotated

import sqlalchemy as sa
from fastapi import APIRouter, Query
from starlette.responses import Response

from runtime.engines.contract import MAIN_STREAM, AttemptKey
from runtime.server.api.strict_json import StrictRoute
from runtime.server.envelope import answer
from runtime.server.intake import job_number
from runtime.server.logs import ERRORS_OF_MAIN_BYTES, read_chunk, read_errors
from runtime.server.refusal import no_such_job
from runtime.server.services import Services, Svc
from runtime.store import history
from runtime.store.history import JobRow
from runtime_client.doors.refusal import refused
from runtime_client.models import Envelope, ErrorKind, LogChunk, LogErrors, LogStreams

router = APIRouter(prefix="/v1/jobs", tags=["logs"], route_class=StrictRoute)

MAX_LOG_BYTES = 16 * 2**20
STREAM_PATTERN = r"^(main|[0-9]{1,6}(\.err)?)$"
AttemptNumber = Annotated[int | None, Query(ge=1, lt=2**31)]


@router.get("/{job_id}/logs", response_model=Envelope[LogChunk])
async def read_logs(
    job_id: str,
    services: Svc,
    attempt: AttemptNumber = None,
    offset: Annotated[int, Query(ge=-(2**62), lt=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_LOG_BYTES)] = 2**20,
    stream: Annotated[str, Query(pattern=STREAM_PATTERN)] = MAIN_STREAM,
) -> Response:
    """Output of an attempt from a byte offset; a negative one counts from the end."""
    found = await _attempt(services, job_id, attempt)
    if isinstance(found, JobRow):
        is_complete = found.state.is_ended
        return answer(LogChunk(job_id=job_id, attempt=0, text="", next_offset=0, is_complete=is_complete))
    key, has_ended = AttemptKey(job_id=job_id, attempt=found.attempt), found.ended_at is not None
    return answer(
        await read_chunk(services.engine, key, offset=offset, limit=limit, has_ended=has_ended, stream=stream)
    )


@router.get("/{job_id}/logs/streams", response_model=Envelope[LogStreams])
async def read_log_streams(job_id: str, services: Svc, attempt: AttemptNumber = None) -> Response:
    """Whose output there is: `main`, and ranks with files of their own."""
    found = await _attempt(services, job_id, attempt)
    if isinstance(found, JobRow):
        return answer(LogStreams(job_id=job_id, attempt=0, streams=()))
    names = await services.engine.log_streams(AttemptKey(job_id=job_id, attempt=found.attempt))
    return answer(LogStreams(job_id=job_id, attempt=found.attempt, streams=tuple(names)))


@router.get("/{job_id}/logs/errors", response_model=Envelope[LogErrors])
async def read_log_errors(
    job_id: str,
    services: Svc,
    attempt: AttemptNumber = None,
    limit: Annotated[int, Query(ge=1, le=ERRORS_OF_MAIN_BYTES)] = ERRORS_OF_MAIN_BYTES,
) -> Response:
    """The error lines of all ranks, alike ones counted together, and how the output of each rank ends."""
    found = await _attempt(services, job_id, attempt)
    if isinstance(found, JobRow):
        return answer(LogErrors(job_id=job_id, attempt=0, lines=(), is_whole=True))
    key = AttemptKey(job_id=job_id, attempt=found.attempt)
    return answer(await read_errors(services.engine, key, limit=limit))


async def _attempt(services: Services, job_id: str, attempt: int | None) -> history.AttemptRow | JobRow:
    """The attempt (None: the latest), or the job where it has had none.

    Raises:
        Refused: there is no such job or attempt.
    """
    if job_number(job_id) is None:
        raise no_such_job(job_id)

    def read(connection: sa.Connection) -> tuple[JobRow | None, list[history.AttemptRow]]:
        return history.get_job(connection, job_id), history.get_attempts(connection, [job_id])[job_id]

    row, attempts = await services.store.read(read)
    if row is None:
        raise no_such_job(job_id)
    if attempt is None:
        return attempts[-1] if attempts else row
    found = next((each for each in attempts if each.attempt == attempt), None)
    if found is None:
        message = f"job {job_id} has no attempt {attempt}; it has had {len(attempts)}"
        raise refused(ErrorKind.NOT_FOUND, "no_such_attempt", message, path="attempt")
    return found
