"""Running the check: three undisturbed trials of the default, and one that is made to leave half-way.

All jobs carry a session id of their own, so that a hold touches nothing else, and whatever is still there at the end,
Ctrl-C included, is found by it and cancelled.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent.doctor.gather import gather, last_ended
from agent.doctor.naming import in_words
from agent.doctor.rules import diagnose
from agent.pinned_scorer import PinnedScorer, is_pinned
from agent.planner.configuration import configuration_id, default_params
from agent.planner.objective import read_value
from agent.planner.readiness import PreemptionTry, TrialRun
from agent.store.views import Purpose, SessionState, SessionView, TrialState, TrialView
from agent.task import Task
from agent.tools.trial_job import score_job, trial_job
from nightlab.following import state_line
from nightlab.patience import patiently
from runtime_client.client import RuntimeClient
from runtime_client.errors import Conflict, NotFound, TimedOut
from runtime_client.models import LIVE_STATES, HoldScope, JobSpec, JobView, SessionFence

from .memory import MemoryWatch

N_SEEDS = 3
LOOK_S = 0.25
_N_NAMES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    runs: tuple[TrialRun, ...]
    preemption: PreemptionTry | None
    """None: not tried, since no trial gave a value."""


def run_check(client: RuntimeClient, task: Task, home: Path, *, say: Callable[[str], None]) -> Checked:
    """Returns when all of it has ended; leaves nothing running.

    Raises:
        RuntimeClientError: a job was refused, or the runtime stayed away.
        ScorerRefused: the scorer can not be kept as it is.
    """
    check_id = f"check-{uuid.uuid4().hex[:10]}"
    watch = MemoryWatch(home / "attempts")
    with _nothing_left_of(client, check_id), _scorer_of(task) as scorer:
        specs = [_spec(task, check_id, number, seed) for number, seed in enumerate(_seeds(task), 1)]
        say(f"{N_SEEDS} trials of the default, with seeds {', '.join(str(spec.seed) for spec in specs)}")
        jobs = [_submitted(client, spec) for spec in specs]
        ended = _until_all_ended(client, [job.job_id for job in jobs], watch, say)
        measured = _measured(client, task, scorer, ended, watch, say)
        runs = tuple(_run_of(client, task, *jobs, watch) for jobs in zip(ended, measured, strict=True))
        if all(run.value is None for run in runs):
            return Checked(runs=runs, preemption=None)
        say("the first of them again, made to leave half-way")
        usual_s = min(run.run_s for run in runs if run.value is not None)
        job = _submitted(client, _spec(task, check_id, N_SEEDS + 1, runs[0].seed))
        return Checked(runs=runs, preemption=_preempted(client, task, scorer, job, usual_s / 2, watch, say))


@contextmanager
def _scorer_of(task: Task) -> Iterator[PinnedScorer | None]:
    """As a session keeps it apart. Its folder may go when its jobs are submitted: they have a snapshot."""
    with TemporaryDirectory(prefix="nightlab-check-") as place:
        yield PinnedScorer.open(Path(place), task) if is_pinned(task) else None


def _submitted(client: RuntimeClient, spec: JobSpec) -> JobView:
    return patiently(lambda: client.submit(spec))


@contextmanager
def _nothing_left_of(client: RuntimeClient, check_id: str) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(NotFound):
            client.unpause(HoldScope.SESSION, check_id)
        _end_all(client, check_id)


def _end_all(client: RuntimeClient, check_id: str) -> None:
    """Cancel what has not ended, and wait for its end: it is given its grace."""
    left = client.jobs(session_id=check_id, states=LIVE_STATES)
    for job in left:
        with suppress(Conflict):
            client.cancel(job.job_id, reason="the check has ended")
    for job in left:
        with suppress(TimedOut):
            client.await_end(job.job_id, timeout_s=job.spec.grace_seconds + 10)


def _until_all_ended(
    client: RuntimeClient, job_ids: Sequence[str], watch: MemoryWatch, say: Callable[[str], None]
) -> list[JobView]:
    said: dict[str, str] = {}
    while True:
        jobs = [_looked_at(client, job_id, watch, say, said) for job_id in job_ids]
        if all(job.is_ended for job in jobs):
            return jobs
        time.sleep(LOOK_S)


def _looked_at(
    client: RuntimeClient, job_id: str, watch: MemoryWatch, say: Callable[[str], None], said: dict[str, str]
) -> JobView:
    job = patiently(lambda: client.job(job_id))
    watch.look(job)
    line = state_line(job)
    if said.get(job_id) != line:
        said[job_id] = line
        say(f"  {line}")
    return job


def _preempted(
    client: RuntimeClient,
    task: Task,
    scorer: PinnedScorer | None,
    job: JobView,
    after_s: float,
    watch: MemoryWatch,
    say: Callable[[str], None],
) -> PreemptionTry:
    """Let it run for a while, hold its session so that it checkpoints and leaves, lift the hold, wait for its end."""
    assert job.spec.session is not None
    check_id = job.spec.session.session_id
    said: dict[str, str] = {}
    while not job.is_ended and not (job.state == "running" and _has_run_s(job) >= after_s):
        time.sleep(LOOK_S / 5)
        job = _looked_at(client, job.job_id, watch, say, said)
    if not job.is_ended:
        client.pause(HoldScope.SESSION, check_id, reason="research check: one preemption")
        while not job.is_ended and any(attempt.ended_at is None for attempt in job.attempts):
            time.sleep(LOOK_S)
            job = _looked_at(client, job.job_id, watch, say, said)
        with suppress(NotFound):
            client.unpause(HoldScope.SESSION, check_id)
    (ended,) = _until_all_ended(client, [job.job_id], watch, say)
    (measured,) = _measured(client, task, scorer, [ended], watch, say)
    return _try_of(ended, _run_of(client, task, ended, measured, watch))


def _has_run_s(job: JobView) -> float:
    started = job.attempts[-1].started_at if job.attempts else None
    return 0.0 if started is None else time.time() - started


def _measured(
    client: RuntimeClient,
    task: Task,
    scorer: PinnedScorer | None,
    trained: Sequence[JobView],
    watch: MemoryWatch,
    say: Callable[[str], None],
) -> list[JobView]:
    """The jobs that have the values: the scorers' where the task has one and the training ended well."""
    if task.score is None:
        return list(trained)
    by_training: dict[str, str] = {}
    for number, job in enumerate(trained, 1):
        if job.state == "succeeded" and job.spec.session is not None:
            check_id = job.spec.session.session_id
            trial = _trial(task, check_id, number, job.spec.seed or 0)
            kept: dict[str, Any] = {} if scorer is None else {"code": scorer.code, "readable": scorer.readable}
            spec = score_job(task, _session(task, check_id), trial, job.spec, job.job_id, fence=1, **kept)
            own = {"session": job.spec.session, "idempotency_token": f"{job.job_id}/score/{check_id}"}
            by_training[job.job_id] = _submitted(client, spec.model_copy(update=own)).job_id
    ended = {job.job_id: job for job in _until_all_ended(client, list(by_training.values()), watch, say)}
    return [ended[by_training[job.job_id]] if job.job_id in by_training else job for job in trained]


def _try_of(job: JobView, run: TrialRun) -> PreemptionTry:
    left = next((one for one in job.attempts if one.stop_ordered_at is not None and one.stop_cause != "cancel"), None)
    is_done = left is not None and left.outcome not in ("succeeded", None)
    leaving_s = (
        left.ended_at - left.stop_ordered_at
        if left is not None and left.ended_at is not None and left.stop_ordered_at is not None
        else None
    )
    return PreemptionTry(
        is_done=is_done,
        checkpoint_step=left.checkpoint_step if left is not None else None,
        leaving_s=leaving_s,
        outcome=left.outcome if left is not None else None,
        value=run.value,
        note=run.note,
        run_s=run.run_s,
    )


def _run_of(client: RuntimeClient, task: Task, job: JobView, measured: JobView, watch: MemoryWatch) -> TrialRun:
    """Of the job that trained and the one that measured, which are mostly the same."""
    value, note = _reading(client, task, measured)
    jobs = {one.job_id: one for one in (job, measured)}.values()
    attempts = [attempt for one in jobs for attempt in one.attempts if attempt.ended_at is not None]
    ran = [(one.started_at or one.ordered_at, one.ended_at) for one in attempts]
    return TrialRun(
        seed=job.spec.seed or 0,
        value=value,
        note=note,
        run_s=sum(end - begin for begin, end in ran if end is not None),
        device_seconds=sum(one.device_seconds(one.ended_at or time.time()) for one in jobs),
        device_memory_mb=watch.device_mb.get(job.job_id) or None,
        host_memory_mb=watch.host_mb.get(job.job_id),
    )


def _reading(client: RuntimeClient, task: Task, job: JobView) -> tuple[float | None, str | None]:
    metric = task.objective.metric
    if job.state == "succeeded":
        curve = [point.value for point in patiently(lambda: client.metrics(job.job_id, keys=[metric]))]
        reading = read_value(curve, task.objective)
        return reading.value, reading.note
    if job.exit_reason == "criteria_not_met":
        names = sorted({point.key for point in patiently(lambda: client.metrics(job.job_id))})
        did = f"metrics that did appear: {', '.join(names[:_N_NAMES])}" if names else "the job logged no metric at all"
        return None, f"metric {metric!r} never appeared, or its last value is not a finite number; {did}"
    evidence = next((one.evidence for one in reversed(job.attempts) if one.evidence), None) or job.state_reason
    note = f"{job.exit_reason or job.state}: {evidence}" if evidence else job.exit_reason or job.state
    found = patiently(lambda: diagnose(gather(client, job, last_ended(job), wanted_metric=metric)))
    return None, f"{note}; {in_words(found)}. What to do: {found.suggestion}"


def _seeds(task: Task) -> list[int]:
    """The search seed and two more, none of those that the end of a session needs untouched."""
    fresh = range(task.seeds.first_fresh, task.seeds.first_fresh + 2 * task.seeds.max_pairs + 1)
    first = task.seeds.search
    return [first, *[seed for seed in range(first + 1, first + 20_010) if seed not in fresh][: N_SEEDS - 1]]


def _spec(task: Task, check_id: str, number: int, seed: int) -> JobSpec:
    """The job that a session would submit, under the check's own session, without the session's budget."""
    spec = trial_job(task, _session(task, check_id), _trial(task, check_id, number, seed), fence=1)
    return spec.model_copy(update={"session": SessionFence(session_id=check_id, fence=1)})


def _session(task: Task, check_id: str) -> SessionView:
    return SessionView(
        session_id=check_id,
        task_name=task.task,
        task_json=task.model_dump_json(),
        state=SessionState.RUNNING,
        message="",
        created_at=0.0,
        ended_at=None,
        fence=1,
        pid=None,
        run_id=None,
        plan_revision=0,
        n_trials=0,
        device_seconds=0.0,
        wall_seconds=0.0,
        report_path=None,
        result=None,
        key=check_id,
    )


def _trial(task: Task, check_id: str, number: int, seed: int) -> TrialView:
    params = default_params(task)
    return TrialView(
        trial_id=f"{check_id}-t{number}",
        session_id=check_id,
        number=number,
        configuration=configuration_id(params),
        params=params,
        seed=seed,
        purpose=Purpose.SEARCH,
        suggested_by="default",
        why="a check of the task",
        state=TrialState.PROPOSED,
        job_id=None,
        value=None,
        note=None,
        exit_reason=None,
        device_seconds=0.0,
        proposed_at=0.0,
        launched_at=None,
        ended_at=None,
    )
