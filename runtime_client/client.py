"""`RuntimeClient`: the runtime over HTTP. One method per call of the API; all the rest is in `transport`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from pydantic import TypeAdapter
from pydantic_core import to_json

from .answers import as_many, as_one, segment
from .arrays import ArrayCalls
from .errors import InvalidSpec, TimedOut
from .home import CODE_FOLDER, default_home, read_address
from .models import (
    ArtifactView,
    ErrorBody,
    ErrorKind,
    EventView,
    Explanation,
    Forecast,
    JobSpec,
    JobView,
    LogChunk,
    LogErrors,
    LogStreams,
    MetricPoint,
    NewRun,
    NodeView,
    RunUpdate,
    RunView,
    ServerInfo,
    SubmitResult,
)
from .operator import OperatorCalls
from .packing import Packer, with_sure_positions
from .stream import read_events
from .transport import Query, QueryValue, Transport

if TYPE_CHECKING:
    import httpx

BATCH_SIZE = 1000
"""Most jobs that one request carries; `submit_many` splits longer lists."""

_JOBS: TypeAdapter[list[JobView]] = TypeAdapter(list[JobView])
_RESULTS: TypeAdapter[list[SubmitResult]] = TypeAdapter(list[SubmitResult])
_POINTS: TypeAdapter[list[MetricPoint]] = TypeAdapter(list[MetricPoint])
_ARTIFACTS: TypeAdapter[list[ArtifactView]] = TypeAdapter(list[ArtifactView])
_NODES: TypeAdapter[list[NodeView]] = TypeAdapter(list[NodeView])


class RuntimeClient(OperatorCalls, ArrayCalls):
    """Implements `runtime_client.protocol.Runtime`. May be shared between threads; make it after a fork."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        transport: httpx.BaseTransport | None = None,
        timeout_s: float = 30.0,
        n_tries: int = 4,
        home: Path | None = None,
    ) -> None:
        """`home` is the server's home folder, where it is on this machine: code snapshots are kept there."""
        self._transport = Transport(base_url, token, transport=transport, timeout_s=timeout_s, n_tries=n_tries)
        self._packer = Packer(None if home is None else home / CODE_FOLDER)

    @classmethod
    def from_home(cls, home: Path | None = None, *, timeout_s: float = 30.0) -> Self:
        """The server that runs for this home folder (None: `NIGHTLAB_HOME` or `~/.nightlab`).

        Raises:
            Unreachable: none does.
            Forbidden: its token can not be read.
        """
        address = read_address(home)
        return cls(address.url, address.token, timeout_s=timeout_s, home=home or default_home())

    @property
    def base_url(self) -> str:
        return self._transport.base_url

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def info(self) -> ServerInfo:
        return as_one(ServerInfo, self._transport.call("GET", "/v1/info"))

    def submit(self, spec: JobSpec) -> JobView:
        """Durable when it returns. A spec without idempotency token gets one, so that it can be sent again.

        The code snapshot that it asks for is taken here. Raises InvalidSpec when it can not be.
        """
        body = self._packer.pack(spec).model_dump_json().encode()
        return as_one(JobView, self._transport.call("POST", "/v1/jobs", body=body, is_repeatable=True))

    def submit_many(self, specs: Sequence[JobSpec]) -> list[SubmitResult]:
        packed = with_sure_positions(self._packer.pack_many(specs), BATCH_SIZE)
        ready = [spec.model_dump(mode="json") for spec in packed if not isinstance(spec, InvalidSpec)]
        results: list[SubmitResult] = []
        for first in range(0, len(ready), BATCH_SIZE):
            part = ready[first : first + BATCH_SIZE]
            answer = self._transport.call("POST", "/v1/jobs/batch", body=to_json({"jobs": part}), is_repeatable=True)
            results.extend(as_many(_RESULTS, answer))
        answers = iter(results)
        return [SubmitResult(error=_body(s)) if isinstance(s, InvalidSpec) else next(answers) for s in packed]

    def job(self, job_id: str) -> JobView:
        return as_one(JobView, self._transport.call("GET", f"/v1/jobs/{segment(job_id)}"))

    def jobs(
        self,
        *,
        states: Sequence[str] | None = None,
        session_id: str | None = None,
        project: str | None = None,
        array_id: str | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> list[JobView]:
        query: dict[str, QueryValue | Sequence[QueryValue]] = {"limit": limit}
        if states is not None:
            if not states:
                return []
            query["state"] = list(states)
        named = {"session_id": session_id, "project": project, "array_id": array_id, "before": before}
        for name, value in named.items():
            if value is not None:
                query[name] = value
        return as_many(_JOBS, self._transport.call("GET", "/v1/jobs", query=query))

    def cancel(self, job_id: str, *, reason: str = "") -> JobView:
        answer = self._transport.call("POST", f"/v1/jobs/{segment(job_id)}/cancel", body=to_json({"reason": reason}))
        return as_one(JobView, answer)

    def what_if(self, spec: JobSpec) -> Forecast:
        """See `runtime_client.protocol.Runtime.what_if`."""
        body = spec.model_dump_json().encode()
        return as_one(Forecast, self._transport.call("POST", "/v1/jobs/what-if", body=body, is_repeatable=True))

    def explain(self, job_id: str) -> Explanation:
        return as_one(Explanation, self._transport.call("GET", f"/v1/jobs/{segment(job_id)}/explain"))

    def logs(
        self,
        job_id: str,
        *,
        attempt: int | None = None,
        offset: int = 0,
        limit: int = 1 << 20,
        stream: str = "main",
    ) -> LogChunk:
        query: dict[str, QueryValue] = {"offset": offset, "limit": limit, "stream": stream, **_of_attempt(attempt)}
        return as_one(LogChunk, self._transport.call("GET", f"/v1/jobs/{segment(job_id)}/logs", query=query))

    def log_streams(self, job_id: str, *, attempt: int | None = None) -> LogStreams:
        path = f"/v1/jobs/{segment(job_id)}/logs/streams"
        return as_one(LogStreams, self._transport.call("GET", path, query=_of_attempt(attempt)))

    def log_errors(self, job_id: str, *, attempt: int | None = None, limit: int | None = None) -> LogErrors:
        path = f"/v1/jobs/{segment(job_id)}/logs/errors"
        query: Query = {**_of_attempt(attempt), **({} if limit is None else {"limit": limit})}
        return as_one(LogErrors, self._transport.call("GET", path, query=query))

    def metrics(self, job_id: str, *, keys: Sequence[str] | None = None) -> list[MetricPoint]:
        query: Query = {} if keys is None else {"key": list(keys)}
        return as_many(_POINTS, self._transport.call("GET", f"/v1/jobs/{segment(job_id)}/metrics", query=query))

    def nodes(self) -> list[NodeView]:
        return as_many(_NODES, self._transport.call("GET", "/v1/nodes"))

    def create_run(self, run: NewRun) -> RunView:
        body = run.model_dump_json().encode()
        return as_one(RunView, self._transport.call("POST", "/v1/runs", body=body, is_repeatable=True))

    def run(self, run_id: str) -> RunView:
        return as_one(RunView, self._transport.call("GET", f"/v1/runs/{segment(run_id)}"))

    def update_run(self, run_id: str, update: RunUpdate) -> RunView:
        body = update.model_dump_json().encode()
        return as_one(RunView, self._transport.call("PATCH", f"/v1/runs/{segment(run_id)}", body=body))

    def log_artifact(self, run_id: str, path: str, content: bytes) -> None:
        target = f"/v1/runs/{segment(run_id)}/artifacts/{quote(path, safe='/')}"
        self._transport.call("PUT", target, body=content, content_type="application/octet-stream", is_repeatable=True)

    def list_artifacts(self, run_id: str, folder: str = "") -> list[ArtifactView]:
        """See `runtime_client.protocol.Runtime.list_artifacts`."""
        root = f"nightlab/{segment(run_id)}/artifacts"
        place = f"{root}/{folder}" if folder else root
        found = self._transport.read_mlflow("/api/2.0/mlflow-artifacts/artifacts", {"path": place})
        files = found.get("files", []) if isinstance(found, dict) else None
        known = ("path", "is_dir", "file_size")
        return as_many(_ARTIFACTS, files and [{name: one.get(name) for name in known} for one in files])

    def events(self, *, since: int, wait_s: float | None = None) -> Iterator[EventView]:
        """See `runtime_client.protocol.Runtime.events`. The first connection may fail; later ones are made again."""
        return read_events(self._transport, since=since, wait_s=wait_s)

    def await_end(self, job_id: str, *, timeout_s: float) -> JobView:
        """Wait until a job has ended.

        Raises:
            TimedOut: it has not, after `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            since = self.info().last_seq
            found = self.job(job_id)
            if found.is_ended:
                return found
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                raise TimedOut(f"job {job_id} is {found.state} after {timeout_s:g} s", code="not_ended", retryable=True)
            self._await_word_of(job_id, since, min(remaining_s, 10.0))

    def _await_word_of(self, job_id: str, since: int, wait_s: float) -> None:
        """Return when the job may have ended, at the latest after `wait_s`."""
        until = time.monotonic() + wait_s
        for event in self.events(since=since, wait_s=wait_s):
            is_ending = event.type in ("attempt_ended", "job_ended") and event.job_id == job_id
            if is_ending or event.type == "resync" or time.monotonic() >= until:
                return


def _body(refusal: InvalidSpec) -> ErrorBody:
    return ErrorBody(code=refusal.code, kind=ErrorKind.INVALID, message=refusal.message, path=refusal.path)


def _of_attempt(attempt: int | None) -> dict[str, QueryValue]:
    return {} if attempt is None else {"attempt": attempt}
