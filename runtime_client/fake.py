"""`FakeRuntime`: a runtime in memory with a clock of its own, for tests and for trying an agent without training.

A script says what each job would do: its curve, its exit and its duration. Nothing happens until `advance` or
`step` moves the clock; `events` with a wait moves it by itself when `is_automatic`. Priority classes, idempotency
tokens, fences, cancellation and preemption behave as in the real one, and so do `continues` and `finish_by` (a job
leaves at the hour itself, with its work saved); dependencies on jobs that have not succeeded yet and arrays are
refused. Two devices of kind `fake` by default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .artifact_folders import in_folder
from .errors import Conflict, NotFound, from_body
from .models import (
    ENDED_STATES,
    ArtifactView,
    AttemptView,
    DeviceView,
    ErrorBody,
    ErrorKind,
    EventView,
    Explanation,
    Forecast,
    JobSpec,
    JobView,
    LogChunk,
    LogEnd,
    LogErrorLine,
    LogErrors,
    LogStreams,
    MetricPoint,
    NewRun,
    NodeState,
    NodeView,
    PlacementView,
    RunUpdate,
    RunView,
    ServerInfo,
    SubmitResult,
    SuggestionView,
)

PRIORITIES = {"critical": 100, "normal": 50, "exploratory": 10}


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeOutcome:
    """What a job does when it runs undisturbed."""

    curves: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    """Values by metric, logged at equal distances over the duration; None: nothing is logged at that step."""
    duration_s: float = 10.0
    peak_memory_mb: float | None = None
    """Most memory that it holds at once, in MiB, as its attempts tell; None: they do not."""
    exit_reason: str = "completed"
    """Anything else fails the job; a required metric that is missing or not finite fails it by itself."""
    evidence: str | None = None
    suggestion: SuggestionView | None = None
    """Last line of output of a failed job."""


Script = Callable[[JobSpec], FakeOutcome]


@dataclass(slots=True)
class _Job:
    view: JobView
    outcome: FakeOutcome
    ends_at: float | None = None
    left_s: float | None = None
    """What it still has to do when it starts, if it goes on from another job; None: all."""
    n_logged: int = 0
    points: list[MetricPoint] = field(default_factory=list)


class FakeRuntime:
    """Implements `runtime_client.protocol.Runtime`. Not thread-safe; one driver at a time."""

    def __init__(
        self,
        script: Script,
        *,
        n_devices: int = 2,
        start_at: float = 1_000_000.0,
        is_automatic: bool = False,
        kinds: Sequence[str] = (),
    ) -> None:
        """`kinds` are the models of the first devices; the others are of kind `fake`."""
        self._script = script
        self._n_devices = n_devices
        self.kinds = [*kinds, *["fake"] * n_devices][:n_devices]
        self.disturbed: set[int] = set()
        """Devices on which somebody outside computes."""
        self._is_automatic = is_automatic
        self._started_at = start_at
        self._node_state = NodeState.HEALTHY
        self._node_reason = ""
        self.now = start_at
        """The clock, in seconds since the epoch."""
        self.n_calls = 0
        self._jobs: dict[str, _Job] = {}
        self._tokens: dict[tuple[str, str], str] = {}
        self._fences: dict[str, int] = {}
        self._runs: dict[str, RunView] = {}
        self._run_tokens: dict[str, str] = {}
        self.n_refusals = 0
        """So many submissions of sessions are refused, as while all agents are stopped."""
        self.budgets: dict[str, float] = {}
        """By session: device-seconds that its jobs may use together; beyond it submissions are refused."""
        self.artifacts: dict[tuple[str, str], bytes] = {}
        self._events: list[EventView] = []
        self._passing: list[EventView] = []

    # The protocol.

    def info(self) -> ServerInfo:
        self.n_calls += 1
        return ServerInfo(
            version="fake",
            started_at=self._started_at,
            n_devices=self._n_devices,
            n_devices_free=len(self._free_devices()),
            n_queued=sum(1 for job in self._jobs.values() if job.view.state == "queued"),
            n_running=sum(1 for job in self._jobs.values() if job.view.state == "running"),
            last_seq=len(self._events),
            mlflow_url=None,
            mlflow_state="off",
            priority_classes=dict(PRIORITIES),
            n_outbox=0,
        )

    def submit(self, spec: JobSpec) -> JobView:
        result = self.submit_many([spec])[0]
        if result.error is not None:
            raise from_body(result.error)
        assert result.job is not None
        return result.job

    def submit_many(self, specs: Sequence[JobSpec]) -> list[SubmitResult]:
        self.n_calls += 1
        results = [self._submit(spec) for spec in specs]
        self._schedule()
        return [
            result if result.job is None else result.model_copy(update={"job": self._jobs[result.job.job_id].view})
            for result in results
        ]

    def job(self, job_id: str) -> JobView:
        self.n_calls += 1
        return self._job(job_id).view

    def jobs(
        self,
        *,
        states: Sequence[str] | None = None,
        session_id: str | None = None,
        project: str | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> list[JobView]:
        self.n_calls += 1
        views = [job.view for job in reversed(self._jobs.values())]
        if before is not None:
            last = _number(before)
            views = [view for view in views if _number(view.job_id) < last]
        if states is not None:
            views = [view for view in views if view.state in states]
        if session_id is not None:
            views = [v for v in views if v.spec.session is not None and v.spec.session.session_id == session_id]
        if project is not None:
            views = [view for view in views if view.spec.project == project]
        return views[:limit]

    def cancel(self, job_id: str, *, reason: str = "") -> JobView:
        self.n_calls += 1
        job = self._job(job_id)
        if job.view.state in ENDED_STATES:
            raise Conflict(f"{job_id} has ended already ({job.view.state})", code="job_ended")
        if job.view.state == "queued":
            self._end_queued(job, "cancelled", reason)
        else:
            self._end_attempt(job, "cancelled", "cancelled", "cancelled", None)
        self._schedule()
        return job.view

    def what_if(self, spec: JobSpec) -> Forecast:
        """Knows free devices and the queue, and nothing of preemption."""
        self.n_calls += 1
        first = [job.view for job in self._queue() if job.view.priority >= PRIORITIES[spec.priority_class]]
        if not first and len(self._free_devices()) >= spec.compute.num_accelerators:
            return Forecast(prospect="starts", summary="this job is about to start")
        behind = tuple(view.job_id for view in first)
        return Forecast(prospect="waits", summary="this job waits", queue_position=len(behind) + 1, behind=behind)

    def explain(self, job_id: str) -> Explanation:
        self.n_calls += 1
        view = self._job(job_id).view
        queued = [job.view.job_id for job in self._queue()]
        position = queued.index(job_id) + 1 if job_id in queued else None
        return Explanation(
            job_id=job_id, state=view.state, summary=f"{job_id} is {view.state}", queue_position=position
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
        self.n_calls += 1
        job = self._job(job_id)
        number = attempt or max(len(job.view.attempts), 1)
        text = (job.outcome.evidence or "") if job.view.state in ENDED_STATES and stream == "main" else ""
        start = max(len(text) + offset, 0) if offset < 0 else offset
        piece = text[start : start + limit]
        return LogChunk(
            job_id=job_id,
            attempt=number,
            stream=stream,
            text=piece,
            next_offset=start + len(piece),
            is_complete=job.view.state in ENDED_STATES and start + len(piece) >= len(text),
        )

    def log_streams(self, job_id: str, *, attempt: int | None = None) -> LogStreams:
        return LogStreams(job_id=job_id, attempt=self.logs(job_id, attempt=attempt).attempt, streams=("main",))

    def log_errors(self, job_id: str, *, attempt: int | None = None, limit: int | None = None) -> LogErrors:
        """Every line of the evidence is one, and the end of the output."""
        found = self.logs(job_id, attempt=attempt)
        lines = tuple(LogErrorLine(text=line, count=1, ranks=()) for line in found.text.splitlines())
        end = LogEnd(rank=None, tracebacks=(), lines=tuple(found.text.splitlines()))
        return LogErrors(job_id=job_id, attempt=found.attempt, lines=lines, is_whole=True, ends=(end,))

    def metrics(self, job_id: str, *, keys: Sequence[str] | None = None) -> list[MetricPoint]:
        self.n_calls += 1
        return [point for point in self._job(job_id).points if keys is None or point.key in keys]

    def nodes(self) -> list[NodeView]:
        self.n_calls += 1
        holders = {device: job.view for job in self._running() for device in _devices(job.view)}
        devices = tuple(
            DeviceView(
                index=index,
                kind=self.kinds[index],
                uuid=f"fake-{index}",
                is_fake=True,
                busy_external=index in self.disturbed,
                job_id=holders[index].job_id if index in holders else None,
                attempt=len(holders[index].attempts) if index in holders else None,
            )
            for index in range(self._n_devices)
        )
        return [
            NodeView(
                node_id="local",
                generation=1,
                state=self._node_state,
                state_reason=self._node_reason,
                devices=devices,
                hostname="fake",
                cpus=1,
                memory_mb=1024,
            )
        ]

    def set_node_state(self, node_id: str, state: NodeState, *, reason: str = "") -> NodeView:
        """Nothing is started on its one node while that is closed; what runs there goes on."""
        if node_id != "local":
            raise NotFound(f"no node {node_id!r}", code="node_not_found")
        self._node_state, self._node_reason = state, reason
        self._schedule()
        return self.nodes()[0]

    def create_run(self, run: NewRun) -> RunView:
        self.n_calls += 1
        known = self._run_tokens.get(run.idempotency_token)
        if known is not None:
            return self._runs[known]
        view = RunView(
            run_id=f"{len(self._runs) + 1:032x}",
            experiment_name=run.experiment_name,
            run_name=run.run_name,
            parent_run_id=run.parent_run_id,
            status="RUNNING",
            tags=run.tags,
        )
        self._runs[view.run_id] = view
        self._run_tokens[run.idempotency_token] = view.run_id
        return view

    def run(self, run_id: str) -> RunView:
        self.n_calls += 1
        if run_id not in self._runs:
            raise NotFound(f"no run {run_id!r}", code="run_not_found")
        return self._runs[run_id]

    def update_run(self, run_id: str, update: RunUpdate) -> RunView:
        before = self.run(run_id)
        after = before.model_copy(
            update={
                "params": {**before.params, **update.params},
                "tags": {**before.tags, **update.tags},
                "latest": {**before.latest, **update.metrics},
                "status": update.status or before.status,
            }
        )
        self._runs[run_id] = after
        return after

    def log_artifact(self, run_id: str, path: str, content: bytes) -> None:
        self.run(run_id)
        self.artifacts[(run_id, path)] = content

    def list_artifacts(self, run_id: str, folder: str = "") -> list[ArtifactView]:
        self.run(run_id)
        return in_folder({path: one for (owner, path), one in self.artifacts.items() if owner == run_id}, folder)

    def events(self, *, since: int, wait_s: float | None = None) -> Iterator[EventView]:
        """What is known after `since`; then, if automatic, what happens as the clock moves on. Never blocks."""
        position = since
        while True:
            yield from self._passing
            self._passing.clear()
            fresh = self._events[position:]
            yield from fresh
            position += len(fresh)
            if not fresh and not (self._is_automatic and self.step()):
                return

    # The world.

    def advance(self, seconds: float) -> None:
        """Move the clock; jobs log, end, and others start on the way."""
        until = self.now + seconds
        while (next_end := self._next_end()) is not None and next_end <= until:
            self._run_to(next_end)
        self._run_to(until)

    def step(self) -> bool:
        """Move the clock to the next end of a job; False when nothing runs or has an hour."""
        next_end = self._next_end()
        if next_end is None:
            return False
        self._run_to(next_end)
        return True

    def preempt(self, job_id: str, *, beneficiary: str | None = None) -> None:
        """Take a running job off its devices, back to the queue; its curve goes on where it was (checkpointed)."""
        job = self._job(job_id)
        attempt = job.view.attempts[-1]
        job.outcome = FakeOutcome(
            curves=job.outcome.curves,
            duration_s=max((job.ends_at or self.now) - self.now, 0.0),
            exit_reason=job.outcome.exit_reason,
            evidence=job.outcome.evidence,
            peak_memory_mb=job.outcome.peak_memory_mb,
        )
        ended = attempt.model_copy(
            update={
                "ended_at": self.now,
                "outcome": "preempted",
                "exit_reason": "preempted",
                "beneficiary": beneficiary,
                "stop_cause": "preempt",
            }
        )
        job.ends_at, job.left_s = None, None
        self._set(
            job,
            state="queued",
            attempts=(*job.view.attempts[:-1], ended),
            n_preemptions=job.view.n_preemptions + 1,
        )
        self._emit("attempt_ended", job, {"outcome": "preempted", "then": "requeue", "beneficiary": beneficiary})

    def reschedule(self) -> None:
        """Start what fits; `preempt` leaves the freed devices alone so that a test can submit the beneficiary."""
        self._schedule()

    # How it works inside.

    def _end_queued(self, job: _Job, exit_reason: str, why: str) -> None:
        self._set(job, state="cancelled", ended_at=self.now, exit_reason=exit_reason, state_reason=why)
        self._emit("job_ended", job, {"end_state": "cancelled"})

    def _end_at_hours(self) -> None:
        """Jobs whose hour has come: what runs leaves with its work saved, what waits ends."""
        why = "its hour (finish_by) came"
        for job in [*self._running(), *self._queue()]:
            finish_by = job.view.spec.finish_by
            if finish_by is None or finish_by > self.now:
                continue
            if job.view.state == "queued":
                self._end_queued(job, "deadline", why)
            else:
                job.left_s = max((job.ends_at or self.now) - self.now, 0.0)
                saved = job.view.attempts[-1].model_copy(update={"checkpoint_step": job.n_logged})
                self._set(job, attempts=(*job.view.attempts[:-1], saved), checkpoint_step=job.n_logged)
                self._end_attempt(job, "cancelled", "cancelled", "deadline", why)

    def _time_refusal(self, spec: JobSpec) -> SubmitResult | None:
        """The refusal of a job whose hour is past, or that goes on from what it can not; None: there is nothing."""
        if spec.finish_by is not None and spec.finish_by <= self.now:
            message = f"finish_by: {spec.finish_by:.0f} is past; give a later time, or leave it out"
            return _refused("deadline_passed", ErrorKind.INVALID, message, "finish_by")
        if spec.continues is None:
            return None
        earlier = self._jobs.get(spec.continues)
        if earlier is None:
            message = f"continues: there is no job {spec.continues!r}; give the id of an ended job, or leave it out"
            return _refused("no_such_job", ErrorKind.INVALID, message, "continues")
        if earlier.view.state not in ENDED_STATES:
            message = f"continues: {spec.continues} has not ended; wait for its end, or cancel it first"
            return _refused("not_ended", ErrorKind.CONFLICT, message, "continues")
        its = earlier.view.spec
        if (its.project, its.experiment_name) != (spec.project, spec.experiment_name):
            message = f"continues: {spec.continues} is of another experiment or project"
            return _refused("another_experiment", ErrorKind.INVALID, message, "continues")
        return None

    def _over_budget(self, spec: JobSpec) -> SubmitResult | None:
        """The refusal of a job whose session has used up its budget; None: there is room."""
        session_id = _session_of(spec)
        limit_s = self.budgets.get(session_id or "")
        views = (job.view for job in self._jobs.values() if _session_of(job.view.spec) == session_id)
        used_s = sum(view.device_seconds(self.now) for view in views)
        if limit_s is None or used_s < limit_s:
            return None
        message = f"session {session_id} may use {limit_s:g} device-seconds: {used_s:.0f} spent"
        return _refused("over_budget", ErrorKind.OVER_BUDGET, message, "compute.num_accelerators")

    def _submit(self, spec: JobSpec) -> SubmitResult:
        if spec.array is not None:
            return _refused("not_in_the_fake", ErrorKind.INVALID, "array: this fake runtime knows none", "array")
        if any(one.job not in self._jobs or self._jobs[one.job].view.state != "succeeded" for one in spec.depends_on):
            what = "depends_on: this fake runtime knows jobs that have succeeded alone"
            return _refused("not_in_the_fake", ErrorKind.INVALID, what, "depends_on")
        if spec.session is not None:
            if self.n_refusals > 0:
                self.n_refusals -= 1
                return _refused("agents_stopped", ErrorKind.CONFLICT, "all agents were stopped", "session", True)
            newest = self._fences.get(spec.session.session_id, 0)
            if spec.session.fence < newest:
                message = f"session {spec.session.session_id}: fence {spec.session.fence} is older than {newest}"
                return _refused("stale_session", ErrorKind.CONFLICT, message, "session.fence")
            self._fences[spec.session.session_id] = spec.session.fence
        token = (spec.project, spec.idempotency_token) if spec.idempotency_token is not None else None
        if token is not None and token in self._tokens:
            return SubmitResult(job=self._jobs[self._tokens[token]].view, is_existing=True)
        if spec.priority_class not in PRIORITIES:
            message = f"unknown priority class {spec.priority_class!r}; known: {', '.join(PRIORITIES)}"
            return _refused("unknown_priority_class", ErrorKind.INVALID, message, "priority_class")
        refusal = self._time_refusal(spec) or self._over_budget(spec)
        if refusal is not None:
            return refusal
        job = self._new_job(spec)
        if token is not None:
            self._tokens[token] = job.view.job_id
        self._emit("job_submitted", job, {})
        return SubmitResult(job=job.view)

    def _new_job(self, spec: JobSpec) -> _Job:
        run = self.create_run(
            NewRun(
                experiment_name=spec.experiment_name,
                run_name=spec.mlflow_run_name or spec.experiment_name,
                parent_run_id=spec.mlflow_parent_run_id,
                tags=spec.tags,
                idempotency_token=f"job/{len(self._jobs) + 1}",
            )
        )
        view = JobView(
            job_id=f"j{len(self._jobs) + 1}",
            state="queued",
            spec=spec,
            priority=PRIORITIES[spec.priority_class],
            preemptible=spec.priority_class == "exploratory" if spec.preemptible is None else spec.preemptible,
            submitted_at=self.now,
            run_id=run.run_id,
        )
        job = _Job(view=view, outcome=self._script(spec))
        if spec.continues is not None:
            earlier = self._jobs[spec.continues]
            job.left_s, job.n_logged = earlier.left_s, 0 if earlier.left_s is None else earlier.n_logged
        self._jobs[view.job_id] = job
        return job

    def _queue(self) -> list[_Job]:
        waiting = [job for job in self._jobs.values() if job.view.state == "queued"]
        return sorted(waiting, key=lambda job: (-job.view.priority, job.view.submitted_at, _number(job.view.job_id)))

    def _running(self) -> list[_Job]:
        return [job for job in self._jobs.values() if job.view.state == "running"]

    def _free_devices(self) -> list[int]:
        if self._node_state not in (NodeState.HEALTHY, NodeState.SUSPECT):
            return []
        held = {device for job in self._running() for device in _devices(job.view)}
        return [index for index in range(self._n_devices) if index not in held]

    def _schedule(self) -> None:
        for job in self._queue():
            free = self._free_devices()
            needed = job.view.spec.compute.num_accelerators
            if needed > len(free):
                return
            attempt = AttemptView(
                attempt=len(job.view.attempts) + 1,
                placements=(PlacementView(node_id="local", devices=tuple(free[:needed]), first_rank=0),),
                ordered_at=self.now,
                started_at=self.now,
            )
            job.ends_at = self.now + (job.outcome.duration_s if job.left_s is None else job.left_s)
            self._set(
                job,
                state="running",
                attempts=(*job.view.attempts, attempt),
                started_at=job.view.started_at if job.view.started_at is not None else self.now,
            )
            self._emit("attempt_started", job, {"attempt": attempt.attempt})

    def _next_end(self) -> float | None:
        ends = [job.ends_at for job in self._running() if job.ends_at is not None]
        live = (job.view.spec.finish_by for job in (*self._running(), *self._queue()))
        return min([*ends, *(hour for hour in live if hour is not None)], default=None)

    def _run_to(self, at: float) -> None:
        self.now = max(self.now, at)
        for job in self._running():
            self._log_due(job)
            if job.ends_at is not None and job.ends_at <= self.now:
                self._finish(job)
        self._end_at_hours()
        self._schedule()

    def _log_due(self, job: _Job) -> None:
        assert job.ends_at is not None
        left = max(job.ends_at - self.now, 0.0)
        total = max((len(values) for values in job.outcome.curves.values()), default=0)
        span = job.outcome.duration_s or 1.0
        due = total if left == 0 else math.floor(total * (1 - left / span))
        for step in range(job.n_logged, due):
            for key, values in job.outcome.curves.items():
                value = values[step] if step < len(values) else None
                if value is not None:
                    self._log(job, key, value, step)
        job.n_logged = max(job.n_logged, due)

    def _log(self, job: _Job, key: str, value: float, step: int) -> None:
        is_finite = math.isfinite(value)
        point = MetricPoint(
            key=key,
            value=value if is_finite else None,
            text=None if is_finite else ("NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"),
            step=step,
            at=self.now,
            attempt=len(job.view.attempts),
        )
        job.points.append(point)
        run = self._runs[job.view.run_id]
        self._runs[run.run_id] = run.model_copy(update={"latest": {**run.latest, key: point.value}})
        self._passing.append(
            EventView(
                seq=None,
                type="metrics_logged",
                at=self.now,
                actor="job",
                job_id=job.view.job_id,
                data={"job_id": job.view.job_id, "run_id": job.view.run_id, "keys": [key]},
            )
        )

    def _finish(self, job: _Job) -> None:
        reason, evidence = job.outcome.exit_reason, job.outcome.evidence
        if reason == "completed":
            for metric in job.view.spec.success.required_metrics:
                points = [point for point in job.points if point.key == metric]
                if not points:
                    reason, evidence = "criteria_not_met", f"required metric {metric!r} was never logged"
                elif points[-1].value is None:
                    reason, evidence = "non_finite_metric", f"the last value of {metric!r} is {points[-1].text}"
        outcome = "succeeded" if reason == "completed" else "failed"
        self._end_attempt(job, outcome, outcome, reason, evidence)

    def _end_attempt(self, job: _Job, state: str, outcome: str, reason: str, evidence: str | None) -> None:
        job.ends_at = None
        ended = job.view.attempts[-1].model_copy(
            update={
                "ended_at": self.now,
                "outcome": outcome,
                "exit_reason": reason,
                "peak_memory_mb": job.outcome.peak_memory_mb,
                "exit_code": 0 if state == "succeeded" else 1,
                "evidence": evidence,
            }
        )
        self._set(
            job,
            state=state,
            attempts=(*job.view.attempts[:-1], ended),
            ended_at=self.now,
            exit_reason=reason,
            state_reason=evidence,
            suggestion=job.outcome.suggestion if state == "failed" else None,
        )
        status = {"succeeded": "FINISHED", "cancelled": "KILLED"}.get(state, "FAILED")
        run = self._runs[job.view.run_id]
        self._runs[run.run_id] = run.model_copy(update={"status": status})
        self._emit("attempt_ended", job, {"outcome": outcome, "then": "end", "end_state": state})

    def _set(self, job: _Job, **changes: object) -> None:
        job.view = job.view.model_copy(update=changes)

    def _emit(self, kind: str, job: _Job, data: dict[str, object]) -> None:
        self._events.append(
            EventView(
                seq=len(self._events) + 1,
                type=kind,
                at=self.now,
                actor="fake",
                project=job.view.spec.project,
                job_id=job.view.job_id,
                data={"job_id": job.view.job_id, **data},
            )
        )

    def _job(self, job_id: str) -> _Job:
        if job_id not in self._jobs:
            raise NotFound(f"no job {job_id!r}", code="job_not_found")
        return self._jobs[job_id]


def _session_of(spec: JobSpec) -> str | None:
    return None if spec.session is None else spec.session.session_id


def _refused(code: str, kind: ErrorKind, message: str, path: str, retryable: bool = False) -> SubmitResult:
    return SubmitResult(error=ErrorBody(code=code, kind=kind, message=message, path=path, retryable=retryable))


def _devices(view: JobView) -> tuple[int, ...]:
    return tuple(device for placement in view.attempts[-1].placements for device in placement.devices)


def _number(job_id: str) -> int:
    return int(job_id.removeprefix("j"))
