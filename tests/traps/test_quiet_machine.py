"""Trap: a speed that the machine gave. A time or a memory counts only where the trial had its devices alone.

The naive rule reads the throughput that the job logged. The default ran while others used the machine, the challenger
at night: it is faster by all that the others took.
"""

from __future__ import annotations

from pathlib import Path

from agent_worlds import World, a_world
from trap_worlds import DEFAULT_X, FIRST_FRESH, naive_difference, noise, result_of, trap_task, trials_of, x_of

from agent.store.views import TrialState
from runtime_client.fake import FakeOutcome
from runtime_client.models import JobSpec

SPEED = {"metric": "throughput", "direction": "maximize", "kind": "speed"}


def machine(spec: JobSpec) -> FakeOutcome:
    """Nothing differs; neighbors slow down whoever is not alone, until the challenger's fresh seeds are measured."""
    is_quiet = (spec.seed or 0) >= FIRST_FRESH and x_of(spec) != DEFAULT_X
    value = 100.0 + noise(x_of(spec), spec.seed)
    if not spec.compute.exclusive and not is_quiet:
        value -= 30.0
    return FakeOutcome(curves={"throughput": [value, value]}, duration_s=10.0)


def test_trials_of_a_speed_run_alone_and_the_quiet_hour_is_no_gain(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=trap_task(objective=SPEED), script=machine)
    world.live()
    assert all(job.spec.compute.exclusive for job in world.runtime.jobs(limit=1000))
    assert all(trial.facts.is_alone for trial in trials_of(world))
    assert result_of(world).verdict != "supported"


def test_the_naive_task_falls_in(tmp_path: Path) -> None:
    """The same metric, declared as a quality: its trials share the machine, and the quiet hour wins."""
    task = trap_task(objective=SPEED | {"kind": "quality"})
    world = a_world(tmp_path, task=task, script=machine)
    world.live()
    assert naive_difference(world) > 10


def test_training_for_some_seconds_runs_alone_too(tmp_path: Path) -> None:
    fidelity = {"parameter": "train_seconds", "value": 60, "unit": "seconds"}
    task = trap_task(objective=SPEED | {"kind": "quality"}, fidelity=fidelity)
    world = a_world(tmp_path, task=task, script=machine)
    world.live()
    assert all(job.spec.compute.exclusive for job in world.runtime.jobs(limit=1000))
    assert result_of(world).verdict != "supported"


def test_a_speed_measured_beside_somebody_from_outside_is_invalid(tmp_path: Path) -> None:
    """`exclusive` keeps our own jobs away, not those of people who log in."""
    world: World | None = None
    n_submitted = 0

    def script(spec: JobSpec) -> FakeOutcome:
        nonlocal n_submitted
        n_submitted += 1
        if world is not None and n_submitted == 6:
            world.runtime.disturbed.clear()
        return machine(spec)

    world = a_world(tmp_path, task=trap_task(objective=SPEED), script=script)
    world.runtime.disturbed.update({0, 1})
    world.live()
    early = trials_of(world)[:2]
    for trial in early:
        assert trial.facts.is_alone is False
        assert (trial.state, trial.value) == (TrialState.INVALID, None)
        assert "alone" in (trial.note or "")
    assert any(t.state is TrialState.MEASURED for t in trials_of(world))
