"""What people say to a session under way: what can be said, that it counts once, and what the session does by it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_worlds import World, a_task, a_world, honest
from test_thinking_session import a_model_task, says
from test_thinking_session import live as live_with

from agent.notices.session_events import events
from agent.planner.plan_text import plan_from_json
from agent.steering.word import CanNotSay, Course, Kind, Word, steered
from agent.store.steering import SteeringBook, SteeringStore
from agent.store.store import AgentStore, SessionNotFound
from agent.store.views import Purpose, SessionState
from agent.task import Task
from runtime_client.fake import FakeOutcome
from runtime_client.models import JobSpec

FORBID = Word(kind=Kind.FORBID, text="x > 0.5")
PAUSE = Word(kind=Kind.PAUSE)


def said(task: Task, *words: Word, closed: str | None = None) -> Course:
    course = Course(task=task)
    for word in words:
        course = steered(course, word, by="ann", search_closed=closed)
    return course


def test_what_is_forbidden_is_forbidden_until_it_is_allowed_again() -> None:
    task = a_task()
    assert said(task, FORBID).task.forbid == ("x > 0.5",)
    assert said(task, FORBID, Word(kind=Kind.ALLOW, text="x>0.5")).task == task


@pytest.mark.parametrize(("value", "kept"), [(60.0, 60), (None, None), (1e6, 1_000_000)])
def test_a_budget_is_set(value: float | None, kept: int | None) -> None:
    word = Word(kind=Kind.BUDGET, budget="tokens", value=value)
    assert said(a_task(), word).task.budgets.tokens == kept


def test_a_hypothesis_is_part_of_the_brief_that_the_model_reads() -> None:
    word = Word(kind=Kind.HYPOTHESIS, text="small x is better")
    assert said(a_model_task(brief="stay calm"), word).task.brief == "stay calm\nann says: small x is better"


@pytest.mark.parametrize(
    ("word", "why"),
    [
        (Word(kind=Kind.FORBID, text="y > 1"), "'y' is no parameter of this task"),
        (Word(kind=Kind.FORBID, text="x < 0.5"), "it covers the default configuration"),
        (Word(kind=Kind.ALLOW, text="x > 0.4"), "x > 0.4 is not forbidden; forbidden is: nothing"),
        (Word(kind=Kind.ALLOW, text="x is large"), "write it as: lr > 0.1"),
        (Word(kind=Kind.BUDGET, budget="hours", value=3), "there are: trials, wall_minutes, device_seconds"),
        (Word(kind=Kind.BUDGET, budget="trials", value=2.5), "is a whole number, not 2.5"),
        (
            Word(kind=Kind.BUDGET, budget="trials", value=0),
            "budgets.trials: Input should be greater than or equal to 1",
        ),
        (Word(kind=Kind.BUDGET, budget="trials", value=None), "budgets.trials: Input should be a valid integer"),
        (Word(kind=Kind.BUDGET, budget="cost_usd", value=-1), "greater than 0"),
        (Word(kind=Kind.HYPOTHESIS, text=" "), "a hypothesis is a sentence"),
        (Word(kind=Kind.HYPOTHESIS, text="wider"), "no model reads it in this session; name what to try"),
        (Word(kind=Kind.HYPOTHESIS, text="far", params={"x": 7.0}), "allowed: a number from 0 to 1"),
        (Word(kind=Kind.PAUSE, text="x" * 3000), "3000 characters are more than can be said at once"),
    ],
)
def test_what_can_not_be_said_is_refused_with_what_would_do(word: Word, why: str) -> None:
    with pytest.raises(CanNotSay) as caught:
        said(a_task(), word)
    assert why in str(caught.value)


def test_after_the_search_neither_budgets_nor_ideas_change_anything() -> None:
    for word in (
        Word(kind=Kind.BUDGET, budget="trials", value=60),
        Word(kind=Kind.HYPOTHESIS, text="a", params={"x": 0.5}),
    ):
        with pytest.raises(CanNotSay, match="the search is over"):
            said(a_task(), word, closed="budgets.trials: 6 are proposed")
    assert said(a_task(), PAUSE, closed="over").is_paused


def test_all_that_is_said_at_once_counts_or_nothing(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    people = SteeringStore(world.store)
    with pytest.raises(CanNotSay):
        people.say("s1", [FORBID, Word(kind=Kind.ALLOW, text="x > 0.9")], by="ann")
    assert people.steerings("s1") == []
    assert people.course("s1") == Course(task=a_task())
    assert world.store.activity("s1") == []
    with pytest.raises(SessionNotFound):
        people.say("s9", [FORBID], by="ann")


def test_two_who_speak_at_once_are_both_heard(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    other = AgentStore.open(tmp_path)
    SteeringStore(world.store).say("s1", [FORBID], by="ann")
    SteeringStore(other).say("s1", [Word(kind=Kind.FORBID, text="kind = b")], by="bob")
    other.close()
    assert SteeringStore(world.store).course("s1").task.forbid == ("x > 0.5", "kind = b")
    assert [one.words for one in SteeringStore(world.store).steerings("s1")] == [
        "ann forbids x > 0.5",
        "bob forbids kind = b",
    ]


def test_what_is_to_be_tried_is_kept_in_the_types_of_the_space(tmp_path: Path) -> None:
    """A client may send a number as text."""
    world = a_world(tmp_path)
    word = Word(kind=Kind.HYPOTHESIS, text="near", params={"x": "0.5", "kind": "b"})
    [said] = SteeringStore(world.store).say("s1", [word], by="ann")
    assert said.word.params == {"x": 0.5, "kind": "b"}
    assert [idea.params for idea in world.store.suggestions("s1")] == [{"x": 0.5, "kind": "b"}]


def steering_at(world: World, n: int, *words: Word, by: str = "ann") -> Callable[[JobSpec], FakeOutcome]:
    """A training that has somebody speak when the n-th job starts."""
    started = 0

    def script(spec: JobSpec) -> FakeOutcome:
        nonlocal started
        started += 1
        if started == n:
            SteeringStore(world.store).say("s1", words, by=by)
        return honest(spec)

    return script


def a_steered_world(tmp_path: Path, n: int, *words: Word, **changes: Any) -> World:
    world = a_world(tmp_path, task=a_task(**({"idle": {"replicate": False, "explore": False}} | changes)))
    world.runtime._script = steering_at(world, n, *words)
    return world


def test_a_session_keeps_off_what_is_forbidden_while_it_runs(tmp_path: Path) -> None:
    world = a_steered_world(tmp_path, 5, FORBID, budgets={"trials": 16})
    assert world.live() is SessionState.FINISHED
    [steering] = SteeringStore(world.store).steerings("s1")
    assert steering.taken_at is not None
    later = [t for t in world.store.trials("s1") if t.purpose is Purpose.SEARCH and t.proposed_at > steering.taken_at]
    assert len(later) > 4
    assert all(float(t.params["x"] or 0) <= 0.5 for t in later)
    reasons = [plan.reason for plan in world.store.plans("s1")]
    assert reasons.count("ann forbids x > 0.5") == 1
    assert [line.text for line in world.store.activity("s1", 1000) if line.step == "steer"] == ["ann forbids x > 0.5"]


@pytest.mark.parametrize(("value", "n"), [(12, 12), (3, 3)])
def test_a_budget_that_is_changed_under_way_counts(tmp_path: Path, value: int, n: int) -> None:
    world = a_steered_world(tmp_path, 2, Word(kind=Kind.BUDGET, budget="trials", value=value), budgets={"trials": 8})
    assert world.live() is SessionState.FINISHED
    searched = [t for t in world.store.trials("s1") if t.purpose is Purpose.SEARCH]
    assert n <= len(searched) <= n + 2
    assert world.store.session("s1").result is not None


def test_an_idea_is_tried_first_under_the_name_of_who_has_it(tmp_path: Path) -> None:
    word = Word(kind=Kind.HYPOTHESIS, text="just past the middle", params={"x": 0.61})
    world = a_steered_world(tmp_path, 2, word, budgets={"trials": 8})
    assert world.live() is SessionState.FINISHED
    [mine] = [t for t in world.store.trials("s1") if t.suggested_by == "ann"]
    assert (mine.params["x"], mine.number < 7) == (0.61, True)
    assert mine.why.startswith("just past the middle")


def test_a_paused_session_starts_nothing_and_its_time_is_not_counted(tmp_path: Path) -> None:
    world = a_steered_world(tmp_path, 3, PAUSE, budgets={"trials": 8, "wall_minutes": 600.0})
    people = SteeringStore(world.store)
    n_waits = 0

    def leave_after_an_hour() -> bool:
        nonlocal n_waits
        if people.course("s1").is_paused:
            n_waits += 1
            world.runtime.advance(30.0)
        return n_waits > 120

    assert world.live(should_leave=leave_after_an_hour) is SessionState.RUNNING
    n_then = len(world.runtime.jobs())
    assert n_then <= 5
    assert world.store.session("s1").wall_seconds < 600
    people.say("s1", [Word(kind=Kind.GO_ON)], by="bob")
    assert world.live() is SessionState.FINISHED
    assert len(world.runtime.jobs()) > n_then
    assert {"ann pauses the session", "bob lets the session go on"} <= {p.reason for p in world.store.plans("s1")}


def test_a_paused_session_is_not_told_as_stalled(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    session = world.store.session("s1")
    now = session.created_at + 1e6
    given: dict[str, Any] = {"running_since": session.created_at, "now": now}
    assert [one.occasion for one in events(session, [], [], (), **given)] == ["stalled"]
    assert events(session, [], [], (), is_paused=True, **given) == []


def test_a_person_who_has_taken_over_is_the_only_one_who_suggests(tmp_path: Path) -> None:
    world = a_steered_world(tmp_path, 3, Word(kind=Kind.TAKE_OVER), budgets={"trials": 8})
    people = SteeringStore(world.store)
    n_looks = 0

    def speak_then_hand_back() -> bool:
        nonlocal n_looks
        if people.course("s1").is_taken_over:
            n_looks += 1
            world.runtime.advance(5.0)
            if n_looks == 30:
                world.store.suggest("s1", {"x": 0.66}, why="by hand", suggested_by="ann")
        return n_looks > 200

    assert world.live(should_leave=speak_then_hand_back) is SessionState.RUNNING
    taken = next(one for one in people.steerings("s1") if one.word.kind is Kind.TAKE_OVER).taken_at or 0.0
    assert {t.suggested_by for t in world.store.trials("s1") if t.proposed_at > taken} == {"ann"}
    people.say("s1", [Word(kind=Kind.HAND_BACK)], by="ann")
    assert world.live() is SessionState.FINISHED
    assert len({t.suggested_by for t in world.store.trials("s1") if t.proposed_at > taken}) > 1


def test_a_word_to_a_stopped_session_counts_when_it_goes_on(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_task(budgets={"trials": 10}))
    world.store.request_stop("s1")
    assert world.live() is SessionState.STOPPED
    SteeringStore(world.store).say("s1", [FORBID], by="ann")
    world.store.request_resume("s1")
    assert world.live() is SessionState.FINISHED
    assert all(float(t.params["x"] or 0) <= 0.5 for t in world.store.trials("s1"))
    with pytest.raises(CanNotSay, match="s1 is finished; start another one"):
        SteeringStore(world.store).say("s1", [PAUSE], by="ann")


def test_a_revision_tells_of_a_word_once_whoever_is_killed(tmp_path: Path) -> None:
    """Killed right before and right after the transaction that takes it up."""
    world = a_steered_world(tmp_path, 3, FORBID, budgets={"trials": 10})
    killed: list[str] = []

    class Killed(BaseException):
        pass

    real = SteeringBook.take

    def die(self: SteeringBook, *given: Any) -> None:
        if len(killed) == 1:
            real(self, *given)
        killed.append("x")
        if len(killed) <= 2:
            raise Killed
        real(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SteeringBook, "take", die)
        for _ in range(2):
            with pytest.raises(Killed):
                world.live()
        assert world.live() is SessionState.FINISHED
    plans = world.store.plans("s1")
    assert [plan.reason for plan in plans].count("ann forbids x > 0.5") == 1
    assert [plan.revision for plan in plans] == sorted({plan.revision for plan in plans})


def test_the_plan_of_a_session_that_was_steered_before_it_began_is_whole(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    SteeringStore(world.store).say("s1", [FORBID], by="ann")
    assert world.live() is SessionState.FINISHED
    plans = world.store.plans("s1")
    assert (plans[0].revision, plans[0].reason) == (1, "ann forbids x > 0.5")
    task = Task.model_validate_json(world.store.session("s1").task_json)
    assert plan_from_json(plans[-1].plan_json, task).phase.value == "done"


def test_a_model_is_asked_anew_with_what_was_said(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_model_task(budgets={"trials": 10}))
    world.runtime._script = steering_at(world, 3, Word(kind=Kind.HYPOTHESIS, text="beyond two thirds"))
    model = says(lambda n, _: {"trials": [{"parameters": {"x": 0.3 + n / 30}, "why": "a step"}]})
    assert live_with(world, model) is SessionState.FINISHED
    asked = [request.messages[-1].text for request in model.requests]
    assert "ann says: beyond two thirds" not in asked[0]
    assert "ann says: beyond two thirds" in asked[-1]
    briefs = {t.facts.brief for t in world.store.trials("s1") if t.suggested_by == "model"}
    assert len(briefs - {None}) >= 1
