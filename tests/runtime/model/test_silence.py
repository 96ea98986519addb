"""When silence is a hang."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from runtime.model.silence import NEVER, Rhythm, hang_limit_s, hang_reason
from runtime.scheduling.policy import Policy

RULES = Policy(hang_least_s=600.0, hang_factor=10.0)


def heard(at: Sequence[float]) -> Rhythm:
    rhythm = Rhythm(began_s=0.0, last_s=0.0)
    for at_s in at:
        rhythm = rhythm.heard(at_s)
    return rhythm


def learned(at: Sequence[float], *, usual_s: float = 0.0, rules: Policy = RULES) -> float | None:
    return hang_limit_s(heard(at), own_s=None, usual_s=usual_s, rules=rules)


def test_a_job_that_says_something_every_two_minutes_hangs_after_ten_times_that() -> None:
    assert learned(range(120, 120 * 20, 120)) == 1200.0


def test_a_job_that_talks_all_the_time_has_the_least_limit() -> None:
    assert learned(range(1, 2000)) == 600.0


def test_a_banner_and_then_silence_is_no_rhythm() -> None:
    assert learned([0.1 * n for n in range(100)]) is None


def test_few_signs_are_no_rhythm() -> None:
    assert learned([300, 600, 900, 1200]) is None


def test_earlier_attempts_of_the_experiment_can_only_make_it_later() -> None:
    at = range(10, 2000, 10)
    assert learned(at, usual_s=300.0) == 3000.0
    assert learned(at, usual_s=1.0) == 600.0


def test_the_longest_silence_counts_and_not_the_last() -> None:
    assert learned([10, 20, 30, 530, 540, 550, 560, 570, 580, 700]) == 5000.0


def test_a_policy_can_switch_learning_off() -> None:
    assert learned(range(120, 120 * 20, 120), rules=Policy(hang_factor=0.0)) is None


@pytest.mark.parametrize(("own_s", "limit_s"), [(30.0, 30.0), (NEVER, None)])
def test_the_jobs_own_word_comes_first(own_s: float, limit_s: float | None) -> None:
    assert hang_limit_s(heard(range(1, 2000)), own_s=own_s, usual_s=900.0, rules=RULES) == limit_s
    assert hang_limit_s(heard([]), own_s=own_s, usual_s=0.0, rules=RULES) == limit_s


def test_the_reason_says_how_long_it_was_silent_and_what_was_usual() -> None:
    assert hang_reason(heard([]), 40.0) == "no output, metric or checkpoint for 40 s"
    assert hang_reason(heard([5.0, 7.0]), 40.0).endswith("for 33 s; its longest silence before was 5 s")
