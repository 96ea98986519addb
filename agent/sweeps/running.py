"""One night's life: claim, start its sessions, wait, end them by its hour or when asked to. A thin shell.

The sessions run in processes of their own, which the agent service keeps alive; the night reads their rows. Its end
is bounded: past its hour it waits a while for them, then it ends without them (`ending`).
"""

from __future__ import annotations

from agent.planner.plan_text import plan_from_json
from agent.store.faults import DiskFull, full_disk_named
from agent.store.nights import NightFenceLost, NightStore
from agent.store.store import AgentStore
from agent.store.views import SessionState, SessionView, TrialState
from agent.sweeps.ending import end_night, grace_s, settle_night
from agent.sweeps.night import AT_WORK, AskedToStop, CellFacts, Conclude, Continue, StopAll, next_step
from agent.sweeps.night_deps import LOOK_EVERY_S, NightDeps
from agent.sweeps.sweep import Sweep
from agent.sweeps.views import CellView, NightState, NightView
from agent.task import Task

DISK_WAIT_S = 5.0
"""Between looks at a disk that was full."""


def run_night(night_id: str, deps: NightDeps) -> NightView:
    """Work on a night until it has ended and is settled, or the process is asked to leave; the night as it is then.

    While the disk is full it waits, and goes on when there is space.

    Raises:
        NightNotFound, NightHeld: as `NightStore.claim`.
    """
    nights = NightStore(deps.store)
    is_told = False
    while not deps.should_leave():
        try:
            with full_disk_named():
                return _claimed(nights, night_id, deps)
        except NightFenceLost as error:
            deps.say(str(error))
            break
        except DiskFull as error:
            if not is_told:
                deps.say(f"{night_id}: waiting for space on the disk: {error}")
            is_told = True
            deps.pause(DISK_WAIT_S)
    return nights.night(night_id)


def _claimed(nights: NightStore, night_id: str, deps: NightDeps) -> NightView:
    fence = nights.claim(night_id)
    night = nights.night(night_id)
    if night.state is NightState.ENDED:
        return night if night.settled_at is not None else settle_night(nights, night, fence, deps)
    return _live(nights, night_id, fence, deps)


def _live(nights: NightStore, night_id: str, fence: int, deps: NightDeps) -> NightView:
    sweep = Sweep.model_validate_json(nights.night(night_id).sweep_json)
    if sweep.resume and nights.stop_outcome(night_id) is None:
        resumed = nights.resume_sessions(night_id)
        if resumed:
            deps.say(f"{night_id}: {', '.join(resumed)} of the night before go on first")
    over_since: float | None = None
    while not deps.should_leave():
        night, now = nights.night(night_id), deps.store.clock()
        step = next_step(
            [_facts(deps.store, cell) for cell in night.cells],
            cells_at_once=sweep.cells_at_once,
            finish_by=night.finish_by,
            stop=_asked_to_stop(nights, night),
            over_since=over_since,
            now=now,
        )
        if over_since is None and night.finish_by is not None and now >= night.finish_by:
            over_since = now
        match step:
            case Continue(start=positions):
                for position in positions:
                    deps.say(f"{night_id}: {nights.start_cell(night_id, position, fence)} starts")
            case StopAll(positions=positions):
                for cell in night.cells:
                    if cell.position in positions and cell.session_id is not None:
                        deps.store.request_stop(cell.session_id)
            case Conclude() as end:
                return end_night(nights, night, fence, end, deps)
        deps.pause(LOOK_EVERY_S)
    return nights.night(night_id)


def _asked_to_stop(nights: NightStore, night: NightView) -> AskedToStop | None:
    outcome = nights.stop_outcome(night.night_id)
    if outcome is None:
        return None
    return AskedToStop(outcome=outcome, at=night.stop_asked_at or night.created_at, grace_s=grace_s(night))


def _facts(store: AgentStore, cell: CellView) -> CellFacts:
    if cell.session_id is None:
        return CellFacts(position=cell.position, state=None)
    session = store.session(cell.session_id)
    if session.state in AT_WORK:
        return CellFacts(position=cell.position, state=session.state, is_resumed=cell.is_resumed)
    n_measured = sum(1 for trial in store.trials(cell.session_id) if trial.state is TrialState.MEASURED)
    return CellFacts(
        position=cell.position,
        state=session.state,
        n_measured=n_measured,
        is_budget_spent=_is_budget_spent(store, session),
        is_resumed=cell.is_resumed,
        is_left_by_hour=session.state is SessionState.STOPPED and not session.message.startswith("stopped"),
        message=session.message,
    )


def _is_budget_spent(store: AgentStore, session: SessionView) -> bool:
    plans = store.plans(session.session_id)
    if not plans:
        return False
    return plan_from_json(plans[-1].plan_json, Task.model_validate_json(session.task_json)).spent is not None
