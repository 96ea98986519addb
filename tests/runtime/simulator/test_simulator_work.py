"""What an attempt does with its time, and what of it survives."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scenarios import COSTS, trace_job

from runtime.simulator.work import Execution, leaving, lost_by


def execution(run_s: float = 1000.0, *, attempt: int = 1, base_s: float = 0.0, **costs: float | None) -> Execution:
    job = trace_job("j1", 0.0, run_s, costs=replace(COSTS, **costs))  # type: ignore[arg-type]
    return Execution(job=job, attempt=attempt, began_s=100.0, base_s=base_s)


@pytest.mark.parametrize(("after_s", "saved_s"), [(0.0, 0.0), (199.0, 0.0), (200.0, 200.0), (999.0, 800.0)])
def test_whole_intervals_are_saved(after_s: float, saved_s: float) -> None:
    assert execution().saved_s(100.0 + after_s) == saved_s


def test_the_end_of_the_work_is_no_checkpoint() -> None:
    assert execution(run_s=400.0).n_checkpoints(500.0) == 1


def test_without_checkpoints_nothing_is_saved() -> None:
    assert execution(checkpoint_every_s=None).saved_s(900.0) == 0.0


def test_only_attempts_after_the_first_pay_the_restart() -> None:
    assert execution().finishes_at_s == 1100.0
    assert execution(attempt=2, base_s=400.0).finishes_at_s == 100.0 + 30.0 + 600.0


def test_work_stops_at_the_notice() -> None:
    asked = execution()
    asked.notice_s = 350.0
    assert asked.worked_s(370.0) == 250.0


def test_a_checkpoint_within_the_grace_saves_everything() -> None:
    plan = leaving(execution(), 350.0, 30.0)
    assert (plan.at_s, plan.is_saved, plan.is_killed) == (370.0, True, False)


def test_a_checkpoint_longer_than_the_grace_is_in_vain() -> None:
    plan = leaving(execution(notice_checkpoint_s=60.0), 350.0, 30.0)
    assert (plan.at_s, plan.is_saved, plan.is_killed) == (380.0, False, True)


def test_a_job_that_can_not_save_leaves_at_once() -> None:
    plan = leaving(execution(notice_checkpoint_s=None), 350.0, 30.0)
    assert (plan.at_s, plan.is_saved) == (350.0, False)


def test_one_that_still_restarts_leaves_at_once() -> None:
    plan = leaving(execution(attempt=2, base_s=400.0), 120.0, 30.0)
    assert (plan.at_s, plan.is_saved) == (120.0, False)


def test_lost_is_what_was_held_and_did_not_count() -> None:
    asked = execution(attempt=2, base_s=400.0)
    asked.notice_s = 380.0
    lost = lost_by(asked, 400.0, saved_s=600.0)
    assert (lost.restart_s, lost.recomputed_s, lost.notice_s) == (30.0, 50.0, 20.0)
    assert lost.total_s == 100.0
