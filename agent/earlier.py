"""What earlier sessions on the same space have tried in vain, read once when a session's process starts."""

from __future__ import annotations

from agent.planner.configuration import configuration_id, default_params, problems
from agent.planner.objective import gain
from agent.planner.repetition import Remembered
from agent.store.store import AgentStore
from agent.store.views import Purpose, SessionView, TrialState
from agent.task import Task

_MOST = 2_000
"""Of the newest earlier sessions, so many configurations at most."""


def earlier_losers(store: AgentStore, session: SessionView, task: Task) -> list[Remembered]:
    """Configurations that were no better than the default of their session, newest session first."""
    default = configuration_id(default_params(task))
    found: list[Remembered] = []
    for other in reversed(store.sessions()):
        if other.task_name != session.task_name or other.created_at >= session.created_at or len(found) >= _MOST:
            continue
        trials = [t for t in store.trials(other.session_id) if t.purpose is Purpose.SEARCH]
        measured = [t for t in trials if t.state is TrialState.MEASURED and t.value is not None]
        start = next((t.value for t in measured if t.configuration == default), None)
        if start is None:
            continue
        found.extend(
            Remembered(trial_id=t.trial_id, params=t.params, value=t.value)
            for t in measured
            if t.value is not None
            and t.configuration != default
            and gain(t.value, start, task.objective.direction) <= 0
            and t.facts.edited is None
            and not problems(t.params, task)
        )
    return found[:_MOST]
