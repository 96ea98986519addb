"""Collects what a morning report needs, from the agent's store and the runtime, which may be away."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import ValidationError

from agent.report.gather import beneficiaries, run_url, session_jobs
from agent.store.views import SessionView, TrialView
from agent.sweeps.sweep import Sweep
from agent.sweeps.views import CellBest, CellView, NightSummary, NightView
from agent.task import Task
from runtime_client.errors import RuntimeClientError
from runtime_client.models import JobView
from runtime_client.protocol import Runtime

from .facts import CellPart, NightReport


class NightReader(Protocol):
    """What is read of the sweeps' nights."""

    def night(self, night_id: str) -> NightView: ...

    def nights(self, sweep: str) -> Sequence[NightView]: ...


class SessionRows(Protocol):
    """What is read of the sessions."""

    def session(self, session_id: str) -> SessionView: ...

    def trials(self, session_id: str) -> Sequence[TrialView]: ...


def gather_night(
    nights: NightReader,
    store: SessionRows,
    client: Runtime | None,
    night_id: str,
    *,
    now: float,
    summary: NightSummary | None = None,
    missed: Sequence[float] = (),
) -> NightReport:
    """The night as it stands at `now`.

    Args:
        client: None: the runtime is away; the report says so and goes without jobs and links into MLflow.
        summary: instead of the one that is stored with the night.
    """
    night = nights.night(night_id)
    told = summary or night.summary or NightSummary()
    sweep = _sweep(night.sweep_json)
    notes: list[str] = []
    asked = _Runtime(client, notes)
    cells = tuple(_cell(cell, night, told, store, asked) for cell in night.cells)
    jobs = [job for cell in cells for job in cell.jobs]
    known = sorted(nights.nights(night.sweep), key=lambda n: n.number)
    return NightReport(
        night=night,
        sweep=sweep,
        summary=told,
        cells=cells,
        history=tuple(n for n in known if n.number < night.number),
        missed=tuple(missed),
        beneficiaries=tuple(asked.beneficiaries(jobs)),
        n_devices=asked.n_devices(),
        zone=_zone(sweep),
        notes=tuple(notes),
        is_newest=all(n.number <= night.number for n in known),
        made_at=now,
    )


class _Runtime:
    """Asks the runtime until it does not answer once; what is missing then is noted."""

    def __init__(self, client: Runtime | None, notes: list[str]) -> None:
        self._client = client
        self._notes = notes
        if client is None:
            notes.append("The runtime did not answer, so jobs, capacity and links into MLflow are left out.")

    def _lost(self, error: RuntimeClientError) -> None:
        self._client = None
        self._notes.append(f"The runtime stopped answering ({error.message}), so some of the jobs are left out.")

    def jobs(self, session: SessionView, since: float) -> tuple[JobView, ...]:
        """Those that were still at work at `since`."""
        if self._client is None:
            return ()
        try:
            found = session_jobs(self._client, session.session_id)
        except RuntimeClientError as error:
            self._lost(error)
            return ()
        return tuple(job for job in found if job.ended_at is None or job.ended_at >= since)

    def url(self, run_id: str | None) -> str | None:
        if self._client is None or run_id is None:
            return None
        try:
            return run_url(self._client, run_id)
        except RuntimeClientError as error:
            self._lost(error)
            return None

    def beneficiaries(self, jobs: Sequence[JobView]) -> list[JobView]:
        if self._client is None:
            return []
        try:
            return beneficiaries(self._client, jobs)
        except RuntimeClientError as error:
            self._lost(error)
            return []

    def n_devices(self) -> int:
        if self._client is None:
            return 0
        try:
            return sum(len(node.devices) for node in self._client.nodes())
        except RuntimeClientError as error:
            self._lost(error)
            return 0


def _cell(cell: CellView, night: NightView, summary: NightSummary, store: SessionRows, asked: _Runtime) -> CellPart:
    session = None if cell.session_id is None else store.session(cell.session_id)
    return CellPart(
        view=cell,
        task=_task(cell.task_json),
        session=session,
        best=_best(cell, summary),
        trials=() if session is None else tuple(store.trials(session.session_id)),
        jobs=() if session is None else asked.jobs(session, night.created_at),
        mlflow_url=None if session is None else asked.url(session.run_id),
    )


def _best(cell: CellView, summary: NightSummary) -> CellBest | None:
    """By its session: a night that goes on with the last one's has two sessions in a cell."""
    own = [best for best in summary.cells if best.cell == cell.cell]
    return next((best for best in own if best.session_id == cell.session_id), own[0] if len(own) == 1 else None)


def _sweep(text: str) -> Sweep | None:
    try:
        return Sweep.model_validate_json(text)
    except ValidationError:
        return None


def _task(text: str) -> Task | None:
    try:
        return Task.model_validate_json(text)
    except ValidationError:
        return None


def _zone(sweep: Sweep | None) -> tzinfo | None:
    """The sweep's; this machine's where it names none that is known here."""
    if sweep is None or sweep.time_zone is None:
        return None
    try:
        return ZoneInfo(sweep.time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        return None
