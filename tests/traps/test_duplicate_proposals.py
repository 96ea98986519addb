"""Trap: the same idea again. A repeated configuration is a replicate at best, never a new chance to be lucky.

The naive rule takes each proposal as a trial of its own and keeps the best value: proposing one point twenty times, or
twenty points that differ in the ninth digit, buys twenty draws of the noise.
"""

from __future__ import annotations

import itertools
from pathlib import Path

from agent_worlds import a_world
from trap_worlds import NOISE, SEARCH_SEED, measured, noise, number, result_of, trap_task, trials_of, x_of

from agent.store.views import Purpose, SessionState
from runtime_client.fake import FakeOutcome
from runtime_client.models import JobSpec


class NeverTheSameTwice:
    """A script whose noise the seed does not fix, as on most accelerators."""

    def __init__(self) -> None:
        self.n = itertools.count()

    def __call__(self, spec: JobSpec) -> FakeOutcome:
        return measured(spec, 0.5 + NOISE * noise(next(self.n), x_of(spec)))


def test_repeated_and_nearly_repeated_ideas_buy_no_second_draw(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=trap_task(), script=NeverTheSameTwice())
    ideas = [0.6, 0.6, 0.6 + 1e-9, 0.6 - 1e-7, 0.6, 0.600001]
    for x in ideas:
        world.store.suggest("s1", {"x": x}, why="I am sure of it")
    assert world.live() is SessionState.FINISHED
    near = [t for t in trials_of(world, Purpose.SEARCH) if abs(number(t.params["x"]) - 0.6) < 1e-3]
    assert len(near) == 1
    told = world.store.suggestions("s1")
    assert all(idea.trial_id is not None or idea.note for idea in told), "each idea is answered"
    assert next(idea.trial_id for idea in told if idea.trial_id is not None) == near[0].trial_id


def test_no_two_search_trials_are_one_configuration(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=trap_task(budgets={"trials": 30}), script=NeverTheSameTwice())
    for x in (0.2, 0.2000001, 0.9):
        world.store.suggest("s1", {"x": x}, why="again")
    assert world.live() is SessionState.FINISHED
    tried = sorted(number(t.params["x"]) for t in trials_of(world, Purpose.SEARCH))
    assert len(tried) == 30
    assert min(b - a for a, b in itertools.pairwise(tried)) > 1e-4


def test_the_naive_rule_falls_in() -> None:
    once = 0.5 + NOISE * noise("draw", 0)
    twenty = max(0.5 + NOISE * noise("draw", n) for n in range(20))
    assert twenty - once > NOISE


def test_a_small_space_ends_by_itself_instead_of_repeating(tmp_path: Path) -> None:
    space = {"kind": {"type": "categorical", "choices": ["a", "b", "c"], "default": "a"}}
    task = trap_task(space=space, budgets={"trials": 50})

    def script(spec: JobSpec) -> FakeOutcome:
        return measured(spec, 0.5 + NOISE * noise(spec.parameters["kind"], spec.seed))

    world = a_world(tmp_path, task=task, script=script)
    assert world.live() is SessionState.FINISHED
    search = trials_of(world, Purpose.SEARCH)
    assert len(search) == len({t.configuration for t in search}) == 3
    assert {t.seed for t in search} == {SEARCH_SEED}
    assert result_of(world).verdict != "supported"
