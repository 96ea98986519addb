"""Jobs over HTTP: submit, look, cancel, explain, logs, metrics."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Query
from pydantic import Field, ValidationError
from starlette.responses import Response

from runtime.model.states import JobState
from runtime.server.api.strict_json import StrictRoute
from runtime.server.envelope import answer
from runtime.server.explaining import explained, foretold
from runtime.server.inbox import Accepted
from runtime.server.intake import job_number
from runtime.server.refusal import no_such_job, suggestion, validation_error
from runtime.server.services import Services, Svc
from runtime.server.submission import Submission
from runtime.server.views import job_view, metric_point, read_job_views, words_for_ended
from runtime.store import history, records
from runtime.store.history import JobRow
from runtime_client.doors.refusal import Refused, refused
from runtime_client.models import (
    Envelope,
    ErrorKind,
    Explanation,
    Forecast,
    JobSpec,
    JobView,
    MetricPoint,
    SubmitResult,
    Wire,
)

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)

MAX_BATCH = 1000


class Batch(Wire):
    """Up to 1000 jobs; each is looked at by itself and gets its own answer."""

    jobs: list[Any] = Field(min_length=1, max_length=MAX_BATCH)
    """`JobSpec`s."""


class CancelRequest(Wire):
    reason: str = Field(default="", max_length=1000)


@router.post("", response_model=Envelope[JobView], status_code=201)
async def submit_job(spec: JobSpec, services: Svc) -> Response:
    """Take one job in. 200 with the earlier job when its idempotency token is known."""
    (result,) = await _submit(services, [(0, spec)])
    if isinstance(result, Refused):
        raise result
    (view,) = await _views(services, [result])
    return answer(view, status=200 if result.is_existing else 201)


@router.post("/batch", response_model=Envelope[list[SubmitResult]])
async def submit_batch(batch: Batch, services: Svc) -> Response:
    """Take many jobs in, in one transaction; one refused job does not refuse the others."""
    parsed = [_parse(item) for item in batch.jobs]
    specs = [(position, item) for position, item in enumerate(parsed) if isinstance(item, JobSpec)]
    taken = iter(await _submit(services, specs) if specs else [])
    results = [next(taken) if isinstance(item, JobSpec) else item for item in parsed]
    accepted = [result for result in results if isinstance(result, Accepted)]
    views = iter(await _views(services, accepted))
    return answer([_result(result, views) for result in results])


@router.post("/what-if", response_model=Envelope[Forecast])
async def what_if(spec: JobSpec, services: Svc) -> Response:
    """What the next round would do about this job, and when it would start. Submits nothing."""
    return answer(await foretold(services, spec))


@router.get("", response_model=Envelope[list[JobView]])
async def list_jobs(
    services: Svc,
    state: Annotated[list[str] | None, Query()] = None,
    session_id: str | None = None,
    project: str | None = None,
    array_id: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: str | None = None,
) -> Response:
    """Jobs, newest first; `before` is a job id to page on from."""
    states = None if state is None else [_state(name) for name in state]
    number = None if before is None else job_number(before)
    if before is not None and number is None:
        raise refused(ErrorKind.INVALID, "invalid_value", f"before: {before!r} is not a job id", path="before")

    def read(connection: sa.Connection) -> list[JobView]:
        rows = history.list_jobs(
            connection,
            states=states,
            session_id=session_id,
            project=project,
            array_id=array_id,
            limit=limit,
            before_number=number,
        )
        return read_job_views(connection, rows, mlflow_url=services.config.mlflow_url)

    return answer(await services.store.read(read))


@router.get("/{job_id}", response_model=Envelope[JobView])
async def get_job(job_id: str, services: Svc) -> Response:
    return answer(await _read_view(services, job_id))


@router.post("/{job_id}/cancel", response_model=Envelope[JobView])
async def cancel_job(job_id: str, services: Svc, request: CancelRequest | None = None) -> Response:
    """Ask a job to end: a queued one ends at once, a running one is given its grace."""
    try:
        await services.loop.cancel(job_id, reason=request.reason if request else "")
    except Refused as refusal:
        if refusal.body.kind is not ErrorKind.NOT_FOUND:
            raise
        row = await _row(services, job_id)
        raise refused(
            ErrorKind.CONFLICT, "already_ended", f"job {job_id} has already ended: {words_for_ended(row)}"
        ) from refusal
    return answer(await _read_view(services, job_id))


@router.get("/{job_id}/explain", response_model=Envelope[Explanation])
async def explain_job(job_id: str, services: Svc) -> Response:
    """Why a job is where it is, by the functions that decide; what it lost to others, and they to it."""
    _check_id(job_id)
    return answer(await explained(services, job_id))


@router.get("/{job_id}/metrics", response_model=Envelope[list[MetricPoint]])
async def read_metrics(job_id: str, services: Svc, key: Annotated[list[str] | None, Query()] = None) -> Response:
    """What the job logged to its own run, in order of arrival."""
    row = await _row(services, job_id)

    def read(connection: sa.Connection) -> list[MetricPoint]:
        return [metric_point(point) for point in records.read_metrics(connection, row.run_id, keys=key)]

    return answer(await services.store.read(read))


def _parse(item: Any) -> JobSpec | Refused:
    try:
        return JobSpec.model_validate(item)
    except ValidationError as error:
        return Refused(validation_error(error.errors(include_url=False), JobSpec))


async def _submit(services: Services, specs: list[tuple[int, JobSpec]]) -> list[Accepted | Refused]:
    submissions = [
        Submission(spec=spec, spec_json=spec.model_dump(mode="json"), run_id=uuid.uuid4().hex, position=position)
        for position, spec in specs
    ]
    return await services.loop.submit(submissions)


async def _views(services: Services, accepted: list[Accepted]) -> list[JobView]:
    """Views of new jobs from the rows just written, of earlier ones from the store."""
    earlier = [result.job_id for result in accepted if result.row is None]
    found: dict[str, JobView] = {}
    if earlier:

        def read(connection: sa.Connection) -> list[JobView]:
            rows = list(history.get_jobs(connection, earlier).values())
            return read_job_views(connection, rows, mlflow_url=services.config.mlflow_url)

        found = {view.job_id: view for view in await services.store.read(read)}
    return [
        found[result.job_id] if result.row is None else job_view(result.row, result.attempts, None, spec=result.spec)
        for result in accepted
    ]


def _result(result: Accepted | Refused, views: Any) -> SubmitResult:
    if isinstance(result, Refused):
        return SubmitResult(error=result.body)
    return SubmitResult.model_construct(job=next(views), error=None, is_existing=result.is_existing)


async def _row(services: Services, job_id: str) -> JobRow:
    _check_id(job_id)
    row = await services.store.read(lambda connection: history.get_job(connection, job_id))
    if row is None:
        raise no_such_job(job_id)
    return row


def _check_id(job_id: str) -> None:
    if job_number(job_id) is None:
        raise no_such_job(job_id)


async def _read_view(services: Services, job_id: str) -> JobView:
    _check_id(job_id)

    def read(connection: sa.Connection) -> list[JobView]:
        row = history.get_job(connection, job_id)
        return [] if row is None else read_job_views(connection, [row], mlflow_url=services.config.mlflow_url)

    views = await services.store.read(read)
    if not views:
        raise no_such_job(job_id)
    return views[0]


def _state(name: str) -> JobState:
    try:
        return JobState(name)
    except ValueError:
        names = [state.value for state in JobState]
        message = f"state: {name!r} is unknown{suggestion(name, names)}; it is one of {', '.join(names)}"
        raise refused(ErrorKind.INVALID, "invalid_value", message, path="state") from None
