"""Samplers by name, the bounded study, and people's ideas as proposals."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_worlds import a_task, a_world
from planner_builders import a_history, a_trial

from agent.planner.configuration import problems
from agent.planner.history import History
from agent.planner.portfolio import Portfolio
from agent.planner.proposers import optuna_sampler, samplers
from agent.planner.proposers.optuna_sampler import OptunaSampler
from agent.planner.proposers.person import answers
from agent.planner.proposers.random_points import RandomPoints
from agent.store.views import ParamValue, Purpose, SuggestionView, TrialState
from agent.task import Task

MIXED = {
    "lr": {"type": "float", "low": 1e-4, "high": 1e-1, "log": True, "default": 1e-3},
    "n": {"type": "int", "low": 1, "high": 64, "log": True, "default": 8},
    "kind": {"type": "categorical", "choices": ["a", "b", True, 3], "default": "a"},
}


def a_long_history(task: Task, n: int) -> History:
    points = RandomPoints(task).ask(a_history(), n)
    return a_history(*(a_trial(task, i, p.params, float(i * 7919 % 1000)) for i, p in enumerate(points, start=1)))


def an_idea(number: int, params: dict[str, ParamValue], *, note: str | None = None) -> SuggestionView:
    return SuggestionView(
        suggestion_id=number,
        session_id="s1",
        at=0.0,
        params=params,
        why="as in the paper",
        suggested_by="Ada",
        trial_id=None,
        note=note,
    )


@pytest.mark.parametrize("name", ["tpe", "random", "qmc", "nsgaii"])
def test_every_sampler_proposes_new_valid_points_and_the_same_after_a_restart(name: str) -> None:
    task = a_task(space=MIXED, budgets={"trials": 100}, search={"sampler": name})
    sampler, history = OptunaSampler(task), a_history()
    for number in range(1, 25):
        params = sampler.ask(history, 1)[0].params
        assert problems(params, task) == []
        history = history.after([a_trial(task, number, params, number / 10)])
    assert len({t.configuration for t in history.search}) == 24
    assert sampler.ask(history, 2) == OptunaSampler(task).ask(history, 2)


@pytest.mark.parametrize("name", ["gp", "cmaes"])
def test_a_sampler_without_its_package_says_what_to_install(name: str) -> None:
    missing = samplers.missing_for(name)
    if missing is None:
        pytest.skip("the package is installed here")
    assert "pip install" in missing
    with pytest.raises(ValueError, match="pip install"):
        OptunaSampler(a_task(search={"sampler": name}))


def test_the_study_of_a_long_history_is_bounded_and_holds_the_best() -> None:
    task = a_task(space=MIXED, budgets={"trials": 5000})
    history = a_long_history(task, 900)
    sampler = OptunaSampler(task)
    sampler.tell(history)
    told = sampler._study.get_trials(deepcopy=False)
    assert len(told) <= optuna_sampler.N_WHOLE
    assert max(t.value for t in told if t.value is not None) == max(t.value for t in history.search if t.value)


def test_a_long_history_gives_the_same_proposal_to_a_living_and_a_new_sampler() -> None:
    task = a_task(space=MIXED, budgets={"trials": 5000})
    history, living = a_long_history(task, 480), OptunaSampler(task)
    for number in range(481, 530):
        params = RandomPoints(task).ask(history, 1)[0].params
        living.tell(history)
        history = history.after([a_trial(task, number, params, float(number))])
    assert living.ask(history, 1) == OptunaSampler(task).ask(history, 1)


def test_a_history_grown_by_changes_equals_one_made_at_once() -> None:
    task = a_task(space=MIXED)
    first = a_trial(task, 1, {"lr": 1e-3, "n": 8, "kind": "a"})
    second = a_trial(task, 2, {"lr": 1e-3, "n": 8, "kind": "a"}, 0.5, seed=100, purpose=Purpose.REPLICATE)
    ended = a_trial(task, 1, {"lr": 1e-3, "n": 8, "kind": "a"}, 0.7)
    assert a_history(first).after([second]).after([ended]) == a_history(ended, second)


# People's ideas.


def test_an_idea_takes_the_rest_from_the_leader() -> None:
    task = a_task(space=MIXED)
    history = a_history(
        a_trial(task, 1, {"lr": 1e-3, "n": 8, "kind": "a"}, 0.1),
        a_trial(task, 2, {"lr": 1e-2, "n": 32, "kind": "b"}, 0.9),
    )
    (answer,) = answers([an_idea(1, {"lr": 3e-4})], task, history, room=5)
    assert answer.proposal is not None
    assert answer.proposal.params == {"lr": 3e-4, "n": 32, "kind": "b"}
    assert answer.proposal.suggested_by == "Ada"


def test_an_idea_out_of_the_space_is_told_what_is_allowed() -> None:
    task = a_task(space=MIXED)
    history = a_history(a_trial(task, 1, {"lr": 1e-3, "n": 8, "kind": "a"}, 0.1))
    (answer,) = answers([an_idea(1, {"lr": 5.0})], task, history, room=5)
    assert answer.proposal is None
    assert "0.0001 to 0.1" in (answer.note or "")


def test_an_idea_is_never_tried_twice() -> None:
    task = a_task(space=MIXED)
    history = a_history(a_trial(task, 1, {"lr": 1e-3, "n": 8, "kind": "a"}, 0.1))
    found = answers([an_idea(1, {"n": 8}), an_idea(2, {"n": 16}), an_idea(3, {"n": 16})], task, history, room=5)
    assert [answer.proposal is not None for answer in found] == [False, True, False]
    assert "s1-t1" in (found[0].note or "")


def test_ideas_that_were_answered_or_have_no_room_make_no_trial() -> None:
    task = a_task(space=MIXED)
    history = a_history(a_trial(task, 1, {"lr": 1e-3, "n": 8, "kind": "a"}, 0.1))
    assert answers([an_idea(1, {"n": 9}, note="no")], task, history, room=5) == []
    assert answers([an_idea(1, {"n": 9})], task, history, room=0)[0].note is not None


def test_a_session_tries_a_person_s_idea_right_after_the_default(tmp_path: Path) -> None:
    world = a_world(tmp_path, n_devices=1)
    world.store.suggest("s1", {"x": 0.37}, why="a hunch", suggested_by="Ada")
    world.store.suggest("s1", {"x": 99.0}, why="a wild one")
    world.live()
    trials = world.store.trials("s1")
    assert [t.suggested_by for t in trials[:2]] == ["default", "Ada"]
    good, wild = world.store.suggestions("s1")
    assert (good.trial_id, good.note) == (trials[1].trial_id, None)
    assert wild.trial_id is None
    assert "Allowed" in (wild.note or "")
    assert trials[1].state is TrialState.MEASURED


def test_the_portfolio_has_nothing_to_say_before_it_is_asked() -> None:
    task = a_task(space=MIXED)
    assert Portfolio(task, [RandomPoints(task)]).escalations == ()
