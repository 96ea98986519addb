"""What a night does next. Pure: facts in, decision out; `agent.sweeps.running` carries it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.store.views import SessionState
from agent.sweeps.views import NightOutcome

AT_WORK = (SessionState.RUNNING, SessionState.STOPPING)
SLACK_S = 60.0
"""After its hour was seen to have come, so long its sessions may take to conclude by themselves; then the night ends
without them."""


def patience_s(grace_s: float) -> float:
    """The same after somebody asked for its end: jobs are asked to leave only then, and may take their grace for it."""
    return SLACK_S + grace_s


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFacts:
    """One cell as it stands now."""

    position: int
    state: SessionState | None
    """None: its session was not started."""
    n_measured: int = 0
    is_budget_spent: bool = False
    """Its plan says that a budget ended it."""
    is_resumed: bool = False
    """Its session was begun in the night before; the cells of tonight follow it."""
    is_left_by_hour: bool = False
    """It stopped by itself, since nothing more would end before its hour."""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedToStop:
    """Somebody wants the night to end early."""

    outcome: NightOutcome
    at: float
    """When that was asked for."""
    grace_s: float
    """The longest that a job of it may take to leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continue:
    """Start these cells, in this order, and look again later."""

    start: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAll:
    """Ask the sessions that are at work to stop, and look again soon."""

    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclude:
    """Nothing of it is at work any more, or may be."""

    outcome: NightOutcome
    message: str


Next = Continue | StopAll | Conclude


def next_step(
    cells: Sequence[CellFacts],
    *,
    cells_at_once: int,
    finish_by: float | None,
    stop: AskedToStop | None,
    over_since: float | None,
    now: float,
) -> Next:
    """
    Args:
        cells: in the order in which they start.
        stop: None: nobody wants it to end early.
        over_since: when its process first saw that its hour has come, which a machine that slept or a process that
            was dead sees late; None: it sees it now, or the hour has not come.
    """
    is_over = finish_by is not None and now >= finish_by
    working = tuple(cell.position for cell in cells if cell.state in AT_WORK)
    if stop is not None or is_over:
        is_late = is_over and over_since is not None and now >= over_since + SLACK_S
        is_stop_late = stop is not None and now >= stop.at + patience_s(stop.grace_s)
        if working and not is_late and not is_stop_late:
            return StopAll(positions=working)
        return _concluded(cells, None if stop is None else stop.outcome, is_over=is_over)
    waiting = [cell.position for cell in cells if cell.state is None]
    if not waiting and not working:
        return _concluded(cells, None, is_over=False)
    if any(cell.is_resumed and cell.state in AT_WORK for cell in cells):
        return Continue()
    return Continue(start=tuple(waiting[: max(cells_at_once - len(working), 0)]))


def _concluded(cells: Sequence[CellFacts], asked: NightOutcome | None, *, is_over: bool) -> Conclude:
    """How it ended: by whom it was stopped, else by what was left to do."""
    n_open = sum(1 for cell in cells if cell.state not in (SessionState.FINISHED, SessionState.FAILED))
    if asked is not None:
        return Conclude(outcome=asked, message=f"{n_open} of {len(cells)} cells were not finished" if n_open else "")
    failed = [cell for cell in cells if cell.state is SessionState.FAILED]
    if not any(cell.n_measured for cell in cells) and (failed or not n_open):
        why = next((cell.message for cell in failed if cell.message), "no trial gave a value")
        return Conclude(outcome=NightOutcome.FAILED, message=why)
    if is_over and n_open:
        text = f"its hour came before {n_open} of {len(cells)} cells were finished"
        return Conclude(outcome=NightOutcome.DEADLINE, message=text)
    spent = [cell for cell in cells if cell.is_budget_spent]
    if spent:
        return Conclude(outcome=NightOutcome.BUDGET, message=f"a budget ended {len(spent)} of {len(cells)} cells")
    if any(cell.is_left_by_hour for cell in cells):
        return Conclude(outcome=NightOutcome.DEADLINE, message="nothing more would have ended before its hour")
    if n_open:
        return Conclude(outcome=NightOutcome.STOPPED, message=f"{n_open} of {len(cells)} sessions were stopped")
    text = f"{len(failed)} of {len(cells)} cells failed: {failed[0].message}" if failed else ""
    return Conclude(outcome=NightOutcome.DONE, message=text)
