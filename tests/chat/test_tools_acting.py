"""What the chat does to jobs, machines and questions: what it costs whom is seen first, and what is done then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_worlds import World, a_task, a_world
from chat_worlds import a_desk, a_finished_world, ahead, cells, done, look

from agent.chat.tool import Desk
from agent.gates.freedom import Action, Course, Ruling
from agent.gates.gate import Answer, GateKind
from agent.store.chats import ChatStore
from agent.store.fenced import FencedWriter
from agent.store.gates import GateBook, GateStore
from agent.tools.errors import FixAndRetry, ToolFailed
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import Compute, Forecast, JobSpec, JobView, VictimView


def a_training(spec: JobSpec) -> FakeOutcome:
    return FakeOutcome(curves={"score": [1.0]}, duration_s=100.0)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = a_world(tmp_path, script=a_training, n_devices=1)
    yield made
    made.store.close()


@pytest.fixture
def desk(world: World) -> Desk:
    return a_desk(world)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = a_finished_world(tmp_path_factory.mktemp("home"))
    yield made
    made.store.close()


def submit(world: World, **changes: Any) -> str:
    spec = JobSpec(experiment_name="toy", command="train", compute=Compute(num_accelerators=1), **changes)
    job: JobView = world.runtime.submit(spec)
    return job.job_id


def test_cancelling_tells_what_is_lost(world: World, desk: Desk) -> None:
    job_id = submit(world, tags={"nightlab.trial": "s1-t4"})
    world.runtime.advance(40.0)
    found = ahead(desk, f"/cancel {job_id}")
    assert (found.asks, found.device_seconds) == (True, 0.0)
    assert [(one.job_id, one.what, one.lost_s) for one in found.victims] == [(job_id, "toy (s1-t4)", 40.0)]
    assert world.runtime.job(job_id).state == "running"
    assert done(desk, f"/cancel {job_id}").text == f"{job_id} is cancelled"
    with pytest.raises(ToolFailed, match="has ended already"):
        ahead(desk, f"/cancel {job_id}")
    with pytest.raises(ToolFailed, match="has ended already"):
        done(desk, f"/cancel {job_id}")


def test_a_node_is_taken_out_of_use_and_given_back(world: World, desk: Desk) -> None:
    first, second = submit(world), submit(world)
    assert cells(look(desk, "/devices"), "job") == [first]
    found = ahead(desk, "/cordon local")
    assert found.asks
    assert "takes no new work; 1 job goes on there" in found.what
    assert done(desk, "/cordon local").text == "local is cordoned"
    assert "local is cordoned (by ann, in a chat)" in look(desk, "/devices").text
    world.runtime.advance(200.0)
    assert world.runtime.job(second).state == "queued"
    with pytest.raises(ToolFailed, match="cordoned already"):
        ahead(desk, "/cordon local")
    assert "1 job in the queue" in ahead(desk, "/uncordon local").what
    done(desk, "/uncordon local")
    assert world.runtime.job(second).state == "running"
    with pytest.raises(FixAndRetry, match="no node 'moon'; there are: local"):
        ahead(desk, "/cordon moon")


def ask(world: World) -> int:
    writer = FencedWriter(world.store, "s1", world.store.claim("s1", 1))
    action = Action(subject="c1", kinds=(GateKind.TRIAL,), what="run s1-t1: x=0.5", cost_device_s=120.0)
    one = Ruling(action=action, course=Course.ASKS, kind=GateKind.TRIAL, why="autonomy.trials: propose")
    return GateBook(writer).ask([one], answer_within_s=60.0, unanswered=Answer.DENY)[0].gate_id


def test_a_question_of_a_session_is_answered_once(world: World, desk: Desk) -> None:
    gate_id = ask(world)
    assert cells(look(desk, "/gates"), "what is asked") == ["run s1-t1: x=0.5 [autonomy.trials: propose]"]
    assert ahead(desk, f"/approve {gate_id}").device_seconds == 120.0
    assert done(desk, f"/deny {gate_id} too dear").text == f"question {gate_id} of s1 is denied by ann: too dear"
    for answer in ("approve", "deny"):
        with pytest.raises(ToolFailed, match="is over: denied by ann"):
            ahead(desk, f"/{answer} {gate_id}")
    with pytest.raises(ToolFailed, match="is over"):
        done(desk, f"/approve {gate_id}")
    assert look(desk, "/gates").text == "no question of s1 waits for a person"
    with pytest.raises(FixAndRetry, match="there is no question 9; waiting: none"):
        ahead(desk, "/approve 9")


def test_a_question_past_its_deadline_is_over(world: World, desk: Desk) -> None:
    gate_id = ask(world)
    world.runtime.advance(61.0)
    with pytest.raises(ToolFailed, match="is over"):
        ahead(desk, f"/approve {gate_id}")
    with pytest.raises(ToolFailed, match="is over"):
        done(desk, f"/approve {gate_id}")
    assert GateStore(world.store).gate(gate_id).answer is not Answer.APPROVE


def test_replicates_run_on_seeds_that_nobody_has_used(finished: World) -> None:
    desk = a_desk(finished)
    found = ahead(desk, "/launch t1 3")
    mine = [t for t in finished.store.trials("s1") if t.configuration == finished.store.trial("s1-t1").configuration]
    mean_s = sum(t.device_seconds for t in mine) / len(mine)
    assert found.device_seconds == pytest.approx(3 * mean_s)
    assert not found.asks
    first, second = done(desk, "/launch t1 3"), done(desk, "/launch t1 2")
    launched = [finished.runtime.job(job_id) for job_id in [*cells(first, "job"), *cells(second, "job")]]
    used = {t.seed for t in mine}
    assert len({job.spec.seed for job in launched} - used) == 5
    assert all(job.spec.parameters == launched[0].spec.parameters for job in launched)
    assert all(job.spec.session is None for job in launched)
    assert launched[0].spec.tags == {"nightlab.replicates": "s1-t1", "nightlab.launched_by": "ann"}


def test_what_costs_more_than_the_threshold_is_asked_about(finished: World) -> None:
    found = ahead(a_desk(finished, ask_above_device_minutes=0.1), "/launch t1 2")
    assert found.asks
    assert "more than 0.1 device-minutes" in found.why


class Full(FakeRuntime):
    def what_if(self, spec: JobSpec) -> Forecast:
        victim = VictimView(job_id="j1", priority_class="exploratory", lost_device_seconds=30.0)
        return Forecast(prospect="preempts", summary="it would preempt j1", victims=(victim,))


def test_whoever_would_have_to_leave_is_named(finished: World) -> None:
    runtime = finished.runtime
    runtime.__class__ = Full
    try:
        found = ahead(a_desk(finished), "/launch t1")
    finally:
        runtime.__class__ = FakeRuntime
    assert (found.asks, found.why) == (True, "others would have to leave for it")
    assert [(one.job_id, one.lost_s) for one in found.victims] == [("j1", 30.0)]
    assert "toy of session s1" in found.victims[0].what


@pytest.mark.parametrize(("line", "said"), [("/launch t1 0", "greater than"), ("/launch t1 21", "less than")])
def test_so_many_replicates_at_once(finished: World, line: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ahead(a_desk(finished), line)


def test_a_trial_without_a_job_has_no_replicates(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_task())
    with pytest.raises(FixAndRetry, match="no trial 't1'; there are: none yet"):
        ahead(a_desk(world), "/launch t1")


def test_spend_is_told_by_session(finished: World) -> None:
    assert cells(look(a_desk(finished), "/spend"), "session") == ["s1"]
    assert cells(look(a_desk(finished), "/spend"), "device-seconds")[0] > 0


def test_words_are_found_in_this_chat_and_in_others(world: World, desk: Desk) -> None:
    chats = ChatStore(world.store)
    for text in ("why did s1-t3 diverge?", "what is 100% certain?"):
        chat = chats.make(None, by="ann")
        chats.say(chat.chat_id, text, by="ann")
    found = look(desk, "/search DIVERGE t3")
    assert (cells(found, "chat"), cells(found, "entry")) == (["c1"], [1])
    assert cells(look(desk, "/search 100%"), "chat") == ["c2"]
    assert "nobody has said 'nothing like it'" in look(desk, "/search nothing like it").text
