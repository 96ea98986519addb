"""Arrays of jobs over HTTP: submit, look, cancel."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence

import sqlalchemy as sa
from fastapi import APIRouter
from starlette.responses import Response

from runtime.model.events import Event
from runtime.model.state import State
from runtime.model.states import ENDED
from runtime.server.api.jobs import CancelRequest
from runtime.server.api.strict_json import StrictRoute
from runtime.server.arrays import array_submission
from runtime.server.envelope import answer
from runtime.server.reactor import events_from_cancel
from runtime.server.services import Services, Svc
from runtime.store import history
from runtime.store.history import JobRow
from runtime_client.doors.refusal import Refused, refused
from runtime_client.models import ArrayView, Envelope, ErrorKind, JobSpec

router = APIRouter(prefix="/v1/arrays", tags=["arrays"], route_class=StrictRoute)


@router.post("", response_model=Envelope[ArrayView], status_code=201)
async def submit_array(spec: JobSpec, services: Svc) -> Response:
    """Take an array in, all of its tasks or none. 200 with the earlier one when its idempotency token is known."""
    n_tasks = 0 if spec.array is None else len(spec.array.tasks)
    taken = await services.loop.submit_array(array_submission(spec, [uuid.uuid4().hex for _ in range(n_tasks)]))
    return answer(await _view(services, taken.array_id), status=200 if taken.is_existing else 201)


@router.get("/{array_id}", response_model=Envelope[ArrayView])
async def get_array(array_id: str, services: Svc) -> Response:
    return answer(await _view(services, array_id))


@router.post("/{array_id}/cancel", response_model=Envelope[ArrayView])
async def cancel_array(array_id: str, services: Svc, request: CancelRequest | None = None) -> Response:
    """Ask all of its tasks to end that have not: queued ones end at once, running ones are given their grace."""
    await _view(services, array_id)
    reason = request.reason if request else ""

    def meaning(state: State, now_s: float) -> Sequence[Event]:
        live = (job for job in state.jobs.values() if job.array is not None and job.array.array_id == array_id)
        tasks = sorted(live, key=lambda job: job.order)
        if not tasks:
            raise refused(ErrorKind.CONFLICT, "already_ended", f"all tasks of array {array_id} have ended already")
        return [event for job in tasks for event in events_from_cancel(job, reason)]

    await services.loop.instruct(meaning)
    return answer(await _view(services, array_id))


async def _view(services: Services, array_id: str) -> ArrayView:
    def read(connection: sa.Connection) -> tuple[JobRow | None, Counter[str]]:
        rows = history.list_jobs(connection, array_id=array_id, limit=1)
        states = history.tasks_of(connection, [array_id]).get(array_id, {})
        return (rows[0] if rows else None), Counter(state.value for state in states.values())

    row, counts = await services.store.read(read)
    if row is None:
        raise _no_such_array(array_id)
    spec = JobSpec.model_validate(row.spec)
    n_ended = sum(counts[state.value] for state in ENDED)
    return ArrayView(
        array_id=array_id,
        experiment_name=row.experiment,
        project=row.project,
        n_tasks=sum(counts.values()),
        parallel=None if spec.array_task is None else spec.array_task.parallel,
        counts=dict(counts),
        is_ended=n_ended == sum(counts.values()),
        submitted_at=row.submitted_at,
        first_job_id=f"j{array_id[1:]}",
    )


def _no_such_array(array_id: str) -> Refused:
    message = f"there is no array {array_id[:80]!r}; `nightlab job list --all` shows all jobs"
    return refused(ErrorKind.NOT_FOUND, "no_such_array", message)
