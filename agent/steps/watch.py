"""Watch: decide what is worth waking up for. The waiting itself is the session's."""

from __future__ import annotations

from agent.deps import Deps
from agent.state import AgentState, Outcome
from agent.steps.leaving import hour_of

LOOK_EVERY_S = 10.0
"""Without any event, the facts are read again after so long."""


def watch(state: AgentState, deps: Deps) -> AgentState:
    if state.get("wait_s") == 0.0 and state.get("outcome") in (Outcome.GO_ON, Outcome.STOP):
        return {"wait_s": 0.0, "wait_metrics": []}
    metrics = [] if deps.memory.has_seen_metric else [deps.task.objective.metric]
    hour = hour_of(deps)
    until_s = hour.left_s if hour is not None and not hour.has_come else LOOK_EVERY_S
    return {"wait_s": min(LOOK_EVERY_S, until_s), "wait_metrics": metrics}
