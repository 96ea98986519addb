"""Trap: a run that was cut off and looked good until then. How it went is evidence, never its value.

The naive rule reads the last, or the best, value that a job logged, whatever became of it: a job that times out just
before it collapses wins.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from trap_worlds import ended, measured, noise, number, result_of, trap_task, trials_of, x_of

from agent.store.views import Purpose, TrialState
from runtime_client.fake import FakeOutcome
from runtime_client.models import JobSpec

EDGE = 0.5


def cut_off_above(reason: str) -> Callable[[JobSpec], FakeOutcome]:
    def script(spec: JobSpec) -> FakeOutcome:
        x = x_of(spec)
        if x > EDGE:
            curve = [0.90, 0.95, 0.99]
            return FakeOutcome(curves={"score": curve}, exit_reason=reason, evidence="cut off", duration_s=60.0)
        return measured(spec, 0.6 - (x - 0.4) ** 2 + 0.001 * noise(x, spec.seed))

    return script


@pytest.mark.parametrize(("reason", "read"), [("run_timeout", "last"), ("run_timeout", "best"), ("hung", "last")])
def test_a_run_that_did_not_end_has_no_value(reason: str, read: str, tmp_path: Path) -> None:
    objective = {"metric": "score", "direction": "maximize", "read": read}
    world = ended(tmp_path, cut_off_above(reason), task=trap_task(objective=objective))
    found = result_of(world)
    assert number(found.best["x"]) <= EDGE
    cut_off = [t for t in trials_of(world, Purpose.SEARCH) if number(t.params["x"]) > EDGE]
    assert cut_off, "the trap was walked over"
    for trial in cut_off:
        assert trial.job_id is not None
        logged = [p.value for p in world.runtime.metrics(trial.job_id, keys=["score"])]
        assert logged
        assert max(v for v in logged if v is not None) > 0.65, "what was logged last falls in"
        assert (trial.state, trial.value, trial.exit_reason) == (TrialState.INVALID, None, reason)
