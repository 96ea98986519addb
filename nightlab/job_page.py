"""One job for a person: what it is, where it stands, its attempts."""

from __future__ import annotations

import shlex
import time

from runtime_client.models import AttemptView, JobView

from .following import state_line
from .moments import told
from .output import ago, duration, print_table


def print_job(job: JobView) -> None:
    spec = job.spec
    command = spec.command if isinstance(spec.command, str) else shlex.join(spec.command)
    lines = [
        ("experiment", spec.experiment_name),
        ("command", command),
        ("devices", f"{spec.compute.num_accelerators} {spec.compute.accelerator_type or ''}".strip()),
        ("class", f"{spec.priority_class} ({'preemptible' if job.preemptible else 'not preemptible'})"),
        ("python", spec.environment.python or ""),
        ("folder", spec.code_source.root_path if spec.code_source else "a scratch folder"),
        ("parameters", ", ".join(f"{name}={value}" for name, value in spec.parameters.items())),
        ("waits for", ", ".join(f"{one.job} ({one.condition.value})" for one in spec.depends_on)),
        ("array", "" if spec.array_task is None else f"{spec.array_task.array_id}, index {spec.array_task.index}"),
        ("sandbox", spec.sandbox.value),
        ("until", "" if spec.finish_by is None else told(spec.finish_by, now=time.time())),
        ("goes on from", spec.continues or ""),
        ("submitted", ago(job.submitted_at)),
        ("checkpoint", "" if job.checkpoint_step is None else f"step {job.checkpoint_step}"),
        ("suggestion", "" if job.suggestion is None else job.suggestion.why),
        ("MLflow run", job.mlflow_url or job.run_id),
    ]
    print(state_line(job))
    for name, value in lines:
        if value:
            print(f"  {name:<12} {value}")
    if job.attempts:
        print()
        print_table(
            ("attempt", "outcome", "where", "started", "ran", "#memory", "exit", "why"),
            [_attempt_row(attempt) for attempt in job.attempts],
        )
        newest = job.attempts[-1]
        if newest.launch is not None:
            print(f"\nattempt {newest.attempt} was started {newest.launch}: {newest.launch_why}")
        if newest.sandbox is not None:
            user = "" if newest.sandbox.uid is None else f", user {newest.sandbox.uid}"
            how = "" if newest.sandbox.how is None else f" by {newest.sandbox.how}"
            print(f"sandbox {newest.sandbox.level}{how}: {', '.join(newest.sandbox.layers) or 'nothing'}{user}")


def _attempt_row(attempt: AttemptView) -> tuple[str, ...]:
    where = " ".join(f"{p.node_id}:{','.join(map(str, p.devices))}" for p in attempt.placements)
    until = attempt.ended_at or time.time()
    for_whom = f" for {attempt.beneficiary}" if attempt.beneficiary else ""
    return (
        str(attempt.attempt),
        f"{attempt.outcome or 'running'}{for_whom}",
        where,
        ago(attempt.started_at),
        "" if attempt.started_at is None else duration(until - attempt.started_at),
        "" if attempt.peak_memory_mb is None else f"{attempt.peak_memory_mb:.0f} MiB",
        "" if attempt.exit_code is None else str(attempt.exit_code),
        attempt.evidence or attempt.exit_reason or "",
    )
