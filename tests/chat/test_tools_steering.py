"""What the chat does to sessions: what people see before they agree, what is done then, and what can not be done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_worlds import World, a_task, a_world
from chat_worlds import a_desk, a_finished_world, a_stopped_world, ahead, done, look

from agent.chat.tool import Desk
from agent.store.nights import NightStore
from agent.store.steering import SteeringStore
from agent.store.views import SessionState
from agent.sweeps.cells import Cell
from agent.sweeps.sweep import RandomMethod, Sweep
from agent.tools.errors import FixAndRetry, ToolError, ToolFailed
from runtime_client.models import Compute, JobSpec, SessionFence

pytestmark = pytest.mark.web


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = a_world(tmp_path, task=a_task(budgets={"trials": 6, "device_seconds": 500, "usd_per_device_hour": 36}))
    yield made
    made.store.close()


@pytest.fixture
def desk(world: World) -> Desk:
    return a_desk(world)


def test_stopping_asks_first_and_names_the_jobs_that_are_asked_back(world: World, desk: Desk) -> None:
    fence = SessionFence(session_id="s1", fence=1)
    spec = JobSpec(experiment_name="toy", command="x", compute=Compute(num_accelerators=1), session=fence)
    jobs = [world.runtime.submit(spec.model_copy(update={"parameters": {"x": 0.5}})) for _ in range(3)]
    found = ahead(desk, "/stop")
    assert found.asks
    assert [one.job_id for one in found.victims] == [jobs[-1].job_id]
    assert world.store.session("s1").state is SessionState.RUNNING
    assert done(desk, "/stop").text == "s1 is stopping"
    assert "ann asks it to stop" in world.store.activity("s1")[-1].text


def test_a_session_is_stopped_without_a_runtime_too(world: World) -> None:
    assert ahead(a_desk(world, is_up=False), "/stop").victims == ()
    assert done(a_desk(world, is_up=False), "/stop").text == "s1 is stopping"


def test_going_on_tells_what_it_may_cost_at_most(world: World, desk: Desk) -> None:
    world.store.request_stop("s1", by="ann")
    found = ahead(desk, "/resume")
    assert (found.asks, found.device_seconds, found.cost_usd) == (True, 500.0, 5.0)
    assert done(desk, "/resume").text == "s1 is running"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/forbid x > 0.5", "forbids x > 0.5"),
        ("/budget trials=9", "sets budgets.trials to 9"),
        ("/budget device_seconds=none", "sets budgets.device_seconds to no limit"),
        ("/hypothesis a big x wins x=0.9", "expects: a big x wins; to try: x=0.9"),
        ("/pause", "pauses the session"),
        ("/take-over", "takes over"),
    ],
)
def test_what_is_said_is_seen_first_and_stands_in_the_session_with_a_name(
    world: World, desk: Desk, line: str, words: str
) -> None:
    found = ahead(desk, line)
    assert found.asks
    assert found.what == f"session s1 (toy), in your name: {words}"
    assert SteeringStore(world.store).steerings("s1") == []
    assert done(desk, line, by="bob").text.startswith(f"bob {words}; s1 goes by it at once")
    assert [one.words for one in SteeringStore(world.store).steerings("s1")] == [f"bob {words}"]


def test_what_was_said_is_unsaid(world: World, desk: Desk) -> None:
    for line in ("/forbid x > 0.5", "/pause", "/take-over"):
        done(desk, line)
    assert "paused, taken over" in look(desk, "/session").text
    assert "forbidden: x > 0.5" in look(desk, "/session").text
    assert ahead(desk, "/go-on").device_seconds == 500.0
    for line in ("/allow x > 0.5", "/go-on", "/hand-back"):
        assert ahead(desk, line).asks
        done(desk, line)
    course = SteeringStore(world.store).course("s1")
    assert (course.task.forbid, course.is_paused, course.is_taken_over) == ((), False, False)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/forbid y > 1", "'y' is no parameter of this task"),
        ("/forbid x is large", "write it as: lr > 0.1"),
        ("/allow x > 1", "x > 1 is not forbidden; forbidden is: nothing"),
        ("/budget trials=2.5", "is a whole number"),
        ("/budget trials=-1", "budgets.trials: "),
        ("/hypothesis x will win x=7", "x = '7' is not allowed"),
        ("/go-on", "s1 is not paused"),
        ("/hand-back", "s1 is not taken over"),
        ("/resume", "s1 runs already"),
        ("/stop s4", "no session 's4'; there are: s1"),
    ],
)
def test_what_can_not_be_done_is_told_before_anybody_is_asked(world: World, desk: Desk, line: str, said: str) -> None:
    with pytest.raises(ToolError) as caught:
        ahead(desk, line)
    assert said in str(caught.value)
    assert SteeringStore(world.store).steerings("s1") == []


def test_a_finished_session_takes_no_word(tmp_path: Path) -> None:
    desk = a_desk(a_finished_world(tmp_path))
    for line in ("/pause", "/forbid x > 0.9", "/budget trials=90"):
        with pytest.raises(FixAndRetry, match="s1 is finished"):
            ahead(desk, line)
        with pytest.raises(FixAndRetry, match="s1 is finished"):
            done(desk, line)
    for line in ("/stop", "/resume"):
        with pytest.raises(ToolFailed, match="finished"):
            ahead(desk, line)


def test_what_more_trials_cost_is_told_from_those_that_ran(tmp_path: Path) -> None:
    world = a_stopped_world(tmp_path)
    measured = [t.device_seconds for t in world.store.trials("s1") if t.value is not None]
    mean_s = sum(measured) / len(measured)
    desk = a_desk(world)
    assert ahead(desk, "/budget trials=9").device_seconds == pytest.approx(3 * mean_s)
    assert ahead(desk, "/budget trials=3").device_seconds == 0.0
    assert ahead(desk, "/budget tokens=3").device_seconds is None
    assert ahead(desk, "/hypothesis a big x wins x=0.9").device_seconds == pytest.approx(mean_s)
    left = (ahead(desk, "/resume").device_seconds or 0.0) / mean_s
    assert 0 < left < 6 + 2 * 3 + 1


def test_a_session_of_a_night_that_runs_is_not_resumed(world: World) -> None:
    sweep = Sweep(sweep="digits", task="t.yaml", method=RandomMethod(kind="random", trials=3))
    cells = [Cell(name="a", task=a_task())]
    night = NightStore(world.store).begin(sweep, file="f", cells=cells, finish_by=None).night
    assert night is not None
    world.store.create_session(a_task(), night_id=night.night_id)
    world.store.request_stop("s2")
    for asked in (ahead, done):
        with pytest.raises(ToolFailed, match=r"which still runs; .* nightlab sweep stop"):
            asked(a_desk(world), "/resume s2")
    assert world.store.session("s2").state is SessionState.STOPPING
