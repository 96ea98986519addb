"""A small client of MLflow's REST API: the few calls that the mirror needs. Never imports mlflow.

Every failure is one of three: MLflow is away (try again later, nothing is wrong with the request), it failed
(500), or it refused (the same request will be refused again).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from runtime_client.loopback import is_loopback

from .answers import number

_AWAY = frozenset({408, 429, 502, 503, 504})
_CHUNK_BYTES = 1 << 18
ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
API = "/api/2.0/mlflow/"


class MlflowTrouble(Exception):
    """Base of the three ways in which a call can fail."""


class MlflowAway(MlflowTrouble):
    """Nobody answers, or not in time; whether the request was carried out is unknown."""


class MlflowFailed(MlflowTrouble):
    """Status 500, or an answer that makes no sense."""


class MlflowRefused(MlflowTrouble):
    """A 4xx that will not change."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRun:
    run_id: str
    experiment_id: str
    artifact_uri: str
    status: str
    end_time_ms: int | None


def open_http(url: str, *, read_timeout_s: float = 30.0) -> httpx.AsyncClient:
    """The HTTP client for one tracking server; proxies are not asked for loopback addresses."""
    host = urlsplit(url).hostname or ""
    return httpx.AsyncClient(
        base_url=url.rstrip("/"),
        timeout=httpx.Timeout(read_timeout_s, connect=3.0),
        trust_env=not is_loopback(host),
        limits=httpx.Limits(max_connections=8),
    )


class MlflowRest:
    """Typed calls over an `httpx.AsyncClient` that the caller owns. All methods raise `MlflowTrouble`."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def is_healthy(self) -> bool:
        try:
            return (await self._http.get("/health", timeout=5.0)).status_code == 200
        except httpx.HTTPError:
            return False

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a JSON body to an API path below `/api/2.0/mlflow/`."""
        return await self.post_text(path, json.dumps(body))

    async def post_text(self, path: str, text: str) -> dict[str, Any]:
        """The same with JSON that is text already."""
        return await self._call("POST", API + path, content=text.encode())

    async def get(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        return await self._call("GET", API + path, params=query)

    async def experiment_id(self, name: str) -> str:
        """The id of the experiment of that name, created or restored when need be."""
        try:
            return str(_part(await self.post("experiments/create", {"name": name}), "experiment_id"))
        except MlflowRefused as refused:
            if refused.code != "RESOURCE_ALREADY_EXISTS":
                raise
        found = _part(await self.get("experiments/get-by-name", {"experiment_name": name}), "experiment")
        experiment_id = str(_part(found, "experiment_id"))
        if found.get("lifecycle_stage") == "deleted":
            await self.post("experiments/restore", {"experiment_id": experiment_id})
        return experiment_id

    async def create_run(
        self, *, experiment_id: str, run_name: str, start_ms: int, user: str, tags: Mapping[str, str]
    ) -> RemoteRun:
        body = {
            "experiment_id": experiment_id,
            "run_name": run_name,
            "start_time": start_ms,
            "user_id": user,
            "tags": pairs(tags),
        }
        return _remote(_part(await self.post("runs/create", body), "run"))

    async def find_run(self, experiment_id: str, *, tag: str, value: str) -> RemoteRun | None:
        """The oldest run with that tag."""
        body = {
            "experiment_ids": [experiment_id],
            "filter": f"tags.`{tag}` = '{value}'",
            "run_view_type": "ALL",
            "max_results": 1,
            "order_by": ["attributes.start_time ASC"],
        }
        runs = (await self.post("runs/search", body)).get("runs", [])
        return _remote(runs[0]) if runs else None

    async def run(self, run_id: str) -> tuple[RemoteRun, dict[str, Any]]:
        """A run and its `data` as MLflow sends it."""
        found = _part(await self.get("runs/get", {"run_id": run_id}), "run")
        return _remote(found), found.get("data", {})

    async def history(self, run_id: str, key: str) -> list[dict[str, Any]]:
        answer = await self.get("metrics/get-history", {"run_id": run_id, "metric_key": key, "max_results": "25000"})
        points: list[dict[str, Any]] = answer.get("metrics", [])
        while answer.get("next_page_token"):
            query = {
                "run_id": run_id,
                "metric_key": key,
                "max_results": "25000",
                "page_token": answer["next_page_token"],
            }
            answer = await self.get("metrics/get-history", query)
            points.extend(answer.get("metrics", []))
        return points

    async def put_artifact(self, root: str, path: str, file: Path) -> None:
        """Upload a file below an artifact root of the form `mlflow-artifacts:/...`.

        Raises:
            MlflowRefused: the root is of another kind: this tracking server does not proxy artifacts.
            OSError: the file can not be read.
        """
        await self._call("PUT", artifact_url(root, path), content=_chunks(file), timeout=300.0)

    async def _call(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        headers = {"Content-Type": "application/octet-stream" if method == "PUT" else "application/json"}
        try:
            response = await self._http.request(method, path, headers=headers, **arguments)
        except httpx.HTTPError as error:
            raise MlflowAway(f"{type(error).__name__}: {error}".rstrip(": ")) from error
        return _checked(response)


def _checked(response: httpx.Response) -> dict[str, Any]:
    if response.status_code in _AWAY:
        raise MlflowAway(f"status {response.status_code}")
    try:
        body = response.json() if response.content.strip() else {}
    except ValueError:
        body = None
    if response.status_code < 400 and isinstance(body, dict):
        return body
    error = body if isinstance(body, dict) else {}
    message = str(error.get("message") or response.text[:500])
    if 400 <= response.status_code < 500:
        raise MlflowRefused(str(error.get("error_code") or response.status_code), message)
    raise MlflowFailed(f"status {response.status_code}: {message}")


async def _chunks(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            yield chunk


def artifact_url(root: str, path: str = "") -> str:
    """Where a proxied artifact is served: the path below the tracking server's own address."""
    parts = urlsplit(root)
    if parts.scheme != "mlflow-artifacts":
        raise MlflowRefused(
            "NOT_IMPLEMENTED",
            f"the artifact root {root!r} is not served by the tracking server (start it with --serve-artifacts)",
        )
    tail = f"{parts.path.strip('/')}/{path}".rstrip("/")
    return f"{ARTIFACTS}/{quote(tail)}"


def pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def metric_json(points: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Outbox points `[key, value, milliseconds, step]` as MLflow wants them."""
    return [
        {"key": key, "value": number(value), "timestamp": at_ms, "step": step} for key, value, at_ms, step in points
    ]


def _remote(run: Mapping[str, Any]) -> RemoteRun:
    info = _part(run, "info")
    return RemoteRun(
        run_id=str(_part(info, "run_id")),
        experiment_id=str(_part(info, "experiment_id")),
        artifact_uri=info.get("artifact_uri", ""),
        status=info.get("status", ""),
        end_time_ms=info.get("end_time"),
    )


def _part(answer: Any, key: str) -> Any:
    if not isinstance(answer, Mapping) or key not in answer:
        raise MlflowFailed(f"an answer without {key!r}: {str(answer)[:200]}")
    return answer[key]
