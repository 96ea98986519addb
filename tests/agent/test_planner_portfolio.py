"""The portfolio: slots go where gains come from, the control arm keeps its share, rubbish costs little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from agent_worlds import a_task
from planner_builders import a_history, a_trial

from agent.planner.configuration import configuration_id
from agent.planner.history import History, Proposal
from agent.planner.portfolio import CONTROL, RACE_SHARE, Portfolio, yields
from agent.planner.proposers.chosen import chosen_proposers
from agent.planner.proposers.optuna_sampler import OptunaSampler
from agent.planner.proposers.protocol import Proposer
from agent.planner.proposers.random_points import RandomPoints
from agent.planner.proposers.refiner import Refiner
from agent.planner.repetition import Remembered, Step, Tried, losers_near
from agent.store.views import ParamValue, Purpose, TrialState
from agent.task import Task

PLANE = {name: {"type": "float", "low": 0.0, "high": 1.0, "default": 0.1} for name in ("x", "y")}
MIXED = {
    "lr": {"type": "float", "low": 1e-4, "high": 1e-1, "log": True, "default": 1e-3},
    "n": {"type": "int", "low": 1, "high": 64, "log": True, "default": 8},
    "kind": {"type": "categorical", "choices": ["a", "b", True, 3], "default": "a"},
}


@dataclass
class Fixed:
    """Suggests the same points again and again."""

    task: Task
    points: Sequence[dict[str, ParamValue]]
    name: str = "fixed"

    def tell(self, history: History) -> None:
        return None

    def ask(self, history: History, n: int) -> list[Proposal]:
        at = len(history.search)
        chosen = [self.points[(at + i) % len(self.points)] for i in range(n)]
        return [
            Proposal(
                params=dict(p),
                configuration=configuration_id(p),
                seed=0,
                purpose=Purpose.SEARCH,
                suggested_by=self.name,
                why="again",
            )
            for p in chosen
        ]


class Corner(RandomPoints):
    """New points each time, all of them in the worst corner."""

    name = "corner"

    def ask(self, history: History, n: int) -> list[Proposal]:
        found = super().ask(history, n)
        moved = [{k: 0.05 * float(v) for k, v in p.params.items() if isinstance(v, float)} for p in found]
        return [
            replace(p, params=dict(m), configuration=configuration_id(dict(m)), suggested_by=self.name)
            for p, m in zip(found, moved, strict=True)
        ]


def run(task: Task, search: Proposer, n: int, *, noise: float = 0.0, lag: int = 0) -> History:
    """Ask one by one; a trial gets its value `lag` trials later."""
    history = a_history(a_trial(task, 1, {name: p.default for name, p in task.space.items()}, value(task, None, 1, 0)))
    for number in range(2, n + 1):
        proposals = search.ask(history, 1)
        if not proposals:
            break
        p = proposals[0]
        trial = replace(
            a_trial(task, number, p.params, seed=p.seed, purpose=p.purpose), suggested_by=p.suggested_by, why=p.why
        )
        history = history.after([trial])
        due = [t for t in history.trials if t.number == number - lag and t.state is TrialState.LAUNCHED]
        ended = [replace(t, state=TrialState.MEASURED, value=value(task, t.params, t.number, noise)) for t in due]
        history = history.after(ended)
    return history


def value(task: Task, params: dict[str, ParamValue] | None, number: int, noise: float) -> float:
    if params is None:
        params = {name: p.default for name, p in task.space.items()}
    good = -sum((float(v) - 0.7) ** 2 for v in params.values() if isinstance(v, float))
    return good + noise * float(np.random.default_rng(number).standard_normal())


def counts(history: History) -> Counter[str]:
    return Counter(t.suggested_by for t in history.search)


def test_the_control_arm_keeps_its_share() -> None:
    task = a_task(space=PLANE, budgets={"trials": 100}, search={"control_share": 0.4})
    history = run(task, chosen_proposers(task), 40)
    assert counts(history)[CONTROL] >= 0.4 * len(history.search) - 2


def test_a_proposer_that_brings_gains_gets_more_slots_than_one_that_does_not() -> None:
    task = a_task(space=PLANE, budgets={"trials": 100})
    portfolio = Portfolio(task, [Corner(task), Refiner(task)])
    found = counts(run(task, portfolio, 30))
    assert found["refiner"] > 3 * found["corner"]


def test_a_rubbish_proposer_takes_less_than_a_fifth_of_the_slots() -> None:
    task = a_task(space=PLANE, budgets={"trials": 100})
    history = run(task, chosen_proposers(task, [Corner(task)]), 40)
    assert counts(history)["corner"] < 0.2 * len(history.search)


def test_shares_make_one_and_follow_the_history_alone() -> None:
    task = a_task(space=PLANE, budgets={"trials": 100})
    history = run(task, chosen_proposers(task), 25)
    found = yields(task, history, ["optuna", "refiner", "random"])
    assert sum(y.share for y in found.values()) == pytest.approx(1.0)
    assert found == yields(task, a_history(*history.trials), ["optuna", "refiner", "random"])


def test_a_living_portfolio_and_a_new_one_propose_the_same() -> None:
    task = a_task(space=MIXED, budgets={"trials": 100})
    living = chosen_proposers(task)
    history = run(task, living, 20, lag=2)
    assert living.ask(history, 3) == chosen_proposers(task).ask(history, 3)


def test_a_batch_holds_no_duplicates_across_proposers() -> None:
    task = a_task(space=MIXED, budgets={"trials": 100})
    history = run(task, chosen_proposers(task), 10)
    found = chosen_proposers(task).ask(history, 12)
    assert len({(p.configuration, p.seed) for p in found}) == 12


def test_the_race_stays_within_its_share_and_on_racing_seeds_in_order() -> None:
    task = a_task(space=PLANE, budgets={"trials": 200})
    history = run(task, chosen_proposers(task), 40, noise=0.1)
    replicates = [t for t in history.trials if t.purpose is Purpose.REPLICATE]
    assert 0 < len(replicates) <= RACE_SHARE * len(history.trials) + 1
    by_configuration: dict[str, list[int]] = {}
    for trial in replicates:
        by_configuration.setdefault(trial.configuration, []).append(trial.seed)
    first = task.seeds.first_racing
    assert all(seeds == list(range(first, first + len(seeds))) for seeds in by_configuration.values())


def test_the_race_is_about_the_leaders() -> None:
    task = a_task(space=PLANE, budgets={"trials": 200})
    history = run(task, chosen_proposers(task), 50, noise=0.05)
    default = history.search[0].configuration
    true = {t.configuration: value(task, t.params, 0, 0.0) for t in history.search}
    places = []
    for raced in (t for t in history.trials if t.purpose is Purpose.REPLICATE and t.configuration != default):
        before = [t.configuration for t in history.search if t.number < raced.number]
        places.append(sum(true[name] > true[raced.configuration] for name in before) / len(before))
    assert np.median(places) < 0.25


def test_without_noise_the_race_soon_ends() -> None:
    task = a_task(space=PLANE, budgets={"trials": 200})
    history = run(task, chosen_proposers(task), 40)
    assert sum(t.purpose is Purpose.REPLICATE for t in history.trials) <= 6


def test_the_refiner_finds_the_top_of_a_quadratic_sooner_than_the_sampler() -> None:
    task = a_task(space=PLANE, budgets={"trials": 100}, search={"use": ["sampler"]})
    refined = run(task, Portfolio(task, [Refiner(task)]), 25)
    sampled = run(task, Portfolio(task, [OptunaSampler(task)]), 25)
    best = [max(t.value for t in h.search if t.value is not None) for h in (refined, sampled)]
    assert best[0] > best[1]


def test_the_refiner_keeps_away_from_places_that_give_no_value() -> None:
    task = a_task(space=PLANE, budgets={"trials": 100})
    trials = [a_trial(task, 1, {"x": 0.5, "y": 0.5}, 0.5), a_trial(task, 2, {"x": 0.4, "y": 0.5}, 0.4)]
    trials += [a_trial(task, 3, {"x": 0.3, "y": 0.5}, 0.3), a_trial(task, 4, {"x": 0.2, "y": 0.5}, 0.2)]
    free = [Refiner(task).ask(a_history(*trials, a_trial(task, n, {"x": 0.0, "y": n / 99}, 0.0)), 1) for n in (5, 6, 7)]
    failed = [
        a_trial(task, 5 + i, {"x": 0.6 + 0.08 * (i % 5), "y": 0.3 + 0.1 * (i // 5)}, state=TrialState.INVALID)
        for i in range(25)
    ]
    warned = Refiner(task).ask(a_history(*trials, *failed), 1)
    assert any(float(f[0].params["x"] or 0) > 0.55 for f in free)
    assert float(warned[0].params["x"] or 0) < 0.6


# Repetition and exhaustion.


def test_near_duplicates_are_refused_by_range_and_by_logarithm() -> None:
    task = a_task(space=MIXED)
    tried = Tried(task)
    tried.follow([a_trial(task, 1, {"lr": 1e-3, "n": 8, "kind": "a"}, 1.0)])
    assert tried.objection({"lr": 1.005e-3, "n": 8, "kind": "a"}) is not None
    assert tried.objection({"lr": 1.1e-3, "n": 8, "kind": "a"}) is None
    assert tried.objection({"lr": 1e-3, "n": 9, "kind": "a"}) is None
    assert tried.objection({"lr": 1e-3, "n": 8, "kind": "b"}) is None


def test_what_was_withdrawn_is_no_repetition() -> None:
    task = a_task(space=PLANE)
    tried = Tried(task)
    first, second = (a_trial(task, n, {"x": 0.1 * n, "y": 0.5}, 1.0) for n in (1, 2))
    tried.follow([first, second])
    tried.follow([first])
    assert tried.objection(second.params) is None
    assert tried.objection(first.params) == "the same configuration as s1-t1"


def test_a_proposer_that_only_repeats_loses_its_slots_to_the_others() -> None:
    task = a_task(space=PLANE, budgets={"trials": 50})
    portfolio = Portfolio(task, [Fixed(task, [{"x": 0.1, "y": 0.1}]), RandomPoints(task)])
    history = run(task, portfolio, 20)
    assert len({t.configuration for t in history.search}) == len(history.search) == 20
    assert counts(history)["fixed"] == 0


def test_a_proposer_that_circles_is_left_after_one_round() -> None:
    task = a_task(space=PLANE, budgets={"trials": 50})
    circle = [{"x": 0.2 + 0.1 * i, "y": 0.2} for i in range(4)]
    history = run(task, Portfolio(task, [Fixed(task, circle), RandomPoints(task)]), 30)
    assert counts(history)["fixed"] <= 4
    assert len({t.configuration for t in history.search}) == 30


def test_when_all_only_repeat_the_search_stops_with_the_reason() -> None:
    task = a_task(space=PLANE, budgets={"trials": 50})
    portfolio = Portfolio(task, [Fixed(task, [{"x": 0.1, "y": 0.1}, {"x": 0.9, "y": 0.9}])])
    history = run(task, portfolio, 20)
    assert len(history.search) == 2
    steps = {e.step: e for e in portfolio.escalations}
    assert Step.SWITCH_SURFACE in steps
    assert "fixed" in steps[Step.STOP].reason


def test_nobody_stops_while_a_trial_may_still_change_what_is_known() -> None:
    task = a_task(space=PLANE, budgets={"trials": 50})
    portfolio = Portfolio(task, [Fixed(task, [{"x": 0.1, "y": 0.1}])])
    assert portfolio.ask(a_history(a_trial(task, 1, {"x": 0.1, "y": 0.1})), 1) == []
    assert not any(e.step is Step.STOP for e in portfolio.escalations)


def test_a_used_up_space_stops() -> None:
    task = a_task(space={"k": {"type": "int", "low": 1, "high": 5, "default": 1}}, budgets={"trials": 50})
    portfolio = chosen_proposers(task)
    history = run(task, portfolio, 60)
    assert {t.params["k"] for t in history.search} == {1, 2, 3, 4, 5}
    assert any(e.step is Step.STOP for e in portfolio.escalations)


def test_a_stale_search_asks_memory_first_and_then_the_person() -> None:
    task = a_task(space=PLANE, budgets={"trials": 500})
    memory = [Remembered(trial_id="s0-t7", params={"x": 0.72, "y": 0.72}, value=-1.0)]
    best = a_trial(task, 1, {"x": 0.7, "y": 0.7}, 1.0)
    worse = [a_trial(task, n, {"x": n / 100, "y": 0.3}, 0.5 - n / 1000) for n in range(2, 61)]
    portfolio = Portfolio(task, [RandomPoints(task)], memory=memory)
    portfolio.ask(a_history(best, *worse[:40]), 1)
    assert [e.step for e in portfolio.escalations] == [Step.QUERY_MEMORY]
    assert "s0-t7" in portfolio.escalations[0].reason
    portfolio.ask(a_history(best, *worse), 1)
    assert [e.step for e in portfolio.escalations] == [Step.QUERY_MEMORY, Step.ASK]


def test_losers_far_away_are_not_remembered() -> None:
    task = a_task(space=PLANE)
    far = Remembered(trial_id="s0-t1", params={"x": 0.1, "y": 0.9}, value=0.0)
    near = Remembered(trial_id="s0-t2", params={"x": 0.75, "y": 0.6}, value=0.0)
    assert losers_near(task, {"x": 0.7, "y": 0.7}, [far, near]) == [near]
