"""The urgent job that the demo submits half-way, and the moment for it. The moment is a pure function."""

from __future__ import annotations

from dataclasses import dataclass

from agent.store.views import SessionState
from agent.task import Task
from nightlab.live import LiveSnapshot
from nightlab.live.snapshot import SlotLine
from runtime_client.models import Compute, JobSpec

PATIENCE_S = 20.0
"""How long a good moment is waited for once half of the search is measured."""
LATE = 0.75
"""Share of its steps after which an attempt is about to end anyway."""
URGENT_SEED = 7


@dataclass(slots=True)
class Moment:
    """Half of the search measured, every slot busy with training that can save its state."""

    n_trials: int
    half_at: float | None = None
    """When half was first seen to be measured."""

    def has_come(self, snapshot: LiveSnapshot) -> bool:
        if snapshot.session_state is not SessionState.RUNNING or 2 * snapshot.n_search_measured < self.n_trials:
            return False
        if self.half_at is None:
            self.half_at = snapshot.at
        slots = snapshot.slots
        if not slots or any(slot.job_id is None for slot in slots):
            return False
        return all(is_in_the_middle(slot) for slot in slots) or snapshot.at - self.half_at > PATIENCE_S


def is_in_the_middle(slot: SlotLine) -> bool:
    """It has trained a little, and would go on for a while."""
    if slot.state != "running" or not slot.step:
        return False
    return slot.n_steps is None or slot.step <= LATE * slot.n_steps


def urgent_job(task: Task, session_id: str) -> JobSpec:
    """A short training run of class `critical`, outside the session. Submitting it twice starts it once."""
    parameters = {name: parameter.default for name, parameter in task.space.items()}
    if task.fidelity is not None:
        parameters[task.fidelity.parameter] = task.fidelity.value
    return JobSpec(
        experiment_name="urgent",
        command=task.job.command,
        args_style=task.job.args_style,
        code_source=task.job.code_source,
        environment=task.job.environment,
        compute=Compute(num_accelerators=1),
        parameters=parameters,
        seed=URGENT_SEED,
        priority_class="critical",
        mlflow_run_name="urgent",
        idempotency_token=f"demo-urgent-{session_id}",
    )
