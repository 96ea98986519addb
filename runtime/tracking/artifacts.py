"""Artifacts of our runs: taken at once onto disk, sent to MLflow by the mirror, served from either.

Below `nightlab/<run_id>/artifacts/` the address is ours. Every other one is MLflow's (models of autologging) and is
passed through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from runtime.engines.contract import AttemptKey
from runtime.store import records
from runtime.store.records import RunRow

from . import queries, recording, translate
from .answers import MlflowRefusal, json_response
from .door import Caller, Door, MlflowRoute, check_own, own_run
from .passthrough import Passthrough
from .ports import Store
from .rest import ARTIFACTS, MlflowRefused, artifact_url
from .spool import Spool, is_safe_path

_OURS = "nightlab/"


class Artifacts:
    def __init__(
        self,
        *,
        store: Store,
        door: Door,
        spool: Spool,
        passthrough: Passthrough,
        wake: Callable[[], None],
        limit_bytes: int,
    ) -> None:
        self._store = store
        self._door = door
        self._spool = spool
        self._passthrough = passthrough
        self._wake = wake
        self._limit_bytes = limit_bytes

    async def put(self, path: str, request: Request) -> Response:
        caller = self._door.caller(request)
        if not path.startswith(_OURS):
            return await self._foreign(path, request, caller)
        run_id, inner = _split(path)
        await self._store.read(lambda connection: own_run(connection, caller, run_id))
        file = await self._spool.take(request.stream(), limit_bytes=self._limit_bytes)
        if isinstance(caller, AttemptKey):
            self._door.check_fence(caller)
        payload = {"path": inner, "file": file}
        await self._store.write(lambda connection: recording.push(connection, run_id, "artifact", payload))
        self._wake()
        return json_response({})

    async def get(self, path: str, request: Request) -> Response:
        caller = self._door.caller(request)
        if not path.startswith(_OURS):
            return await self._foreign(path, request, caller)
        run_id, inner = _split(path)
        row, pending = await self._pending(run_id)
        for payload in reversed(pending):
            if payload["path"] == inner and await run_in_threadpool(self._spool.path(payload["file"]).exists):
                return FileResponse(self._spool.path(payload["file"]), media_type="application/octet-stream")
        if row.mlflow_run_id is None:
            raise MlflowRefusal("RESOURCE_DOES_NOT_EXIST", f"Run {run_id} has no artifact {inner!r}.")
        return await self._passthrough.stream(request, await self._real(row, inner))

    async def delete(self, path: str, request: Request) -> Response:
        caller = self._door.caller(request)
        if not path.startswith(_OURS):
            return await self._foreign(path, request, caller)
        run_id, inner = _split(path)
        row = await self._store.read(lambda connection: own_run(connection, caller, run_id))
        row = (await self._passthrough.flushed({run_id: row}))[run_id]
        return await self._passthrough.stream(request, await self._real(row, inner))

    async def list_folder(self, request: Request) -> Response:
        """Files and folders directly below a folder: those on their way, and those that MLflow has."""
        caller = self._door.caller(request)
        path = request.query_params.get("path", "")
        if not path.startswith(_OURS):
            await self._check_foreign(path, caller)
            return await self._passthrough.stream(request, f"{ARTIFACTS}?{request.url.query}")
        run_id, inner = _split(path + "/", is_folder=True)
        row, pending = await self._pending(run_id)
        files = {item["path"]: item for item in self._spooled(pending, inner)}
        if row.mlflow_run_id is not None:
            for item in await self._remote_list(row, inner):
                files.setdefault(item["path"], item)
        return json_response({"files": sorted(files.values(), key=lambda item: item["path"])})

    async def _pending(self, run_id: str) -> tuple[RunRow, list[dict[str, Any]]]:
        def read(connection: Any) -> tuple[RunRow | None, list[dict[str, Any]]]:
            waiting = queries.pending_artifacts(connection, run_id)
            return records.get_run(connection, run_id), [item.payload for item in waiting]

        row, pending = await self._store.read(read)
        if row is None:
            raise MlflowRefusal("RESOURCE_DOES_NOT_EXIST", f"Run with id={run_id} not found")
        return row, pending

    def _spooled(self, pending: Sequence[dict[str, Any]], folder: str) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        prefix = f"{folder}/" if folder else ""
        for payload in pending:
            if not payload["path"].startswith(prefix):
                continue
            head, slash, _ = payload["path"][len(prefix) :].partition("/")
            file = self._spool.path(payload["file"])
            if slash:
                found[head] = {"path": head, "is_dir": True}
            elif file.exists():
                found[head] = {"path": head, "is_dir": False, "file_size": file.stat().st_size}
        return list(found.values())

    async def _remote_list(self, row: RunRow, folder: str) -> list[dict[str, Any]]:
        mirror = self._passthrough.upstream()
        root = (await self._real(row, folder)).removeprefix(f"{ARTIFACTS}/")
        answer = await mirror.http.get(ARTIFACTS, params={"path": root})
        if answer.status_code == 404:
            return []
        if answer.status_code != 200:
            raise MlflowRefusal("TEMPORARILY_UNAVAILABLE", f"MLflow answered {answer.status_code}.", retry_after_s=1)
        files: list[dict[str, Any]] = answer.json().get("files", [])
        return files

    async def _real(self, row: RunRow, inner: str) -> str:
        try:
            return artifact_url(await self._passthrough.artifact_root(row), inner)
        except MlflowRefused as refused:
            raise MlflowRefusal("NOT_IMPLEMENTED", str(refused)) from refused

    async def _foreign(self, path: str, request: Request, caller: Caller) -> Response:
        if request.method != "GET":
            await self._check_foreign(path, caller)
        return await self._passthrough.stream(request, request.url.path)

    async def _check_foreign(self, path: str, caller: Caller) -> None:
        """A job may write below its own runs' folders and models, not into those of other jobs."""
        ids = translate.run_ids_in(path)
        rows = await self._store.read(lambda connection: queries.runs_by_mlflow_id(connection, ids))
        for row in rows.values():
            check_own(caller, row)


def artifact_routes(artifacts: Artifacts) -> APIRouter:
    router = APIRouter(route_class=MlflowRoute)
    router.add_api_route(ARTIFACTS, artifacts.list_folder, methods=["GET"], include_in_schema=False)
    for method, call in (("PUT", artifacts.put), ("GET", artifacts.get), ("DELETE", artifacts.delete)):
        router.add_api_route(f"{ARTIFACTS}/{{path:path}}", call, methods=[method], include_in_schema=False)
    return router


def _split(path: str, *, is_folder: bool = False) -> tuple[str, str]:
    """Run id and inner path of `nightlab/<run_id>/artifacts/<inner>`."""
    run_id, _, rest = path.removeprefix(_OURS).partition("/")
    head, _, inner = rest.partition("/")
    inner = inner.rstrip("/")
    if head != "artifacts" or not (is_safe_path(inner) or (is_folder and not inner)):
        raise MlflowRefusal("INVALID_PARAMETER_VALUE", f"Invalid artifact path {path[:300]!r}.")
    return run_id, inner
