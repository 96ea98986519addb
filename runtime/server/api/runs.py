"""MLflow runs over HTTP: those of sessions and hypotheses, which no job carries, and a look at any."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa
from fastapi import APIRouter, Request
from starlette.responses import Response

from runtime.server.api.strict_json import StrictRoute
from runtime.server.envelope import answer
from runtime.server.metrics_intake import metrics_logged
from runtime.server.services import Services, Svc
from runtime.tracking import runs
from runtime.tracking.recording import push
from runtime.tracking.runs import BadRunUpdate, RunConflict, UnknownRun
from runtime.tracking.spool import is_safe_path
from runtime_client.doors.refusal import Refused, refused
from runtime_client.models import Envelope, ErrorKind, NewRun, RunUpdate, RunView

T = TypeVar("T")

router = APIRouter(prefix="/v1/runs", tags=["runs"], route_class=StrictRoute)


@router.post("", response_model=Envelope[RunView], status_code=201)
async def create_run(new: NewRun, services: Svc) -> Response:
    """Make a run; the same idempotency token returns the same one."""
    fresh = uuid.uuid4().hex

    def unit(connection: sa.Connection) -> RunView:
        run_id = runs.create_run(connection, new, run_id=fresh, now_s=services.clock())
        return runs.run_view(connection, run_id, mlflow_url=services.config.mlflow_url)

    view = await _write(services, unit)
    return answer(view, status=201 if view.run_id == fresh else 200)


@router.get("/{run_id}", response_model=Envelope[RunView])
async def get_run(run_id: str, services: Svc) -> Response:
    def read(connection: sa.Connection) -> RunView:
        return runs.run_view(connection, run_id, mlflow_url=services.config.mlflow_url)

    try:
        return answer(await services.store.read(read))
    except UnknownRun as error:
        raise _refusal(error) from error


@router.patch("/{run_id}", response_model=Envelope[RunView])
async def update_run(run_id: str, update: RunUpdate, services: Svc) -> Response:
    """Record params, tags, metrics and a status."""
    now_s = services.clock()

    def unit(connection: sa.Connection) -> RunView:
        runs.update_run(connection, run_id, update, now_s=now_s)
        return runs.run_view(connection, run_id, mlflow_url=services.config.mlflow_url)

    view = await _write(services, unit)
    if update.metrics:
        services.hub.publish([metrics_logged(None, run_id, frozenset(update.metrics), now_s)])
    return answer(view)


@router.put("/{run_id}/artifacts/{path:path}", response_model=Envelope[None])
async def put_artifact(run_id: str, path: str, request: Request, services: Svc) -> Response:
    """Keep a file for the run; it reaches MLflow when MLflow is there."""
    if not is_safe_path(path) or len(path) > 500:
        message = f"path: {path[:80]!r} must be relative, without empty parts or '..', at most 500 characters"
        raise refused(ErrorKind.INVALID, "invalid_value", message, path="path")
    content = await request.body()
    await get_run(run_id, services)
    try:
        file = await asyncio.to_thread(services.spool.put, content)
    except OSError as error:
        message = f"the file can not be kept: {error.strerror}; free space below {services.config.spool_dir}"
        raise refused(ErrorKind.UNAVAILABLE, "store_full", message) from error

    def unit(connection: sa.Connection) -> None:
        push(connection, run_id, "artifact", {"path": path, "file": file})

    await _write(services, unit)
    return answer(None)


async def _write(services: Services, unit: Callable[[sa.Connection], T]) -> T:
    try:
        result = await services.store.write(unit)
    except (UnknownRun, RunConflict, BadRunUpdate) as error:
        raise _refusal(error) from error
    if services.mirror is not None:
        services.mirror.wake()
    return result


def _refusal(error: UnknownRun | RunConflict | BadRunUpdate) -> Refused:
    match error:
        case UnknownRun():
            return refused(ErrorKind.NOT_FOUND, "no_such_run", str(error))
        case RunConflict():
            return refused(ErrorKind.CONFLICT, "run_conflict", str(error))
        case BadRunUpdate():
            return refused(ErrorKind.INVALID, "invalid_value", f"{error.path}: {error}", path=error.path)
