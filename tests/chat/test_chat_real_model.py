"""A chat with a real, small, weak language model: whatever it says, turns end and nothing is done alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agent_worlds import a_task, a_world
from talking import Room, made_room

from agent.chat.entry import ChatState, EntryKind, ReplyPart, TroublePart, Verdict
from agent.chat.models import ModelsOfChats
from agent.chat.talk import Talk
from agent.chat.tools import ALL
from agent.chat.turn import Step, next_step, turns
from agent.store.calls import model_calls_of
from runtime_client.fake import FakeRuntime
from runtime_client.models import JobSpec

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(900)]

URL = "NIGHTLAB_TEST_MODEL_URL"
ASKED = ("Which jobs are there?", "/jobs", "Stop this session now.")
NAMES = ("list_sessions", "read_session", "best_trials", "list_jobs", "read_job", "stop_session", "cancel_job")
"""A small model is lost among more, and the first question takes a minute."""


def test_a_chat_with_a_real_model_ends_each_turn_and_does_nothing_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if URL not in os.environ:
        pytest.skip(f"{URL} is not set: the address of an endpoint on this machine, such as http://127.0.0.1:8081/v1")
    model = {
        "name": os.environ.get("NIGHTLAB_TEST_MODEL", "qwen"),
        "base_url": os.environ[URL],
        "context_tokens": 4096,
        "max_tokens": 200,
    }
    world = a_world(tmp_path, task=a_task(model=model))
    job = world.runtime.submit(JobSpec(experiment_name="toy", command="train", parameters={"x": 0.5}))
    room = made_room(world.store, tmp_path, [0.0], "s1")
    with talking(room, world.runtime) as talk:
        for text in ASKED:
            room.say(talk, text, within_s=600)
            if room.chats.chat("c1").state is ChatState.ASKING:
                room.chats.answer("c1", room.asked()[0], Verdict.DENY, by="ann")
                talk.answered("c1")
                room.settle(within_s=600)
            if room.chats.chat("c1").state is ChatState.ASKING:
                talk.stop("c1", "ann")
    entries = room.entries
    assert all(next_step(turn) is Step.OVER for turn in turns(entries))
    assert [one.number for one in entries] == list(range(1, len(entries) + 1))
    assert all(one.part is not None for one in entries), "each is of the shape of its kind"
    assert world.store.session("s1").state.value == "running", "nobody agreed to stop it"
    assert world.runtime.job(job.job_id).state != "cancelled"
    assert not any(isinstance(part := one.part, TroublePart) and part.code == "bug" for one in entries)
    used = sum(one.prompt_tokens + one.completion_tokens for one in model_calls_of(world.store, "s1"))
    told = [part for one in entries if isinstance(part := one.part, ReplyPart)]
    assert world.store.session("s1").tokens == used > 0
    assert used >= sum(part.prompt_tokens + part.completion_tokens for part in told) > 0
    with capsys.disabled():
        for one in entries:
            print(f"\n{one.number} {one.kind.value} {one.by}: {one.text[:300]}")
        print(f"\n{used} tokens, {sum(one.kind is EntryKind.CALL for one in entries)} calls of tools")


@contextmanager
def talking(room: Room, runtime: FakeRuntime) -> Iterator[Talk]:
    @contextmanager
    def connect() -> Iterator[FakeRuntime]:
        yield runtime

    tools = [one for one in ALL if one.name in NAMES]
    models = ModelsOfChats(room.store, room.home, connect)
    talk = Talk(room.store, room.home, room.hub, tools=tools, connect=connect, models=models)
    talk.start()
    try:
        yield talk
    finally:
        talk.close()
