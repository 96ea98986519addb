"""Two configurations held against each other on request."""

from agent_worlds import a_task
from planner_builders import a_trial

from agent.planner.compared import hold_against, why_tasks_differ
from agent.planner.statistics import Comparison
from agent.planner.trial_search import Shelf, search, standing
from agent.store.views import Purpose, TrialView
from agent.task import Task


def replicates(task: Task, x: float, values: list[float], first_number: int) -> list[TrialView]:
    return [
        a_trial(task, first_number + i, {"x": x, "kind": "a"}, value, seed=100 + i, purpose=Purpose.REPLICATE)
        for i, value in enumerate(values)
    ]


def test_a_clear_gain_on_common_seeds_is_better_and_the_other_way_round_worse() -> None:
    task = a_task()
    good = replicates(task, 0.7, [0.9 + i / 1000 for i in range(20)], 1)
    poor = replicates(task, 0.2, [0.5 + i / 900 for i in range(20)], 50)
    assert hold_against(good, poor, task).comparison is Comparison.BETTER
    assert hold_against(poor, good, task).comparison is Comparison.WORSE


def test_the_direction_of_the_task_decides_what_better_means() -> None:
    task = a_task(objective={"metric": "loss", "direction": "minimize"})
    low = replicates(task, 0.7, [0.1 + i / 1000 for i in range(20)], 1)
    high = replicates(task, 0.2, [0.5 + i / 900 for i in range(20)], 50)
    assert hold_against(low, high, task).comparison is Comparison.BETTER


def test_values_of_the_search_never_count() -> None:
    task = a_task()
    lucky = [a_trial(task, n, {"x": 0.7, "kind": "a"}, 9.0, seed=100 + n) for n in range(20)]
    held = hold_against(lucky, replicates(task, 0.2, [0.5] * 20, 50), task)
    assert (held.comparison, held.n_pairs) == (Comparison.INVALID, 0)


def test_tasks_that_measure_different_things_are_not_compared() -> None:
    one, other = a_task(), a_task(fidelity={"parameter": "epochs", "value": 3})
    good = replicates(one, 0.7, [0.9, 0.9, 0.9], 1)
    held = hold_against(good, good, one, other)
    assert held.comparison is Comparison.INVALID
    assert "fidelity" in held.reason
    assert why_tasks_differ(one, one) is None


def test_a_trial_without_replicates_has_no_verdict() -> None:
    task = a_task()
    default, other = a_trial(task, 1, {"x": 0.2, "kind": "a"}, 0.5), a_trial(task, 2, {"x": 0.7, "kind": "a"}, 0.9)
    shelf = Shelf(task=task, trials=[default, other])
    assert standing(shelf, default) == "default"
    assert standing(shelf, other) == "not replicated"


def test_search_looks_at_exit_reasons_and_notes() -> None:
    task = a_task()
    failed = a_trial(task, 2, {"x": 0.3, "kind": "b"}, exit_reason="out_of_memory_device", note="CUDA out of memory")
    shelf = Shelf(task=task, trials=[a_trial(task, 1, {"x": 0.2, "kind": "a"}, 0.5), failed])
    assert [one.trial.number for one in search([shelf], "cuda MEMORY")] == [2]
    assert [one.trial.number for one in search([shelf], "out_of_memory_device kind=b")] == [2]
