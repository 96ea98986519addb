"""The session's process dies at chosen writes: no trial is lost, none is launched twice, the verdict is the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_kills import KillWorld, Points, a_kill_world

from agent.store.views import SessionState, TrialState


def undisturbed(home: Path, n_trials: int) -> tuple[KillWorld, Points]:
    world, points = a_kill_world(home, n_trials=n_trials), Points()
    assert world.life(points) is SessionState.FINISHED
    return world, points


def carried(world: KillWorld) -> list[str]:
    """The trial of each job that the session submitted."""
    jobs = world.runtime.jobs(session_id="s1", limit=100_000)
    return [job.spec.tags["nightlab.trial"] for job in jobs]


def goes_on_as_if_undisturbed(world: KillWorld, reference: KillWorld) -> None:
    if world.left()[0].state is not SessionState.FINISHED:
        assert world.life(Points()) is SessionState.FINISHED
    session, trials = world.left()
    expected, expected_trials = reference.left()
    launched = carried(world)
    assert len(launched) == len(set(launched)), "a trial was launched twice"
    assert set(launched) == {trial.trial_id for trial in trials}, "a job without a trial, or a trial without a job"
    assert all(trial.state is TrialState.MEASURED for trial in trials), "a trial was lost"
    assert len(trials) == len(expected_trials)
    assert session.result is not None
    assert expected.result is not None
    assert (session.result.verdict, session.result.comparison) == (expected.result.verdict, expected.result.comparison)
    assert session.result.best == expected.result.best
    assert session.message == expected.message


def chosen(n_points: int, n_kills: int) -> Iterator[int]:
    """Points spread evenly over the session, the first and the last among them."""
    step = (n_points - 1) / (n_kills - 1)
    return iter(sorted({1 + round(step * i) for i in range(n_kills)}))


@pytest.mark.kills
@pytest.mark.parametrize(
    ("n_trials", "n_kills"),
    [
        pytest.param(3, 8, id="some"),
        pytest.param(8, 200, id="200", marks=pytest.mark.timeout(1800)),
    ],
)
def test_killed_at_a_chosen_write(n_trials: int, n_kills: int, tmp_path: Path) -> None:
    reference, points = undisturbed(tmp_path / "undisturbed", n_trials)
    assert sum(job.n_preemptions for job in reference.runtime.jobs(session_id="s1", limit=1000)) > 0
    assert {"commit", "before submit_many", "after submit_many", "after update_run"} <= set(points.kinds)
    kills = list(chosen(points.n, n_kills))
    assert len(kills) == n_kills, f"a session of {points.n} writes has not {n_kills} different ones"
    for at in kills:
        world = a_kill_world(tmp_path / str(at), n_trials=n_trials)
        assert world.life(Points(dies_at=at)) is None
        goes_on_as_if_undisturbed(world, reference)


def test_killed_again_and_again(tmp_path: Path) -> None:
    reference, _ = undisturbed(tmp_path / "undisturbed", 3)
    world = a_kill_world(tmp_path / "killed", n_trials=3)
    for at in (7, 3, 31, 2, 19, 1, 44, 13):
        if world.life(Points(dies_at=at)) is SessionState.FINISHED:
            break
    goes_on_as_if_undisturbed(world, reference)
