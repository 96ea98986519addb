"""A session as it stands: its task, its plan, what was measured, what was spent."""

from __future__ import annotations

from dataclasses import dataclass

from agent.planner.budget import Spend, device_seconds_left, mean_device_seconds, n_confirming
from agent.planner.history import History
from agent.planner.plan import Plan, first_plan, n_search_trials
from agent.planner.plan_text import plan_from_json
from agent.store.store import AgentStore
from agent.store.views import SessionView
from agent.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    view: SessionView
    task: Task
    """As people have changed it since the session began."""
    plan: Plan
    history: History

    @property
    def spend(self) -> Spend:
        return Spend.of(self.view)

    @property
    def ahead_s(self) -> float | None:
        """Device-seconds that the session would still use at most if it went on; None: nothing tells."""
        mean_s = mean_device_seconds(self.history)
        limit_s = device_seconds_left(self.task.budgets, self.spend)
        if mean_s is None:
            return limit_s
        n_left = max(n_search_trials(self.task) - len(self.history.search), 0) + n_confirming(self.task)
        return mean_s * n_left if limit_s is None else min(mean_s * n_left, max(limit_s, 0.0))


def read_known(store: AgentStore, session_id: str) -> Known:
    """
    Raises:
        SessionNotFound: there is none of this id.
        UnknownPlanVersion: a newer nightlab wrote its plan.
    """
    view = store.session(session_id)
    task = Task.model_validate_json(view.task_json)
    revisions = store.plans(session_id)
    plan = plan_from_json(revisions[-1].plan_json, task) if revisions else first_plan(task)
    return Known(view=view, task=task, plan=plan, history=History.of(store.trials(session_id)))
