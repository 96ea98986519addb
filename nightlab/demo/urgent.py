"""The urgent job that the demo submits half-way, and the moment for it. The moment is a pure function."""

from __future__ import annotations

from dataclasses import dataclass

from agent.store.views import SessionState
from agent.task import Task
from nightlab.live import LiveSnapshot
from nightlab.live.snapshot import SlotLine
from runtime_client.models import Compute, JobSpec

PATIENCE_S = 15.0
"""How long a good moment is waited for once half of the search is measured; then any busy one will do."""
LATE = 0.7
"""Share of its steps after which an attempt may end before it is asked to leave."""
URGENT_SEED = 7


@dataclass(slots=True)
class Moment:
    """Half of the search measured, every slot busy, and one of them with a checkpoint and a while to go.

    That one loses least, so it is the one that the scheduler will ask to leave.
    """

    n_trials: int
    half_at: float | None = None
    """When half was first seen to be measured."""

    def has_come(self, snapshot: LiveSnapshot) -> bool:
        if snapshot.session_state is not SessionState.RUNNING or 2 * snapshot.n_search_measured < self.n_trials:
            return False
        if self.half_at is None:
            self.half_at = snapshot.at
        if not snapshot.slots or any(slot.job_id is None or slot.state != "running" for slot in snapshot.slots):
            return False
        return any(map(_can_pause, snapshot.slots)) or snapshot.at - self.half_at > PATIENCE_S


def _can_pause(slot: SlotLine) -> bool:
    if slot.checkpoint_step is None or slot.step is None:
        return False
    return slot.n_steps is None or slot.step <= LATE * slot.n_steps


def urgent_name(session_id: str, number: int) -> str:
    """The idempotency token of the session's urgent job, 1, 2, ..."""
    return f"demo-urgent-{session_id}-{number}"


def urgent_job(task: Task, session_id: str, number: int) -> JobSpec:
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
        idempotency_token=urgent_name(session_id, number),
    )
