"""Trap: a preempted trial. What it logged before is no value; resumed, it counts once and with its last value.

The naive rules read a trial when its attempt ends, or count each attempt as a trial: a curve that peaks early wins
because it was interrupted at its peak.
"""

from __future__ import annotations

from pathlib import Path

from agent_worlds import a_world
from trap_worlds import NOISE, noise, number, result_of, trap_task, trials_of, x_of

from agent.store.views import Purpose, SessionState, TrialState
from runtime_client.fake import FakeOutcome
from runtime_client.models import JobSpec

PEAK = 0.95


def end_value(x: float, seed: int) -> float:
    return 0.6 - (x - 0.4) ** 2 + 0.1 * NOISE * noise(x, seed)


def peaks_early(spec: JobSpec) -> FakeOutcome:
    value = end_value(x_of(spec), spec.seed or 0)
    return FakeOutcome(curves={"score": [0.5, PEAK, 0.7, value]}, duration_s=40.0)


def test_what_was_logged_before_a_preemption_is_no_value(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=trap_task(budgets={"trials": 8}), script=peaks_early)
    preempted: dict[str, list[float | None]] = {}
    advance = world.runtime.step

    def step() -> bool:
        """Each job loses its device once, when it has logged its peak."""
        running = [job for job in world.runtime.jobs(states=["running"], limit=100) if not job.n_preemptions]
        if running:
            world.runtime.advance(20.0)
            for job in running:
                if world.runtime.job(job.job_id).state == "running":
                    world.runtime.preempt(job.job_id, beneficiary="j0")
                    points = world.runtime.metrics(job.job_id, keys=["score"])
                    preempted[job.job_id] = [point.value for point in points]
            world.runtime.reschedule()
            return True
        return advance()

    world.runtime.step = step  # type: ignore[method-assign]
    assert world.live() is SessionState.FINISHED
    assert len(preempted) >= 8
    assert all(values[-1] == PEAK for values in preempted.values() if values), "reading at the preemption falls in"
    trials = trials_of(world)
    assert len({(t.configuration, t.seed, t.purpose) for t in trials}) == len(trials), "each counts once"
    for trial in trials:
        assert trial.state is TrialState.MEASURED
        assert trial.value == end_value(number(trial.params["x"]), trial.seed)
        assert trial.job_id is not None
        job = world.runtime.job(trial.job_id)
        assert trial.device_seconds == job.device_seconds(world.runtime.now), "both attempts are paid for"
    jobs = [job.spec.tags["nightlab.trial"] for job in world.runtime.jobs(limit=1000)]
    assert len(jobs) == len(set(jobs)) == len(trials)


def test_a_preempted_trial_that_never_comes_back_has_no_value(tmp_path: Path) -> None:
    """Cancelled by a person while it waited: the partial curve stays evidence."""
    world = a_world(tmp_path, task=trap_task(budgets={"trials": 6}), script=peaks_early)
    cancelled: list[str] = []
    advance = world.runtime.step

    def step() -> bool:
        running = world.runtime.jobs(states=["running"], limit=100)
        is_search = [job for job in running if job.spec.tags["nightlab.purpose"] == Purpose.SEARCH.value]
        victims = [job for job in is_search if x_of(job.spec) != 0.2]
        if victims and len(cancelled) < 2:
            world.runtime.advance(20.0)
            job = world.runtime.job(victims[0].job_id)
            if job.state == "running" and world.runtime.metrics(job.job_id, keys=["score"]):
                world.runtime.preempt(job.job_id)
                world.runtime.cancel(job.job_id, reason="by hand")
                cancelled.append(job.job_id)
            return True
        return advance()

    world.runtime.step = step  # type: ignore[method-assign]
    assert world.live() is SessionState.FINISHED
    assert len(cancelled) == 2
    lost = [t for t in trials_of(world) if t.job_id in cancelled]
    assert {(t.state, t.value) for t in lost} == {(TrialState.INVALID, None)}
    assert result_of(world).best_configuration not in {t.configuration for t in lost}
