"""Ids in replies: what looks like one is looked up, and an invented one is known as such."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agent_worlds import a_task

from agent.chat.citing import cited, named
from agent.chat.entry import Cite
from agent.chat.tool import Desk
from agent.store.store import AgentStore
from runtime_client.errors import Unreachable
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import JobSpec

RUN = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("s1-t7 beats s1-t2, in s1 (j12).", ["s1-t7", "s1-t2", "s1", "j12"]),
        ("s1-t7, s1-t7 and s1-t7", ["s1-t7"]),
        (f"run {RUN}", [RUN]),
        ("**j3**, `j4`, [j5], j6's", ["j3", "j4", "j5", "j6"]),
        ("s3://bucket and s1.5 and js1 and bus2 and /j1 and j1x and a@s1", []),
        (f"{RUN}0 is too long, S1 no id", []),
        ("", []),
    ],
)
def test_what_looks_like_an_id(text: str, ids: list[str]) -> None:
    assert [one.id for one in named(text)] == ids


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AgentStore]:
    store = AgentStore.open(tmp_path)
    store.create_session(a_task())
    yield store
    store.close()


def a_desk(store: AgentStore, home: Path, runtime: FakeRuntime | None) -> Desk:
    @contextmanager
    def connect() -> Iterator[FakeRuntime]:
        if runtime is None:
            raise Unreachable("it is not up", code="not_running")
        yield runtime

    return Desk(store=store, home=home, runtime=connect, chat_id="c1", session_id=None, ask_above_device_minutes=1.0)


def test_what_exists_is_cited_and_the_rest_is_unknown(store: AgentStore, tmp_path: Path) -> None:
    runtime = FakeRuntime(lambda _: FakeOutcome())
    job = runtime.submit(JobSpec(experiment_name="toy", command="train"))
    found = cited(f"s1, s2, s1-t9, {job.job_id}, j77, {job.run_id}, {RUN}", a_desk(store, tmp_path, runtime))
    assert found.cites == (
        Cite(kind="session", id="s1"),
        Cite(kind="job", id=job.job_id),
        *((Cite(kind="run", id=job.run_id),) if len(job.run_id) == 32 else ()),
    )
    assert found.unknown == ("s2", "s1-t9", "j77", RUN)


def test_while_the_runtime_is_away_a_job_is_neither_cited_nor_unknown(store: AgentStore, tmp_path: Path) -> None:
    found = cited("s1 and j1", a_desk(store, tmp_path, None))
    assert [one.id for one in found.cites] == ["s1"]
    assert found.unknown == ()
