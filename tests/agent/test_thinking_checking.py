"""What becomes of a model's answer: only what the task allows, everything else a sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from agent_worlds import a_task
from planner_builders import a_history, a_trial
from thinking_worlds import DEFAULT, a_search, an_inquiry

from agent.llm.shape import schema_of
from agent.planner.configuration import configuration_id, problems
from agent.store.views import CodeState, Expected, Purpose, TrialFacts, TrialState
from agent.thinking.checking import MOST_REFUSALS, Checked, Inquiry, StopWish, checked
from agent.thinking.ideas import ideas_of


def answered(inquiry: Inquiry, **answer: Any) -> Checked:
    """What is left of an answer, as it comes through the schema of the task."""
    return checked(ideas_of(inquiry.task).model_validate_json(json.dumps({"trials": [], **answer})), inquiry)


def idea(**parameters: Any) -> dict[str, Any]:
    return {"parameters": parameters, "why": "because"}


def test_an_idea_becomes_a_proposal_with_its_prediction_and_origin() -> None:
    found = answered(an_inquiry(), trials=[{**idea(x=0.71, kind="b"), "gain": 0.02, "chance": 0.6}])
    [proposal] = found.proposals
    assert (proposal.params, proposal.suggested_by, proposal.purpose) == (
        {"x": 0.71, "kind": "b"},
        "model",
        Purpose.SEARCH,
    )
    assert proposal.seed == 0
    assert proposal.facts.expected == Expected(probability=0.6, effect=0.02)
    assert (proposal.facts.prompt, proposal.facts.model) == ("suggest@1f", "small")
    assert found.refusals == ()


def test_what_an_idea_leaves_out_is_as_in_the_best_so_far() -> None:
    task = a_task()
    history = a_history(a_trial(task, 1, DEFAULT, 0.5), a_trial(task, 2, {"x": 0.6, "kind": "b"}, 0.9))
    [proposal] = answered(an_inquiry(task, history), trials=[idea(x=0.8)]).proposals
    assert proposal.params == {"x": 0.8, "kind": "b"}


def test_pairs_of_name_and_value_and_numbers_as_text_are_read() -> None:
    pairs = [{"name": "x", "value": "0.81"}, {"name": "kind", "value": "b"}]
    [proposal] = answered(an_inquiry(), trials=[{"parameters": pairs, "why": ""}]).proposals
    assert proposal.params == {"x": 0.81, "kind": "b"}


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"x": 7.0}, "a number from 0 to 1"),
        ({"x": 10**400}, "a number from 0 to 1"),
        ({"x": "NaN"}, "a number from 0 to 1"),
        ({"x": True}, "a number from 0 to 1"),
        ({"x": None}, "a number from 0 to 1"),
        ({"kind": "c"}, "a, b"),
        ({"seed": 3}, "no parameter of this task"),
        ({"num_accelerators": 10_000}, "no parameter of this task"),
        ({}, "no parameter was given"),
    ],
)
def test_what_lies_outside_the_space_is_refused_with_what_is_allowed(parameters: dict[str, Any], words: str) -> None:
    found = answered(an_inquiry(), trials=[idea(**parameters)])
    assert found.proposals == ()
    assert len(found.refusals) == 1
    assert words in found.refusals[0]


def test_metric_direction_and_budget_are_nobodys_to_set_and_the_rest_of_the_answer_counts() -> None:
    found = answered(
        an_inquiry(), trials=[{**idea(x=0.77), "seed": 4}], direction="minimize", budgets={"trials": 999}, verdict="won"
    )
    assert len(found.proposals) == 1
    assert found.proposals[0].seed == 0
    refused = " ".join(found.refusals)
    assert all(f"'{name}' is not yours to set" in refused for name in ("direction", "budgets", "verdict", "seed"))


def test_the_same_trial_fifty_times_is_one_trial_and_one_sentence() -> None:
    found = answered(an_inquiry(), trials=[idea(x=0.77, kind="a")] * 50)
    assert len(found.proposals) == 1
    assert found.refusals == (
        "no trial: it repeats what is there: the same configuration as another one of this answer",
        "and 48 more like these",
    )


def test_a_tried_configuration_is_refused_with_what_it_came_to() -> None:
    found = answered(an_inquiry(), trials=[idea(x=0.2, kind="a")])
    assert found.refusals == (
        "no trial: it repeats what is there: the same configuration as s1-t1 (measured, score 0.75)",
    )


def test_no_more_trials_are_taken_than_were_asked_for() -> None:
    found = answered(an_inquiry(n=2), trials=[idea(x=i / 17) for i in range(1, 9)])
    assert len(found.proposals) == 2
    assert found.refusals[0] == "more than 2 trials: only the first 2 new ones are taken"


def test_refusals_are_few_and_short_whatever_comes() -> None:
    wild = [idea(**{f"p{i}" * 500: "v" * 5000}) for i in range(300)]
    found = answered(an_inquiry(), trials=wild)
    assert len(found.refusals) == MOST_REFUSALS + 1
    assert all(len(one) <= 300 for one in found.refusals)
    assert found.refusals[-1] == f"and {300 - MOST_REFUSALS} more like these"


def test_a_reason_can_not_carry_control_characters_into_the_record() -> None:
    [proposal] = answered(an_inquiry(), trials=[{**idea(x=0.9), "why": "good\x1b[2J\nidea" + "z" * 9999}]).proposals
    assert proposal.why.startswith("good idea")
    assert len(proposal.why) == 300


def test_a_chance_that_is_no_probability_costs_the_prediction_not_the_trial() -> None:
    found = answered(an_inquiry(), trials=[{**idea(x=0.9), "chance": 70.0}])
    assert found.proposals[0].facts.expected is None
    assert "no probability from 0 to 1" in found.refusals[0]


def test_a_wish_for_a_replicate_takes_the_next_seed_of_the_race() -> None:
    [wish] = answered(an_inquiry(), again=[{"trial": "s1-t2", "why": "luck?"}]).proposals
    assert (wish.purpose, wish.seed, wish.why) == (Purpose.REPLICATE, 100, "luck?")


def test_replicates_that_the_race_would_not_make_are_refused() -> None:
    task = a_task()
    lost = a_history(
        a_trial(task, 1, DEFAULT, 0.5), a_trial(task, 2, {"x": 0.6, "kind": "b"}, state=TrialState.INVALID)
    )
    assert "it has no value" in answered(an_inquiry(task, lost), again=[{"trial": "s1-t2"}]).refusals[0]
    assert "no such trial" in answered(an_inquiry(), again=[{"trial": "s9-t1"}]).refusals[0]
    many = answered(an_inquiry(), again=[{"trial": f"s1-t{i}"} for i in (1, 2, 3, 4)])
    assert len(many.proposals) == 2
    assert len(many.refusals) == 2
    repeated = a_task(search={"replicates": 3})
    assert "search.replicates" in answered(an_inquiry(repeated), again=[{"trial": "s1-t2"}]).refusals[0]
    without = a_task(search={"use": ["sampler"]})
    assert "search.use" in answered(an_inquiry(without), again=[{"trial": "s1-t2"}]).refusals[0]


def test_only_running_trials_of_the_search_may_be_ended_never_the_default() -> None:
    task = a_task()
    history = a_history(
        a_trial(task, 1, DEFAULT),
        a_trial(task, 2, {"x": 0.4, "kind": "b"}),
        a_trial(task, 3, {"x": 0.5, "kind": "b"}, 0.9),
        a_trial(task, 4, {"x": 0.5, "kind": "b"}, seed=100, purpose=Purpose.REPLICATE),
    )
    found = answered(an_inquiry(task, history), stop=[{"trial": f"s1-t{i}", "why": "flat"} for i in (1, 2, 3, 4, 5)])
    assert found.stops == (StopWish(trial_id="s1-t2", why="flat"),)
    assert [one.rpartition(": ")[2] for one in found.refusals] == [
        "it is the default, which everything is compared with",
        "it does not run",
        "it is needed for a comparison",
        "there is no such trial",
    ]


def test_every_proposal_lies_in_the_space() -> None:
    task = a_task()
    wild = [idea(x=value, kind=kind) for value in (-1, 0, 0.5, 1, 2, "0.3", 1e999) for kind in ("a", "b", "c", 3)]
    found = answered(an_inquiry(task, a_search(task, 3), n=50), trials=wild)
    assert found.proposals
    assert all(problems(proposal.params, task) == [] for proposal in found.proposals)


def test_parameters_beside_the_reason_are_read_as_what_they_are() -> None:
    [proposal] = answered(an_inquiry(), trials=[{"x": 0.83, "kind": "b", "why": "higher", "chance": 0.4}]).proposals
    assert (proposal.params, proposal.why) == ({"x": 0.83, "kind": "b"}, "higher")


def _list_in_schema(schema: object, name: str) -> dict[str, Any] | None:
    assert isinstance(schema, dict)
    found = schema["properties"].get(name)
    assert found is None or isinstance(found, dict)
    return found


def test_a_model_that_is_held_to_the_schema_can_not_repeat_itself_without_end() -> None:
    schema = schema_of(ideas_of(a_task(), 3))
    for name, most in (("trials", 3), ("again", 2), ("stop", 2), ("lessons", 2)):
        found = _list_in_schema(schema, name)
        assert found is not None
        assert found["maxItems"] == most
    trials = _list_in_schema(schema, "trials")
    assert trials is not None
    assert trials["items"]["properties"]["why"]["maxLength"] == 200


def test_more_than_the_schema_allows_is_read_all_the_same() -> None:
    ideas = ideas_of(a_task(), 1).model_validate({"trials": [{**idea(x=0.1), "why": "long " * 100}, idea(x=0.2)]})
    assert len(ideas.trials) == 2


@pytest.mark.parametrize(
    ("use", "replicates", "is_there"), [("replicator", 1, True), ("replicator", 2, False), ("random", 1, False)]
)
def test_the_schema_asks_for_nothing_that_would_be_refused(use: str, replicates: int, is_there: bool) -> None:
    task = a_task(search={"use": ["sampler", use], "replicates": replicates})
    assert (_list_in_schema(schema_of(ideas_of(task)), "again") is not None) is is_there
    assert _list_in_schema(schema_of(ideas_of(task, may_stop=False)), "stop") is None
    given = ideas_of(task, may_stop=False).model_validate({"again": [{"trial": "t1"}], "stop": [{"trial": "t2"}]})
    assert (len(given.again), len(given.stop)) == (1, 1)


def test_what_an_idea_leaves_out_is_as_in_the_best_of_the_base_code_where_trials_edit_it() -> None:
    task = a_task(code={"editable": ["model.py"]})
    code = CodeState(tree="1" * 40, commit="a" * 40, branch="trial/1")
    edited = a_trial(task, 2, {"x": 0.6, "kind": "b"}, 0.9, facts=TrialFacts(edited=code))
    edited = replace(edited, configuration=configuration_id(edited.params, code))
    [proposal] = answered(
        an_inquiry(task, a_history(a_trial(task, 1, DEFAULT, 0.5), edited)), trials=[idea(x=0.8)]
    ).proposals
    assert proposal.params == {"x": 0.8, "kind": "a"}
