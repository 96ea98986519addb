"""Proposals made ahead: how many wait, what goes first, what is dropped, and what survives a kill."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from agent_worlds import World, a_task, a_world
from planner_builders import a_trial

from agent.ahead import Ahead, Thinking
from agent.planner.backlog import Thought, n_wanted, superfluous, waiting, with_waiting
from agent.planner.configuration import configuration_id
from agent.planner.history import History, Proposal
from agent.planner.proposers.race import Race
from agent.store.fenced import FencedWriter
from agent.store.shelf import Shelf
from agent.store.views import CodeState, Expected, Purpose, TrialFacts, TrialState, TrialView
from agent.task import Task


def a_proposal(x: float, kind: str = "a") -> Proposal:
    params = {"x": x, "kind": kind}
    return Proposal(
        params=params,
        configuration=configuration_id(params),
        seed=0,
        purpose=Purpose.SEARCH,
        suggested_by="slow",
        why="thought of",
    )


def a_thought(number: int, x: float, premise: str | None = None) -> Thought:
    return Thought(thought_id=number, proposal=a_proposal(x), premise=premise, took_s=30.0)


def a_history(*seconds: float, first: float = 0.5) -> History:
    """Measured trials that took so long; the first has the best value."""
    made: list[TrialView] = []
    for number, run_s in enumerate(seconds, start=1):
        [trial] = with_waiting(History.of(made), [a_thought(number, first + number / 100)]).trials[-1:]
        value = 1.0 - number / 10
        made.append(replace(trial, state=TrialState.MEASURED, value=value, launched_at=0.0, ended_at=run_s))
    return History.of(made)


@dataclass(slots=True)
class Mind:
    """Implements `Thinker`; the test says when a call is done and what it gave."""

    name: str = "slow"
    batch: int = 4
    gives: list[Proposal] = field(default_factory=list)
    calls: list[tuple[int, int]] = field(default_factory=list)
    """Trials in the history that was shown, and how many were asked for."""
    is_thinking: bool = False
    is_done: bool = False

    @property
    def is_pending(self) -> bool:
        return self.is_thinking

    def begin(self, history: History, n: int) -> None:
        self.calls.append((len(history.search), n))
        self.is_thinking, self.is_done = True, False

    def take(self) -> Thinking:
        self.is_thinking, self.is_done = False, False
        return Thinking(proposals=tuple(self.gives), took_s=30.0)


def a_shelf(world: World) -> Shelf:
    return Shelf(FencedWriter(world.store, world.session_id, world.store.claim(world.session_id, 1)))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return a_world(tmp_path, task=a_task(budgets={"trials": 20}))


def test_as_many_wait_as_are_taken_during_a_call_and_some_more() -> None:
    history = a_history(120.0, 240.0)
    assert n_wanted(history, n_slots=8, call_s=30.0) == 5  # 8 * 30 / 180 = 1.33, + 2 * 1.15, rounded up, + 1
    assert n_wanted(history, n_slots=8, call_s=0.0) == 1
    assert n_wanted(History.of([]), n_slots=8, call_s=None) == 9


def test_what_was_thought_before_another_one_led_goes_last() -> None:
    history = a_history(10.0)
    leader = history.search[0].configuration
    thoughts = [a_thought(1, 0.1), a_thought(2, 0.2, leader), a_thought(3, 0.51, leader)]
    assert [thought.thought_id for thought in waiting(thoughts, history, leader)] == [2, 1]


def test_only_stale_thoughts_are_dropped_and_only_for_newer_ones() -> None:
    thoughts = [a_thought(1, 0.1), a_thought(2, 0.2), a_thought(3, 0.3, "now"), a_thought(4, 0.4, "now")]
    assert [thought.thought_id for thought in superfluous(thoughts, "now", 3)] == [1]
    assert [thought.thought_id for thought in superfluous(thoughts, "now", 1)] == [1, 2]
    assert superfluous(thoughts, "now", 4) == []


def test_an_edit_of_code_waits_whoever_leads() -> None:
    code = CodeState(tree="1" * 40, commit="2" * 40, branch="trial/1")
    edit = replace(a_proposal(0.1), facts=TrialFacts(edited=code))
    thoughts = [replace(a_thought(1, 0.1), proposal=edit), a_thought(2, 0.2), a_thought(3, 0.3, "now")]
    assert [thought.thought_id for thought in superfluous(thoughts, "now", 1)] == [2]


def test_it_thinks_one_call_at_a_time_and_sees_what_waits_as_proposed(world: World) -> None:
    mind = Mind(gives=[a_proposal(0.1), a_proposal(0.3)])
    ahead = Ahead(a_task(budgets={"trials": 20}), mind, a_shelf(world), lambda: 2)
    empty = History.of([])
    ahead.tell(empty)
    ahead.tell(empty)
    assert (mind.calls, ahead.ask(empty, 5)) == ([(0, 4)], [])
    mind.is_done = True
    assert ahead.has_news
    ahead.tell(empty)
    assert ahead.ask(empty, 5) == [a_proposal(0.1), a_proposal(0.3)]
    assert mind.calls == [(0, 4), (2, 4)]


def test_it_stops_thinking_when_enough_waits_or_the_budget_has_no_room(world: World) -> None:
    mind = Mind(gives=[a_proposal(x / 100) for x in range(5)], is_thinking=True, is_done=True)
    Ahead(a_task(budgets={"trials": 20}), mind, a_shelf(world), lambda: 2).tell(History.of([]))
    assert mind.calls == []
    tight = Mind(gives=[a_proposal(0.9)], is_thinking=True, is_done=True)
    Ahead(a_task(budgets={"trials": 7}), tight, a_shelf(world), lambda: 30).tell(History.of([]))
    assert tight.calls == [(6, 1)]


def test_what_lies_outside_the_space_or_is_known_is_never_shelved(world: World) -> None:
    task: Task = a_task(budgets={"trials": 20})
    mind = Mind(gives=[a_proposal(7.0), a_proposal(0.51), a_proposal(0.2), a_proposal(0.2)])
    mind.is_thinking = mind.is_done = True
    ahead = Ahead(task, mind, a_shelf(world), lambda: 2)
    history = a_history(10.0)
    ahead.tell(history)
    assert ahead.ask(history, 9) == [a_proposal(0.2)]


def test_thoughts_survive_the_process_that_had_them(world: World) -> None:
    mind = Mind(gives=[a_proposal(0.1), a_proposal(0.3)], is_thinking=True, is_done=True)
    task = a_task(budgets={"trials": 20})
    Ahead(task, mind, a_shelf(world), lambda: 2).tell(History.of([]))
    after = Ahead(task, Mind(), a_shelf(world), lambda: 2)
    assert after.ask(History.of([]), 9) == [a_proposal(0.1), a_proposal(0.3)]


def test_a_thought_keeps_its_prediction_and_where_it_comes_from(world: World) -> None:
    origin = TrialFacts(expected=Expected(probability=0.6, effect=None), prompt="suggest@1f", model="small")
    proposal = replace(a_proposal(0.1), facts=origin)
    a_shelf(world).put("slow", [proposal], premise=None, took_s=1.0)
    [thought] = a_shelf(world).thoughts("slow")
    assert thought.proposal == proposal
    [trial] = with_waiting(History.of([]), [thought]).trials
    assert trial.facts == origin


def test_a_wish_for_a_replicate_is_kept_until_it_is_made_or_another_one_leads(world: World) -> None:
    history = a_history(10.0, 10.0)
    [first, second] = history.search
    wish = replace(a_proposal(0.0), params=first.params, configuration=first.configuration, seed=100)
    wish = replace(wish, purpose=Purpose.REPLICATE)
    mind = Mind(gives=[wish, wish])
    ahead = Ahead(a_task(budgets={"trials": 20}), mind, a_shelf(world), lambda: 2)
    ahead.tell(history)
    mind.is_done = True
    ahead.tell(history)
    assert ahead.wishes(history) == [wish]
    assert ahead.ask(history, 5) == []
    made = wish.as_trial(9, trial_id="s1-t9")
    assert ahead.wishes(History.of([first, second, made])) == []
    assert ahead.wishes(History.of([first, replace(second, value=2.0)])) == []


def test_the_race_grants_a_wish_only_where_it_forms_pairs_with_the_default() -> None:
    task = a_task(budgets={"trials": 20})
    points = [{"x": i / 10, "kind": "b"} for i in range(1, 8)]
    trials = [
        a_trial(task, 1, {"x": 0.2, "kind": "a"}, 0.5),
        *(a_trial(task, i, p, i / 10) for i, p in enumerate(points, 2)),
    ]
    wished = Proposal(
        params=trials[2].params,
        configuration=trials[2].configuration,
        seed=100,
        purpose=Purpose.REPLICATE,
        suggested_by="model",
        why="luck?",
    )
    race = Race(task, lambda history: [wished])
    assert race.ask(History.of(trials), 1) == [wished]
    ahead_of_default = a_trial(task, 20, trials[2].params, 0.3, seed=101, purpose=Purpose.REPLICATE)
    assert wished not in race.ask(History.of([*trials, ahead_of_default]), 2)
