"""`nightlab sweep list | show | stop | accept`: the nights of sweeps, read and asked through the agent's store."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import Failure, wrong_use
from nightlab.moments import moment
from nightlab.output import ago, duration, note, plural, print_json, print_table, print_words

from .agent_store import agent_store
from .options import HomeOption, JsonOption, home_folder

if TYPE_CHECKING:
    from agent.store.nights import NightStore
    from agent.store.store import AgentStore
    from agent.sweeps.views import NightView
    from nightlab.schedule.crontab_text import LineState
    from nightlab.schedule.installed import Schedule

LIST_EPILOG = "Example:  nightlab sweep list"
SHOW_EPILOG = "Example:  nightlab sweep show digits-nightly"
STOP_EPILOG = "Example:  nightlab sweep stop digits-nightly"
ACCEPT_EPILOG = "Example:  nightlab sweep accept digits-nightly-n12"

NightName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Sweep (its newest night), or a night such as digits-n3.", show_default=False),
]


def list_sweeps(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List sweeps: their newest night, how it ended, when they start next, which starts did not come."""
    from agent.store.nights import NightStore
    from nightlab.schedule.crontab_text import LineState
    from nightlab.schedule.installed import schedules

    folder = home_folder(home)
    with agent_store(folder) as store:
        nights = NightStore(store)
        found = {name: nights.nights(name) for name in nights.sweeps()}
    due = {one.sweep: one for one in schedules(folder, time.time())}
    lines = {name: _line_state(folder, one) for name, one in due.items()}
    if as_json:
        names = sorted({*found, *due})
        print_json([_row_data(name, found.get(name, []), due.get(name), lines.get(name)) for name in names])
        return
    if not found and not due:
        print("no sweep has run yet; run one with: nightlab sweep run FILE")
        return
    rows = [
        (name, state_of(all_[-1]), all_[-1].night_id, ago(all_[-1].created_at), len(all_), all_[-1].message)
        for name, all_ in found.items()
    ]
    if rows:
        print_table(("sweep", "last", "night", "started", "#nights", "note"), rows, state_column=1)
    for one in due.values():
        line = lines[one.sweep]
        if line is None or line is LineState.IN_FORCE:
            print(f"{one.sweep} is started next at {moment(one.next_at)} by {one.kind}")
        else:
            what = "is commented out" if line is LineState.COMMENTED_OUT else "is gone"
            again = f'nightlab sweep install {shlex.quote(one.file)} --at "{one.expression}"'
            print(f"! {one.sweep} is not started: its line in the crontab {what}; put it back with: {again}")
        if one.missed:
            times = plural(len(one.missed), "start")
            print(f"! {one.sweep}: {times} did not come, the last at {moment(one.missed[-1])}: was the machine off?")


def _line_state(folder: Path, due: Schedule) -> LineState | None:
    """Of its line in the crontab; None: it is started by systemd, or the crontab can not be read now."""
    from nightlab.schedule.crontab import marked_line_state
    from nightlab.schedule.crontab_text import mark_of

    if due.kind != "cron":
        return None
    try:
        return marked_line_state(mark_of(f"sweep {due.sweep}", folder))
    except Failure:
        return None


def _row_data(name: str, nights: list[NightView], due: Schedule | None, line: LineState | None) -> dict[str, object]:
    return {
        "sweep": name,
        "n_nights": len(nights),
        "last": asdict(nights[-1]) if nights else None,
        "schedule": None if due is None else asdict(due) | {"line": line},
    }


def show(name: NightName, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show a night: its cells, their sessions, what is watched."""
    with _night(home, name) as (nights, store, night):
        sessions = {c.session_id: store.session(c.session_id) for c in night.cells if c.session_id is not None}
        asked = nights.stop_outcome(night.night_id)
    if as_json:
        print_json(asdict(night) | {"sessions": {key: asdict(view) for key, view in sessions.items()}})
        return
    print(f"{night.night_id}: {state_of(night)}, started {ago(night.created_at)}")
    if night.message:
        print_words(night.message)
    if night.ended_at is None and night.finish_by is not None:
        print(f"has to be over in {duration(max(night.finish_by - time.time(), 0.0))}")
    if asked is not None and night.ended_at is None:
        print("asked to end")
    rows = []
    for cell in night.cells:
        session = sessions.get(cell.session_id) if cell.session_id is not None else None
        rows.append(
            (
                cell.cell,
                cell.session_id or "",
                "waiting" if session is None else session.state.value,
                0 if session is None else session.n_trials,
                "from the night before" if cell.is_resumed else "",
            )
        )
    if rows:
        print_table(("cell", "session", "state", "#trials", ""), rows, state_column=2)
    for one in night.summary.watched if night.summary is not None else ():
        print_words(f"{one.cell}, {one.what}: {one.change.value}: {one.reason}")
    if night.report_html:
        print(f"report {night.report_html}")


def stop(name: NightName, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Ask a running night to end: its jobs checkpoint and leave, its page is written."""
    with _night(home, name) as (nights, _store, night):
        asked = nights.request_stop(night.night_id)
    if as_json:
        print_json(asdict(asked))
    elif asked.ended_at is not None:
        print(f"{asked.night_id} has ended already: {state_of(asked)}")
    else:
        print(f"{asked.night_id} is asked to end")
        note(f"see how it goes: nightlab sweep show {asked.night_id}")


def accept(name: NightName, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Make a night the reference: later nights of its sweep are compared with it."""
    with _night(home, name) as (nights, _store, night):
        if night.summary is None or not any(cell.n_measured for cell in night.summary.cells):
            raise wrong_use(
                f"{night.night_id} has no values to compare with; accept a night that has measured something.",
                code="nothing_to_accept",
            )
        accepted = nights.accept(night.night_id)
    if as_json:
        print_json(asdict(accepted))
    else:
        print(f"later nights of {accepted.sweep} are compared with {accepted.night_id}")


def state_of(night: NightView) -> str:
    return night.outcome.value if night.outcome is not None else night.state.value


@contextmanager
def _night(home: Path | None, name: str) -> Iterator[tuple[NightStore, AgentStore, NightView]]:
    from agent.store.night_reading import NightNotFound
    from agent.store.nights import NightStore

    with agent_store(home_folder(home)) as store:
        nights = NightStore(store)
        try:
            night = nights.named(name)
        except NightNotFound as error:
            raise wrong_use(str(error), code="not_found") from error
        yield nights, store, night
