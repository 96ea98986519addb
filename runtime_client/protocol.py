"""What a client of the runtime can do. `RuntimeClient` does it over HTTP, `FakeRuntime` in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from .models import (
    ArtifactView,
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
    NodeState,
    NodeView,
    RunUpdate,
    RunView,
    ServerInfo,
    SubmitResult,
)


class Runtime(Protocol):
    """All methods raise `RuntimeClientError` and its children, and nothing else."""

    def info(self) -> ServerInfo: ...

    def submit(self, spec: JobSpec) -> JobView:
        """Durable when it returns. A known idempotency token returns the earlier job."""
        ...

    def submit_many(self, specs: Sequence[JobSpec]) -> list[SubmitResult]:
        """One answer per spec, in order; one refused job does not refuse the others."""
        ...

    def job(self, job_id: str) -> JobView: ...

    def jobs(
        self,
        *,
        states: Sequence[str] | None = None,
        session_id: str | None = None,
        project: str | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> list[JobView]:
        """Newest first; `before` is a job id to page on from."""
        ...

    def cancel(self, job_id: str, *, reason: str = "") -> JobView:
        """Ask it to end. A queued job ends at once; a running one is given its grace. Ended: Conflict."""
        ...

    def what_if(self, spec: JobSpec) -> Forecast:
        """What would become of it if it were submitted now; submits nothing. Refused as a submission would be."""
        ...

    def explain(self, job_id: str) -> Explanation: ...

    def logs(
        self,
        job_id: str,
        *,
        attempt: int | None = None,
        offset: int = 0,
        limit: int = 1 << 20,
        stream: str = "main",
    ) -> LogChunk:
        """Output of an attempt (None: the latest) from a byte offset; a negative offset counts from the end."""
        ...

    def log_streams(self, job_id: str, *, attempt: int | None = None) -> LogStreams:
        """`main`, and the ranks that have output of their own."""
        ...

    def log_errors(self, job_id: str, *, attempt: int | None = None, limit: int | None = None) -> LogErrors:
        """The error lines of all ranks, alike ones counted together, and how the output of each rank ends.

        Args:
            limit: bytes that are read from the end of the common output, and an eighth of it of each rank's own;
                None: 8 MiB.
        """
        ...

    def metrics(self, job_id: str, *, keys: Sequence[str] | None = None) -> list[MetricPoint]:
        """In the order in which they arrived."""
        ...

    def nodes(self) -> list[NodeView]: ...

    def create_run(self, run: NewRun) -> RunView:
        """The same idempotency token returns the same run."""
        ...

    def run(self, run_id: str) -> RunView: ...

    def update_run(self, run_id: str, update: RunUpdate) -> RunView: ...

    def log_artifact(self, run_id: str, path: str, content: bytes) -> None:
        """Store a small file with the run; it reaches MLflow when MLflow is there."""
        ...

    def list_artifacts(self, run_id: str, folder: str = "") -> list[ArtifactView]:
        """Files and folders directly below a folder of a run's artifacts, with those on their way to MLflow."""
        ...

    def events(self, *, since: int, wait_s: float | None = None) -> Iterator[EventView]:
        """Journalled events after `since`, then live ones, also passing ones without `seq`.

        Reconnects by itself. Ends after `wait_s` seconds without an event; None: never.
        Yields an event of type `resync` when `since` is older than the journal keeps.
        """
        ...


@runtime_checkable
class NodeKeeper(Protocol):
    """What a person who runs the machines can do with nodes, where a runtime has them."""

    def set_node_state(self, node_id: str, state: NodeState, *, reason: str = "") -> NodeView:
        """Say what a node is good for; a draining one is left by what runs there."""
        ...
