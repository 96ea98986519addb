"""The chat's tools on the real server of the runtime: who waits for whom, who would have to leave, what is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from agent_worlds import World, a_task
from chat_worlds import a_desk, a_finished_world, ahead, cells, done, look

from agent.chat.tool import Desk
from agent.tools.again import spec_again
from agent.tools.errors import FixAndRetry, ToolFailed
from runtime.engines.fake import ByHand
from runtime_client.client import RuntimeClient
from runtime_client.models import JobSpec

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime" / "server"))
from lab import Lab, lab, spec

pytestmark = pytest.mark.web


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A session that has ended; its jobs were those of another runtime."""
    task = a_task(priority_class="normal", search={"use": ["random"]}, budgets={"trials": 2})
    made = a_finished_world(tmp_path_factory.mktemp("home"), task=task)
    yield made
    made.store.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Lab]:
    with lab(tmp_path, script=ByHand(), n_devices=1, kind="fake") as made:
        yield made


@pytest.fixture
def desk(world: World, server: Lab) -> Desk:
    """In which the session's first trial is the server's j1, which has ended."""
    first = world.runtime.job(world.store.trial("s1-t1").job_id or "")
    return desk_at(world, server, spec_again(first.spec, trial_id="s1-t1", device_model=None))


def desk_at(world: World, server: Lab, first: JobSpec) -> Desk:
    server.client.submit(first)
    server.in_state("j1", "running")
    server.finish("j1")
    server.in_state("j1", "succeeded", "failed")

    @contextmanager
    def opened() -> Iterator[RuntimeClient]:
        yield server.client

    return replace(a_desk(world), runtime=opened)


def test_who_would_have_to_leave_for_replicates_is_foretold_and_leaves_once_agreed(server: Lab, desk: Desk) -> None:
    server.client.submit(spec(priority_class="exploratory"))
    server.in_state("j2", "running")
    found = ahead(desk, "/launch t1")
    assert (found.asks, found.why) == (True, "others would have to leave for it")
    assert [one.job_id for one in found.victims] == ["j2"]
    assert "lab, class exploratory, would be asked to leave" in found.victims[0].what
    assert [job.job_id for job in server.client.jobs()] == ["j2", "j1"]
    [job_id] = cells(done(desk, "/launch t1"), "job")
    server.in_state("j2", "stopping", "queued")
    assert server.client.job(job_id).spec.tags["nightlab.replicates"] == "s1-t1"
    assert cells(look(desk, "/explain j2"), "for") == [job_id]


def test_what_could_never_start_is_not_asked_about(world: World, tmp_path: Path) -> None:
    with lab(tmp_path, script=ByHand(), n_devices=1, kind="cpu") as made:
        desk = desk_at(world, made, spec())
        with pytest.raises(ToolFailed, match="asks for 1 fake device"):
            ahead(desk, "/launch t1")


def test_the_same_seed_is_never_launched_twice(server: Lab, desk: Desk) -> None:
    seeds = [*cells(done(desk, "/launch t1 2"), "seed"), *cells(done(desk, "/launch t1 2"), "seed")]
    assert len(set(seeds)) == 4


def test_a_job_waits_and_says_why_and_a_node_is_cordoned(server: Lab, desk: Desk) -> None:
    [node] = set(cells(look(desk, "/devices"), "node"))
    assert done(desk, f"/cordon {node}").text == f"{node} is cordoned"
    job_id = server.client.submit(spec()).job_id
    assert cells(look(desk, "/jobs"), "state") == ["queued"]
    assert "cordoned" in look(desk, f"/explain {job_id}").text
    assert done(desk, f"/uncordon {node}").text == f"{node} is healthy"
    server.in_state(job_id, "running")
    assert ahead(desk, f"/cancel {job_id}").victims[0].job_id == job_id
    done(desk, f"/cancel {job_id}")
    server.in_state(job_id, "cancelled", "stopping")


def test_what_the_server_does_not_know_is_told_with_what_it_knows(desk: Desk) -> None:
    with pytest.raises(FixAndRetry, match="no job 'j99'; there are: j1"):
        look(desk, "/job 99")
