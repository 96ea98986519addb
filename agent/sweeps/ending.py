"""How a night's process ends a night: empty, concluded, settled. A thin shell.

Each process that begins this is counted before it does anything. What made two of them die, be it the summary or the
page, is left out by the third: the night keeps its outcome, and has a plain page. So no fault in what is told of a
night can take the night itself away. A message is sent at least once: again only where the process died before it had
noted what became of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from agent.store.faults import is_disk_full
from agent.store.nights import NightStore
from agent.store.views import SessionState
from agent.sweeps.night import AT_WORK, SLACK_S, Conclude, patience_s
from agent.sweeps.night_deps import LOOK_EVERY_S, NightDeps
from agent.sweeps.views import NightState, NightSummary, NightView
from agent.task import Task
from agent.tools.errors import ToolError
from agent.tools.jobs import cancel_jobs, live_jobs
from runtime_client.errors import RuntimeClientError
from runtime_client.models import JobView
from runtime_client.protocol import Runtime

EMPTY_WAIT_S = 30.0
"""How long the end waits, besides their grace, for jobs that were cancelled; and for a runtime that is away."""
LEAVE_WAIT_S = 10.0
"""Beyond their grace, jobs that are checkpointing are left to it so long; then they are cancelled."""
AWAY_WAIT_S = 600.0
"""The same for a runtime that is away, where jobs have no hour of their own by which they are over."""
WHOLE_ENDINGS = 2
"""So many processes try to end a night with all that is told of it; the next one does it plainly."""


def end_night(nights: NightStore, night: NightView, fence: int, end: Conclude, deps: NightDeps) -> NightView:
    """Conclude a night of which nothing is at work any more, and settle it.

    Raises:
        NightFenceLost: another process has claimed the night.
    """
    runtime = _emptied(night, deps)
    if runtime is None and deps.should_leave():
        return nights.night(night.night_id)  # its jobs were not looked at: the next process ends it
    is_plain = nights.begin_ending(night.night_id, fence) > WHOLE_ENDINGS
    message, summary = end.message, NightSummary()
    if is_plain:
        lost = f"what it came to could not be worked out: {WHOLE_ENDINGS} processes died at its end"
        message = f"{message}; {lost}" if message else lost
    else:
        earlier = [one for one in nights.nights(night.sweep) if one.number < night.number]
        summary = deps.summarize(deps.store, runtime, night, earlier)
    ended = nights.conclude(night.night_id, fence, outcome=end.outcome, message=message, summary=summary)
    deps.say(f"{ended.night_id}: {ended.outcome}{': ' + message if message else ''}")
    return _settled(nights, ended, fence, deps, is_plain=is_plain)


def settle_night(nights: NightStore, night: NightView, fence: int, deps: NightDeps) -> NightView:
    """What a process before this one left to be done of a night that has ended, or was given up.

    Raises:
        NightFenceLost: another process has claimed the night.
    """
    _await_sessions(nights, night, deps)
    if _emptied(night, deps) is None and deps.should_leave():
        return nights.night(night.night_id)
    is_plain = nights.begin_ending(night.night_id, fence) > WHOLE_ENDINGS
    return _settled(nights, night, fence, deps, is_plain=is_plain)


def grace_s(night: NightView) -> float:
    """The longest that a job of it may take to leave."""
    return max((Task.model_validate_json(c.task_json).job.grace_seconds for c in night.cells), default=0.0)


def ends_within_s(night: NightView) -> float:
    """After its hour was seen to have come, a night ends within so long, whatever its sessions and jobs do."""
    return SLACK_S + grace_s(night) + LEAVE_WAIT_S + EMPTY_WAIT_S


def _settled(nights: NightStore, night: NightView, fence: int, deps: NightDeps, *, is_plain: bool) -> NightView:
    write = deps.write_plain_reports if is_plain else deps.write_reports
    page = _written(night.night_id, write, deps)
    summary = night.summary or NightSummary()
    if not summary.notified:
        told = deps.tell(night, summary, page)
        if told:
            nights.save_notified(night.night_id, told)
            _written(night.night_id, write, deps)
    nights.settle(night.night_id, fence)
    deps.say(f"{night.night_id}: {'its page is ' + str(page) if page is not None else 'without a page'}")
    return nights.night(night.night_id)


def _written(night_id: str, write: Callable[[str], Path | None], deps: NightDeps) -> Path | None:
    """None: it can not be written, for another reason than a full disk, which is waited for."""
    try:
        return write(night_id)
    except (OSError, sa.exc.SQLAlchemyError) as error:
        if is_disk_full(error):
            raise
        deps.say(f"{night_id}: its page can not be written: {error}")
        return None


def _await_sessions(nights: NightStore, night: NightView, deps: NightDeps) -> None:
    """Those of a night that was given up stop with their jobs, or it goes on without them."""
    until = (night.ended_at or 0.0) + patience_s(grace_s(night))
    mine = [cell.session_id for cell in night.cells if cell.session_id is not None]
    while not deps.should_leave() and deps.store.clock() < until:
        states = {session_id: deps.store.session(session_id) for session_id in mine}
        if not any(one.state in AT_WORK and one.night_id == night.night_id for one in states.values()):
            return
        for session_id, one in states.items():
            if one.state is SessionState.RUNNING and one.night_id == night.night_id:
                deps.store.request_stop(session_id)
        deps.pause(LOOK_EVERY_S)


def _emptied(night: NightView, deps: NightDeps) -> Runtime | None:
    """Nothing of its sessions runs or waits any more. None: the runtime is away and stays so, or jobs do not leave."""
    own_s = grace_s(night) + LEAVE_WAIT_S
    leave_s = own_s + EMPTY_WAIT_S
    away_s = EMPTY_WAIT_S if night.finish_by is not None else AWAY_WAIT_S
    waited = 0.0  # counted, not measured: a process that was suspended still looks again
    while True:
        try:
            runtime = deps.connect()
            live = _live_jobs(runtime, night, deps)
            if not live:
                return runtime
            late = [job.job_id for job in live if job.state != "stopping" or waited >= own_s]
            cancel_jobs(runtime, late, reason=f"{night.night_id} is over")
            is_late = waited > leave_s
        except (RuntimeClientError, ToolError) as error:
            deps.say(f"{night.night_id}: waiting for the runtime: {error}")
            is_late = waited > away_s
        if is_late or deps.should_leave():
            return None
        deps.pause(LOOK_EVERY_S)
        waited += LOOK_EVERY_S


def _live_jobs(runtime: Runtime, night: NightView, deps: NightDeps) -> list[JobView]:
    """Of its sessions, but for those that the next night has taken up."""
    mine = [cell.session_id for cell in night.cells if cell.session_id is not None]
    if night.state is NightState.ENDED:
        mine = [one for one in mine if deps.store.session(one).night_id == night.night_id]
    return [job for session_id in mine for job in live_jobs(runtime, session_id).values()]
