"""What happens when a night is over: its page is written, and people are told. The shell around `agent.report.night`.

`write_reports` and `tell_of` never change what a night came to; the night's process keeps what they return.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from agent.notices.telling import TIMEOUT_S, tell
from agent.report.night import NightFiles, NightReader, NightReport, gather_night, write_night, write_plain_night
from agent.report.night.gather import SessionRows
from agent.sweeps.notice import notice, occasion_for, occasions
from agent.sweeps.sweep import Sweep
from agent.sweeps.views import NightSummary, NightView
from runtime_client.errors import RuntimeClientError
from runtime_client.protocol import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class MorningDeps:
    home: Path
    nights: NightReader
    store: SessionRows
    connect: Callable[[], Runtime]
    clock: Callable[[], float]


def reports_folder(home: Path) -> Path:
    return home / "reports" / "nights"


def night_report(
    deps: MorningDeps, night_id: str, *, as_it_will_be: NightView | None = None, missed: Sequence[float] = ()
) -> NightReport:
    """Its facts as things stand now, with or without the runtime.

    Args:
        as_it_will_be: the night in the state in which it is about to be left.
    """
    nights = deps.nights if as_it_will_be is None else _WithNight(deps.nights, as_it_will_be)
    try:
        client: Runtime | None = deps.connect()
    except RuntimeClientError:
        client = None
    return gather_night(nights, deps.store, client, night_id, now=deps.clock(), missed=missed)


def write_reports(
    deps: MorningDeps, night_id: str, *, as_it_will_be: NightView | None = None, missed: Sequence[float] = ()
) -> NightFiles:
    """Write both files anew.

    Raises:
        OSError: they can not be written; the disk is full, for one.
    """
    report = night_report(deps, night_id, as_it_will_be=as_it_will_be, missed=missed)
    return write_night(report, reports_folder(deps.home))


def write_plain_reports(deps: MorningDeps, night_id: str) -> NightFiles:
    """The same from no more than the night's row, where the whole page could not be made.

    Raises:
        OSError: as `write_reports`.
    """
    night = deps.nights.night(night_id)
    is_newest = not any(one.number > night.number for one in deps.nights.nights(night.sweep))
    return write_plain_night(night, reports_folder(deps.home), is_newest=is_newest)


def tell_of(
    night: NightView, summary: NightSummary, *, report: Path | None, timeout_s: float = TIMEOUT_S
) -> tuple[str, ...]:
    """Tell everybody whom the sweep names and who wants to know; what became of each, in words without secrets."""
    try:
        sweep = Sweep.model_validate_json(night.sweep_json)
    except ValidationError:
        return ("nobody was told: the sweep is of another version of nightlab",)
    happened = occasions(night, summary)
    wanted = [(address, occasion_for(address, happened)) for address in sweep.notify]
    letters = [(address, notice(night, summary, why, report)) for address, why in wanted if why is not None]
    return tuple(done.words for done in tell(letters, folder=Path(night.file).parent, timeout_s=timeout_s))


class _WithNight:
    """The nights, with one of them already in the state in which it is about to be left."""

    def __init__(self, nights: NightReader, view: NightView) -> None:
        self._nights = nights
        self._view = view

    def night(self, night_id: str) -> NightView:
        return self._view if night_id == self._view.night_id else self._nights.night(night_id)

    def nights(self, sweep: str) -> Sequence[NightView]:
        return self._nights.nights(sweep)
