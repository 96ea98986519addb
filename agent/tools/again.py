"""A recorded job once more, for a person: outside of its session, with what it ran with."""

from __future__ import annotations

from runtime_client.models import DependsOn, JobSpec, JobView
from runtime_client.protocol import Runtime


def spec_again(spec: JobSpec, *, trial_id: str, device_model: str | None) -> JobSpec:
    """The same job, for a person: outside of its session and its night, all of it, on the same accelerator model."""
    compute = spec.compute
    if device_model not in (None, "cpu", "mixed"):
        compute = compute.model_copy(update={"accelerator_type": device_model})
    return spec.model_copy(
        update={
            "compute": compute,
            "session": None,
            "idempotency_token": None,
            "mlflow_parent_run_id": None,
            "worth": None,
            "finish_by": None,
            "continues": None,
            "mlflow_run_name": f"{trial_id} again",
            "priority_class": "normal",
            "tags": {"nightlab.reproduces": trial_id},
        }
    )


def submit_again(runtime: Runtime, training: JobSpec, scorer: JobSpec | None) -> tuple[JobView, ...]:
    """Submit the training, and after it the job that measures; the last one has the value."""
    trained = runtime.submit(training)
    if scorer is None:
        return (trained,)
    return trained, runtime.submit(scorer.model_copy(update={"depends_on": (DependsOn(job=trained.job_id),)}))
