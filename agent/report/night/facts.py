"""What a morning report is made from: a night, its cells with their sessions, and the nights before. Frozen, pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from agent.store.views import SessionView, TrialView
from agent.sweeps.sweep import Sweep
from agent.sweeps.views import CellBest, CellView, Change, NightSummary, NightView, WatchResult
from agent.task import Task
from runtime_client.models import JobView

RECENT = 30
"""The newest nights that are always shown."""
EARLIER = 30
"""Of older ones, spread evenly, the first included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPart:
    """One cell with what its session did this night."""

    view: CellView
    task: Task | None
    """None: its text is of another version of nightlab."""
    session: SessionView | None = None
    """None: not started."""
    best: CellBest | None = None
    trials: tuple[TrialView, ...] = ()
    jobs: tuple[JobView, ...] = ()
    """Those that were at work this night."""
    mlflow_url: str | None = None
    """Of the session's MLflow run."""

    @property
    def name(self) -> str:
        return self.view.cell


@dataclass(frozen=True, slots=True, kw_only=True)
class NightReport:
    night: NightView
    sweep: Sweep | None
    """As it was when the night began; None: its text is of another version of nightlab."""
    summary: NightSummary
    cells: tuple[CellPart, ...]
    history: tuple[NightView, ...] = ()
    """Nights of the same sweep before this one, oldest first."""
    missed: tuple[float, ...] = ()
    """Starts that should have been and were not, epochs."""
    beneficiaries: tuple[JobView, ...] = ()
    """Jobs that this night's trials stepped aside for."""
    n_devices: int = 0
    zone: tzinfo | None = None
    """Times are told in it; None: this machine's."""
    notes: tuple[str, ...] = ()
    """What could not be read, in words."""
    is_newest: bool = True
    """No later night of the sweep is known."""
    made_at: float

    @property
    def nights(self) -> tuple[NightView, ...]:
        """All that are known, oldest first, this one last, with its summary as it is here."""
        return (*self.history, replace(self.night, summary=self.summary))

    def clock(self, at: float | None) -> str:
        """`07:00`."""
        return "" if at is None else local(at, self.zone).strftime("%H:%M")

    def moment(self, at: float | None) -> str:
        """`Wed 2 Dec, 06:41`."""
        if at is None:
            return ""
        then = local(at, self.zone)
        return f"{then:%a} {then.day} {then:%b %Y, %H:%M}"

    def day(self, at: float) -> str:
        """`2 Dec`."""
        then = local(at, self.zone)
        return f"{then.day} {then:%b}"


def local(at: float, zone: tzinfo | None) -> datetime:
    return datetime.fromtimestamp(at).astimezone() if zone is None else datetime.fromtimestamp(at, zone)


def regressions(summary: NightSummary) -> tuple[WatchResult, ...]:
    """What got worse: the metric first, then speed, then memory."""
    order = {"metric": 0, "speed": 1, "memory": 2}
    worse = [result for result in summary.watched if result.change is Change.WORSE]
    return tuple(sorted(worse, key=lambda result: order.get(result.what, 3)))


def watched_in_order(summary: NightSummary) -> tuple[WatchResult, ...]:
    """Worse first, then better, unchanged, unknown; within each in the order of the cells."""
    rank = {Change.WORSE: 0, Change.BETTER: 1, Change.UNCHANGED: 2, Change.UNKNOWN: 3}
    return tuple(sorted(summary.watched, key=lambda result: rank[result.change]))


def sampled(nights: Sequence[NightView]) -> tuple[NightView, ...]:
    """At most RECENT + EARLIER nights: the newest, the accepted ones, and older ones at even distances."""
    if len(nights) <= RECENT + EARLIER:
        return tuple(nights)
    older, recent = nights[:-RECENT], nights[-RECENT:]
    step = (len(older) - 1) / (EARLIER - 1)
    places = {round(at * step) for at in range(EARLIER)}
    kept = [night for at, night in enumerate(older) if at in places or night.is_reference]
    return (*kept[: EARLIER + RECENT], *recent)
