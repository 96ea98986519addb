"""What a job's view can tell by itself."""

from __future__ import annotations

from runtime_client.models import AttemptView, JobSpec, JobView, PlacementView


def an_attempt(number: int, *, ordered_at: float, ended_at: float | None, devices: tuple[int, ...]) -> AttemptView:
    placement = PlacementView(node_id="local", devices=devices, first_rank=0)
    return AttemptView(attempt=number, placements=(placement,), ordered_at=ordered_at, ended_at=ended_at)


def test_device_seconds_count_every_attempt_and_the_running_one_until_now() -> None:
    job = JobView(
        job_id="j1",
        state="running",
        spec=JobSpec(experiment_name="a", command="true"),
        priority=100,
        preemptible=True,
        submitted_at=0.0,
        run_id="0" * 32,
        attempts=(
            an_attempt(1, ordered_at=10.0, ended_at=14.0, devices=(0, 1)),
            an_attempt(2, ordered_at=20.0, ended_at=None, devices=(1,)),
        ),
    )
    assert job.device_seconds(now=25.0) == 4.0 * 2 + 5.0
    assert job.device_seconds(now=19.0) == 4.0 * 2
