"""How long a training took, of which attempts."""

from __future__ import annotations

import pytest
from agent_worlds import a_task
from planner_builders import a_trial

from agent.steps.circumstances import cpu_seconds, run_seconds
from runtime_client.models import AttemptView, JobSpec, JobView


def a_job(*attempts: tuple[float, str]) -> JobView:
    """An ended job whose attempts took so long and ended so."""
    return JobView(
        job_id="j1",
        state="succeeded",
        spec=JobSpec(experiment_name="a", command="true"),
        priority=100,
        preemptible=True,
        submitted_at=0.0,
        run_id="0" * 32,
        attempts=tuple(
            AttemptView(
                attempt=n, placements=(), ordered_at=0.0, started_at=100.0 * n, ended_at=100.0 * n + s, exit_reason=why
            )
            for n, (s, why) in enumerate(attempts, start=1)
        ),
    )


def test_what_its_machine_says_goes_before_when_the_server_heard_of_it() -> None:
    job = a_job((60.0, "completed"))
    told = job.model_copy(update={"attempts": (job.attempts[0].model_copy(update={"run_s": 7.0}),)})
    assert run_seconds(a_trial(a_task(), 1, {"x": 0.2, "kind": "a"}, 0.5), told) == 7.0


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [
        (((7.0, "completed"),), 7.0),
        (((5.0, "requeue_asked"), (7.0, "completed")), 12.0),
        (((5.0, "python_error"), (7.0, "completed")), 12.0),
        (((5.0, "preempted"), (7.0, "completed")), None),
        (((5.0, "node_lost"), (5.0, "requeue_asked"), (7.0, "completed")), None),
    ],
)
def test_attempts_that_a_training_ended_itself_count_together(
    attempts: tuple[tuple[float, str], ...], seconds: float | None
) -> None:
    trial = a_trial(a_task(), 1, {"x": 0.2, "kind": "a"}, 0.5)
    job = a_job(*attempts)
    assert run_seconds(trial, job) == seconds
    assert cpu_seconds(trial, job) is None
    used = tuple(one.model_copy(update={"cpu_s": 2.0}) for one in job.attempts)
    assert cpu_seconds(trial, job.model_copy(update={"attempts": used})) == (seconds and 2.0 * len(used))
