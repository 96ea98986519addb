"""`SimulatedRuntime`: the client's protocol over a `LabCluster`. What a job's own run would hold comes from the job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runtime.scheduling.explain import explain
from runtime.server.log_ends import log_ends
from runtime.server.submission import Known, foretell
from runtime.server.views import forecast_view, job_view, node_views, words_for_ended
from runtime_client.artifact_folders import in_folder
from runtime_client.doors.refusal import Refused
from runtime_client.errors import Conflict, NotFound, from_body
from runtime_client.models import (
    ArtifactView,
    EventView,
    Explanation,
    Forecast,
    JobSpec,
    JobView,
    LogChunk,
    LogErrorLine,
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

from .cluster import LabCluster
from .runs import Runs


class SimulatedRuntime:
    """Implements `runtime_client.protocol.Runtime`. One driver at a time."""

    def __init__(self, cluster: LabCluster, *, is_automatic: bool = False) -> None:
        """
        Args:
            is_automatic: Reading `events` to their end moves the clock to what happens next.
        """
        self.cluster = cluster
        self.runs = Runs()
        self._is_automatic = is_automatic
        self._n_told = 0

    def info(self) -> ServerInfo:
        state = self.cluster.state
        return ServerInfo(
            version="lab",
            started_at=self.cluster.started_at,
            n_devices=state.n_devices,
            n_devices_free=state.n_devices_free,
            n_queued=state.n_queued,
            n_running=state.n_running,
            last_seq=state.last_seq,
            mlflow_url=None,
            mlflow_state="off",
            priority_classes={name: each.priority for name, each in self.cluster.policy.classes.items()},
            n_outbox=0,
        )

    def submit(self, spec: JobSpec) -> JobView:
        result = self.submit_many([spec])[0]
        if result.error is not None:
            raise from_body(result.error)
        assert result.job is not None
        return result.job

    def submit_many(self, specs: Sequence[JobSpec]) -> list[SubmitResult]:
        answers = self.cluster.submit(specs, frozenset(self.runs.by_id))
        return [
            SubmitResult(error=answer.body)
            if isinstance(answer, Refused)
            else SubmitResult(job=self._view(answer.job_id), is_existing=answer.is_existing)
            for answer in answers
        ]

    def job(self, job_id: str) -> JobView:
        self._known(job_id)
        return self._view(job_id)

    def jobs(
        self,
        *,
        states: Sequence[str] | None = None,
        session_id: str | None = None,
        project: str | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> list[JobView]:
        rows = [
            row
            for row in reversed(self.cluster.rows.values())
            if (states is None or row.state.value in states)
            and (session_id is None or row.session_id == session_id)
            and (project is None or row.project == project)
            and (before is None or row.number < self.cluster.rows[before].number)
        ]
        return [self._view(row.job_id) for row in rows[:limit]]

    def cancel(self, job_id: str, *, reason: str = "") -> JobView:
        view = self.job(job_id)
        if view.is_ended:
            raise Conflict(f"{job_id} has ended already ({view.state})", code="job_ended")
        self.cluster.cancel(job_id, reason)
        return self._view(job_id)

    def what_if(self, spec: JobSpec) -> Forecast:
        cluster = self.cluster
        known = Known(jobs_by_token={}, run_ids=frozenset(self.runs.by_id), earlier=cluster.earlier([spec]))
        number = len(cluster.jobs) + 1
        try:
            _, found = foretell(cluster.state, spec, known, number=number, now_s=cluster.now, policy=cluster.policy)
        except Refused as refusal:
            raise from_body(refusal.body) from refusal
        return forecast_view(found)

    def explain(self, job_id: str) -> Explanation:
        self._known(job_id)
        row, cluster = self.cluster.rows[job_id], self.cluster
        if job_id not in cluster.state.jobs:
            return Explanation(job_id=job_id, state=row.state.value, summary=words_for_ended(row))
        reasons = explain(cluster.state, job_id, now_s=cluster.now, policy=cluster.policy)
        return Explanation(
            job_id=job_id,
            state=row.state.value,
            summary=reasons.summary,
            queue_position=reasons.queue_position,
            details=reasons.details,
            beneficiary=reasons.beneficiary,
        )

    def logs(
        self,
        job_id: str,
        *,
        attempt: int | None = None,
        offset: int = 0,
        limit: int = 1 << 20,
        stream: str = "main",
    ) -> LogChunk:
        view = self.job(job_id)
        is_told = view.is_ended and stream == "main" and view.exit_reason not in (None, "completed", "cancelled")
        text = self.cluster.jobs[job_id].course.output if is_told else ""
        start = max(len(text) + offset, 0) if offset < 0 else offset
        piece = text[start : start + limit]
        return LogChunk(
            job_id=job_id,
            attempt=attempt or max(len(view.attempts), 1),
            stream=stream,
            text=piece,
            next_offset=start + len(piece),
            is_complete=view.is_ended and start + len(piece) >= len(text),
        )

    def log_streams(self, job_id: str, *, attempt: int | None = None) -> LogStreams:
        return LogStreams(job_id=job_id, attempt=self.logs(job_id, attempt=attempt).attempt, streams=("main",))

    def log_errors(self, job_id: str, *, attempt: int | None = None, limit: int | None = None) -> LogErrors:
        """Its last line is the error; of the output, all is read."""
        found = self.logs(job_id, attempt=attempt)
        lines = tuple(LogErrorLine(text=line, count=1, ranks=()) for line in found.text.splitlines()[-1:])
        ends = log_ends([(None, found.text)]) if found.text else ()
        return LogErrors(job_id=job_id, attempt=found.attempt, lines=lines, is_whole=True, ends=ends)

    def metrics(self, job_id: str, *, keys: Sequence[str] | None = None) -> list[MetricPoint]:
        self._known(job_id)
        job = self.cluster.jobs[job_id]
        job.log_until(self.cluster.now)
        return [point for point in job.points if keys is None or point.key in keys]

    def nodes(self) -> list[NodeView]:
        return node_views(self.cluster.state)

    def create_run(self, run: NewRun) -> RunView:
        return self.runs.create(run)

    def run(self, run_id: str) -> RunView:
        job_id = self.cluster.job_of_run(run_id)
        return self.runs.get(run_id) if job_id is None else self._run_of(job_id)

    def update_run(self, run_id: str, update: RunUpdate) -> RunView:
        return self.runs.update(run_id, update)

    def log_artifact(self, run_id: str, path: str, content: bytes) -> None:
        self.runs.get(run_id)
        self.runs.artifacts[(run_id, path)] = content

    def list_artifacts(self, run_id: str, folder: str = "") -> list[ArtifactView]:
        return in_folder({path: one for (owner, path), one in self.runs.artifacts.items() if owner == run_id}, folder)

    def events(self, *, since: int, wait_s: float | None = None) -> Iterator[EventView]:
        """What is known after `since`; then, if automatic, what happens as the clock moves on. Never blocks.

        What has no number is told once.
        """
        feed = self.cluster.feed
        position = self._after(since)
        while True:
            while position < len(feed):
                position += 1
                event = feed[position - 1]
                if event.seq is not None or position > self._n_told:
                    self._n_told = max(self._n_told, position)
                    yield event
            next_s = self.cluster.next_s() if self._is_automatic else None
            if next_s is None:
                return
            self.cluster.advance_to(next_s)

    def _run_of(self, job_id: str) -> RunView:
        """A job's own run, from what the job has logged."""
        row, job = self.cluster.rows[job_id], self.cluster.jobs[job_id]
        job.log_until(self.cluster.now)
        return RunView(
            run_id=row.run_id,
            experiment_name=row.experiment,
            run_name=job.spec.mlflow_run_name or job_id,
            parent_run_id=job.spec.mlflow_parent_run_id,
            status=self.cluster.run_status.get(job_id, "SCHEDULED"),
            params={name: str(value) for name, value in job.spec.parameters.items()},
            tags=job.spec.tags,
            latest={point.key: point.value for point in job.points},
        )

    def _after(self, since: int) -> int:
        """Where in the feed the events after `since` begin."""
        position = len(self.cluster.feed)
        while position > 0:
            seq = self.cluster.feed[position - 1].seq
            if seq is not None and seq <= since:
                break
            position -= 1
        return position

    def _known(self, job_id: str) -> None:
        if job_id not in self.cluster.rows:
            raise NotFound(f"no job {job_id!r}", code="job_not_found")

    def _view(self, job_id: str) -> JobView:
        row = self.cluster.rows[job_id]
        spec = self.cluster.jobs[job_id].spec
        return job_view(row, self.cluster.attempts.get(job_id, ()), None, spec=spec)
