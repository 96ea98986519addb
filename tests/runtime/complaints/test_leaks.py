"""Devices and quotas that are held by nobody, or given away twice.

Source: reports about dstack, Prefect, Infrahub, Nomad.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from core_language import Journal, cluster, decide, queued, running, starting
from lab import key, lab, spec, until

from runtime.engines.contract import LaunchOrder
from runtime.engines.fake import ByHand, FakeEngine, Refusal, fake_node
from runtime.model.events import NodeLeft
from runtime.model.states import ExitReason
from runtime.scheduling.explain import feasible
from runtime.scheduling.policy import Policy, Quota
from runtime_client.errors import InvalidSpec


class SlowToStart(FakeEngine):
    """No attempt comes up before `lets_start` is set."""

    lets_start: asyncio.Event

    async def start(self, order: LaunchOrder, generation: int) -> None:
        await self.lets_start.wait()
        await super().start(order, generation)


def test_a_cancel_while_a_job_is_brought_up_gives_its_devices_back(tmp_path: Path) -> None:
    engine = SlowToStart(nodes=(fake_node(n_devices=1),))
    engine.lets_start = asyncio.Event()
    with lab(tmp_path, engine=engine) as made:
        made.client.submit(spec())
        made.in_state("j1", "starting")
        made.client.cancel("j1")
        assert made.client.info().n_devices_free == 0, "it may be coming up"
        made.do(engine.lets_start.set)
        made.in_state("j1", "cancelled")
        assert made.client.info().n_devices_free == 1


def test_devices_are_free_only_when_the_attempt_is_proven_gone(tmp_path: Path) -> None:
    with lab(tmp_path, script=ByHand(), n_devices=1) as made:
        made.client.submit(spec())
        made.in_state("j1", "running")
        made.client.cancel("j1")
        made.client.submit(spec())
        assert (made.client.job("j1").state, made.client.job("j2").state) == ("stopping", "queued")
        made.finish("j1", exit_code=-15)
        made.in_state("j2", "running")


def test_a_start_that_failed_gives_its_devices_back(tmp_path: Path) -> None:
    engine = FakeEngine(nodes=(fake_node(n_devices=1),))
    engine.refusals.append(Refusal(exit_reason=ExitReason.BAD_COMMAND, evidence="no such command"))
    with lab(tmp_path, engine=engine) as made:
        made.client.submit(spec())
        made.in_state("j1", "failed")
        made.client.submit(spec())
        made.in_state("j2", "running")


def test_nothing_is_placed_on_a_node_that_is_gone() -> None:
    journal = Journal(state=cluster("a:1 b:1", running("j1", on="b:0"), queued("j2")))
    journal.record(NodeLeft(node_id="a", generation=1, reason="silent"))
    assert decide(journal.state) == []


@pytest.mark.parametrize("ends", ["fails to start", "is cancelled before it started", "fails"])
def test_a_quota_counts_no_job_that_is_over(tmp_path: Path, ends: str) -> None:
    engine = FakeEngine(nodes=(fake_node(n_devices=2),))
    policy = Policy(quotas=(Quota(max_devices=1, project="vision"),))
    if ends == "fails to start":
        engine.refusals.append(Refusal(exit_reason=ExitReason.BAD_COMMAND, evidence="no such command"))
    with lab(tmp_path, engine=engine, policy=policy) as made:
        made.client.submit(spec(project="vision"))
        if ends != "fails to start":
            made.in_state("j1", "running")
        made.client.submit(spec(project="vision"))
        if ends == "is cancelled before it started":
            made.client.cancel("j2")
            made.client.submit(spec(project="vision"))
        if ends != "fails to start":
            made.finish("j1", exit_code=1)
        until(lambda: made.client.jobs()[0].state == "running")
        assert made.client.info().n_running == 1


def test_no_job_starts_on_a_node_that_has_not_told_its_devices() -> None:
    state = cluster("a:0", queued("j1"))
    assert decide(state) == []
    assert feasible(state, state.jobs["j1"].shape) == "asks for 1 device; the cluster has no devices"


def test_a_node_that_registers_with_fewer_devices_frees_no_device_twice(tmp_path: Path) -> None:
    engine = FakeEngine(nodes=(fake_node(n_devices=2),), script=ByHand())
    with lab(tmp_path, engine=engine) as before:
        before.client.submit(spec())
        before.client.submit(spec())
        until(lambda: before.client.info().n_running == 2)
    engine.nodes = (fake_node(n_devices=1),)
    with lab(tmp_path, engine=engine) as after:
        (kept,) = [device for node in after.client.nodes() for device in node.devices]
        assert (kept.job_id, after.client.job("j2").state) == ("j1", "queued")
        with pytest.raises(InvalidSpec, match="the cluster has 1 cpu"):
            after.client.submit(spec(compute={"num_accelerators": 2}))
        after.finish("j1")
        after.in_state("j2", "running")


def test_an_attempt_always_holds_as_many_devices_as_it_asked_for() -> None:
    state = cluster("a:4", starting("j1", on="a:0,2"))
    assert decide(state) == []
    attempt = state.jobs["j1"].attempt
    assert attempt is not None
    assert sum(len(placement.devices) for placement in attempt.placements) == 2
    assert key("j1").attempt == attempt.number
