"""`nightlab sweep run`: one night of a sweep, from its first trial to its page, with nobody watching."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import ExitCode, Failure, unreachable, work_failed
from nightlab.output import note, print_json

from .agent_store import agent_store
from .options import HomeOption, JsonOption, home_folder
from .sweep_argument import prepared_night
from .sweep_dry_run import dry_run as foretell

if TYPE_CHECKING:
    from agent.store.nights import NightStore
    from agent.sweeps.prepare import PreparedNight
    from agent.sweeps.views import NightView

RUN_EPILOG = """\b
Exit codes: 0 done or skipped, 10 its hour came first, 11 a budget ended it, 20 a regression was found,
1 no value or failed, 2 wrong use, 3 the runtime can not be reached.
Example:  nightlab sweep run digits.yaml"""

POLL_S = 1.0
SLACK_S = 90.0
"""Beyond what a night may take to end after its hour, since its process may have to be started again; then this command
ends all the same."""
SETTLE_S = 180.0
"""After its end, so long its page and its messages may take; they come also without this command."""
RESTART_EVERY_S = 15.0
EXIT_DEADLINE = 10
EXIT_BUDGET = 11
EXIT_REGRESSION = 20


class _Terminated(Exception):
    def __init__(self, number: int) -> None:
        self.number = number


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Sweep file.", show_default=False)],
    python: Annotated[
        str | None, typer.Option(help="Python of the jobs, where the task names none.", metavar="PATH")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell: jobs, device-hours, when it would end, what it would delay.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a night of a sweep to its end, and print one line.

    Starts the runtime if it is down, and again when it dies. Asks nothing. When this command is ended, the night goes
    on: the agent service has it. End it with: nightlab sweep stop NAME.
    """
    folder = home_folder(home)
    prepared = prepared_night(file, python, home=None if dry_run else folder)
    for one in prepared.notes:
        note(f"{one.path}: {one.message}")
    if dry_run:
        foretell(folder, prepared, as_json)
        return
    try:
        with _signals_raised():
            ended = _run(folder, prepared)
    except _Terminated as signalled:
        note(f"{prepared.sweep.sweep} goes on; end it with: nightlab sweep stop {prepared.sweep.sweep}")
        raise typer.Exit(128 + signalled.number) from None
    if as_json:
        print_json(asdict(ended))
    else:
        print(one_line(ended))
    code = exit_code(ended, is_hour_missed=_is_hour_missed(prepared, ended))
    if code:
        raise typer.Exit(code)


def _run(folder: Path, prepared: PreparedNight) -> NightView:
    from agent.store.nights import NightStore
    from agent.sweeps.beginning import begin_night
    from agent.sweeps.states import forget_unused

    upkeep = _Upkeep(folder)

    def pause(seconds: float) -> None:
        upkeep.look()
        time.sleep(seconds)

    with agent_store(folder) as store:
        nights = NightStore(store)
        if prepared.outside is None:
            _bring_up(folder)
        night = begin_night(nights, prepared, pause=pause, say=note)
        if prepared.sweep.matrix.code:
            forget_unused(folder, code_in_use(nights), now=time.time())
        if night.ended_at is None:
            note(f"{night.night_id} has begun; its page will be below {folder / 'reports' / 'nights'}")
        return _followed(nights, night, upkeep)


def code_in_use(nights: NightStore) -> list[Path]:
    """Code folders of sessions that run or may go on, and of cells that are still to start."""
    from agent.store.views import SessionState
    from agent.task import Task

    ended = (SessionState.FINISHED, SessionState.FAILED)
    texts = [one.task_json for one in nights.store.sessions() if one.state not in ended]
    texts += [cell.task_json for one in nights.runnable() for cell in nights.night(one).cells]
    sources = [Task.model_validate_json(text).job.code_source for text in texts]
    return [Path(one.root_path) for one in sources if one is not None]


def _followed(nights: NightStore, night: NightView, upkeep: _Upkeep) -> NightView:
    """The night when it has ended, its page is written and everybody told.

    Raises:
        Failure: it has not, long after its hour.
    """
    from agent.sweeps.ending import ends_within_s

    patience_s = ends_within_s(night) + SLACK_S
    over_since: float | None = None  # a suspended machine sees its hour late
    while night.settled_at is None:
        now = time.time()
        if night.ended_at is not None and now > night.ended_at + SETTLE_S:
            note(f"{night.night_id} has ended; its page and its messages are still to come")
            return night
        if over_since is None and night.finish_by is not None and now >= night.finish_by:
            over_since = time.monotonic()
        if night.ended_at is None and over_since is not None and time.monotonic() > over_since + patience_s:
            raise work_failed(
                f"{night.night_id} has not ended, {patience_s:.0f} s after its hour had come; see nightlab status and "
                f"the logs below {upkeep.folder / 'logs'}",
                code="night_not_ended",
            )
        upkeep.look()
        time.sleep(POLL_S)
        night = nights.night(night.night_id)
    return night


@dataclass(slots=True)
class _Upkeep:
    """Starts the runtime again when it has died; no more often than every few seconds."""

    folder: Path
    last_try_s: float = 0.0

    def look(self) -> None:
        from nightlab.services.control import is_up

        if is_up(self.folder) or time.monotonic() - self.last_try_s < RESTART_EVERY_S:
            return
        self.last_try_s = time.monotonic()
        try:
            _bring_up(self.folder)
        except Failure as error:
            note(f"the runtime can not be started now: {error.message}")


def _bring_up(folder: Path) -> None:
    """The runtime of this home, with the settings of the last time.

    Raises:
        Failure: it can not be started.
    """
    from nightlab.services.control import is_up, present_settings, start
    from nightlab.services.settings import ServiceSettings

    if is_up(folder):
        return
    settings = present_settings(folder) or ServiceSettings(
        home=folder, devices="auto", port=0, mlflow_url=None, mlflow_port=0, database_url=None, device_prices={}
    )
    try:
        services = start(settings)
        note(f"the runtime was down; it is up at {services.url}")
    except Failure as error:
        if is_up(folder):  # another start was quicker
            return
        raise unreachable(f"the runtime can not be started: {error.message}", code=error.code) from error


@contextmanager
def _signals_raised() -> Iterator[None]:
    """SIGTERM and Ctrl-C end the waiting, not the night."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise _Terminated(number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_hour_missed(prepared: PreparedNight, night: NightView) -> bool:
    """Whether a start that did nothing came at a wrong time or waited in vain; else the night before still ran."""
    is_late = prepared.finish_by is not None and night.created_at >= prepared.finish_by
    return prepared.outside is not None or prepared.sweep.overlap != "skip" or is_late


def exit_code(night: NightView, *, is_hour_missed: bool) -> int:
    """What `sweep run` ends with: a regression goes first.

    Args:
        is_hour_missed: what it means when the night was skipped: its hour, not a night before that still ran.
    """
    from agent.sweeps.views import Change, NightOutcome

    if night.summary is not None and any(one.change is Change.WORSE for one in night.summary.watched):
        return EXIT_REGRESSION
    match night.outcome:
        case NightOutcome.FAILED:
            return int(ExitCode.WORK_FAILED)
        case NightOutcome.DEADLINE | NightOutcome.STOPPED | NightOutcome.REPLACED:
            return EXIT_DEADLINE
        case NightOutcome.BUDGET:
            return EXIT_BUDGET
        case _:
            return EXIT_DEADLINE if night.outcome is NightOutcome.SKIPPED and is_hour_missed else 0


def one_line(night: NightView) -> str:
    """For a log: which night, how it ended, what was learned, where its page is."""
    from agent.report.night import headline

    outcome = night.outcome.value if night.outcome is not None else night.state.value
    said = " ".join(headline(night, night.summary).split()) if night.summary is not None else night.message
    page = f"; report {night.report_html}" if night.report_html else ""
    return (
        f"{night.night_id} {outcome}: {said.removesuffix('.')}{page}" if said else f"{night.night_id} {outcome}{page}"
    )
