"""The claims of a session and the rules that judge them. Pure."""

from __future__ import annotations

from agent.planner.configuration import configuration_id, default_params
from agent.planner.hypothesis import FINAL, Hypothesis, Prediction
from agent.task import Task

NO_DATA = Prediction(probability=0.5, effect=None, made_by="nobody: nothing was known")


def first_claim(task: Task) -> Hypothesis:
    """The session's own claim, fixed before the first trial."""
    seeds, objective = task.seeds, task.objective
    alpha = task.trust.error_budget / 2
    n_looks = task.held_out.looks if task.held_out is not None else 0
    n_final = 2 * seeds.fresh + n_looks
    return Hypothesis(
        hypothesis_id=FINAL,
        statement=f"the best configuration found beats the default on {objective.metric}",
        prediction=NO_DATA,
        acceptance=(
            f"{seeds.fresh} fresh seeds each, paired by seed; supported when the 95 % t interval of best minus default "
            f"lies wholly on the better side of 0 ({objective.direction}), looked at once"
        ),
        alpha=alpha,
        reference=configuration_id(default_params(task)),
        configuration=None,
        budget_share=round(n_final / (n_final + task.budgets.trials), 4),
        opened_at=1,
    )
