"""A restart of the server orphans, doubles or fails nothing.

Source: reports about Armada, Determined, SkyPilot, KubeRay, Nomad, Prefect.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from core_language import NOW, Journal, cluster, node, running
from lab import key, lab, spec, until

from runtime.engines.contract import LaunchOrder
from runtime.engines.fake import ByHand, FakeAttempt, FakeEngine, fake_node
from runtime.model.events import NodeJoined
from runtime.model.nouns import Placement
from runtime.scheduling.policy import Policy


class Clock:
    def __init__(self) -> None:
        self.now_s = 1e9

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine(nodes=(fake_node(n_devices=2),), script=ByHand())


def test_an_outage_of_any_length_ends_no_running_job(tmp_path: Path, engine: FakeEngine) -> None:
    clock = Clock()
    with lab(tmp_path, engine=engine, clock=clock) as before:
        before.client.submit(spec())
        before.in_state("j1", "running")
    clock.now_s += 30 * 86400
    with lab(tmp_path, engine=engine, clock=clock) as after:
        job = after.in_state("j1", "running")
        assert (len(job.attempts), engine.stops, list(engine.attempts)) == (1, [], [key("j1")])


def test_nothing_that_waited_or_ran_is_forgotten(tmp_path: Path, engine: FakeEngine) -> None:
    with lab(tmp_path, engine=engine) as before:
        for _ in range(5):
            before.client.submit(spec())
        until(lambda: before.client.info().n_running == 2)
    with lab(tmp_path, engine=engine) as after:
        states = [job.state for job in reversed(after.client.jobs())]
        assert states == ["running", "running", "queued", "queued", "queued"]


def test_a_node_that_comes_back_keeps_what_runs_on_it() -> None:
    journal = Journal(state=cluster("a:2", running("j1", on="a:0")))
    journal.record(NodeJoined(node=node("a", "2", generation=2)), NOW)
    attempt = journal.state.jobs["j1"].attempt
    assert attempt is not None
    assert (attempt.number, journal.state.index.free) == (1, {"a": 0b10})


def test_a_cancel_that_was_asked_before_a_restart_is_not_lost(tmp_path: Path, engine: FakeEngine) -> None:
    with lab(tmp_path, engine=engine) as before:
        before.client.submit(spec())
        before.in_state("j1", "running")
        before.client.cancel("j1")
    engine.stops.clear()
    with lab(tmp_path, engine=engine) as after:
        until(lambda: any(stop.key == key("j1") for stop in engine.stops))
        after.finish("j1", exit_code=-15)
        assert after.in_state("j1", "cancelled").attempts[0].outcome == "cancelled"


def test_a_job_that_succeeded_while_nobody_looked_is_not_run_again(tmp_path: Path, engine: FakeEngine) -> None:
    with lab(tmp_path, engine=engine) as before:
        before.client.submit(spec())
        before.in_state("j1", "running")
    engine.finish(key("j1"))
    with lab(tmp_path, engine=engine) as after:
        assert len(after.in_state("j1", "succeeded").attempts) == 1
        assert list(engine.attempts) == [key("j1")]


def test_a_job_that_runs_again_says_why(tmp_path: Path, engine: FakeEngine) -> None:
    with lab(tmp_path, engine=engine, policy=Policy(retry_backoff_s=0.01)) as made:
        made.client.submit(spec())
        made.in_state("j1", "running")
        made.do(lambda: engine.finish(key("j1"), exit_code=None, supervisor_lost=True))
        job = until(lambda: len((found := made.client.job("j1")).attempts) == 2 and found)
        assert (job.attempts[0].outcome, job.attempts[0].exit_reason) == ("node_lost", "supervisor_lost")
        assert job.attempts[0].evidence


def test_jobs_that_failed_before_a_restart_stay_failed(tmp_path: Path, engine: FakeEngine) -> None:
    with lab(tmp_path, engine=engine) as before:
        before.client.submit(spec())
        before.in_state("j1", "running")
        before.finish("j1", exit_code=1)
        before.in_state("j1", "failed")
    with lab(tmp_path, engine=engine) as after:
        assert after.client.info().n_queued == after.client.info().n_running == 0
        assert list(engine.attempts) == [key("j1")]


def test_what_runs_and_belongs_to_nobody_is_ended(tmp_path: Path, engine: FakeEngine) -> None:
    stray = LaunchOrder(
        key=key("j77"),
        placements=(Placement(node_id="local", devices=(0,), first_rank=0),),
        spec_json="{}",
        attempt_token="t",
        tracking_url="http://127.0.0.1:9",
        resume_step=None,
        device_kinds=("cpu",),
    )
    engine.attempts[stray.key] = FakeAttempt(order=stray, generation=1)
    with lab(tmp_path, engine=engine):
        until(lambda: engine.attempts[stray.key].ending is not None)


def test_a_healthy_job_that_says_nothing_for_days_is_left_alone(tmp_path: Path, engine: FakeEngine) -> None:
    clock = Clock()
    with lab(tmp_path, engine=engine, clock=clock) as made:
        made.client.submit(spec())
        made.in_state("j1", "running")
        clock.now_s += 10 * 86400
        made.client.submit(spec())
        made.in_state("j2", "running")
        assert (made.client.job("j1").state, engine.stops) == ("running", [])
