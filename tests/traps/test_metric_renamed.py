"""Trap: the metric changes its name half-way. What the task names counts; nothing stands in for it.

The naive rule takes the first metric it finds, or one whose name is alike: after the rename it compares an error in
percent with an accuracy, or the training value with the validation value.
"""

from __future__ import annotations

from pathlib import Path

from agent_worlds import a_world
from trap_worlds import NOISE, measured, noise, number, result_of, trap_task, trials_of, x_of

from agent.store.views import Purpose, SessionState, TrialState
from runtime_client.fake import FakeOutcome
from runtime_client.models import JobSpec


class Renaming:
    """Jobs log `score` up to the n-th, and `val_score`, in percent, from then on."""

    def __init__(self, after: int) -> None:
        self.n_left = after

    def __call__(self, spec: JobSpec) -> FakeOutcome:
        self.n_left -= 1
        value = 0.6 - (x_of(spec) - 0.7) ** 2 + 0.2 * NOISE * noise(x_of(spec), spec.seed)
        return measured(spec, value) if self.n_left >= 0 else measured(spec, 100 * value, metric="val_score")


def test_a_value_under_another_name_is_no_value(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=trap_task(), script=Renaming(after=6))
    world.live()
    last = {t.trial_id: world.runtime.metrics(t.job_id)[-1] for t in trials_of(world) if t.job_id is not None}
    renamed = [t for t in trials_of(world) if t.trial_id in last and last[t.trial_id].key == "val_score"]
    assert len(renamed) > 6
    assert all((last[t.trial_id].value or 0) > 1 for t in renamed), "the first metric found falls in"
    for trial in renamed:
        assert (trial.state, trial.value) == (TrialState.INVALID, None)
        assert "val_score" in (trial.note or ""), "says which metrics did appear"
    found = result_of(world)
    assert (found.verdict, found.comparison) == ("inconclusive", "invalid")
    tried = [t for t in trials_of(world, Purpose.SEARCH) if t.state is TrialState.MEASURED]
    assert found.best["x"] in {t.params["x"] for t in tried}


def test_a_rename_within_a_run_leaves_it_without_a_value(tmp_path: Path) -> None:
    """The named metric stops at half of the steps while the run goes on: its last value is not that of the end."""

    def script(spec: JobSpec) -> FakeOutcome:
        x = x_of(spec)
        value = 0.6 - (x - 0.4) ** 2 + 0.2 * NOISE * noise(x, spec.seed)
        if x <= 0.5:
            return measured(spec, value)
        curves = {"score": [0.8, 0.9], "val_score": [None, None, 0.3, 0.2]}
        return FakeOutcome(curves=curves, duration_s=10.0)

    world = a_world(tmp_path, task=trap_task(), script=script)
    assert world.live() is SessionState.FINISHED
    half = [t for t in trials_of(world, Purpose.SEARCH) if number(t.params["x"]) > 0.5]
    assert half, "the trap was walked over"
    assert {t.state for t in half} == {TrialState.INVALID}
    assert number(result_of(world).best["x"]) <= 0.5
