"""A night of many trials of which everything is killed with SIGKILL in the middle, twice. No trial lost, none doubled.

NIGHTLAB_TEST_NIGHT_TRIALS: how many (40).
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from night_lab import NightLab, Plan, check_each_once, clock_text, in_s

from agent.sweeps.views import NightOutcome, NightState

pytestmark = [pytest.mark.kills, pytest.mark.timeout(3600)]

N_TRIALS = int(os.environ.get("NIGHTLAB_TEST_NIGHT_TRIALS", "40"))
PLAN = Plan(n_points=N_TRIALS // 4, n_seeds=4)
LONGEST_S = 300.0 + 5.0 * N_TRIALS


def test_a_night_goes_on_after_everything_was_killed_and_runs_each_configuration_on_each_seed_once(
    tmp_path: Path,
) -> None:
    began = time.monotonic()
    with NightLab(tmp_path, PLAN) as lab:
        hour = in_s(LONGEST_S)
        lab.write_sweep(finish_by=clock_text(hour))
        line = lab.install()
        lab.up_once(stay=False)
        lab.cron(line)
        lab.await_measured(PLAN.n_trials // 4, within_s=LONGEST_S)
        lab.kill_everything()
        print(f"killed after {time.monotonic() - began:.1f} s, {lab.n_measured()} measured")

        # The next line of cron finds the night at work again, and does nothing besides starting the runtime.
        again = lab.cron(line)
        lab.await_measured(PLAN.n_trials // 2, within_s=LONGEST_S)
        assert again.wait(60) == 0
        assert lab.night(2).outcome is NightOutcome.SKIPPED
        lab.kill_everything()
        print(f"killed after {time.monotonic() - began:.1f} s, {lab.n_measured()} measured")

        # The line of `service install`.
        lab.up_as_before()
        night = lab.await_settled(within_s=LONGEST_S)
        assert (night.state, night.outcome, night.message) == (NightState.ENDED, NightOutcome.DONE, "")
        assert night.ended_at is not None
        assert night.ended_at <= hour
        check_each_once(lab)
        jobs = lab.client().jobs(session_id=lab.trials()[0].trial_id.rpartition("-t")[0], limit=500)
        assert len({job.spec.tags["nightlab.trial"] for job in jobs}) == len(jobs), "one job for each trial"
        assert Path(night.report_html or "").is_file()
        print(f"{PLAN.n_trials} trials in {time.monotonic() - began:.1f} s, two kills of everything")
