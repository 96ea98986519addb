"""What a round answers, once it is committed; and what is said when it can not be."""

from __future__ import annotations

from dataclasses import dataclass, field

from runtime_client.doors.refusal import Refused, refused
from runtime_client.models import ErrorKind, JobSpec

from .arrays import TakenArray
from .inbox import Accepted, CancelJob, Instruct, Item, PartWithJobs, Request, SubmitArray, SubmitJobs
from .projection import RowChanges
from .submission import Submission, Taken


@dataclass(slots=True)
class Answers:
    """Answers of a round, given after its commit."""

    jobs: list[tuple[SubmitJobs, list[Taken | Refused]]] = field(default_factory=list)
    others: list[tuple[CancelJob | PartWithJobs | Instruct, Refused | None]] = field(default_factory=list)
    arrays: list[tuple[SubmitArray, TakenArray | Refused]] = field(default_factory=list)
    specs: dict[str, JobSpec] = field(default_factory=dict)

    def give(self, rows: RowChanges) -> None:
        for request, results in self.jobs:
            if not request.answer.done():
                pairs = zip(request.submissions, results, strict=True)
                request.answer.set_result([_accepted(submission, result, rows) for submission, result in pairs])
        for array, taken in self.arrays:
            if array.answer.done():
                continue
            if isinstance(taken, Refused):
                array.answer.set_exception(taken)
            else:
                array.answer.set_result(taken)
        for other, refusal in self.others:
            if other.answer.done():
                continue
            if refusal is None:
                other.answer.set_result(None)
            else:
                other.answer.set_exception(refusal)


def _accepted(submission: Submission, result: Taken | Refused, rows: RowChanges) -> Accepted | Refused:
    if isinstance(result, Refused):
        return result
    attempts = tuple(row for (job_id, _), row in rows.new_attempts.items() if job_id == result.job_id)
    return Accepted(
        job_id=result.job_id,
        is_existing=result.is_existing,
        row=rows.new_jobs.get(result.job_id),
        attempts=attempts,
        spec=result.spec,
    )


def refuse(item: Item, refusal: Refused) -> None:
    if isinstance(item, Request) and not item.answer.done():
        item.answer.set_exception(refusal)


def stopping() -> Refused:
    return refused(ErrorKind.UNAVAILABLE, "stopping", "the server is stopping; try again")


def bug(error: Exception) -> Refused:
    message = f"a bug of ours ({type(error).__name__}: {error}); nothing was changed; the server's log has the details"
    return refused(ErrorKind.FAULT, "bug", message)
