"""The rows of a morning report's tables, ready to be shown: every value is text, or a plain number. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agent.doctor.naming import failure_name
from agent.planner.budget import HOUR_S
from agent.planner.configuration import configuration_id, default_params
from agent.planner.history import History
from agent.planner.ranking import ranking
from agent.report import wording
from agent.report.facts import is_measured
from agent.report.tables import web_address
from agent.report.timeline import preemptions, segments, slot_use
from agent.store.views import TrialState, TrialView
from runtime_client.models import JobView

from .facts import CellPart, NightReport
from .sentence import params_words, shortened

MAX_CONFIGURATIONS = 10
MAX_EVIDENCE = 240
MAX_LINKS = 3
"""Trials named beside a class of failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    text: str
    url: str | None
    """None: there is no page to lead to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationRow:
    cell: str
    params: str
    standing: str
    """What is believed of it by all of its values."""
    n: int
    """Valid values."""
    is_default: bool
    run: Link | None
    """MLflow run of its first measured trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow:
    reason: str
    count: int
    cells: str
    evidence: str
    trials: tuple[Link, ...]
    n_more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendRow:
    name: str
    spent: str
    limit: str
    share: float | None
    """0 to 1; None without a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRows:
    device_hours: str
    busy: str
    """Share of the devices while the night was at work."""
    n_devices: int
    n_preemptions: int
    given_back: str
    """Device-hours that others had of it."""
    for_whom: tuple[str, ...]


def configuration_rows(report: NightReport) -> tuple[tuple[ConfigurationRow, ...], int]:
    """The best ones of each cell in turn, MAX_CONFIGURATIONS at most, and how many more were measured."""
    by_cell = [list(_standings(cell)) for cell in report.cells]
    longest = max((len(rows) for rows in by_cell), default=0)
    in_turn = [rows[place] for place in range(longest) for rows in by_cell if place < len(rows)]
    return tuple(in_turn[:MAX_CONFIGURATIONS]), max(0, len(in_turn) - MAX_CONFIGURATIONS)


def _standings(cell: CellPart) -> Iterator[ConfigurationRow]:
    measured = [trial for trial in cell.trials if is_measured(trial)]
    if cell.task is None or not measured:
        return
    default = configuration_id(default_params(cell.task))
    urls = {job.job_id: web_address(job.mlflow_url) for job in cell.jobs}
    first: dict[str, TrialView] = {}
    for one in measured:
        first.setdefault(one.configuration, one)
    for standing in ranking(cell.task, History.of(measured)).standings:
        if (trial := first.get(standing.configuration)) is not None:
            yield ConfigurationRow(
                cell=cell.name,
                params=params_words({name: trial.params.get(name) for name in cell.task.space}, width=160),
                standing=wording.number(standing.mean),
                n=standing.n,
                is_default=standing.configuration == default,
                run=Link(text=trial.trial_id, url=urls.get(trial.job_id or "")),
            )


def failure_rows(report: NightReport) -> tuple[FailureRow, ...]:
    """By class, the most frequent first, with the line that tells most of it."""
    failed = [(cell, trial) for cell in report.cells for trial in cell.trials if _failed_since(trial, report)]
    jobs = {job.job_id: job for cell in report.cells for job in cell.jobs}
    counted = Counter(_class_of(trial) for _, trial in failed)
    rows = []
    for reason, count in counted.most_common():
        own = [(cell, trial) for cell, trial in failed if _class_of(trial) == reason]
        cells = list(dict.fromkeys(cell.name for cell, _ in own))
        rows.append(
            FailureRow(
                reason=shortened(reason, 60),
                count=count,
                cells=shortened(", ".join(cells[:MAX_LINKS]), 120) + (" …" if len(cells) > MAX_LINKS else ""),
                evidence=_evidence([trial for _, trial in own], jobs),
                trials=tuple(_trial_link(trial, jobs) for _, trial in own[:MAX_LINKS]),
                n_more=max(0, count - MAX_LINKS),
            )
        )
    return tuple(rows)


def _failed_since(trial: TrialView, report: NightReport) -> bool:
    """A session that goes on with the last night's has that night's failures too."""
    ended_at = trial.ended_at
    return trial.state is TrialState.INVALID and (ended_at is None or ended_at >= report.night.created_at)


def _class_of(trial: TrialView) -> str:
    """A job that ended well and gave no value is a class of its own."""
    return failure_name(trial).replace("_", " ")


def _evidence(trials: list[TrialView], jobs: dict[str, JobView]) -> str:
    """The root that the doctor found with its cause, else the line that the runtime kept, or the session's note."""
    for trial in trials:
        diagnosis = trial.facts.diagnosis
        if diagnosis is not None and diagnosis.evidence:
            return shortened(f"{diagnosis.evidence[0]}: {diagnosis.cause}", MAX_EVIDENCE)
        job = jobs.get(trial.job_id or "")
        lines = [attempt.evidence for attempt in job.attempts if attempt.evidence] if job is not None else []
        found = lines[-1] if lines else trial.note
        if found:
            return shortened(found, MAX_EVIDENCE)
    return wording.NONE


def _trial_link(trial: TrialView, jobs: dict[str, JobView]) -> Link:
    job = jobs.get(trial.job_id or "")
    return Link(text=trial.trial_id, url=None if job is None else web_address(job.mlflow_url))


def spend_rows(report: NightReport) -> tuple[SpendRow, ...]:
    budgets = None if report.sweep is None else report.sweep.budgets
    used_s = report.summary.device_seconds
    end = report.made_at if report.night.ended_at is None else report.night.ended_at
    wall_s = max(0.0, end - report.night.created_at)
    limit_h = None if budgets is None else budgets.device_hours
    wall_min = None if budgets is None else budgets.wall_minutes
    rows = [
        _spend("device-hours", hours(used_s), used_s, None if limit_h is None else limit_h * HOUR_S, hours),
        _spend(
            "wall time", wording.duration(wall_s), wall_s, None if wall_min is None else wall_min * 60, wording.duration
        ),
    ]
    cost, limit_usd = report.summary.cost_usd, None if budgets is None else budgets.cost_usd
    if cost is not None or limit_usd is not None:
        rows.append(_spend("cost", usd(cost), cost or 0.0, limit_usd, usd))
    return tuple(rows)


def _spend(name: str, spent: str, used: float, limit: float | None, words: Callable[[float], str]) -> SpendRow:
    return SpendRow(
        name=name,
        spent=spent,
        limit="no limit" if limit is None else words(limit),
        share=None if not limit else min(1.0, used / limit),
    )


def capacity_rows(report: NightReport) -> CapacityRows:
    jobs = [job for cell in report.cells for job in cell.jobs]
    trials = [trial for cell in report.cells for trial in cell.trials]
    held = segments(jobs, trials, now=report.made_at)
    tonight = tuple(s for s in held if s.end >= report.night.created_at)
    n_devices = report.n_devices or len({(s.node_id, s.device) for s in tonight})
    use = slot_use(tonight, {}, n_devices=n_devices)
    told = preemptions(jobs, trials)
    classes = {job.job_id: f"{job.job_id} ({job.spec.priority_class})" for job in report.beneficiaries}
    for_whom = dict.fromkeys(classes.get(p.beneficiary, p.beneficiary) for p in told if p.beneficiary is not None)
    return CapacityRows(
        device_hours=hours(report.summary.device_seconds),
        busy=wording.percent(use.leased_share),
        n_devices=n_devices,
        n_preemptions=report.summary.n_preemptions,
        given_back=hours(report.summary.given_back_s),
        for_whom=tuple(for_whom),
    )


def hours(seconds: float) -> str:
    """Device-hours, to three digits where they are few."""
    amount = seconds / HOUR_S
    return f"{amount:.2f}" if amount >= 1 or not amount else f"{amount:.3g}"


def usd(amount: float | None) -> str:
    return wording.NONE if amount is None else f"{amount:.2f} USD"
