"""Makes snapshots: polls the runtime and the agent's store. A snapshot costs a few small calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from agent.gates.gate import Gate
from agent.report.facts import is_measured
from agent.report.gather import SessionReader
from agent.report.timeline import preemptions
from agent.store.views import ParamValue, Purpose, SessionState, SessionView, TrialState, TrialView
from agent.task import Direction, Task
from runtime_client.errors import NotFound
from runtime_client.models import LIVE_STATES, DeviceView, JobView, NodeView
from runtime_client.protocol import Runtime

from .snapshot import LiveSnapshot, Phase, QueueLine, SlotLine, Spend

MAX_SLOTS_WITH_METRICS = 16
MAX_ACTIVITY = 40

PHASE_OF_STATE = {
    SessionState.STOPPING: Phase.STOPPING,
    SessionState.STOPPED: Phase.STOPPED,
    SessionState.FINISHED: Phase.FINISHED,
    SessionState.FAILED: Phase.FAILED,
}


@dataclass(slots=True)
class SnapshotSource:
    """Remembers, between snapshots, only which jobs were ever preempted."""

    client: Runtime
    store: SessionReader
    session_id: str
    clock: Callable[[], float] = time.time
    questions: Callable[[], Sequence[Gate]] = tuple
    """Those of the session that wait for a person."""
    _preempted: dict[str, JobView] = field(default_factory=dict)

    def snapshot(self) -> LiveSnapshot:
        """Raises RuntimeClientError when the runtime does not answer."""
        session = self.store.session(self.session_id)
        task = Task.model_validate_json(session.task_json)
        trials = tuple(sorted(self.store.trials(self.session_id), key=lambda t: t.number))
        info, nodes = self.client.info(), self.client.nodes()
        live = self.client.jobs(states=LIVE_STATES, limit=200)
        self._remember(live)
        now = self.clock()
        measured = sorted(
            (t for t in trials if t.purpose is Purpose.SEARCH and is_measured(t)), key=lambda t: t.ended_at or 0.0
        )
        series = _best_series([t.value or 0.0 for t in measured], task.objective.direction)
        best = next((t for t in measured if series and t.value == series[-1]), None)
        default = next((t for t in measured if t.suggested_by == "default"), None)
        by_job = {t.job_id: t for t in trials if t.job_id is not None}
        return LiveSnapshot(
            at=now,
            task_name=session.task_name,
            session_id=session.session_id,
            metric=task.objective.metric,
            direction=task.objective.direction,
            session_state=session.state,
            phase=_phase(session, trials),
            message=session.message,
            since_start_s=max(0.0, (session.ended_at or now) - session.created_at),
            slots=self._slots(nodes, live, by_job, task, now),
            queue=tuple(_queue(live, by_job, now)),
            best_series=tuple(series),
            best=None if best is None else best.value,
            best_trial=None if best is None else best.number,
            best_params=() if best is None else _setting(best),
            default=None if default is None else default.value,
            n_search_measured=len(measured),
            n_measured=sum(is_measured(t) for t in trials),
            n_invalid=sum(t.state is TrialState.INVALID for t in trials),
            spend=_spend(session, task, trials, [job for job in live if job.job_id in by_job], now),
            activity=tuple(self.store.activity(self.session_id, limit=MAX_ACTIVITY)),
            preemptions=preemptions(list(self._preempted.values()), trials),
            mlflow_url=info.mlflow_url,
            mlflow_state=info.mlflow_state,
            n_outbox=info.n_outbox,
            notices=(*(_asked(gate) for gate in self.questions()), *info.notices),
            result=session.result,
        )

    def _remember(self, live: Sequence[JobView]) -> None:
        now_live = {job.job_id: job for job in live}
        for job in live:
            if any(a.stop_cause == "preempt" for a in job.attempts):
                self._preempted[job.job_id] = job
        for job_id, known in list(self._preempted.items()):
            if not known.is_ended and job_id not in now_live:
                try:
                    self._preempted[job_id] = self.client.job(job_id)
                except NotFound:
                    del self._preempted[job_id]

    def _slots(
        self,
        nodes: Sequence[NodeView],
        live: Sequence[JobView],
        by_job: dict[str, TrialView],
        task: Task,
        now: float,
    ) -> tuple[SlotLine, ...]:
        jobs = {job.job_id: job for job in live}
        lines: list[SlotLine] = []
        for node in nodes:
            for device in node.devices:
                job = jobs.get(device.job_id or "")
                if job is None:
                    lines.append(SlotLine(name=_slot_name(node, device, len(nodes)), job_id=None))
                    continue
                line = _busy_slot(_slot_name(node, device, len(nodes)), job, by_job.get(job.job_id), now)
                has_metrics = line.state != "starting" and len(lines) < MAX_SLOTS_WITH_METRICS
                lines.append(self._with_progress(line, job, task) if has_metrics else line)
        return tuple(lines)

    def _with_progress(self, line: SlotLine, job: JobView, task: Task) -> SlotLine:
        points = self.client.metrics(job.job_id, keys=[task.objective.metric])
        if not points:
            return line
        total = None
        if task.fidelity is not None:
            wanted = job.spec.parameters.get(task.fidelity.parameter, task.fidelity.value)
            total = int(wanted) if isinstance(wanted, int | float) else None
        return replace(line, step=points[-1].step, value=points[-1].value, n_steps=total)


def _slot_name(node: NodeView, device: DeviceView, n_nodes: int) -> str:
    name = f"{device.kind}:{device.index}"
    return name if n_nodes == 1 else f"{node.node_id}/{name}"


def _setting(trial: TrialView) -> tuple[tuple[str, ParamValue], ...]:
    """Parameters; of edited code its lines against the base and what it was made from."""
    edited = trial.facts.edited
    code = () if edited is None else (("code", f"+{edited.added} -{edited.removed} ({edited.parent or 'base'})"),)
    return (*trial.params.items(), *code)


def _busy_slot(name: str, job: JobView, trial: TrialView | None, now: float) -> SlotLine:
    attempt = job.attempts[-1] if job.attempts else None
    since = now if attempt is None else attempt.started_at or attempt.ordered_at
    return SlotLine(
        name=name,
        job_id=job.job_id,
        trial_number=None if trial is None else trial.number,
        purpose=None if trial is None else trial.purpose,
        priority_class=job.spec.priority_class,
        params=() if trial is None else _setting(trial),
        state=job.state,
        is_resumed=len(job.attempts) > 1,
        beneficiary=None if attempt is None else attempt.beneficiary,
        checkpoint_step=job.checkpoint_step,
        elapsed_s=max(0.0, now - since),
    )


def _place(job: JobView) -> tuple[int, float, int, str]:
    """Of two jobs submitted at once the lower number is the older one; it may have more digits."""
    return -job.priority, job.submitted_at, len(job.job_id), job.job_id


def _queue(live: Sequence[JobView], by_job: dict[str, TrialView], now: float) -> list[QueueLine]:
    """Highest class first, then oldest first, as the scheduler orders."""
    waiting = sorted((job for job in live if job.state == "queued"), key=_place)
    return [
        QueueLine(
            job_id=job.job_id,
            trial_number=by_job[job.job_id].number if job.job_id in by_job else None,
            priority_class=job.spec.priority_class,
            waiting_s=max(0.0, now - (job.attempts[-1].ended_at or now if job.attempts else job.submitted_at)),
            is_requeued=bool(job.attempts),
        )
        for job in waiting
    ]


def _best_series(values: Sequence[float], direction: Direction) -> list[float]:
    series: list[float] = []
    for value in values:
        if not series:
            series.append(value)
        else:
            series.append(max(series[-1], value) if direction is Direction.MAXIMIZE else min(series[-1], value))
    return series


def _phase(session: SessionView, trials: Sequence[TrialView]) -> Phase:
    if session.state in PHASE_OF_STATE:
        return PHASE_OF_STATE[session.state]
    open_purposes = {t.purpose for t in trials if t.state is TrialState.LAUNCHED}
    if Purpose.SEARCH in open_purposes or not trials:
        return Phase.SEARCHING
    if Purpose.HELD_OUT in open_purposes:
        return Phase.HELD_OUT
    is_looked_at = any(t.purpose is Purpose.HELD_OUT for t in trials)
    if is_looked_at and Purpose.REPLICATE not in open_purposes:
        return Phase.HELD_OUT  # the look was the last job; the verdict is being written
    return Phase.CONFIRMING if any(t.purpose is Purpose.REPLICATE for t in trials) else Phase.SEARCHING


def _spend(
    session: SessionView, task: Task, trials: Sequence[TrialView], running: Sequence[JobView], now: float
) -> Spend:
    """The session counts trials that have ended; those in flight are added."""
    budgets = task.budgets
    return Spend(
        n_trials=session.n_trials,
        max_trials=budgets.trials,
        wall_s=session.wall_seconds,
        max_wall_s=None if budgets.wall_minutes is None else budgets.wall_minutes * 60,
        device_s=session.device_seconds + sum(job.device_seconds(now) for job in running),
        max_device_s=budgets.device_seconds,
        n_fresh=sum(t.purpose is Purpose.REPLICATE and is_measured(t) for t in trials),
        max_fresh=2 * task.seeds.fresh,
    )


def _asked(gate: Gate) -> str:
    return f"gate {gate.gate_id} waits for an answer: nightlab gate list"
