"""What the services run with, and where their files are. Written by the command line, read by the supervisor."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

DEFAULT_PORT = 7070
DEFAULT_MLFLOW_PORT = 7071


class JobsAtStop(StrEnum):
    """What becomes of running jobs when the services go down."""

    REQUEUE = "requeue"
    """Each gets its notice, checkpoints and goes back to the queue; the next `up` resumes it."""
    LEAVE = "leave"
    """Training goes on; the next `up` takes it over."""
    CANCEL = "cancel"
    """Each gets its notice and ends; nothing is resumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Everything that tells one `up` from another."""

    home: Path
    devices: str = "auto"
    port: int = DEFAULT_PORT
    mlflow_url: str | None = None
    """A tracking server of the user's; None: ours, or none at all."""
    mlflow_port: int | None = DEFAULT_MLFLOW_PORT
    """Port of our own MLflow server; None: we start none."""
    database_url: str | None = None
    device_prices: dict[str, float] = field(default_factory=dict)
    """By kind of device, per device-hour."""
    agent: bool = True
    """Whether the agent service runs; the demo and tests of the runtime alone do without."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def tracking_url(self) -> str | None:
        """The tracking server that the runtime mirrors to."""
        if self.mlflow_url is not None:
            return self.mlflow_url
        return None if self.mlflow_port is None else f"http://127.0.0.1:{self.mlflow_port}"

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "home": str(self.home)}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> ServiceSettings:
        found: dict[str, Any] = json.loads(text)
        return cls(**{**found, "home": Path(found["home"])})


@dataclass(frozen=True, slots=True)
class ServiceFiles:
    """The files of the services below a home folder."""

    home: Path

    @property
    def folder(self) -> Path:
        return self.home / "services"

    @property
    def settings(self) -> Path:
        """`ServiceSettings` of the last `up`; mode 0600, a database URL may hold a password."""
        return self.folder / "settings.json"

    @property
    def state(self) -> Path:
        """What the supervisor last knew of each service."""
        return self.folder / "state.json"

    @property
    def policy(self) -> Path:
        """The scheduling policy in force, where it is not the default; the server reads it when it starts."""
        return self.home / "policy.yaml"

    @property
    def stop_request(self) -> Path:
        """Holds a `JobsAtStop` while a stop is asked for."""
        return self.folder / "stop"

    @property
    def supervisor_lock(self) -> Path:
        """Locked as long as a supervisor lives."""
        return self.folder / "supervisor.lock"

    @property
    def command_lock(self) -> Path:
        """Locked while an `up` or `down` is at work."""
        return self.folder / "command.lock"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    def log(self, service: str) -> Path:
        return self.logs / f"{service}.log"

    @property
    def mlflow(self) -> Path:
        """What our own MLflow server keeps."""
        return self.home / "mlflow"

    def make(self, *, with_mlflow: bool = False) -> None:
        """Make the folders, for the owner alone; a home that exists keeps its mode."""
        for folder in (self.home, self.folder, self.logs, *((self.mlflow,) if with_mlflow else ())):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def write_private(path: Path, text: str) -> None:
    """Replace a file as a whole, readable by the owner alone."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)
