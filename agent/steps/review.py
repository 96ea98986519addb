"""Review: nothing is launched that lies outside the space, was tried already, or that the budget does not allow."""

from __future__ import annotations

from agent.deps import Deps
from agent.planner import configuration
from agent.planner.held_out import HeldOutLedger
from agent.planner.history import History
from agent.state import AgentState
from agent.store.fenced import Line
from agent.store.views import Purpose, TrialView


def review(state: AgentState, deps: Deps) -> AgentState:
    history = deps.book.history()
    refused: list[TrialView] = []
    lines: list[Line] = []
    for trial in history.ready:
        objection = _objection(trial, history, deps)
        if objection is not None:
            refused.append(trial)
            lines.append(Line(step="review", text=f"{trial.trial_id} refused: {objection}"))
    deps.book.withdraw(refused, lines)
    by_people = deps.memory.suggested
    ready = sorted(deps.book.history().ready, key=lambda t: (not t.has_begun, t.trial_id not in by_people))
    return {"ready": [trial.trial_id for trial in ready]}


def _objection(trial: TrialView, history: History, deps: Deps) -> str | None:
    wrong = configuration.problems(trial.params, deps.task)
    if wrong:
        return "; ".join(wrong)
    if trial.purpose is Purpose.HELD_OUT:
        return HeldOutLedger.of(deps.task, history).objection(trial)
    if trial.purpose is Purpose.SEARCH:
        twins = [t for t in history.search if t.configuration == trial.configuration and t.number < trial.number]
        if twins:
            return f"the same configuration as {twins[0].trial_id}"
        position = history.search.index(trial) + 1
        if position > deps.task.budgets.trials:
            return f"budgets.trials: {deps.task.budgets.trials} are proposed"
    return None
