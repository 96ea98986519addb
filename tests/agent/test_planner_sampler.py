"""The Optuna proposer: never a duplicate, the same answer after a restart, failures without made-up values."""

from __future__ import annotations

import random
import statistics
from dataclasses import replace

import optuna
import pytest
from agent_worlds import a_task
from planner_builders import a_history, a_trial

from agent.planner.configuration import configuration_id, problems
from agent.planner.history import Proposal
from agent.planner.proposers.optuna_sampler import OptunaSampler
from agent.store.views import Purpose, TrialState, TrialView
from agent.task import Task

MIXED = {
    "lr": {"type": "float", "low": 1e-4, "high": 1e-1, "log": True, "default": 1e-3},
    "n": {"type": "int", "low": 1, "high": 64, "log": True, "default": 8},
    "kind": {"type": "categorical", "choices": ["a", "b", True, 3, 2.5], "default": "a"},
}
TINY = {
    "n": {"type": "int", "low": 1, "high": 3, "default": 1},
    "kind": {"type": "categorical", "choices": ["a", "b"], "default": "a"},
}
PLANE = {name: {"type": "float", "low": 0.0, "high": 1.0, "default": 0.1} for name in ("x", "y")}


def as_trial(task: Task, number: int, proposal: Proposal, value: float | None) -> TrialView:
    return a_trial(task, number, proposal.params, value)


def grown(task: Task, sampler: OptunaSampler, n: int, *, lag: int = 0) -> list[TrialView]:
    """Trials asked one by one; each gets its value `lag` trials later."""
    trials: list[TrialView] = []
    for number in range(1, n + 1):
        proposal = sampler.ask(a_history(*trials), 1)[0]
        trials.append(as_trial(task, number, proposal, None))
        if number > lag:
            i = number - lag - 1
            trials[i] = replace(trials[i], state=TrialState.MEASURED, value=plane(trials[i]))
    return trials


def plane(trial: TrialView) -> float:
    return -sum((float(v) - 0.7) ** 2 for v in trial.params.values() if isinstance(v, float))


def test_proposals_lie_in_a_mixed_space_and_are_never_repeated() -> None:
    task = a_task(space=MIXED, budgets={"trials": 60})
    trials = grown(task, OptunaSampler(task), 40, lag=3)
    assert all(problems(trial.params, task) == [] for trial in trials)
    assert len({trial.configuration for trial in trials}) == 40


def test_a_small_space_is_tried_out_and_then_nothing_is_left() -> None:
    task = a_task(space=TINY)
    found = OptunaSampler(task).ask(a_history(), 100)
    assert len({configuration_id(proposal.params) for proposal in found}) == 6
    assert len(found) == 6


def test_a_batch_holds_no_duplicates() -> None:
    task = a_task(space=TINY)
    found = OptunaSampler(task).ask(a_history(), 5)
    assert len({proposal.configuration for proposal in found}) == 5


def test_a_restarted_sampler_proposes_what_it_would_have_proposed() -> None:
    task = a_task(space=PLANE, budgets={"trials": 60})
    sampler = OptunaSampler(task)
    trials = grown(task, sampler, 25, lag=2)
    trials[7] = replace(trials[7], state=TrialState.INVALID, value=None)
    restarted = OptunaSampler(task).ask(a_history(*trials), 1)
    fresh_again = OptunaSampler(task).ask(a_history(*trials), 1)
    assert restarted == fresh_again


def test_a_living_sampler_and_a_restarted_one_agree() -> None:
    task = a_task(space=PLANE, budgets={"trials": 60})
    sampler = OptunaSampler(task)
    trials = grown(task, sampler, 25, lag=2)
    assert sampler.ask(a_history(*trials), 1)[0].params == OptunaSampler(task).ask(a_history(*trials), 1)[0].params


def test_another_sampler_seed_gives_another_search() -> None:
    first, second = (a_task(space=PLANE, sampler_seed=seed) for seed in (1, 2))
    assert OptunaSampler(first).ask(a_history(), 1)[0].params != OptunaSampler(second).ask(a_history(), 1)[0].params


def test_failed_trials_have_no_value_in_the_study_and_are_infeasible() -> None:
    task = a_task(space=PLANE)
    sampler = OptunaSampler(task)
    failed = a_trial(task, 1, {"x": 0.5, "y": 0.5}, state=TrialState.INVALID)
    good = a_trial(task, 2, {"x": 0.6, "y": 0.5}, 0.4)
    sampler.ask(a_history(failed, good), 1)
    told = sampler._study.get_trials(deepcopy=False)
    assert told[0].values is None
    assert told[0].constraints == {"valid": 1.0}
    assert sampler._study.best_trial.params["x"] == 0.6


def test_withdrawn_proposals_leave_the_study() -> None:
    task = a_task(space=PLANE)
    sampler = OptunaSampler(task)
    sampler.ask(a_history(), 3)
    sampler.ask(a_history(), 1)
    running = [t for t in sampler._study.get_trials(deepcopy=False) if t.state is optuna.trial.TrialState.RUNNING]
    assert len(running) == 1


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_sampler_follows_the_direction_of_the_task(direction: str) -> None:
    task = a_task(space=PLANE, objective={"metric": "m", "direction": direction})
    assert OptunaSampler(task)._study.direction.name.lower() == direction


def test_the_sampler_beats_random_search_on_a_quadratic() -> None:
    n_trials, found, at_random = 30, [], []
    for seed in range(6):
        task = a_task(space=PLANE, sampler_seed=seed, budgets={"trials": n_trials})
        found.append(max(plane(t) for t in grown(task, OptunaSampler(task), n_trials)))
        source = random.Random(seed)
        points = [(source.random(), source.random()) for _ in range(n_trials)]
        at_random.append(max(-((x - 0.7) ** 2) - (y - 0.7) ** 2 for x, y in points))
    assert statistics.median(found) > statistics.median(at_random)


def test_replicates_are_no_part_of_the_study() -> None:
    task = a_task(space=PLANE)
    sampler = OptunaSampler(task)
    point = {"x": 0.5, "y": 0.5}
    again = a_trial(task, 2, dict(point), 0.9, seed=1000, purpose=Purpose.REPLICATE)
    sampler.ask(a_history(a_trial(task, 1, dict(point), 0.4), again), 1)
    assert [t.value for t in sampler._study.get_trials(deepcopy=False) if t.values] == [0.4]
