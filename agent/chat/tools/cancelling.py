"""Ending a job."""

from __future__ import annotations

from agent.chat.entry import Victim
from agent.chat.tool import Desk, Foreseen, Result, Slash
from agent.tools.errors import ToolFailed
from runtime_client.models import JobView

from .finding import at_runtime, job_of
from .made import Acts
from .showing import duration, line, result
from .words import OfJob, of_job


def _cancel_ahead(desk: Desk, arguments: OfJob) -> Foreseen:
    with at_runtime(desk) as runtime:
        job = job_of(runtime, arguments.job)
    if job.is_ended:
        raise ToolFailed(f"{job.job_id} has ended already ({job.state})", code="job_ended")
    used_s = job.device_seconds(desk.store.clock())
    whose = described(job)
    return Foreseen(
        what=f"cancel job {job.job_id}: {whose}, {job.state}, {duration(used_s)} of device time used",
        asks=True,
        why="it ends work that is under way" if job.attempts else "it ends a job that waits",
        device_seconds=0.0,
        victims=(Victim(job_id=job.job_id, what=whose, lost_s=used_s),),
    )


def described(job: JobView) -> str:
    """Whose it is, and what it does: `toy of session s1 (s1-t4)`."""
    session = "" if job.spec.session is None else f" of session {job.spec.session.session_id}"
    trial = job.spec.tags.get("nightlab.trial")
    return line(f"{job.spec.experiment_name}{session}{f' ({trial})' if trial else ''}")


def _cancel(desk: Desk, arguments: OfJob, by: str) -> Result:
    with at_runtime(desk) as runtime:
        job_of(runtime, arguments.job)
        job = runtime.cancel(arguments.job, reason=f"by {by}, in a chat")
    said = "ends within its grace" if not job.is_ended else f"is {job.state}"
    return result(f"{job.job_id} {said}")


TOOLS = (
    Acts(
        name="cancel_job",
        description="End a job: one that waits at once, one that runs within its grace.",
        arguments=OfJob,
        slash=Slash(name="cancel", usage="/cancel JOB", summary="end a job", parse=of_job),
        ahead=_cancel_ahead,
        do=_cancel,
    ),
)
