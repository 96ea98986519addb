"""Taking an array in: one submission becomes n jobs, all of them or none. Changes nothing but the draft."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from runtime.model.nouns import ArrayPlace
from runtime.model.state import State
from runtime.scheduling.policy import Policy
from runtime_client.doors.refusal import refused
from runtime_client.models import ArraySpec, ArrayTask, ErrorKind, JobSpec

from .draft import Draft
from .submission import Fresh, Known, earlier_job, new_job, record

MAX_TOKEN = 110
"""Characters; a task's token is the array's with its index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySubmission:
    spec: JobSpec
    array: ArraySpec
    run_ids: Sequence[str]
    """One for each task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenArray:
    array_id: str
    is_existing: bool
    """The idempotency token was known."""
    specs: dict[str, JobSpec]
    """Of its new tasks, by job."""


def array_submission(spec: JobSpec, run_ids: Sequence[str]) -> ArraySubmission:
    """
    Raises:
        Refused: it asks for no array, or its token is too long to be that of an array.
    """
    if spec.array is None:
        message = "array: missing; give the indexes of the tasks, such as 0-99, or the parameters of each"
        raise refused(ErrorKind.INVALID, "missing_key", message, path="array")
    if spec.idempotency_token is not None and len(spec.idempotency_token) > MAX_TOKEN:
        message = f"idempotency_token: that of an array has {MAX_TOKEN} characters at most"
        raise refused(ErrorKind.INVALID, "invalid_value", message, path="idempotency_token")
    return ArraySubmission(spec=spec, array=spec.array, run_ids=run_ids)


def task_specs(submission: ArraySubmission) -> list[JobSpec]:
    """The tasks as jobs, but for the id of the array, which has none yet."""
    spec = submission.spec
    return [
        spec.model_copy(
            update={
                "array": None,
                "parameters": {**spec.parameters, **parameters},
                "idempotency_token": None if spec.idempotency_token is None else f"{spec.idempotency_token}/{index}",
            }
        )
        for index, parameters in submission.array.tasks
    ]


def take_array(
    draft: Draft, submission: ArraySubmission, known: Known, fresh: Fresh, *, number: int, policy: Policy
) -> TakenArray:
    """Take the tasks in as `j{number}` and those that follow, or find the array with its token.

    Raises:
        Refused: as for one of its tasks; then none is taken in.
    """
    specs = task_specs(submission)
    existing = next((found for spec in specs if (found := earlier_job(spec, known, fresh)) is not None), None)
    if existing is not None:
        return TakenArray(array_id=_array_of(draft.state, existing, known), is_existing=True, specs={})
    first, asked = new_job(draft, specs[0], known, fresh, number=number, policy=policy)
    array_id, n_tasks, parallel = f"a{number}", len(specs), submission.array.parallel
    taken: dict[str, JobSpec] = {}
    for at, (spec, (index, _)) in enumerate(zip(specs, submission.array.tasks, strict=True)):
        job_id = f"j{number + at}"
        place = ArrayPlace(array_id=array_id, index=index, n_tasks=n_tasks, parallel=parallel)
        task = ArrayTask(array_id=array_id, index=index, n_tasks=n_tasks, parallel=parallel)
        spec = spec.model_copy(update={"depends_on": asked.depends_on, "array_task": task})
        job = replace(first, job_id=job_id, order=number + at, array=place)
        spec_json: dict[str, Any] = spec.model_dump(mode="json")
        record(draft, job, spec, run_id=submission.run_ids[at], spec_json=spec_json, fresh=fresh)
        taken[job_id] = spec
    return TakenArray(array_id=array_id, is_existing=False, specs=taken)


def _array_of(state: State, job_id: str, known: Known) -> str:
    """
    Raises:
        Refused: the token is that of a single job.
    """
    live = state.jobs.get(job_id)
    if live is not None and live.array is not None:
        return live.array.array_id
    row = next((row for row in known.jobs_by_token.values() if row.job_id == job_id), None)
    if row is not None and row.array_id is not None:
        return row.array_id
    message = f"idempotency_token: job {job_id} was submitted with it, and is no task of an array; choose another"
    raise refused(ErrorKind.CONFLICT, "token_taken", message, path="idempotency_token")
