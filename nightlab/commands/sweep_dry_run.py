"""`nightlab sweep run FILE --dry-run`: jobs, device-hours, predicted end, what it would delay. Starts nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nightlab.moments import moment
from nightlab.output import duration, plural, print_json, print_table

if TYPE_CHECKING:
    from agent.store.store import AgentStore
    from agent.sweeps.outlook import CellOutlook
    from agent.sweeps.prepare import PreparedNight
    from runtime_client.models import Forecast, JobView, ServerInfo

HOUR_S = 3600.0
N_JOBS = 500
"""The newest jobs of the runtime from which a run time is learned."""
UNKNOWN_TIME = "no trial of it has run yet; nightlab research check TASK.yaml tells how long one takes"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runtime:
    """What the runtime says; nothing of it is known while it is down."""

    problem: str | None
    """Why it says nothing."""
    info: ServerInfo | None = None
    succeeded: tuple[JobView, ...] = ()
    queued: tuple[JobView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """A forecast of one night. Times are epochs; None: it can not be told."""

    sweep: str
    starts_at: float
    """Now, or when its window opens."""
    finish_by: float | None
    cells: tuple[CellOutlook, ...]
    device_hours: float | None
    device_hours_most: float | None
    budget_device_hours: float | None
    ends_at: float | None
    """When the first pairs decide, and nobody else wants its devices."""
    ends_at_most: float | None
    """When all pairs are needed."""
    waits: str | None
    """What a start now would wait for, or why it would do nothing."""
    forecast: Forecast | None
    """Of one of its jobs, if it came now."""
    overtakes: tuple[str, ...] | None
    """Waiting jobs of lower priority, which it would come before; None: not known."""
    unknown: tuple[str, ...]
    """What can not be told, and why."""


def dry_run(folder: Path, prepared: PreparedNight, as_json: bool) -> None:
    found = _foretold(folder, prepared)
    if as_json:
        print_json(_data(found))
    else:
        _print(found, is_resumed=prepared.sweep.resume)


def _foretold(folder: Path, prepared: PreparedNight) -> DryRun:
    from agent.sweeps.outlook import cell_outlook, duration_s
    from agent.sweeps.run_times import learned_run_time

    sweep, now = prepared.sweep, time.time()
    starts_at = prepared.opens_at or now
    with _present_store(folder) as store, _asked(folder, prepared) as (runtime, forecast, problem):
        cells = tuple(
            cell_outlook(cell, learned_run_time(store, sweep.sweep, cell, runtime.succeeded)) for cell in prepared.cells
        )
        waits = _waits(store, prepared)
    used = [cell.device_seconds() for cell in cells]
    most = [cell.device_seconds(at_most=True) for cell in cells]
    ends: list[float | None] = [None, None]
    if runtime.info is not None:
        wait_s = _wait_s(forecast) if prepared.opens_at is None else 0.0
        for place, at_most in enumerate((False, True)):
            n_devices, at_once = runtime.info.n_devices, sweep.cells_at_once
            took_s = duration_s(cells, n_devices=n_devices, cells_at_once=at_once, at_most=at_most)
            ends[place] = None if took_s is None or wait_s is None else starts_at + wait_s + took_s
    return DryRun(
        sweep=sweep.sweep,
        starts_at=starts_at,
        finish_by=prepared.finish_by,
        cells=cells,
        device_hours=_hours(used),
        device_hours_most=_hours(most),
        budget_device_hours=sweep.budgets.device_hours,
        ends_at=ends[0],
        ends_at_most=ends[1],
        waits=waits,
        forecast=forecast,
        overtakes=_overtaken(prepared, runtime),
        unknown=tuple(_unknown(cells, prepared, runtime, forecast, problem)),
    )


@contextmanager
def _present_store(folder: Path) -> Iterator[AgentStore | None]:
    """None: there is none, and none is made."""
    from .agent_store import agent_store

    if not (folder / "agent.db").exists():
        yield None
        return
    with agent_store(folder) as store:
        yield store


@contextmanager
def _asked(folder: Path, prepared: PreparedNight) -> Iterator[tuple[_Runtime, Forecast | None, str | None]]:
    """What the runtime says of itself and of one job of the first cell, and why it says nothing of that one."""
    from agent.tools.trial_job import like_job
    from runtime_client.client import RuntimeClient
    from runtime_client.errors import RuntimeClientError

    try:
        with RuntimeClient.from_home(folder, timeout_s=10.0) as client:
            runtime = _Runtime(
                problem=None,
                info=client.info(),
                succeeded=tuple(client.jobs(states=("succeeded",), limit=N_JOBS)),
                queued=tuple(client.jobs(states=("queued",), limit=N_JOBS)),
            )
            try:
                hour = prepared.finish_by if prepared.opens_at is None else None
                forecast: Forecast | None = client.what_if(like_job(prepared.cells[0].task, finish_by=hour))
                problem: str | None = None
            except RuntimeClientError as error:
                forecast, problem = None, error.message
    except RuntimeClientError as error:
        runtime, forecast, problem = _Runtime(problem=error.message), None, None
    yield runtime, forecast, problem


def _waits(store: AgentStore | None, prepared: PreparedNight) -> str | None:
    from agent.store.nights import NightStore

    if prepared.outside is not None:
        return f"a start now would do nothing: {prepared.outside}"
    sweep = prepared.sweep
    nights = [] if store is None else NightStore(store).nights(sweep.sweep)
    running = next((night.night_id for night in reversed(nights) if night.ended_at is None), None)
    if running is None:
        return None
    effect = {
        "skip": "a start now would be skipped",
        "queue": "a start now would wait for its end",
        "replace": "a start now would end it first",
    }
    return f"{running} still runs: {effect[sweep.overlap]} (overlap: {sweep.overlap})"


def _wait_s(forecast: Forecast | None) -> float | None:
    """Until its first job starts; None: that can not be told."""
    if forecast is None:
        return None
    if forecast.expected_start is None:
        return 0.0 if forecast.prospect == "starts" else None
    return forecast.expected_start.in_seconds


def _overtaken(prepared: PreparedNight, runtime: _Runtime) -> tuple[str, ...] | None:
    if runtime.info is None:
        return None
    mine = runtime.info.priority_classes.get(prepared.sweep.priority_class, 0)
    return tuple(job.job_id for job in runtime.queued if job.priority < mine)


def _hours(used_s: Sequence[float | None]) -> float | None:
    known = [one for one in used_s if one is not None]
    return sum(known) / HOUR_S if len(known) == len(used_s) else None


def _unknown(
    cells: Sequence[CellOutlook],
    prepared: PreparedNight,
    runtime: _Runtime,
    forecast: Forecast | None,
    problem: str | None,
) -> Iterator[str]:
    for cell in cells:
        if cell.run_time is None:
            yield f"how long a trial of {cell.cell} takes: {UNKNOWN_TIME}"
    if runtime.problem is not None:
        yield f"how many devices there are, when it would end, what it would delay: {runtime.problem}"
    if problem is not None:
        yield f"what it would delay: the runtime refuses such a job: {problem}"
    if forecast is not None and prepared.opens_at is None and _wait_s(forecast) is None:
        basis = forecast.summary if forecast.expected_start is None else forecast.expected_start.basis
        yield f"when its first job starts, and so when it would end: {basis}"
    if runtime.info is not None and runtime.info.agents_stop is not None:
        reason = runtime.info.agents_stop.reason
        yield f"when it starts: all agents are stopped ({reason}); allow them with: nightlab allow --all-agents"


def _data(found: DryRun) -> dict[str, object]:
    cells = [
        {
            **asdict(cell),
            "n_search": cell.n_search,
            "n_jobs": cell.n_jobs,
            "n_jobs_most": cell.n_jobs_most,
            "device_seconds": cell.device_seconds(),
            "device_seconds_most": cell.device_seconds(at_most=True),
        }
        for cell in found.cells
    ]
    # The forecast is a model of the wire, which asdict leaves as it is and the envelope dumps.
    return {**asdict(found), "cells": cells, "is_in_time": _is_in_time(found), "forecast": found.forecast}


def _is_in_time(found: DryRun) -> bool | None:
    if found.finish_by is None:
        return True
    return None if found.ends_at is None else found.ends_at <= found.finish_by


def _print(found: DryRun, *, is_resumed: bool) -> None:
    print(f"{found.sweep}: a dry run, nothing was started")
    rows = [
        (
            cell.cell,
            cell.n_configurations,
            cell.n_seeds,
            cell.n_search,
            _range(cell.n_confirm, cell.n_confirm_most),
            cell.n_looks,
            _range(cell.n_jobs, cell.n_jobs_most),
            _seconds_range(cell),
            cell.run_time.basis if cell.run_time is not None else "unknown",
        )
        for cell in found.cells
    ]
    print_table(
        ("cell", "#configurations", "#seeds", "#search", "#confirm", "#looks", "#jobs", "#device time", "known from"),
        rows,
    )
    _print_totals(found)
    _print_end(found, is_resumed=is_resumed)
    _print_delays(found)
    for one in found.unknown:
        print(f"can not be told: {one}")


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _seconds_range(cell: CellOutlook) -> str:
    low, high = cell.device_seconds(), cell.device_seconds(at_most=True)
    if low is None or high is None:
        return "unknown"
    return duration(low) if low == high else f"{duration(low)} - {duration(high)}"


def _print_totals(found: DryRun) -> None:
    jobs = _range(sum(cell.n_jobs for cell in found.cells), sum(cell.n_jobs_most for cell in found.cells))
    hours = "an unknown number of device-hours"
    if found.device_hours is not None and found.device_hours_most is not None:
        low, high = f"{found.device_hours:.3g}", f"{found.device_hours_most:.3g}"
        hours = f"{low if low == high else f'{low}-{high}'} device-hours"
    budget = "" if found.budget_device_hours is None else f" of {found.budget_device_hours:g} that it may use"
    print(f"{jobs} jobs, {hours}{budget}")
    for cell in found.cells:
        if cell.is_cut_by_budget:
            print(f"! {cell.cell}: its budget ends it before all of its trials have run")


def _print_end(found: DryRun, *, is_resumed: bool) -> None:
    if found.waits is not None:
        print(f"! {found.waits}")
    starts = f"starting at {moment(found.starts_at)}"
    if found.ends_at is None or found.ends_at_most is None:
        print(f"{starts} it ends at an unknown time{_hour(found)}")
        return
    latest = "" if found.ends_at == found.ends_at_most else f", {moment(found.ends_at_most)} at the latest"
    print(f"{starts} it ends at about {moment(found.ends_at)}{latest}{_hour(found)}")
    if found.finish_by is None or found.ends_at <= found.finish_by:
        return
    left = "goes on the next night (resume: true)" if is_resumed else "is left (resume: false)"
    print(f"! that is {duration(found.ends_at - found.finish_by)} after its hour: what is unfinished then {left}")


def _hour(found: DryRun) -> str:
    return "; it has no hour" if found.finish_by is None else f"; its hour is {moment(found.finish_by)}"


def _print_delays(found: DryRun) -> None:
    from nightlab.explanation_page import print_forecast

    if found.forecast is None:
        return
    print("one of its jobs, if it came now:")
    print_forecast(found.forecast)
    overtaken = found.overtakes or ()
    if overtaken:
        print(f"it would come before {plural(len(overtaken), 'waiting job')}: {', '.join(overtaken[:10])}")
    if not overtaken and not found.forecast.victims:
        print("it would delay nobody")
