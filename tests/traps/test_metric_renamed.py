"""Trap: the metric changes its name half-way. What the task names counts; nothing stands in for it.

The naive rule takes the first metric it finds, or one whose name is alike: after the rename it compares an error in
percent with an accuracy, or the training value with the validation value.
"""

from __future__ import annotations

from pathlib import Path

from agent_worlds import a_world
from trap_worlds import NOISE, measured, noise, result_of, trap_task, trials_of, x_of

from agent.store.views import Purpose, TrialState
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
    renamed = [t for t in trials_of(world) if t.number > 6]
    assert renamed
    naive = {t.trial_id: world.runtime.metrics(t.job_id or "")[-1].value for t in renamed if t.job_id is not None}
    assert all((value or 0) > 30 for value in naive.values()), "the first metric found falls in"
    for trial in renamed:
        assert (trial.state, trial.value) == (TrialState.INVALID, None)
        assert "val_score" in (trial.note or ""), "says which metrics did appear"
    found = result_of(world)
    assert (found.verdict, found.comparison) == ("inconclusive", "invalid")
    tried = [t for t in trials_of(world, Purpose.SEARCH) if t.state is TrialState.MEASURED]
    assert found.best["x"] in {t.params["x"] for t in tried}
