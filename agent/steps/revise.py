"""Revise: update the plan when something changed, and withdraw proposals that it no longer wants."""

from __future__ import annotations

from dataclasses import replace

from agent.deps import Deps
from agent.planner.failure import hopeless
from agent.planner.plan import Phase, Plan, revised, unwanted
from agent.planner.plan_text import plan_to_json
from agent.state import AgentState, Outcome
from agent.steps.leaving import give_up
from agent.steps.publishing import publish_plans
from agent.steps.spending import spend_so_far
from agent.store.fenced import Line


def revise(state: AgentState, deps: Deps) -> AgentState:
    history = deps.book.history()
    failure = hopeless(deps.task, history)
    if failure is not None:
        return {"outcome": Outcome.FAILED, "message": failure}
    # A plan that closed its search while it is paused could not be steered any more when the pause ends.
    plan = deps.memory.plan if deps.is_paused else revised(deps.memory.plan, deps.task, history, spend_so_far(deps))
    if plan is not deps.memory.plan or plan.revision > deps.memory.session.plan_revision:
        save_plan(deps, replace(plan, next_trials=tuple(t.trial_id for t in (*history.in_flight, *history.ready))))
    extra = unwanted(plan, deps.task, history)
    if extra:
        why = plan.spent or plan.search_closed or "the plan is done"
        names = ", ".join(trial.trial_id for trial in extra)
        give_up(deps, extra, [Line(step="revise", text=f"{names} withdrawn before launch: {why}")], why)
    is_done = plan.phase is Phase.DONE
    return {
        "phase": plan.phase.value,
        "revision": plan.revision,
        "outcome": Outcome.DONE if is_done else state.get("outcome", Outcome.GO_ON),
    }


def save_plan(deps: Deps, plan: Plan) -> None:
    line = Line(step="revise", text=f"plan revision {plan.revision}: {plan.reason}")
    deps.record.save_plan(plan.revision, plan.phase.value, plan.reason, plan_to_json(plan), [line])
    deps.memory.plan = plan
    deps.memory.session = replace(deps.memory.session, plan_revision=plan.revision)
    deps.memory.has_unpublished_plans = True
    publish_plans(deps)
