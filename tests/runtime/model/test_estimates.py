"""What is learned from jobs that ended, and for how long it is kept."""

from __future__ import annotations

import pytest
from core_language import cluster, finished, gone, job, queued, running, stopping, then

from runtime.model import estimates as estimates_module
from runtime.model.estimates import Estimates, Kind, quantile, remaining_s, rounded_down
from runtime.model.nouns import Shape

ONE, TWO = Shape(n_devices=1), Shape(n_devices=2)


def learned(*run_times: float, n_devices: int = 1) -> Estimates:
    estimates = Estimates()
    for run_s in run_times:
        estimates.learn(job("j1", n_devices=n_devices), run_s)
    return estimates


def test_too_few_run_times_make_no_estimate() -> None:
    assert learned(5.0, 6.0).expected_s("default", "test", ONE) is None
    assert learned(5.0, 6.0, 7.0).expected_s("default", "test", ONE) == 6.0


def test_an_estimate_survives_outliers() -> None:
    assert quantile((10.0, 0.1, 11.0, 1e9, 12.0)) == 11.0


def test_another_shape_of_the_experiment_is_better_than_nothing() -> None:
    estimates = learned(5.0, 6.0, 7.0)
    assert estimates.expected_s("default", "test", TWO) == 6.0
    assert estimates.expected_s("default", "other", ONE) is None
    assert estimates.expected_s("other", "test", ONE) is None
    for _ in range(3):
        estimates.learn(job("j2", n_devices=2), 100.0)
    assert estimates.expected_s("default", "test", TWO) == 100.0
    assert estimates.expected_s("default", "test", ONE) == 6.0


def test_an_estimate_follows_what_changes() -> None:
    estimates = learned(*[1.0] * 100, *[9.0] * 17)
    assert estimates.expected_s("default", "test", ONE) == 9.0
    assert len(estimates.run_times[Kind("default", "test", ONE)]) == estimates_module.N_KEPT


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates_module, "N_KINDS", 4)
    estimates = Estimates()
    for n in range(1, 9):
        estimates.learn(job("j1", n_devices=n), 5.0)
    assert len(estimates.run_times) == 4
    assert Kind("default", "test", Shape(n_devices=8)) in estimates.run_times


def test_a_job_that_outlives_its_estimate_is_expected_to_take_twice_as_long() -> None:
    assert remaining_s(100.0, 30.0) == 70.0
    assert remaining_s(100.0, 100.0) == 100.0
    assert remaining_s(100.0, 250.0) == 150.0
    assert remaining_s(0.0, 0.0) == 1.0


@pytest.mark.parametrize(("done_s", "rounded"), [(0.0, 0.0), (0.9, 0.0), (1.0, 1.0), (3.9, 2.0), (4.0, 4.0)])
def test_done_work_is_rounded_down_to_a_power_of_two(done_s: float, rounded: float) -> None:
    assert rounded_down(done_s) == rounded


def test_only_jobs_that_succeed_teach_and_with_all_their_attempts() -> None:
    state = cluster("a:1", stopping("j1", on="a:0", at_s=0.0, saved_at_s=40.0))
    state = then(state, gone("j1"))
    assert state.jobs["j1"].done_s == 40.0
    assert state.estimates.run_times == {}
    state = cluster("a:1", running("j1", on="a:0", at_s=10.0), queued("j2"))
    state = then(state, finished("j1", at_s=95.0))
    assert state.estimates.run_times[Kind("default", "test", ONE)] == (85.0,)
