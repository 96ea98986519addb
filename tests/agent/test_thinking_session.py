"""Sessions with a language model in the loop, in memory: what it may do, and that nothing it does breaks them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_worlds import World, a_task, a_world, honest
from model_endpoint import calls, model_endpoint

from agent.gates.gate import Answer as GateAnswer
from agent.gates.gate import GateKind
from agent.llm.chat import ModelError, Request, Trouble
from agent.llm.ladder import Asker, Asking
from agent.llm.scripted import Said, Scripted, ScriptedModel, called
from agent.planner.early_stop import STOPPED_EARLY
from agent.store.calls import model_calls_of
from agent.store.gates import GateStore
from agent.store.lessons import read_lessons
from agent.store.views import Purpose, SessionState, TrialState, TrialView
from agent.task import Task
from agent.thinking.beside import at_once
from runtime_client.fake import FakeOutcome
from runtime_client.models import JobSpec

Answer = dict[str, Any]


def a_model_task(**changes: Any) -> Task:
    data: Answer = {
        "budgets": {"trials": 8},
        "search": {"use": ["sampler", "replicator", "model"]},
        "model": {"name": "small", "batch": 2},
        "held_out": None,
        "seeds": {"fresh": 2, "max_pairs": 2},
        "idle": {"replicate": False, "explore": False},
    }
    return a_task(**(data | changes))


def says(answer: Callable[[int, Request], Answer]) -> ScriptedModel:
    """A model that calls the tool with what the function of the call's number gives."""
    n_calls = 0

    def script(request: Request) -> Scripted:
        nonlocal n_calls
        n_calls += 1
        return called(request.tools[0].name, json.dumps(answer(n_calls, request)))

    return ScriptedModel(script)


def idea(x: float, why: str = "because") -> Answer:
    return {"parameters": {"x": x, "kind": "a"}, "why": why, "gain": 0.2, "chance": 0.9}


def live(world: World, model: ScriptedModel, **changes: Any) -> SessionState:
    given: Answer = {
        "open_asker": lambda task, writer: Asker(model, Asking(), now=lambda: world.runtime.now),
        "start_thinking": at_once,
    }
    return world.live(**(given | changes))


def of_the_model(world: World) -> list[TrialView]:
    return [t for t in world.store.trials("s1") if t.suggested_by == "model" and t.purpose is Purpose.SEARCH]


def told(world: World) -> list[str]:
    return [line.text for line in world.store.activity("s1", 1000) if line.step == "think"]


def test_a_models_ideas_are_one_arm_with_their_origin_and_prediction(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_model_task(brief="stay above 0.5"))
    model = says(
        lambda n, _: {"trials": [idea(0.6 + n / 50)], "lessons": [{"text": "0.7 is good", "trials": ["s1-t1"]}]}
    )
    assert live(world, model) is SessionState.FINISHED
    [first, *_] = of_the_model(world)
    assert first.facts.expected is not None
    assert (first.facts.expected.probability, first.facts.expected.effect) == (0.9, 0.2)
    assert (first.facts.prompt or "").startswith("suggest@")
    assert first.facts.model == "scripted"
    assert len(first.facts.brief or "") == 12
    assert {t.suggested_by for t in world.store.trials("s1")} >= {"default", "optuna", "model"}
    job = next(job for job in world.runtime.jobs() if job.job_id == first.job_id)
    assert job.spec.tags["nightlab.prompt"] == first.facts.prompt
    assert [lesson.text for lesson in read_lessons(world.store, "s1")] == ["0.7 is good"]


@pytest.mark.acceptance
def test_no_more_calls_are_made_than_there_was_something_new(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_model_task())
    model = says(lambda n, _: {"trials": []})
    live(world, model)
    n_ended = sum(1 for t in world.store.trials("s1") if t.purpose is Purpose.SEARCH)
    assert 0 < model.n_calls <= n_ended


def test_what_was_refused_is_in_the_activity_and_in_the_next_question(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_model_task())
    model = says(lambda n, _: {"trials": [idea(7.0)] * 50, "direction": "minimize", "budgets": {"trials": 10_000}})
    assert live(world, model) is SessionState.FINISHED
    assert of_the_model(world) == []
    assert world.store.session("s1").n_trials == 8
    assert "not taken: 'direction' is not yours to set" in told(world)
    assert "not taken: and 49 more like these" in told(world)
    assert "'direction' is not yours to set" in model.requests[1].messages[-1].text
    assert "'direction' is not yours to set" not in model.requests[0].messages[-1].text


def test_a_model_that_never_answers_holds_nothing_up(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_model_task())
    is_over, was_asked = threading.Event(), threading.Event()

    def hang(request: Request) -> Scripted:
        was_asked.set()
        is_over.wait(60)
        return "too late"

    try:
        assert live(world, ScriptedModel(hang), start_thinking=_in_a_thread_that(was_asked)) is SessionState.FINISHED
        assert was_asked.is_set()
        assert not is_over.is_set()
    finally:
        is_over.set()
    assert of_the_model(world) == []
    assert all(t.state is TrialState.MEASURED for t in world.store.trials("s1"))


def _in_a_thread_that(has_begun: threading.Event) -> Callable[[Callable[[], None]], None]:
    """Real threads; the first call is under way before the session goes on."""

    def start(work: Callable[[], None]) -> None:
        threading.Thread(target=work, daemon=True).start()
        has_begun.wait(60)

    return start


@pytest.mark.acceptance
def test_a_model_that_breaks_costs_a_line_not_the_session(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_model_task())

    def breaks(request: Request) -> Scripted:
        raise RuntimeError("an adapter with a bug")

    assert live(world, ScriptedModel(breaks)) is SessionState.FINISHED
    assert any("goes on without it: RuntimeError: an adapter with a bug" in text for text in told(world))


@pytest.mark.acceptance
def test_an_endpoint_that_is_away_is_asked_again_without_news_and_without_end_of_the_session(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_model_task())
    away = ScriptedModel(lambda request: ModelError(Trouble.UNREACHABLE, "nobody is there"))
    assert live(world, away) is SessionState.FINISHED
    assert away.n_calls >= 2
    assert any("no answer" in text for text in told(world))


@pytest.mark.acceptance
def test_thoughts_survive_the_process_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_model_task())
    model = says(lambda n, _: {"trials": [idea(0.61), idea(0.66)]})
    n_looks = 0

    def after_a_while() -> bool:
        nonlocal n_looks
        n_looks += 1
        return n_looks > 6

    live(world, model, should_leave=after_a_while)
    assert world.store.session("s1").state is SessionState.RUNNING
    silent = ScriptedModel([])
    assert live(world, silent) is SessionState.FINISHED
    assert {t.params["x"] for t in of_the_model(world)} == {0.61, 0.66}


def slow_and_bad(spec: JobSpec) -> FakeOutcome:
    """The trial at x = 0.05 is eight times as long, and flat."""
    if float(spec.parameters["x"]) != 0.05:
        return honest(spec)
    return FakeOutcome(curves={"score": [0.01] * 4}, duration_s=80.0)


def ends_bad(task: Task, tmp_path: Path, says_people: GateAnswer | None = None) -> tuple[World, TrialView]:
    """A session whose model suggests a bad trial, and wants it ended as soon as it sees it run."""
    world = a_world(tmp_path, task=task, script=slow_and_bad)

    def answer(n: int, request: Request) -> Answer:
        bad = next((t for t in of_the_model(world) if t.state is TrialState.LAUNCHED), None)
        stop = [] if bad is None else [{"trial": bad.trial_id, "why": "flat"}]
        n_measured = sum(1 for t in world.store.trials("s1") if t.state is TrialState.MEASURED)
        return {"trials": [idea(0.05)] if n_measured > 5 else [], "stop": stop}

    def people() -> bool:
        for gate in GateStore(world.store).waiting() if says_people is not None else []:
            assert (gate.kind, says_people is None) == (GateKind.EARLY_STOP, False)
            GateStore(world.store).answer(gate.gate_id, says_people or GateAnswer.DENY, by="ada")
        return False

    assert live(world, says(answer), should_leave=people) is SessionState.FINISHED
    [bad] = of_the_model(world)
    return world, bad


LONG = {"budgets": {"trials": 16}}


@pytest.mark.acceptance
def test_a_trial_that_the_model_takes_for_lost_is_ended_when_its_curve_says_so_too(tmp_path: Path) -> None:
    _, bad = ends_bad(a_model_task(**LONG), tmp_path)
    assert (bad.state, bad.exit_reason, bad.value) == (TrialState.INVALID, STOPPED_EARLY, None)
    assert "takes it for lost (flat)" in (bad.note or "")
    assert bad.facts.partial_value == 0.01
    assert bad.ended_at is not None
    assert bad.launched_at is not None
    assert bad.ended_at - bad.launched_at < 80.0


@pytest.mark.acceptance
def test_a_lost_trial_runs_on_until_a_person_agrees_to_its_end(tmp_path: Path) -> None:
    task = a_model_task(**LONG, autonomy={"early_stops": "propose"})
    world, bad = ends_bad(task, tmp_path / "silent")
    assert bad.state is TrialState.MEASURED
    assert any("people are asked first" in text for text in told(world))
    _, bad = ends_bad(task, tmp_path / "denied", GateAnswer.DENY)
    assert bad.state is TrialState.MEASURED
    _, bad = ends_bad(task, tmp_path / "approved", GateAnswer.APPROVE)
    assert (bad.state, bad.exit_reason) == (TrialState.INVALID, STOPPED_EARLY)
    assert "approved by ada" in (bad.note or "")


@pytest.mark.acceptance
@pytest.mark.parametrize("answer", ["no JSON at all", "{}", '{"trials": 3}', '{"trials": [{}]}'])
def test_rubbish_costs_turns_and_nothing_else(tmp_path: Path, answer: str) -> None:
    world = a_world(tmp_path, task=a_model_task())
    model = ScriptedModel(lambda request: Said(text=answer))
    assert live(world, model) is SessionState.FINISHED
    assert of_the_model(world) == []


@pytest.mark.acceptance
def test_a_search_by_the_model_alone_goes_on_while_it_thinks_and_ends_when_it_has_nothing(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_model_task(search={"use": ["model"]}))
    waiting: list[Callable[[], None]] = []

    def later(seconds: float = 0.0) -> bool:
        """Each look at whether to leave lets one call be made: later than it was asked for."""
        if waiting:
            waiting.pop(0)()
        return False

    model = says(lambda n, _: {"trials": [idea(n / 10)] if n < 4 else []})
    assert live(world, model, start_thinking=waiting.append, should_leave=later) is SessionState.FINISHED
    assert sorted(float(t.params["x"] or 0) for t in of_the_model(world)) == [0.1, 0.3]


@pytest.mark.acceptance
def test_a_session_reaches_its_model_as_the_task_says_and_keeps_accounts(tmp_path: Path) -> None:
    answer = json.dumps({"trials": [idea(0.65), idea(7.0)]})
    with model_endpoint(calls("answer", answer)) as endpoint:
        model = {"name": "small", "base_url": endpoint.base_url, "batch": 2}
        world = a_world(tmp_path, task=a_model_task(model=model))
        assert world.live(start_thinking=at_once) is SessionState.FINISHED
    [trial] = of_the_model(world)
    assert trial.params["x"] == 0.65
    made = model_calls_of(world.store, "s1")
    assert len(made) == endpoint.n_requests > 0
    assert {call.purpose for call in made} == {"suggest"}
    assert world.store.session("s1").tokens == sum(c.prompt_tokens + c.completion_tokens for c in made)


@pytest.mark.acceptance
def test_a_model_without_its_key_is_told_and_the_session_goes_on(tmp_path: Path) -> None:
    model = {"name": "small", "base_url": "http://127.0.0.1:9/v1", "key_file": str(tmp_path / "missing")}
    world = a_world(tmp_path, task=a_model_task(model=model))
    assert world.live() is SessionState.FINISHED
    said = [line.text for line in world.store.activity("s1", 1000)]
    assert sum("goes on without its model" in text and "model.key_file" in text for text in said) == 1
