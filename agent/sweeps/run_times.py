"""How long a trial of a cell takes, as earlier nights, other sessions of its task, or jobs of the runtime tell."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from agent.planner.compared import why_tasks_differ
from agent.store.nights import NightStore
from agent.store.store import AgentStore
from agent.store.views import TrialState, TrialView
from agent.sweeps.cells import Cell
from agent.sweeps.outlook import RunTime
from agent.task import Task
from runtime_client.models import JobView

N_SESSIONS = 50
"""The newest ones of a task that are looked at."""
N_TRIALS = 20
"""The newest measured trials that count."""


def learned_run_time(store: AgentStore | None, sweep: str, cell: Cell, jobs: Sequence[JobView]) -> RunTime | None:
    """The first of: this cell in an earlier night, a session on the same task, jobs of the same command.

    Args:
        store: None: there is none yet.
        jobs: that have succeeded, newest first; empty where the runtime is away.
    """
    sessions = () if store is None else (*_of_nights(store, sweep, cell), *_of_task(store, cell))
    for session_id, basis in sessions:
        assert store is not None
        if not _measures_the_same(store.session(session_id).task_json, cell.task):
            continue
        times = _times_s(store.trials(session_id), cell.task)
        if times:
            return RunTime(seconds=statistics.median(times), basis=basis, n=len(times))
    times = [seconds for job in jobs if (seconds := _like_job_s(job, cell.task)) is not None][:N_TRIALS]
    return RunTime(seconds=statistics.median(times), basis="jobs of the runtime", n=len(times)) if times else None


def _of_nights(store: AgentStore, sweep: str, cell: Cell) -> Iterable[tuple[str, str]]:
    nights = NightStore(store)
    for night in reversed(nights.nights(sweep)):
        for one in nights.night(night.night_id).cells:
            if one.cell == cell.name and one.session_id is not None:
                yield one.session_id, f"night {night.night_id}"


def _of_task(store: AgentStore, cell: Cell) -> Iterable[tuple[str, str]]:
    found = [one for one in store.sessions() if one.task_name == cell.task.task]
    return [(one.session_id, f"session {one.session_id}") for one in found[:N_SESSIONS]]


def _measures_the_same(task_json: str, task: Task) -> bool:
    other = Task.model_validate_json(task_json)
    is_alike = other.job.compute == task.job.compute and other.score == task.score
    return is_alike and why_tasks_differ(other, task) is None


def _times_s(trials: Sequence[TrialView], task: Task) -> list[float]:
    measured = [one for one in reversed(trials) if one.state is TrialState.MEASURED and one.device_seconds > 0]
    return [one.device_seconds / task.job.compute.num_accelerators for one in measured[:N_TRIALS]]


def _like_job_s(job: JobView, task: Task) -> float | None:
    """Seconds of a job that did what a trial does; None: it did something else, or is scored by another job."""
    spec = job.spec
    is_alike = spec.experiment_name == task.task and spec.command == task.job.command and task.score is None
    if not is_alike or spec.compute.num_accelerators != task.job.compute.num_accelerators or job.ended_at is None:
        return None
    if task.fidelity is not None and spec.parameters.get(task.fidelity.parameter) != task.fidelity.value:
        return None
    return job.device_seconds(job.ended_at) / spec.compute.num_accelerators or None
