"""Sessions with an hour: over by then, nothing lost, nothing twice, and in the end the same answer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from lab_hours import RUN_S, Nights, nights
from lab_kills import Points

from agent.store.views import SessionState, TrialState

pytestmark = pytest.mark.lives


def ran_once(made: Nights) -> None:
    """Every configuration and seed has one trial with its value, and no more than one job of each was done."""
    trials = made.trials()
    assert len({(t.configuration, t.seed) for t in trials}) == len(trials) == 12
    assert all(t.state is TrialState.MEASURED for t in trials), [t.note for t in trials if t.note]
    assert {t.trial_id: t.value for t in trials} == pytest.approx(
        {t.trial_id: float(t.params["x"] or 0) + t.seed / 1e4 for t in trials}
    )
    done = Counter(job.spec.tags["nightlab.trial"] for job in made.jobs() if job.state == "succeeded")
    assert done == Counter(t.trial_id for t in trials)
    session = made.world.left()[0]
    assert session.device_seconds == pytest.approx(sum(t.device_seconds for t in trials))
    assert session.device_seconds == pytest.approx(sum(job.device_seconds(made.now) for job in made.jobs()))


def test_by_its_hour_nothing_runs_and_the_trials_go_on_the_next_night(tmp_path: Path) -> None:
    made = nights(tmp_path, night_s=450)
    assert made.live() is SessionState.STOPPED
    made.is_over()
    message = made.world.left()[0].message
    assert "2 trials wait to go on" in message, message
    waiting = [t for t in made.trials() if t.has_begun and not t.is_ended]
    assert [len(t.facts.continues) for t in waiting] == [1, 1]
    made.next_night()
    made.nights()
    ran_once(made)
    for trial in (t for t in made.trials() if t.facts.continues):
        assert trial.facts.run_seconds is None
        assert trial.device_seconds == pytest.approx(RUN_S + 5 + 2, abs=1e-6), "the notice, and the start of the second"
    assert {t.facts.run_seconds for t in made.trials() if not t.facts.continues} == {RUN_S}
    first = [job for job in made.jobs() if job.submitted_at >= 1_010_000.0][:2]
    assert {job.spec.continues for job in first} == {t.facts.continues[0] for t in waiting}


@pytest.mark.parametrize("night_s", [160])
def test_nights_of_any_length_come_to_the_same_end(night_s: float, tmp_path: Path) -> None:
    made = nights(tmp_path, night_s=night_s)
    assert made.nights() > 1
    ran_once(made)


def test_trials_that_can_not_go_on_are_not_begun_in_vain(tmp_path: Path) -> None:
    made = nights(tmp_path, night_s=550, saves=False)
    made.nights()
    ran_once(made)
    begun = [job for job in made.jobs() if job.attempts and job.state != "succeeded"]
    assert len(begun) <= 2, "only before it was known how long a trial takes"
    assert sum(t.device_seconds for t in made.trials()) <= 12 * RUN_S + 2 * 350


def test_a_process_that_comes_up_after_the_hour_launches_nothing(tmp_path: Path) -> None:
    made = nights(tmp_path, night_s=450)
    made.world.runtime.cluster.advance_to(made.finish_by() + 1)
    assert made.live() is SessionState.STOPPED
    assert (made.jobs(), [t for t in made.trials() if t.has_begun]) == ([], [])


def test_an_agent_that_is_dead_at_the_hour_finds_its_trials_ready_to_go_on(tmp_path: Path) -> None:
    made = nights(tmp_path, night_s=450)
    assert made.live(Points(dies_at=40)) is None
    made.world.runtime.cluster.advance_to(made.finish_by() + 100)
    made.is_over()
    assert made.live() is SessionState.STOPPED
    made.next_night()
    made.nights()
    ran_once(made)


def test_each_training_is_scored_once_and_no_scorer_is_submitted_in_vain(tmp_path: Path) -> None:
    made = nights(tmp_path, night_s=430, n_devices=3, score={"command": "score"})
    n_nights = made.nights()
    assert n_nights > 1
    trials = made.trials()
    assert all(trial.state is TrialState.MEASURED for trial in trials)
    done = Counter(job.spec.tags["nightlab.trial"] for job in made.jobs() if job.state == "succeeded")
    assert done == Counter({trial.trial_id: 2 for trial in trials}), "a training and a scorer"
    left = [job for job in made.jobs() if job.exit_reason == "deadline"]
    assert len(left) <= 4 * (n_nights - 1), "what was in flight at the hour, each job once"


def chosen(n_points: int, n_kills: int) -> list[int]:
    return sorted({1 + round((n_points - 1) / (n_kills - 1) * i) for i in range(n_kills)})


@pytest.mark.parametrize(
    ("n_kills", "night_s"),
    [
        pytest.param(3, 450, id="some"),
        pytest.param(200, 250, id="200-short", marks=[pytest.mark.kills, pytest.mark.timeout(1800)]),
        pytest.param(200, 450, id="200", marks=[pytest.mark.kills, pytest.mark.timeout(1800)]),
    ],
)
def test_killed_at_any_write_of_a_night_no_trial_is_lost_or_doubled(
    n_kills: int, night_s: float, tmp_path: Path
) -> None:
    points = Points()
    undisturbed = nights(tmp_path / "undisturbed", night_s=night_s)
    while undisturbed.live(points) is SessionState.STOPPED:
        undisturbed.next_night()
    for at in chosen(points.n, n_kills):
        made, kill = nights(tmp_path / str(at), night_s=night_s), Points(dies_at=at)
        made.nights(lambda kill=kill: kill)  # type: ignore[misc]
        assert kill.n > at
        ran_once(made)
        assert made.world.left()[0].result == undisturbed.world.left()[0].result
