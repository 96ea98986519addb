"""What the server's tests share: a server on a thread with a fake engine, and waiting with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx

from runtime.engines.contract import AttemptKey
from runtime.engines.fake import FakeEngine, Obedient, Script, fake_node
from runtime.server.config import ServerConfig
from runtime.server.threaded import ThreadedServer, threaded_server
from runtime_client.client import RuntimeClient
from runtime_client.models import JobSpec, JobView

T = TypeVar("T")


def until(condition: Callable[[], T], *, timeout_s: float = 10.0) -> T:
    """Poll until the condition is true (or not None), and return what it said."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"not true after {timeout_s} s: {condition}"
        time.sleep(0.005)


def spec(**changes: Any) -> JobSpec:
    return JobSpec.model_validate({"experiment_name": "lab", "command": "true", **changes})


def key(job_id: str, attempt: int = 1) -> AttemptKey:
    return AttemptKey(job_id=job_id, attempt=attempt)


@dataclass(frozen=True, kw_only=True)
class Lab:
    server: ThreadedServer
    client: RuntimeClient
    engine: FakeEngine
    http: httpx.Client
    """Without a token."""

    @property
    def auth(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.server.token}"}

    def do(self, work: Callable[[], object]) -> None:
        """Move the engine along, on the server's own thread."""
        self.server.on_loop(work)

    def finish(self, job_id: str, attempt: int = 1, *, exit_code: int = 0) -> None:
        self.do(lambda: self.engine.finish(key(job_id, attempt), exit_code=exit_code))

    def in_state(self, job_id: str, *states: str) -> JobView:
        return until(lambda: ((view := self.client.job(job_id)).state in states and view) or None)


@contextmanager
def lab(
    home: Path,
    *,
    engine: FakeEngine | None = None,
    script: Script | None = None,
    n_devices: int = 2,
    kind: str = "cpu",
    clock: Callable[[], float] | None = None,
    port: int = 0,
    **config: Any,
) -> Iterator[Lab]:
    used = engine or FakeEngine(nodes=(fake_node(n_devices=n_devices, kind=kind),), script=script or Obedient())
    settings = ServerConfig(home=home, port=port, **{"low_disk_bytes": 0, **config})
    with (
        threaded_server(settings, engine=used, clock=clock) as server,
        server.client() as client,
        httpx.Client(base_url=server.url, trust_env=False, verify=False) as http,
    ):
        yield Lab(server=server, client=client, engine=used, http=http)
