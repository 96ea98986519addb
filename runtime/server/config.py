"""The server's configuration: one frozen object, made in one place, read everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runtime.scheduling.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    home: Path
    """Everything lives below it: database, tokens, attempts, logs."""
    host: str = "127.0.0.1"
    port: int = 7070
    devices: str = "auto"
    """`auto`, `cpu:4`, `fake:8xH100`."""
    database_url: str | None = None
    """None: SQLite at `home/runtime.db`."""
    mlflow_url: str | None = None
    """The tracking server to mirror to; None: records stay here."""
    allowed_hosts: tuple[str, ...] = ()
    """Host header values besides loopback names."""
    low_disk_bytes: int = 200 * 1024 * 1024
    """Below this no attempt is started."""
    policy: Policy = field(default_factory=Policy)
    device_prices: Mapping[str, float] = field(default_factory=dict)
    """By kind of device, per device-hour, in a currency of the operator's. Empty: device-hours are counted alone."""
    max_body_bytes: int = 16 * 1024 * 1024
    """Largest request body; artifacts have `max_artifact_bytes`."""
    max_artifact_bytes: int = 256 * 1024 * 1024
    snapshot_every: int = 2000
    """Events between two snapshots of the state."""
    journal_keep_s: float = 30 * 86400.0
    """Older events go when a snapshot covers them; who asks for them gets `resync`."""
    hang_look_s: float = 10.0
    """Between two looks for signs of life."""
    keep_alive_s: float = 15.0
    """Between two signs of life on an event stream without events."""

    @property
    def store_url(self) -> str:
        return self.database_url or f"sqlite:///{self.home / 'runtime.db'}"

    @property
    def token_path(self) -> Path:
        """The owner's token, mode 0600."""
        return self.home / "token"

    @property
    def secret_path(self) -> Path:
        """The key that attempt tokens are derived from, mode 0600."""
        return self.home / "secret"

    @property
    def attempts_dir(self) -> Path:
        return self.home / "attempts"

    @property
    def spool_dir(self) -> Path:
        """Artifacts that MLflow has not taken yet."""
        return self.home / "spool"

    @property
    def address_path(self) -> Path:
        """JSON `{"url", "pid", "started_at", "mlflow_url"}` while the server is up."""
        return self.home / "server.json"

    @property
    def lock_path(self) -> Path:
        """Locked while a server runs for this home; holds its process id."""
        return self.home / "server.lock"
