"""Accounts of a server that ran something."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from lab import Lab, key, lab, spec, until

from runtime.engines.fake import ByHand
from runtime.model.states import EXIT_REQUEUE
from runtime_client.errors import InvalidSpec
from runtime_client.models import SessionFence, SpendBy


class Clock:
    def __init__(self) -> None:
        self.now_s = time.time()

    def __call__(self) -> float:
        return self.now_s


def run_for(made: Lab, clock: Clock, job_id: str, seconds: float, *, exit_code: int = 0) -> None:
    made.in_state(job_id, "running")
    clock.now_s += seconds
    made.finish(job_id, exit_code=exit_code)
    until(lambda: made.client.job(job_id).attempts[0].ended_at is not None)


def test_every_device_second_is_accounted_for(tmp_path: Path) -> None:
    clock = Clock()
    begin = clock.now_s
    with lab(tmp_path, script=ByHand(), n_devices=1, clock=clock, device_prices={"cpu": 3600.0}) as made:
        made.client.submit(spec())
        run_for(made, clock, "j1", 10)
        session = SessionFence(session_id="s1", fence=1)
        made.client.submit(spec(session=session, tags={"nightlab.purpose": "replicate"}))
        run_for(made, clock, "j2", 20)
        made.client.submit(spec(project="text"))
        run_for(made, clock, "j3", 5, exit_code=1)
        made.client.submit(spec(priority_class="exploratory"))
        made.in_state("j4", "running")
        clock.now_s += 3
        made.do(lambda: made.engine.checkpoint(key("j4"), 1))
        until(lambda: made.client.job("j4").checkpoint_step == 1)
        clock.now_s += 4
        made.client.submit(spec(priority_class="critical"))
        made.finish("j4", exit_code=EXIT_REQUEUE)
        run_for(made, clock, "j5", 2)
        found = made.client.spend(by=SpendBy.PROJECT, since=begin - 50)
        rows = {row.name: row for row in found.rows}
        default = rows["default"].device_seconds
        assert (default.replicate, default.lost_to_preemption, default.failed) == pytest.approx((20, 4, 0))
        assert default.useful == pytest.approx(10 + 3 + 2)
        assert rows["text"].device_seconds.failed == pytest.approx(5)
        assert rows["text"].cost is not None
        assert rows["text"].cost.failed == pytest.approx(5)
        assert found.idle_device_seconds == pytest.approx(0, abs=0.01)
        by_session = made.client.spend(by=SpendBy.SESSION, since=begin - 50)
        assert [row.name for row in by_session.rows] == ["(no session)", "s1"]
        assert found.unpriced_kinds == ()


def test_without_prices_there_is_no_cost(tmp_path: Path) -> None:
    clock = Clock()
    begin = clock.now_s
    with lab(tmp_path, script=ByHand(), n_devices=2, clock=clock) as made:
        made.client.submit(spec())
        run_for(made, clock, "j1", 10)
        clock.now_s += 5
        found = made.client.spend(since=begin)
        assert [(row.name, row.cost) for row in found.rows] == [("default", None)]
        assert found.idle_device_seconds == pytest.approx(20)


def test_a_time_to_come_is_refused(tmp_path: Path) -> None:
    with lab(tmp_path) as made, pytest.raises(InvalidSpec, match="still to come"):
        made.client.spend(since=time.time() + 100)
