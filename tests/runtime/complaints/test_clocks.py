"""Clocks that differ, and clocks that jump.

Source: reports about MLflow, Armada, Trino.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import key, lab, spec, until

from runtime.engines.contract import AttemptKey, Started
from runtime.engines.fake import ByHand, FakeEngine, fake_node
from runtime.server.steady_clock import SteadyClock
from runtime_client.models import HoldScope

HOUR_S = 3600.0


class Machine:
    """A machine's two clocks."""

    def __init__(self) -> None:
        self.wall_s = 1_800_000_000.0
        self.ticks_s = 50.0

    def pass_(self, seconds: float) -> None:
        self.wall_s += seconds
        self.ticks_s += seconds

    def clock(self) -> SteadyClock:
        return SteadyClock(wall=lambda: self.wall_s, ticks=lambda: self.ticks_s)


@pytest.mark.parametrize("skew_s", [-HOUR_S, -0.76, 0.76, HOUR_S])
def test_order_and_times_are_the_servers_whatever_the_nodes_clock_says(tmp_path: Path, skew_s: float) -> None:
    now_s = 1e9
    engine = FakeEngine(nodes=(fake_node(n_devices=1),), script=ByHand(), clock=lambda: now_s + skew_s)
    with lab(tmp_path, engine=engine, clock=lambda: now_s) as made:
        made.client.submit(spec())
        made.in_state("j1", "running")
        made.do(lambda: made.server.services.loop.report(_started(key("j1"), now_s + 10 * skew_s)))
        made.finish("j1")
        job = made.in_state("j1", "succeeded")
        assert job.submitted_at == job.started_at == job.ended_at == now_s
        events = [event.at for event in made.client.events(since=0, wait_s=0.2) if event.seq is not None]
        assert events == sorted(events)


def _started(of: AttemptKey, at_s: float) -> Started:
    return Started(key=of, generation=1, pid=1, at_s=at_s)


@pytest.mark.parametrize("jump_s", [-30 * 86400.0, -5.0, 5.0, 30 * 86400.0])
def test_a_clock_that_is_set_changes_no_duration(jump_s: float) -> None:
    machine = Machine()
    clock = machine.clock()
    began_s = clock()
    machine.pass_(100)
    machine.wall_s += jump_s
    machine.pass_(100)
    assert clock() - began_s == pytest.approx(200)
    assert clock.ahead_s == pytest.approx(-jump_s)
    assert clock.notice is not None


def test_a_clock_that_is_adjusted_is_followed() -> None:
    machine = Machine()
    clock = machine.clock()
    for _ in range(50):
        machine.pass_(10)
        machine.wall_s += 0.004
        clock()
    assert clock() == pytest.approx(machine.wall_s)
    assert clock.notice is None


def test_time_never_goes_back() -> None:
    machine = Machine()
    clock = machine.clock()
    told = [clock()]
    for step_s in (-0.5, 0.2, -0.9, -7200.0, 0.1, 3600.0):
        machine.pass_(0.01)
        machine.wall_s += step_s
        told.append(clock())
    assert told == sorted(told)


def test_sleep_of_the_machine_counts() -> None:
    machine = Machine()
    clock = machine.clock()
    began_s = clock()
    machine.pass_(8 * HOUR_S)
    assert clock() - began_s == pytest.approx(8 * HOUR_S)


def test_after_a_time_that_was_ahead_the_clock_goes_on_instead_of_standing_still(tmp_path: Path) -> None:
    machine = Machine()
    with lab(tmp_path, n_devices=1, clock=machine.clock()) as ahead:
        ahead.client.pause(HoldScope.ALL, reason="noise")
    machine.wall_s -= 10 * HOUR_S
    with lab(tmp_path, n_devices=1, clock=machine.clock()) as after:
        assert any("ahead of the machine's" in notice for notice in after.client.info().notices)
        after.client.submit(spec(queue_timeout_minutes=1))
        machine.pass_(61)
        after.client.submit(spec())
        job = until(lambda: (found := after.client.job("j1")).is_ended and found)
        assert job.exit_reason == "queue_timeout"
