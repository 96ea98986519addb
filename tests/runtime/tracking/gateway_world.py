"""A gateway on loopback over a real SQLite store, with jobs made by hand and attempts that a test can end."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
import sqlalchemy as sa
from fastapi import FastAPI
from loopback import Served, wait_for

from runtime.engines.contract import AttemptKey
from runtime.store import records
from runtime.store.engine import open_engine
from runtime.store.migrate import migrate
from runtime.store.sql_writer import SqlWriter
from runtime.store.tables import metadata
from runtime.tracking import queries, runs
from runtime.tracking.gateway import gateway_router
from runtime.tracking.mirror import Mirror
from runtime.tracking.spool import Spool
from runtime.tracking.tokens import attempt_token
from runtime_client.models import JobSpec

T = TypeVar("T")

SECRET = b"a secret of the tests"
OWNER = "the-owner"


class GatewayWorld:
    def __init__(self, home: Path, *, mlflow_url: str | None = None, database_url: str | None = None) -> None:
        self.home = home
        self.current: set[AttemptKey] = set()
        self.notices: list[tuple[str, str, frozenset[str]]] = []
        self._engine = open_engine(database_url or f"sqlite:///{home / 'runtime.db'}")
        migrate(self._engine)
        self.store = SqlWriter(self._engine)
        self.mirror: Mirror | None = None
        self._mlflow_url = mlflow_url
        self._served = Served(FastAPI(lifespan=self._lifespan))
        self._is_open = False
        self._clients: list[httpx.Client] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> Self:
        self.store.start()
        self._served.start()
        self._is_open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            for client in self._clients:  # open connections would hold the server up
                client.close()
            self._served.stop()
            self.store.close()
            self._engine.dispose()

    def clear(self) -> None:
        """Forget every job and run."""
        self.current.clear()
        self.notices.clear()
        self.store.write_blocking(lambda connection: [connection.execute(sa.delete(t)) for t in metadata.sorted_tables])
        for file in (self.home / "spool").glob("*"):
            file.unlink()

    @property
    def url(self) -> str:
        return self._served.url

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        spool = Spool(self.home / "spool")
        if self._mlflow_url is not None:
            self.mirror = Mirror(
                store=self.store,
                url=self._mlflow_url,
                spool=spool,
                linger_s=0.03,
                first_pause_s=0.03,
                backoff_cap_s=0.2,
            )
        router = gateway_router(
            store=self.store,
            secret=SECRET,
            is_owner=lambda token: token == OWNER,
            fence=self,
            notify=lambda job_id, run_id, keys: self.notices.append((job_id, run_id, keys)),
            clock=time.time,
            spool_dir=self.home / "spool",
            mirror=self.mirror,
            max_artifact_bytes=1 << 20,
        )
        app.include_router(router)
        if self.mirror is None:
            yield
            return
        task = asyncio.create_task(self.mirror.run())
        yield
        task.cancel()
        await asyncio.wait([task])

    def is_current(self, key: AttemptKey) -> bool:
        return key in self.current

    def job(self, job_id: str = "j1", *, attempt: int = 1, **spec: Any) -> Script:
        """A submitted job whose attempt runs."""
        run_id = uuid.uuid4().hex
        wanted = JobSpec(**{"experiment_name": "exp", "command": "python train.py", **spec})
        self.write(
            lambda connection: runs.record_new_job(
                connection, run_id=run_id, job_id=job_id, spec=wanted, now_s=time.time(), user="anna"
            )
        )
        return self.attempt(job_id, attempt)

    def attempt(self, job_id: str, attempt: int) -> Script:
        """Start an attempt of a known job; earlier ones are over."""
        self.current = {key for key in self.current if key.job_id != job_id}
        self.current.add(AttemptKey(job_id=job_id, attempt=attempt))
        row = self.store.read_blocking(lambda connection: records.run_of_job(connection, job_id))
        assert row is not None
        return Script(self, job_id, attempt, row.run_id)

    def end(self, job_id: str, status: str = "FINISHED") -> None:
        """The job is over."""
        self.current = {key for key in self.current if key.job_id != job_id}
        self.status(job_id, status)

    def status(self, job_id: str, status: str) -> None:
        row = self.store.read_blocking(lambda connection: records.run_of_job(connection, job_id))
        assert row is not None
        self.write(lambda connection: runs.record_status(connection, row.run_id, status, time.time()))

    def write(self, unit: Callable[[sa.Connection], T]) -> T:
        """Change something as the server does: commit, then wake the mirror."""
        result = self.store.write_blocking(unit)
        if self.mirror is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self.mirror.wake)
        return result

    def run(self, run_id: str) -> queries.RunContents:
        return self.store.read_blocking(lambda connection: queries.run_contents(connection, run_id))

    def children(self, job_id: str = "j1") -> list[records.RunRow]:
        return self.store.read_blocking(lambda connection: queries.children_of_job(connection, job_id))

    def points(self, run_id: str) -> list[records.MetricRow]:
        return self.store.read_blocking(lambda connection: records.read_metrics(connection, run_id))

    def outbox(self) -> int:
        return self.store.read_blocking(records.count_outbox)

    def wait_mirrored(self, timeout_s: float = 15.0) -> None:
        """Until nothing waits (parked rows apart)."""
        wait_for(lambda: not self.store.read_blocking(queries.waiting_runs), "the outbox did not run empty", timeout_s)

    def client(self, token: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"}
        client = httpx.Client(base_url=self.url, headers=headers, timeout=20.0, verify=False, trust_env=False)
        self._clients.append(client)
        return client

    def owner(self) -> httpx.Client:
        return self.client(OWNER)


class Script:
    """The MLflow calls of one training process, as raw HTTP."""

    def __init__(self, world: GatewayWorld, job_id: str, attempt: int, run_id: str) -> None:
        self.job_id, self.attempt, self.run_id = job_id, attempt, run_id
        self.token = attempt_token(SECRET, job_id, attempt)
        self.http = world.client(self.token)

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.http.post(f"/api/2.0/mlflow/{path}", json=body)

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.http.get(f"/api/2.0/mlflow/{path}", params=query)

    def create_run(self, name: str = "", *, parent: str | None = None, start: int | None = None, **body: Any) -> str:
        """`runs/create` as the client sends it; the run id answered."""
        tags = [{"key": "mlflow.source.name", "value": "train.py"}]
        if name:
            tags.append({"key": "mlflow.runName", "value": name})
        if parent:
            tags.append({"key": "mlflow.parentRunId", "value": parent})
        fields = {"experiment_id": "0", "run_name": name, "start_time": start or time.time_ns(), "tags": tags, **body}
        response = self.post("runs/create", **fields)
        assert response.status_code == 200, response.text
        run_id = response.json()["run"]["info"]["run_id"]
        assert isinstance(run_id, str)
        return run_id

    def log(self, key: str, value: Any, step: int = 0, *, run_id: str | None = None, **body: Any) -> httpx.Response:
        return self.post(
            "runs/log-metric",
            run_id=run_id or self.run_id,
            key=key,
            value=value,
            step=step,
            **{"timestamp": time.time_ns() // 1_000_000, **body},
        )
