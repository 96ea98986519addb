"""Two `sweep run` of one sweep, as two lines of cron: what each says, and that their jobs never run at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Said
from night_lab import NightLab, Plan, check_each_once

from agent.store.views import TrialState
from agent.sweeps.views import NightOutcome, NightView

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

PLAN = Plan(n_points=3, n_seeds=2, n_steps=4, pause_s=0.3)
LONGEST_S = 150.0


def outcomes(lab: NightLab) -> list[NightOutcome | None]:
    nights = lab.nights
    try:
        return [one.outcome for one in nights.nights("curves")]
    finally:
        nights.store.close()


def told(said: Said) -> tuple[str, str]:
    """Night and outcome of the one JSON envelope on standard output."""
    data = json.loads(said.out)["data"]
    return data["night_id"], data["outcome"]


def spans(lab: NightLab, night: NightView) -> list[tuple[float, float]]:
    """When each attempt of each job of a night ran, by the runtime's own records."""
    session_ids = [cell.session_id for cell in night.cells if cell.session_id is not None]
    jobs = [job for one in session_ids for job in lab.client().jobs(session_id=one, limit=500)]
    attempts = [attempt for job in jobs for attempt in lab.client().job(job.job_id).attempts]
    return [(one.started_at, one.ended_at) for one in attempts if one.started_at and one.ended_at]


def check_one_after_the_other(lab: NightLab) -> None:
    first, second = lab.night(1), lab.night(2)
    assert first.ended_at is not None
    assert second.created_at >= first.ended_at
    before, after = spans(lab, first), spans(lab, second)
    assert before
    assert after
    assert max(end for _, end in before) <= min(start for start, _ in after)


def test_of_two_starts_at_one_moment_with_the_runtime_down_one_runs_the_night_and_one_is_skipped(
    tmp_path: Path,
) -> None:
    with NightLab(tmp_path, PLAN) as lab:
        lab.write_sweep(overlap="skip")
        lab.up_once(stay=False)
        starts = [lab.sweep_run("--json") for _ in range(2)]
        said = [lab.said(one, within_s=LONGEST_S) for one in starts]
        assert [one.exit_code for one in said] == [0, 0]
        assert sorted(map(told, said)) == [("curves-n1", "done"), ("curves-n2", "skipped")]
        assert lab.night(2).message == "curves-n1 still runs"
        check_each_once(lab)


def test_a_queued_start_runs_the_whole_night_after_the_one_before(tmp_path: Path) -> None:
    with NightLab(tmp_path, PLAN) as lab:
        lab.write_sweep(overlap="queue")
        lab.up_once(stay=True)
        starts = [lab.sweep_run("--json") for _ in range(2)]
        said = [lab.said(one, within_s=LONGEST_S) for one in starts]
        assert [one.exit_code for one in said] == [0, 0]
        assert sorted(map(told, said)) == [("curves-n1", "done"), ("curves-n2", "done")]
        assert sum("waiting for curves-n1, which still runs (overlap: queue)" in one.err for one in said) == 1
        assert sum(one.state is TrialState.MEASURED for one in lab.trials()) == 2 * PLAN.n_trials
        check_one_after_the_other(lab)


def test_a_replacing_start_ends_the_night_before_and_then_runs(tmp_path: Path) -> None:
    with NightLab(tmp_path, Plan(n_points=3, n_seeds=2, n_steps=12, pause_s=0.3)) as lab:
        lab.write_sweep(overlap="replace")
        lab.up_once(stay=True)
        first = lab.sweep_run("--json")
        lab.await_measured(1)
        second = lab.sweep_run("--json")
        one, other = (lab.said(each, within_s=LONGEST_S) for each in (first, second))
        assert (one.exit_code, *told(one)) == (10, "curves-n1", "replaced")
        assert (other.exit_code, *told(other)) == (0, "curves-n2", "done")
        assert outcomes(lab) == [NightOutcome.REPLACED, NightOutcome.DONE]
        check_one_after_the_other(lab)
