"""The circumstances of trials in whole sessions: devices, data, neighbors, scorer, and what makes a value void."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from agent_worlds import World, a_task, a_world, honest, score

from agent.planner.comparable import why_not_comparable
from agent.store.views import Purpose, SessionState, TrialState, TrialView
from runtime_client.errors import Unreachable
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import JobSpec, SubmitResult

LEFT = {"trials": 4}


def trials(world: World, purpose: Purpose | None = None) -> list[TrialView]:
    return [t for t in world.store.trials("s1") if purpose is None or t.purpose is purpose]


def test_a_trial_knows_the_model_of_its_device(tmp_path: Path) -> None:
    world = a_world(tmp_path, n_devices=2)
    world.runtime.kinds = ["H100", "A100"]
    world.live()
    by_device: dict[str | None, set[int]] = {}
    for trial in trials(world):
        attempt = world.runtime.job(trial.job_id or "").attempts[-1]
        by_device.setdefault(trial.facts.device_model, set()).add(attempt.placements[0].devices[0])
    assert by_device == {"H100": {0}, "A100": {1}}


def test_data_that_changes_between_trials_splits_them(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    task = a_task(data=[{"path": str(data)}], budgets=LEFT, slots=1)
    n_run = 0

    def script(spec: JobSpec) -> FakeOutcome:
        nonlocal n_run
        n_run += 1
        if n_run == 4:
            (data / "more.bin").write_bytes(b"x")
        return honest(spec)

    world = a_world(tmp_path, task=task, script=script, n_devices=1)
    world.live()
    found = trials(world)
    changed_under = [t for t in found if t.facts.data != t.facts.data_after]
    assert changed_under
    assert all(t.state is TrialState.INVALID and t.value is None for t in changed_under)
    assert str(data) in (changed_under[0].note or "")
    measured = [t for t in found if t.state is TrialState.MEASURED]
    assert why_not_comparable(measured[0], measured[-1], task) == f"the data changed between them ({data})"


SPEED = {"metric": "score", "direction": "maximize", "kind": "speed"}


@pytest.mark.parametrize(
    "changes",
    [{"objective": SPEED}, {"fidelity": {"parameter": "seconds", "value": 9, "unit": "seconds"}}],
)
def test_what_depends_on_the_machine_is_run_alone(changes: dict[str, object], tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_task(budgets=LEFT, **changes))
    assert world.live() is SessionState.FINISHED
    assert all(job.spec.compute.exclusive for job in world.runtime.jobs(limit=1000))
    assert all(trial.facts.is_alone for trial in trials(world))


def test_other_work_is_not_run_alone(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_task(budgets=LEFT))
    world.live()
    assert not any(job.spec.compute.exclusive for job in world.runtime.jobs(limit=1000))


def test_a_speed_measured_beside_somebody_else_is_no_value(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_task(objective=SPEED, budgets=LEFT))
    world.runtime.disturbed = {1}
    world.live()
    by_state: dict[TrialState, set[str | None]] = {}
    for trial in trials(world):
        by_state.setdefault(trial.state, set()).add(trial.note and trial.note[:30])
    assert by_state[TrialState.INVALID] == {"was not alone on its devices: "}
    assert len(by_state) == 2


def log(**curves: list[float]) -> Callable[[JobSpec], FakeOutcome]:
    """The default configuration is honest, the others log this."""

    def script(spec: JobSpec) -> FakeOutcome:
        is_default = (spec.parameters["x"], spec.parameters["kind"]) == (0.2, "a")
        return honest(spec) if is_default else FakeOutcome(curves=curves)

    return script


def never_best(world: World) -> list[TrialView]:
    """The trials that are not of the default; the session's best must be the default."""
    assert world.live() is SessionState.FINISHED
    result = world.store.session("s1").result
    assert result is not None
    assert result.best_configuration == result.default_configuration
    found = [t for t in trials(world) if t.configuration != result.default_configuration]
    assert all(t.state is TrialState.INVALID and t.value is None for t in found)
    return found


def test_a_value_out_of_range_is_never_best(tmp_path: Path) -> None:
    objective = {"metric": "score", "direction": "maximize", "valid": {"low": 0, "high": 2}}
    world = a_world(tmp_path, task=a_task(objective=objective, budgets=LEFT), script=log(score=[0.5, 7.0]))
    assert "outside objective.valid (0 to 2)" in (never_best(world)[0].note or "")


def test_a_curve_that_goes_on_under_another_name_has_no_value(tmp_path: Path) -> None:
    class Renaming(FakeRuntime):
        """Logs `score` in the first half and `scores` in the second."""

        def _log(self, job: object, key: str, value: float, step: int) -> None:
            spec = job.view.spec  # type: ignore[attr-defined]
            is_default = (spec.parameters["x"], spec.parameters["kind"]) == (0.2, "a")
            name = "scores" if key == "score" and step >= 2 and not is_default else key
            super()._log(job, name, value, step)  # type: ignore[arg-type]

    world = a_world(tmp_path, task=a_task(budgets=LEFT))
    world.runtime = Renaming(log(score=[9.0, 9.0, 0.1, 0.1]), n_devices=2, is_automatic=True)
    assert "went on as 'scores'" in (never_best(world)[0].note or "")


def test_a_run_that_timed_out_with_a_good_early_metric_is_never_best_and_its_curve_is_evidence(tmp_path: Path) -> None:
    def script(spec: JobSpec) -> FakeOutcome:
        is_default = (spec.parameters["x"], spec.parameters["kind"]) == (0.2, "a")
        return honest(spec) if is_default else FakeOutcome(curves={"score": [5.0, 6.0]}, exit_reason="run_timeout")

    found = never_best(a_world(tmp_path, task=a_task(budgets=LEFT), script=script))
    assert (found[0].facts.partial_value, found[0].facts.partial_step) == (6.0, 1)
    assert (found[0].note or "").startswith("run_timeout")


def test_a_run_that_ends_with_nan_is_never_best(tmp_path: Path) -> None:
    objective = {"metric": "score", "direction": "maximize", "read": "best"}
    world = a_world(tmp_path, task=a_task(objective=objective, budgets=LEFT), script=log(score=[9.0, math.nan]))
    assert never_best(world)[0].facts.partial_value == 9.0


SCORED = {"score": {"command": "python score.py"}, "budgets": LEFT}


def trains_and_scores(spec: JobSpec) -> FakeOutcome:
    """Training boasts; the scorer tells how it is."""
    if spec.command == "python score.py":
        honestly = honest(spec)
        return FakeOutcome(curves=honestly.curves, duration_s=3.0)
    return FakeOutcome(curves={"score": [99.0]}, duration_s=10.0)


def test_a_scored_trial_has_the_value_of_its_scorer_alone(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_task(**SCORED), script=trains_and_scores)
    assert world.live() is SessionState.FINISHED
    assert all(t.value is not None and t.value < 2 for t in trials(world))
    for trial in trials(world):
        training, scorer = world.runtime.job(trial.job_id or ""), world.runtime.job(trial.facts.score_job_id or "")
        assert scorer.spec.parameters == training.spec.parameters
        assert (scorer.spec.seed, scorer.spec.depends_on[0].job) == (trial.seed, training.job_id)
        assert training.spec.success.required_metrics == ()
        assert trial.device_seconds == pytest.approx(training.device_seconds(0) + scorer.device_seconds(0))
        if trial.purpose is not Purpose.HELD_OUT:
            assert trial.value == pytest.approx(score(scorer.spec))
    assert len({t.facts.scorer for t in trials(world)}) == 1
    assert world.store.session("s1").device_seconds == pytest.approx(sum(t.device_seconds for t in trials(world)))


def test_a_scorer_that_fails_makes_the_trial_invalid_with_the_reason(tmp_path: Path) -> None:
    def script(spec: JobSpec) -> FakeOutcome:
        is_default = (spec.parameters["x"], spec.parameters["kind"]) == (0.2, "a")
        if spec.command == "python score.py" and not is_default:
            return FakeOutcome(exit_reason="import_error", evidence="No module named 'torch'")
        return trains_and_scores(spec)

    note = never_best(a_world(tmp_path, task=a_task(**SCORED), script=script))[0].note or ""
    assert note.startswith("its scorer failed (j")
    assert "No module named 'torch'" in note


def test_a_training_that_fails_is_not_scored(tmp_path: Path) -> None:
    def script(spec: JobSpec) -> FakeOutcome:
        is_default = (spec.parameters["x"], spec.parameters["kind"]) == (0.2, "a")
        return trains_and_scores(spec) if is_default else FakeOutcome(exit_reason="import_error")

    assert all(
        t.facts.score_job_id is None for t in never_best(a_world(tmp_path, task=a_task(**SCORED), script=script))
    )


class DiesAfterAnswer(FakeRuntime):
    """The connection breaks after every submission that takes in a scorer for the first time: the answer is lost."""

    def submit_many(self, specs: object) -> list[SubmitResult]:  # type: ignore[override]
        answers = super().submit_many(specs)  # type: ignore[arg-type]
        if any(a.job is not None and not a.is_existing and a.job.spec.depends_on for a in answers):
            raise Unreachable("the connection broke", code="unreachable", retryable=True)
        return answers


def test_a_lost_answer_leads_to_no_second_scorer(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_task(**SCORED))
    world.runtime = DiesAfterAnswer(trains_and_scores, n_devices=2, is_automatic=True)
    assert world.live() is SessionState.FINISHED
    scored = [job.spec.depends_on[0].job for job in world.runtime.jobs(limit=1000) if job.spec.depends_on]
    assert sorted(scored) == sorted(t.job_id for t in trials(world) if t.job_id)
    assert all(t.state is TrialState.MEASURED for t in trials(world))
