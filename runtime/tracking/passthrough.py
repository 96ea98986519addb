"""Calls that the gateway does not serve itself: sent on to MLflow, with run ids translated both ways.

Before a call that names a run of ours the outbox of that run is flushed, so that MLflow knows what the call builds
on. While MLflow is away the answer is 503 with a short Retry-After: the client's own seven tries then take about ten
seconds when it is down, and about a minute while it starts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import httpx
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from runtime.engines.contract import AttemptKey
from runtime.store import records
from runtime.store.records import RunRow

from . import translate
from .answers import MlflowRefusal
from .door import Caller, check_own
from .mirror import Mirror
from .ports import Store
from .rest import MlflowTrouble

FLUSH_S = 10.0
_FORBIDDEN_TO_JOBS = (
    "runs/delete",
    "runs/restore",
    "experiments/delete",
    "experiments/restore",
    "experiments/update",
    "experiments/set-experiment-tag",
    "experiments/delete-experiment-tag",
)


class Passthrough:
    def __init__(self, *, store: Store, mirror: Mirror | None) -> None:
        self._store = store
        self._mirror = mirror

    def upstream(self) -> Mirror:
        """The mirror, when MLflow can be asked now.

        Raises:
            MlflowRefusal: there is none, or it is away.
        """
        if self._mirror is None:
            raise MlflowRefusal("NOT_IMPLEMENTED", "No MLflow server is configured, and this call needs one.")
        state = self._mirror.state
        if state != "up":
            raise MlflowRefusal(
                "TEMPORARILY_UNAVAILABLE",
                f"The MLflow server is {state}. What was logged is kept and will be sent; this call needs the server.",
                retry_after_s=9 if state == "starting" else 1,
            )
        return self._mirror

    async def flushed(self, runs: Mapping[str, RunRow]) -> dict[str, RunRow]:
        """The same runs, once MLflow has all that was logged to them.

        Raises:
            MlflowRefusal: MLflow is away or too slow.
        """
        mirror = self.upstream()
        for run_id in runs:
            if not await mirror.flush(run_id, FLUSH_S):
                self.upstream()
                raise MlflowRefusal(
                    "TEMPORARILY_UNAVAILABLE",
                    f"The MLflow server has not taken all records of run {run_id} yet.",
                    retry_after_s=2,
                )
        found = await self._store.read(
            lambda connection: {run_id: records.get_run(connection, run_id) for run_id in runs}
        )
        return {run_id: row for run_id, row in found.items() if row is not None}

    async def forward(self, request: Request, caller: Caller) -> Response:
        """Send an API call on and give its answer back."""
        mirror = self.upstream()
        path = request.url.path
        _check_allowed(caller, path)
        body = (await request.body()).decode("utf-8", "replace")
        query = request.url.query
        named = await self._store.read(lambda connection: translate.our_runs_in(connection, f"{path} {query} {body}"))
        if request.method != "GET" and not path.endswith("/search"):
            for row in named.values():
                check_own(caller, row)
        named = await self.flushed(named)
        roots = await self._roots(mirror, named, body)
        body = translate.to_mlflow(body, named, roots)
        own = await self._own(caller)
        body = await self._store.read(lambda connection: translate.experiments_to_mlflow(connection, body, own))
        url = translate.to_mlflow(path, named, {})
        if query:
            url = f"{url}?{translate.to_mlflow(query, named, {})}"
        answer = await self._send(mirror, request.method, url, body)
        text = await self._store.read(lambda connection: translate.from_mlflow(connection, answer.text))
        return Response(text, answer.status_code, media_type=answer.headers.get("content-type"))

    async def stream(self, request: Request, url: str) -> Response:
        """Send a request on as it is, bodies streamed both ways (artifacts)."""
        mirror = self.upstream()
        headers = {"Content-Type": request.headers.get("content-type", "application/octet-stream")}
        content = request.stream() if request.method in ("PUT", "POST") else None
        outgoing = mirror.http.build_request(request.method, url, headers=headers, content=content, timeout=300.0)
        try:
            answer = await mirror.http.send(outgoing, stream=True)
        except httpx.HTTPError as error:
            raise _away(error) from error
        return StreamingResponse(
            _relay(answer),
            answer.status_code,
            {"Content-Type": answer.headers.get("content-type", "application/octet-stream")},
        )

    async def artifact_root(self, row: RunRow) -> str:
        """The real artifact address of a run that MLflow has."""
        mirror = self.upstream()
        try:
            return await mirror.artifact_root(row.mlflow_run_id or "")
        except MlflowTrouble as trouble:
            raise _away(trouble) from trouble

    async def _roots(self, mirror: Mirror, runs: Mapping[str, RunRow], body: str) -> dict[str, str]:
        if "mlflow-artifacts:/nightlab/" not in body:
            return {}
        return {run_id: await self.artifact_root(row) for run_id, row in runs.items()}

    async def _own(self, caller: Caller) -> RunRow | None:
        """The run of the calling job; flushed, so that its experiment is known."""
        if not isinstance(caller, AttemptKey):
            return None
        own = await self._store.read(lambda connection: records.run_of_job(connection, caller.job_id))
        if own is None or own.mlflow_run_id is not None:
            return own
        return (await self.flushed({own.run_id: own})).get(own.run_id)

    async def _send(self, mirror: Mirror, method: str, url: str, body: str) -> httpx.Response:
        headers = {"Content-Type": "application/json"} if body else {}
        try:
            return await mirror.http.request(method, url, headers=headers, content=body.encode())
        except httpx.HTTPError as error:
            raise _away(error) from error


def _check_allowed(caller: Caller, path: str) -> None:
    call = path.partition("/mlflow/")[2]
    if isinstance(caller, AttemptKey) and call in _FORBIDDEN_TO_JOBS:
        raise MlflowRefusal("PERMISSION_DENIED", f"A job may not call {call}.")


def _away(error: Exception) -> MlflowRefusal:
    return MlflowRefusal("TEMPORARILY_UNAVAILABLE", f"The MLflow server did not answer: {error}", retry_after_s=1)


async def _relay(answer: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.aiter_bytes():
            yield chunk
    finally:
        await answer.aclose()
