"""Watch: decide what is worth waking up for. The waiting itself is the session's."""

from __future__ import annotations

from agent.deps import Deps
from agent.state import AgentState, Outcome

LOOK_EVERY_S = 10.0
"""Without any event, the facts are read again after so long."""


def watch(state: AgentState, deps: Deps) -> AgentState:
    if state.get("wait_s") == 0.0 and state.get("outcome") == Outcome.GO_ON:
        return {"wait_s": 0.0, "wait_metrics": []}
    metrics = [] if deps.memory.has_seen_metric else [deps.task.objective.metric]
    return {"wait_s": LOOK_EVERY_S, "wait_metrics": metrics}
