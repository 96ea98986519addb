"""What a night came to, as data: from the store's rows and, where the runtime is there, its jobs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from agent.planner.compared import why_tasks_differ
from agent.planner.configuration import configuration_id, default_params
from agent.planner.history import History
from agent.planner.standings import params_of, standings
from agent.planner.statistics import CONFIDENCE
from agent.planner.watching import Side, watched
from agent.store.night_reading import NightReading
from agent.store.store import AgentStore
from agent.store.views import Interval, SessionState, SessionView, TrialState, TrialView
from agent.sweeps.sweep import Sweep
from agent.sweeps.views import CellBest, CellView, NightSummary, NightView
from agent.task import Task
from agent.tools.errors import ToolError
from agent.tools.jobs import list_jobs
from runtime_client.errors import RuntimeClientError
from runtime_client.models import JobView
from runtime_client.protocol import Runtime

_HOUR_S = 3600.0
_TWO_SIDED = statistics.NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)


def summarize(
    store: AgentStore, runtime: Runtime | None, night: NightView, earlier: Sequence[NightView]
) -> NightSummary:
    """
    Args:
        runtime: None: it is away; then what only its jobs tell is left out.
        earlier: the nights of this sweep before, oldest first.
    """
    sweep = Sweep.model_validate_json(night.sweep_json)
    trials = {c.session_id: store.trials(c.session_id) for c in night.cells if c.session_id is not None}
    jobs = {session_id: _jobs(runtime, session_id) for session_id in trials}
    mine = [job for found in jobs.values() for job in found or ()]
    usable = _with_values(store, earlier)
    used_s = {
        session_id: _booked_s(trials[session_id], since=night.created_at)
        if found is None
        else sum(_held_s(job, since=night.created_at) for job in found)
        for session_id, found in jobs.items()
    }
    return NightSummary(
        cells=tuple(_cell(store, cell, trials.get(cell.session_id or "", [])) for cell in night.cells),
        watched=tuple(
            one
            for cell in night.cells
            for one in watched(
                cell.cell,
                _side(night, cell, trials.get(cell.session_id or "", [])),
                _reference(store, usable, cell),
                sweep.watch,
                n_cells=len(night.cells),
            )
        ),
        device_seconds=sum(used_s.values()),
        n_preemptions=sum(1 for job in mine for _ in _preempted(job, since=night.created_at)),
        given_back_s=sum(_away_s(job, since=night.created_at) for job in mine),
        cost_usd=_cost_usd(night, used_s),
        n_resumed=sum(
            1
            for cell in night.cells
            if cell.is_resumed
            for trial in trials.get(cell.session_id or "", ())
            if trial.facts.continues and (trial.launched_at or 0.0) >= night.created_at
        ),
        n_left=sum(1 for found in trials.values() for trial in found if trial.facts.continues and not trial.is_ended),
    )


def _with_values(store: AgentStore, earlier: Sequence[NightView]) -> list[NightView]:
    """Nights that measured something, with their cells: the one that a person accepted, then the oldest first."""
    reading = NightReading(store)
    usable = [one for one in earlier if one.summary is not None and any(c.n_measured for c in one.summary.cells)]
    ordered = sorted(usable, key=lambda one: (not one.is_reference, one.number))
    return [reading.night(one.night_id) for one in ordered]


def _side(night: NightView, cell: CellView, trials: Sequence[TrialView]) -> Side:
    return Side(night_id=night.night_id, task=Task.model_validate_json(cell.task_json), trials=trials)


def _reference(store: AgentStore, nights: Sequence[NightView], cell: CellView) -> Side | None:
    """The same cell in the first of these nights that has it and measured the same.

    What a person accepted counts also when it measured something else: the watch then says so.
    """
    task = Task.model_validate_json(cell.task_json)
    for night in nights:
        for one in night.cells:
            if one.cell != cell.cell or one.session_id is None or one.is_resumed:
                continue
            side = _side(night, one, store.trials(one.session_id))
            has_values = any(trial.state is TrialState.MEASURED for trial in side.trials)
            if has_values and (night.is_reference or why_tasks_differ(side.task, task) is None):
                return side
    return None


def _jobs(runtime: Runtime | None, session_id: str) -> list[JobView] | None:
    """None: they can not be read now."""
    if runtime is None:
        return None
    try:
        return list_jobs(runtime, session_id=session_id)
    except (RuntimeClientError, ToolError):
        return None


def _cost_usd(night: NightView, used_s: Mapping[str, float]) -> float | None:
    """Of the device time, at the price of each cell; None: one of them that ran has none."""
    prices = {c.session_id: Task.model_validate_json(c.task_json).budgets.usd_per_device_hour for c in night.cells}
    total = 0.0
    for session_id, seconds in used_s.items():
        price = prices[session_id]
        if price is None:
            return None
        total += seconds / _HOUR_S * price
    return total


def _booked_s(trials: Sequence[TrialView], *, since: float) -> float:
    """Device-seconds as the session booked them, of trials that it launched since then."""
    return sum(trial.device_seconds for trial in trials if (trial.launched_at or 0.0) >= since)


def _held_s(job: JobView, *, since: float) -> float:
    """Device-seconds of its attempts in this night."""
    n = job.spec.compute.num_accelerators
    return n * sum(
        max((attempt.ended_at or attempt.started_at or since) - max(attempt.started_at or since, since), 0.0)
        for attempt in job.attempts
        if (attempt.ended_at or since) >= since
    )


def _preempted(job: JobView, *, since: float) -> list[int]:
    """Places of the attempts that gave way to somebody in this night."""
    return [
        place
        for place, attempt in enumerate(job.attempts)
        if attempt.outcome == "preempted" and (attempt.ended_at or 0.0) >= since
    ]


def _away_s(job: JobView, *, since: float) -> float:
    """Device-seconds between giving way and going on."""
    total = 0.0
    for place in _preempted(job, since=since):
        back = job.attempts[place + 1].started_at if place + 1 < len(job.attempts) else job.ended_at
        left = job.attempts[place].ended_at
        if back is not None and left is not None:
            total += max(back - left, 0.0)
    return total * job.spec.compute.num_accelerators


def _cell(store: AgentStore, cell: CellView, trials: Sequence[TrialView]) -> CellBest:
    task = Task.model_validate_json(cell.task_json)
    session = store.session(cell.session_id) if cell.session_id is not None else None
    measured = [trial for trial in trials if trial.state is TrialState.MEASURED]
    default = configuration_id(default_params(task))
    values = [trial.value for trial in measured if trial.configuration == default and trial.value is not None]
    params, best, basis = _best(task, session, trials)
    seconds = [trial.facts.run_seconds for trial in measured if trial.facts.run_seconds is not None]
    memory = [trial.facts.peak_memory_mb for trial in measured if trial.facts.peak_memory_mb is not None]
    result = session.result if session is not None else None
    return CellBest(
        cell=cell.cell,
        task=task.task,
        metric=task.objective.metric,
        direction=task.objective.direction.value,
        session_id=cell.session_id,
        n_trials=len(trials),
        n_measured=len(measured),
        n_failed=sum(1 for trial in trials if trial.state is TrialState.INVALID),
        default_value=statistics.fmean(values) if values else None,
        best_params=params,
        best=best,
        basis=basis,
        comparison=result.comparison if result is not None and task.search.confirm else None,
        seconds=statistics.median(seconds) if seconds else None,
        memory_mb=statistics.median(memory) if memory else None,
    )


def _best(
    task: Task, session: SessionView | None, trials: Sequence[TrialView]
) -> tuple[dict[str, str | int | float | bool | None] | None, Interval | None, str | None]:
    """The session's own answer where it came to one, else who stands best by what is there."""
    result = session.result if session is not None and session.state is SessionState.FINISHED else None
    if result is not None and result.estimate is not None:
        return result.best, result.estimate, result.basis
    history = History.of(trials)
    found = standings(task, history)
    if not found:
        return None, None, None
    first = found[0]
    half = _TWO_SIDED * first.sd
    interval = Interval(
        estimate=first.mean, low=first.mean - half, high=first.mean + half, confidence=CONFIDENCE, n=first.n
    )
    return params_of(history)[first.configuration], interval, "shrunk" if first.sd > 0 else "as_measured"
