"""When a model is asked: with something new, and only then, over the lives of a session's processes too."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from agent_worlds import a_task
from planner_builders import a_trial
from thinking_worlds import DEFAULT, a_situation

from agent.llm.chat import Request
from agent.llm.ladder import Asker
from agent.llm.scripted import Said, ScriptedModel, called
from agent.planner.history import History
from agent.store.views import TrialView
from agent.thinking.beside import at_once
from agent.thinking.suggesting import Suggesting
from agent.thinking.thinker import ModelThinker

TASK = a_task(search={"use": ["sampler", "model"]}, model={"name": "small"})


def a_model() -> ScriptedModel:
    def script(request: Request) -> Said:
        return called(request.tools[0].name, json.dumps({"trials": [{"parameters": {"x": 9}, "why": ""}]}))

    return ScriptedModel(script)


def a_thinker(model: ScriptedModel, *, limit: int = 5_000, asked_at: float | None = None) -> ModelThinker:
    asker = Asker(model, now=lambda: 0.0)
    errand = Suggesting(TASK, limit)
    return ModelThinker(
        TASK, asker, lambda history: a_situation(TASK, history), errand, asked_at=asked_at, start=at_once
    )


def asked(thinker: ModelThinker, trials: Sequence[TrialView]) -> bool:
    """Whether it asked, given that much."""
    thinker.begin(History.of(trials), 2)
    if not thinker.is_done:
        return False
    thinker.take()
    return True


def ended(number: int, at: float) -> TrialView:
    return replace(a_trial(TASK, number, {**DEFAULT, "x": number / 10}, 0.5), ended_at=at)


def test_it_asks_again_only_when_something_is_new() -> None:
    model = a_model()
    thinker = a_thinker(model)
    assert [asked(thinker, [ended(1, 5.0)]), asked(thinker, [ended(1, 5.0)])] == [True, False]
    assert not asked(thinker, [ended(1, 5.0), a_trial(TASK, 2, DEFAULT)])  # a launch says nothing
    assert asked(thinker, [ended(1, 5.0), ended(2, 8.0)])
    assert model.n_calls == 2


def test_a_new_process_does_not_ask_what_the_one_before_it_asked() -> None:
    model = a_model()
    thinker = a_thinker(model, asked_at=6.0)
    assert not asked(thinker, [ended(1, 5.0)])
    assert asked(thinker, [ended(1, 5.0), ended(2, 8.0)])
    assert asked(a_thinker(model, asked_at=6.0), [ended(1, 5.0), ended(2, 8.0)])
    assert model.n_calls == 2


def test_what_was_refused_is_said_in_the_next_question_with_what_the_session_refused_later() -> None:
    model = a_model()
    thinker = a_thinker(model)
    asked(thinker, [ended(1, 5.0)])
    assert len(thinker.refused(["s1-t1 is not ended early: it is fine"])) == 2
    asked(thinker, [ended(1, 5.0), ended(2, 8.0)])
    assert "a number from 0 to 1" in model.requests[1].messages[-1].text.partition("refused:")[2]
    assert "s1-t1 is not ended early" in model.requests[1].messages[-1].text
    assert thinker.refused([]) == ()


def test_a_context_without_room_costs_no_call_and_is_told() -> None:
    model = a_model()
    thinker = a_thinker(model, limit=200)
    assert not asked(thinker, [ended(1, 5.0)])
    assert not asked(thinker, [ended(1, 5.0), ended(2, 8.0)])
    [told] = thinker.take_news()
    assert "raise model.context_tokens" in told
    assert model.n_calls == 0
