"""The metrics gateway: the MLflow REST calls that training scripts make, served by us.

It records and answers at once; MLflow is told by the mirror. Nothing here waits for MLflow, but what only MLflow can
answer is passed through. Status updates of a script are recorded (`reported_status`) and never obeyed for the job's
own run; a further run that a script made has no other source of truth, so its status is the script's word, and the
end of the job closes those left open.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from .answers import MlflowRefusal
from .artifacts import Artifacts, artifact_routes
from .door import Door, MlflowRoute
from .mirror import Mirror
from .passthrough import Passthrough
from .ports import Fence, Notify, Store
from .reading import Reading
from .rest import API
from .spool import Spool
from .writing import Writing

SPOKEN_VERSION = "3.17.2"
"""The MLflow release whose REST calls this gateway was written against."""


def gateway_router(
    *,
    store: Store,
    secret: bytes,
    is_owner: Callable[[str], bool],
    fence: Fence,
    notify: Notify,
    clock: Callable[[], float],
    spool_dir: Path,
    mirror: Mirror | None = None,
    max_artifact_bytes: int = 256 * 1024 * 1024,
    new_run_id: Callable[[], str] = lambda: uuid4().hex,
) -> APIRouter:
    """All routes of the gateway, with full paths: mount it without a prefix.

    It authenticates by itself (attempt tokens, and what `is_owner` says of any other bearer token), except for
    `/health` and `/version`.
    """
    spool = Spool(spool_dir)
    door = Door(secret=secret, is_owner=is_owner, fence=fence)
    passthrough = Passthrough(store=store, mirror=mirror)
    wake = mirror.wake if mirror is not None else _nobody
    writing = Writing(store=store, door=door, notify=notify, clock=clock, wake=wake, new_run_id=new_run_id)
    reading = Reading(store=store, door=door, passthrough=passthrough)
    artifacts = Artifacts(
        store=store, door=door, spool=spool, passthrough=passthrough, wake=wake, limit_bytes=max_artifact_bytes
    )

    async def forward(request: Request) -> Response:
        return await passthrough.forward(request, door.caller(request))

    router = APIRouter(route_class=MlflowRoute)
    router.add_api_route("/health", _health, methods=["GET"], include_in_schema=False)
    router.add_api_route("/version", _version, methods=["GET"], include_in_schema=False)
    for path, call in writing.calls().items():
        router.add_api_route(f"{API}{path}", call, methods=["POST"], include_in_schema=False)
    for path, methods, call in reading.calls():
        router.add_api_route(f"{API}{path}", call, methods=methods, include_in_schema=False)
    router.include_router(artifact_routes(artifacts))
    every = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    router.add_api_route("/api/3.0/mlflow/server-info", _no_extras, methods=["GET"], include_in_schema=False)
    for prefix in ("/api/2.0/mlflow", "/api/3.0/mlflow"):
        router.add_api_route(f"{prefix}/{{path:path}}", forward, methods=every, include_in_schema=False)
    return router


def _nobody() -> None:
    return None


async def _health() -> Response:
    return PlainTextResponse("OK")


async def _version() -> Response:
    return PlainTextResponse(SPOKEN_VERSION)


async def _no_extras() -> Response:
    raise MlflowRefusal("ENDPOINT_NOT_FOUND", "The gateway offers no multipart uploads.")
