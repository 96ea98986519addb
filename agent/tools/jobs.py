"""Tools over jobs: submit, list, cancel, explain. Thin and typed; no judgement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.tools.errors import ToolFailed, tool_boundary
from runtime_client.errors import Conflict
from runtime_client.models import LIVE_STATES, Explanation, JobSpec, JobView
from runtime_client.protocol import Runtime

_PAGE = 500
OVER_BUDGET = "over_budget"
"""The runtime's code for a budget of device time that has no room: the search ends with what it has."""

TOO_LATE = "deadline_passed"
"""The runtime's code for a job whose hour has come: its trial goes on after a resume."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The answer to one submission: exactly one of `job` and `refusal` is set."""

    job: JobView | None = None
    refusal: str | None = None
    code: str | None = None
    is_retryable: bool = False


class StaleSession(ToolFailed):
    """The server knows a newer fence of this session: another process works on it."""


def submit_trials(runtime: Runtime, specs: Sequence[JobSpec]) -> list[Submitted]:
    """Submit jobs in one request, one answer each in order.

    Raises:
        StaleSession: the fence is older than one that the server has seen.
    """
    with tool_boundary():
        results = runtime.submit_many(specs)
    answers = []
    for result in results:
        if result.error is None:
            answers.append(Submitted(job=result.job))
            continue
        error = result.error
        if error.code == "stale_session":
            raise StaleSession(error.message, code=error.code)
        answers.append(Submitted(refusal=error.message, code=error.code, is_retryable=error.retryable))
    return answers


def live_jobs(runtime: Runtime, session_id: str) -> dict[str, JobView]:
    """All jobs of a session that have not ended, by job id."""
    return {job.job_id: job for job in list_jobs(runtime, session_id=session_id, states=LIVE_STATES)}


def list_jobs(runtime: Runtime, *, session_id: str, states: Sequence[str] | None = None) -> list[JobView]:
    """Jobs of a session, newest first, over all pages."""
    found: list[JobView] = []
    before: str | None = None
    while True:
        with tool_boundary():
            page = runtime.jobs(states=states, session_id=session_id, limit=_PAGE, before=before)
        found.extend(page)
        if len(page) < _PAGE:
            return found
        before = page[-1].job_id


def read_job(runtime: Runtime, job_id: str) -> JobView:
    """
    Raises:
        FixAndRetry: there is no such job.
    """
    with tool_boundary():
        return runtime.job(job_id)


def cancel_jobs(runtime: Runtime, job_ids: Sequence[str], *, reason: str) -> list[JobView]:
    """Ask jobs to end; those that have ended already are returned as they are."""
    views = []
    for job_id in job_ids:
        with tool_boundary():
            try:
                views.append(runtime.cancel(job_id, reason=reason))
            except Conflict:
                views.append(runtime.job(job_id))
    return views


def explain_job(runtime: Runtime, job_id: str) -> Explanation:
    """Why a job is where it is.

    Raises:
        FixAndRetry: there is no such job.
    """
    with tool_boundary():
        return runtime.explain(job_id)
