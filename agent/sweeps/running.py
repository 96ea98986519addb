"""One night's life: claim, start its sessions, wait, end them by its hour, write what it came to. A thin shell.

The sessions run in processes of their own, which the agent service keeps alive; the night reads their rows. Its end
is bounded: past its hour it waits a while for them, has what is left of their jobs cancelled, and concludes. A page
that can not be written and a person who can not be told never change how a night ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from agent.planner.plan_text import plan_from_json
from agent.store.nights import NightFenceLost, NightStore
from agent.store.store import AgentStore
from agent.store.views import SessionState, SessionView, TrialState
from agent.sweeps.night import AT_WORK, CellFacts, Conclude, Continue, StopAll, next_step
from agent.sweeps.sweep import Sweep
from agent.sweeps.views import CellView, NightSummary, NightView
from agent.task import Task
from agent.tools.errors import ToolError
from agent.tools.jobs import cancel_jobs, live_jobs
from runtime_client.errors import RuntimeClientError
from runtime_client.protocol import Runtime

LOOK_EVERY_S = 1.0
EMPTY_WAIT_S = 60.0
"""How long the end waits for jobs to be gone, and for a runtime that is away."""
LEAVE_WAIT_S = 40.0
"""So long of that, jobs that are checkpointing are left to it; then they are cancelled."""

Summarize = Callable[[AgentStore, Runtime | None, NightView, Sequence[NightView]], NightSummary]


@dataclass(frozen=True, slots=True, kw_only=True)
class NightDeps:
    """The world around a night."""

    store: AgentStore
    connect: Callable[[], Runtime]
    """Opens the runtime; raises `RuntimeClientError` while there is none."""
    summarize: Summarize
    write_reports: Callable[[str], Path | None]
    """Given the night's id, writes its pages; the path of the HTML one."""
    tell: Callable[[NightView, NightSummary, Path | None], tuple[str, ...]]
    say: Callable[[str], None]
    """A line for the log."""
    should_leave: Callable[[], bool] = lambda: False
    pause: Callable[[float], None]
    """Waits seconds, or less when asked to leave."""


def run_night(night_id: str, deps: NightDeps) -> NightView:
    """Work on a night until it has ended, or the process is asked to leave; the night as it is then.

    Raises:
        NightNotFound, NightHeld: as `NightStore.claim`.
    """
    nights = NightStore(deps.store)
    fence = nights.claim(night_id)
    try:
        return _live(nights, night_id, fence, deps)
    except NightFenceLost as error:
        deps.say(str(error))
        return nights.night(night_id)


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
            asked_to_stop=nights.stop_outcome(night_id),
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
                return _concluded(nights, night, fence, end, deps)
        deps.pause(LOOK_EVERY_S)
    return nights.night(night_id)


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


def _concluded(nights: NightStore, night: NightView, fence: int, end: Conclude, deps: NightDeps) -> NightView:
    runtime = _emptied(night, deps)
    if runtime is None and deps.should_leave():
        return nights.night(night.night_id)  # its jobs were not looked at: the next process ends it
    earlier = [one for one in nights.nights(night.sweep) if one.number < night.number]
    summary = deps.summarize(deps.store, runtime, night, earlier)
    ended = nights.conclude(night.night_id, fence, outcome=end.outcome, message=end.message, summary=summary)
    page = _written(night.night_id, deps)
    told = deps.tell(ended, summary, page)
    if told:
        nights.save_notified(night.night_id, told)
        _written(night.night_id, deps)
    deps.say(f"{night.night_id}: {end.outcome}{': ' + end.message if end.message else ''}")
    return nights.night(night.night_id)


def _written(night_id: str, deps: NightDeps) -> Path | None:
    try:
        return deps.write_reports(night_id)
    except (OSError, sa.exc.SQLAlchemyError) as error:
        deps.say(f"{night_id}: its page can not be written: {error}")
        return None


def _emptied(night: NightView, deps: NightDeps) -> Runtime | None:
    """Nothing of its sessions runs or waits any more. None: the runtime is away, and stays so."""
    waited = 0.0
    while waited <= EMPTY_WAIT_S:
        try:
            runtime = deps.connect()
            live = [
                job
                for cell in night.cells
                if cell.session_id is not None
                for job in live_jobs(runtime, cell.session_id).values()
            ]
            if not live:
                return runtime
            late = [job.job_id for job in live if job.state != "stopping" or waited >= LEAVE_WAIT_S]
            cancel_jobs(runtime, late, reason=f"{night.night_id} is over")
        except (RuntimeClientError, ToolError) as error:
            deps.say(f"{night.night_id}: waiting for the runtime: {error}")
        if deps.should_leave():
            break
        deps.pause(LOOK_EVERY_S)
        waited += LOOK_EVERY_S
    return None
