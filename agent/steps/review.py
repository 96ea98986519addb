"""Review: nothing is launched that lies outside the space, was tried already, that the budget does not
allow, or that a person has to approve and has not."""

from __future__ import annotations

from agent.deps import Deps
from agent.planner import configuration
from agent.planner.held_out import HeldOutLedger
from agent.planner.history import History
from agent.state import AgentState
from agent.steps.early_stops import end_approved
from agent.steps.gating import gate_ready
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
    gated = gate_ready(deps)
    end_approved(deps)
    for trial, why in gated.denied:
        _turn_down(trial, why, deps)
    deps.memory.waiting = gated.waiting
    by_people = deps.memory.suggested | gated.approved
    ready = [trial for trial in deps.book.history().ready if trial.trial_id not in gated.waiting]
    ready.sort(key=lambda t: (not t.has_begun, t.trial_id not in by_people))
    return {"ready": [trial.trial_id for trial in ready]}


def _turn_down(trial: TrialView, why: str, deps: Deps) -> None:
    """What a person does not want is withdrawn; those who suggest see it as tried, with what was said."""
    text = f"{trial.trial_id} is not run: {why}"
    deps.book.withdraw([trial], [Line(step="review", text=text, trial_id=trial.trial_id)], note=why)


def _objection(trial: TrialView, history: History, deps: Deps) -> str | None:
    is_search = trial.purpose is Purpose.SEARCH
    check = configuration.problems if is_search and trial.is_new else configuration.space_problems
    wrong = check(trial.params, deps.task)
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
