"""`nightlab status`: what is up, what runs, what waits, what an operator should know."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from nightlab.failure import ExitCode
from nightlab.moments import moment
from nightlab.output import ago, plural, print_json, print_table
from nightlab.services.control import is_up, present_settings
from nightlab.services.programs import AGENT, MLFLOW, SERVER
from nightlab.services.settings import ServiceFiles, ServiceSettings
from nightlab.services.state import ServicePhase, SupervisorState, read_state
from nightlab.web_link import agent_url

from .options import HomeOption, JsonOption, home_folder

if TYPE_CHECKING:
    from agent.gates.gate import Gate
    from agent.store.views import SessionView
    from agent.sweeps.views import NightView
    from runtime_client.models import ServerInfo

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(epilog="Example:  nightlab status --json")
def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show what is up, what runs, what waits. Exit 0 if the runtime answers, 3 if not."""
    folder = home_folder(home)
    settings = present_settings(folder)
    state = read_state(ServiceFiles(folder)) if is_up(folder) else None
    info, problem = _ask_runtime(folder)
    agent = _agent_at_work(folder)
    services = _services(settings, state, info, folder)
    if as_json:
        print_json(
            {
                "is_up": info is not None,
                "home": str(folder),
                "problem": problem,
                "services": services,
                "runtime": info,
                "sessions": [_session_data(session, agent.paused) for session in agent.sessions],
                "gates": [asdict(gate) for gate in agent.gates],
                "nights": [_night_data(night) for night in agent.nights],
                "sessions_problem": agent.problem,
            }
        )
    else:
        _print(folder, services, info, problem, agent)
        if agent.problem is not None:
            print(f"! {agent.problem}")
    if info is None:
        raise typer.Exit(ExitCode.UNREACHABLE)


def _ask_runtime(folder: Path) -> tuple[ServerInfo | None, str | None]:
    """What the server says, or why it says nothing."""
    from runtime_client.client import RuntimeClient
    from runtime_client.errors import RuntimeClientError

    try:
        with RuntimeClient.from_home(folder, timeout_s=5.0) as client:
            return client.info(), None
    except RuntimeClientError as error:
        return None, error.message


@dataclass(frozen=True, slots=True, kw_only=True)
class _AtWork:
    """What of the agent somebody may wait for."""

    sessions: tuple[SessionView, ...] = ()
    nights: tuple[NightView, ...] = ()
    paused: frozenset[str] = frozenset()
    """Sessions that a person has paused."""
    gates: tuple[Gate, ...] = ()
    """Questions that wait for a person."""
    problem: str | None = None
    """Why they can not be read."""


def _agent_at_work(folder: Path) -> _AtWork:
    """Nothing without a store, which is not made here."""
    if not (folder / "agent.db").exists():
        return _AtWork()
    from contextlib import closing

    from agent.store.faults import StoreUnusable
    from agent.store.gates import GateStore
    from agent.store.nights import NightStore
    from agent.store.steering import SteeringStore
    from agent.store.store import AgentStore
    from agent.store.views import SessionState

    try:
        with closing(AgentStore.open(folder)) as store:
            live = [s for s in store.sessions() if s.state in (SessionState.RUNNING, SessionState.STOPPING)]
            nights = NightStore(store)
            unsettled = [nights.night(one) for one in nights.runnable()]
            return _AtWork(
                sessions=tuple(live),
                nights=tuple(one for one in unsettled if one.ended_at is None),
                paused=frozenset(s.session_id for s in live if SteeringStore(store).course(s.session_id).is_paused),
                gates=tuple(GateStore(store).waiting()),
            )
    except StoreUnusable as error:
        return _AtWork(problem=str(error))


def _services(
    settings: ServiceSettings | None, state: SupervisorState | None, info: ServerInfo | None, home: Path
) -> list[dict[str, object]]:
    """One entry a service: its name, state, address, pid, restarts."""
    addresses = {
        SERVER: settings.url if settings else None,
        MLFLOW: settings.tracking_url if settings else None,
        AGENT: agent_url(home, state),
    }
    found: list[dict[str, object]] = []
    for name, address in addresses.items():
        known = None if state is None else state.services.get(name)
        found.append(
            {
                "name": name,
                "state": _service_state(name, known.phase if known else None, settings, info),
                "address": address,
                "pid": known.pid if known else None,
                "n_restarts": known.n_restarts if known else 0,
            }
        )
    return found


def _service_state(
    name: str, phase: ServicePhase | None, settings: ServiceSettings | None, info: ServerInfo | None
) -> str:
    if name == SERVER and info is not None:
        return "up"
    if name == MLFLOW and info is not None:
        return info.mlflow_state
    if phase is None:
        return "off" if name == MLFLOW and settings is not None and settings.tracking_url is None else "down"
    if phase is ServicePhase.RUNNING:
        return "starting" if name in (SERVER, MLFLOW) else "up"
    return phase.value


def _print(
    folder: Path,
    services: list[dict[str, object]],
    info: ServerInfo | None,
    problem: str | None,
    agent: _AtWork,
) -> None:
    rows = [(str(one["name"]), str(one["state"]).partition(":")[0], _address(one), _remark(one)) for one in services]
    print_table(("service", "state", "address", "note"), rows, state_column=1)
    print()
    if info is None:
        print(problem)
        _print_nights(agent.nights)
        return
    print(
        f"{info.n_devices_free} of {plural(info.n_devices, 'device')} free, "
        f"{plural(info.n_running, 'job')} running, {info.n_queued} waiting, up since {ago(info.started_at)}"
    )
    if info.n_outbox and info.mlflow_url is not None:
        print(f"{plural(info.n_outbox, 'record')} not yet at MLflow; nothing is lost")
    if info.sealed_by:
        print(f"sealed jobs by {', '.join(info.sealed_by)}")
    _print_nights(agent.nights)
    for session in agent.sessions:
        night = f" of {session.night_id}" if session.night_id is not None else ""
        n_trials = plural(session.n_trials, "trial")
        paused = ", paused" if session.session_id in agent.paused else ""
        print(f"session {session.session_id} ({session.task_name}){night} {session.state}{paused}, {n_trials}")
    if agent.gates:
        print(f"? {plural(len(agent.gates), 'question')} for people: nightlab gate list")
    for notice in info.notices:
        print(f"! {notice}")
    print(f"home {folder}")


def _print_nights(nights: tuple[NightView, ...]) -> None:
    for night in nights:
        n_begun = sum(1 for cell in night.cells if cell.session_id is not None)
        hour = f", until {moment(night.finish_by)}" if night.finish_by is not None else ""
        print(f"night {night.night_id} {night.state}, {n_begun} of {plural(len(night.cells), 'cell')} begun{hour}")


def _address(service: dict[str, object]) -> str:
    return str(service["address"] or "")


def _remark(service: dict[str, object]) -> str:
    n = service["n_restarts"]
    again = f"started again {n}x" if n else ""
    page = "its page: nightlab web" if service["name"] == AGENT and service["address"] else ""
    return ", ".join(one for one in (again, page) if one)


def _session_data(session: SessionView, paused: frozenset[str]) -> dict[str, object]:
    data = asdict(session)
    told = ("session_id", "task_name", "state", "message", "n_trials", "device_seconds", "night_id")
    return {name: data[name] for name in told} | {"is_paused": session.session_id in paused}


def _night_data(night: NightView) -> dict[str, object]:
    data = asdict(night)
    kept = {name: data[name] for name in ("night_id", "sweep", "state", "message", "created_at", "finish_by")}
    cells = [{"cell": cell.cell, "session_id": cell.session_id} for cell in night.cells]
    return kept | {"cells": cells}
