"""What is worth telling people of a session, and in which words. Pure; instants are seconds since the epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.gates.gate import Gate
from agent.notices.notice import Notice, plain
from agent.planner.budget import Cap
from agent.store.views import SessionState, SessionView, TrialView
from agent.task import SessionEvent

STALLED_AFTER_S = 1800.0
"""Without a trial that ended or was launched; twice the longest trial so far, where that is more."""
NEARLY = 0.8
"""Part of a budget whose use is told."""
MAX_LINE = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    key: str
    """Each is told once: `gate-7-...`, `stalled-...`, `budget-trials-20`, `ended-3`."""
    occasion: SessionEvent
    notice: Notice


def events(
    session: SessionView,
    trials: Sequence[TrialView],
    gates: Sequence[Gate],
    caps: Sequence[Cap],
    *,
    running_since: float,
    now: float,
    is_paused: bool = False,
) -> list[Event]:
    """All that is to be told now, told already or not.

    Args:
        running_since: when it was first seen running by whoever asks; time before that is no stall.
        is_paused: a person has paused it: that it does not move is no news.
    """
    if session.state not in (SessionState.RUNNING, SessionState.STOPPING):
        return [_ended(session)]
    found = [_asked(session, gate, now) for gate in gates if gate.is_waiting(now)]
    found += [_budget(session, cap) for cap in caps if cap.limit is not None and cap.used >= NEARLY * cap.limit]
    last = last_moved(session, trials, running_since)
    if session.state is SessionState.RUNNING and not is_paused and now - last >= patience_s(trials):
        found.append(_stalled(session, trials, last, now))
    return found


def last_moved(session: SessionView, trials: Sequence[TrialView], running_since: float) -> float:
    """When a trial ended or was launched last, or the session came to run."""
    instants = [at for trial in trials for at in (trial.launched_at, trial.ended_at) if at is not None]
    return max([session.created_at, running_since, *instants])


def patience_s(trials: Sequence[TrialView]) -> float:
    took = [t.ended_at - t.launched_at for t in trials if t.ended_at is not None and t.launched_at is not None]
    return max(STALLED_AFTER_S, 2 * max(took, default=0.0))


def _asked(session: SessionView, gate: Gate, now: float) -> Event:
    left = (gate.answer_by - now) / 60
    answer = (
        f"nightlab gate approve {gate.gate_id}  (or deny); without an answer in {left:.0f} minutes: {gate.unanswered}"
    )
    key = f"gate-{gate.gate_id}-{gate.asked_at:.0f}"
    return _event(key, "approval", session, "asks for an approval", gate.text, answer)


def _budget(session: SessionView, cap: Cap) -> Event:
    key = f"budget-{cap.name}-{cap.limit:g}"
    return _event(key, "budget", session, f"has used most of budgets.{cap.name}", cap.words)


def _stalled(session: SessionView, trials: Sequence[TrialView], last: float, now: float) -> Event:
    n = sum(1 for trial in trials if trial.is_in_flight)
    said = f"no trial has ended and none was launched for {(now - last) / 60:.0f} minutes; {n} in flight"
    return _event(f"stalled-{last:.0f}", "stalled", session, "does not move", said)


def _ended(session: SessionView) -> Event:
    return _event(f"ended-{session.fence}", "ended", session, f"is {session.state}", session.message)


def _event(key: str, occasion: SessionEvent, session: SessionView, what: str, *lines: str) -> Event:
    title = plain(f"{session.session_id} ({session.task_name}) {what}")
    body = "\n".join([*(plain(line[:MAX_LINE]) for line in lines), f"nightlab research show {session.session_id}"])
    return Event(key=key, occasion=occasion, notice=Notice(title=title, body=body))
