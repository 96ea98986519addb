"""Answers of the right form that whoever asks objects to: asked for again by the same rung, a few times."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ladder_questions import GOOD, GOOD_VALUE, PROMPT, Accounts, Picks

from agent.llm.ladder import Asked, Asker
from agent.llm.rung import Rung
from agent.llm.scripted import Scripted, ScriptedModel, called


def asked(model: ScriptedModel, objections: list[list[str]]) -> Asked[Picks]:
    """Objects so often, with these sentences, and then no more."""

    def review(answer: Picks) -> Sequence[str]:
        assert answer == GOOD_VALUE
        return objections.pop(0) if objections else []

    return Asker(model, judged=Accounts(), now=lambda: 0.0).ask(PROMPT, Picks, review=review)


def good(n: int) -> list[Scripted]:
    return [called("answer", GOOD) for _ in range(n)]


@pytest.mark.parametrize("n_objections", [0, 1, 2])
def test_what_is_put_right_within_three_answers_is_taken(n_objections: int) -> None:
    model = ScriptedModel(good(9))
    found = asked(model, [[f"wrong {n}"] for n in range(n_objections)])
    assert (found.value, found.rung, found.objections) == (GOOD_VALUE, Rung.TOOLS, ())
    assert model.n_calls == n_objections + 1
    if n_objections:
        assert f"wrong {n_objections - 1}" in model.requests[-1].messages[-1].text
        assert model.requests[-1].messages[-2].text == GOOD


def test_after_the_third_objection_there_is_no_value_and_the_last_objections_are_told() -> None:
    model = ScriptedModel(good(9))
    found = asked(model, [["a"], ["b"], ["c", "d"], ["e"]])
    assert (found.value, found.objections, found.why) == (None, ("c", "d"), "c; d")
    assert model.n_calls == 3


def test_objections_say_nothing_of_the_rung() -> None:
    asker = Asker(ScriptedModel(good(30)), now=lambda: 0.0)
    for _ in range(6):
        asker.ask(PROMPT, Picks, review=lambda answer: ["no"])
    assert asker.standing.rung is Rung.TOOLS


def test_an_answer_that_can_not_be_read_after_an_objection_is_asked_for_by_a_worse_rung() -> None:
    model = ScriptedModel([called("answer", GOOD), "rubbish", GOOD])
    found = asked(model, [["a"]])
    assert found.value == GOOD_VALUE
    assert [request.rung for request in model.requests] == [Rung.TOOLS, Rung.TOOLS, Rung.SCHEMA]
