"""Steering: what people have said since the last revision of the plan becomes one."""

from __future__ import annotations

from dataclasses import replace

from agent.deps import Deps
from agent.planner.plan import told
from agent.planner.plan_text import plan_to_json


def take_up_words(deps: Deps) -> None:
    """Write who said what as a revision of the plan, once; nothing where nobody said anything."""
    taken = deps.steering.untaken()
    if not taken:
        return
    reason = "; ".join(one.words for one in taken)
    plan = told(deps.memory.plan, reason, after=deps.memory.session.plan_revision)
    deps.steering.take(taken, plan.revision, plan.phase.value, plan.reason, plan_to_json(plan))
    deps.memory.plan = plan
    deps.memory.session = replace(deps.memory.session, plan_revision=plan.revision)
    deps.memory.has_unpublished_plans = True
