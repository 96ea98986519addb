"""Why a job is where it is: the functions that decide, the history, and what stands in the way of the server itself."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import sqlalchemy as sa

from runtime.model.nouns import Job
from runtime.model.state import State
from runtime.model.states import JobState
from runtime.scheduling.decision import Reasons
from runtime.scheduling.explain import explain, feasible
from runtime.scheduling.forecast import Prospect
from runtime.scheduling.rehearsal import Expectation, expected_start, stage
from runtime.store import history
from runtime.store.history import JobRow
from runtime_client.models import Departure, ExpectedStart, Explanation, Forecast, JobSpec, SuggestionView

from .departures import read_cost_to_others, read_departures
from .lookup import read_known
from .refusal import no_such_job
from .services import Services
from .submission import foretell
from .views import forecast_view, suggestion_view, words_for_ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What the history says of a job."""

    row: JobRow
    departures: tuple[Departure, ...]
    cost_to_others: tuple[Departure, ...]
    suggestion: SuggestionView | None
    """What its latest ended attempt suggests."""

    @property
    def proposal(self) -> tuple[str, ...]:
        """The suggestion as a detail."""
        return () if self.suggestion is None else (f"suggestion: {self.suggestion.why}",)

    @property
    def left_for(self) -> str | None:
        """For whom it left last."""
        return next((each.beneficiary for each in reversed(self.departures) if each.beneficiary is not None), None)


async def explained(services: Services, job_id: str) -> Explanation:
    """
    Raises:
        Refused: no such job.
    """
    job = services.loop.state.jobs.get(job_id)
    if job is None:
        return _of_ended(await _past(services, job_id))
    now_s = max(services.clock(), services.loop.state.clock_s)
    reasons = explain(services.loop.state, job_id, now_s=now_s, policy=services.config.policy)
    expected = await _expected(services, job, now_s)
    past = await _past(services, job_id)
    if job.state is JobState.QUEUED:
        reasons = _with_waiting(services, job, reasons, past)
    return Explanation(
        job_id=job_id,
        state=job.state.value,
        summary=reasons.summary,
        queue_position=reasons.queue_position,
        details=reasons.details,
        beneficiary=reasons.beneficiary or past.left_for,
        expected_start=expected,
        departures=past.departures,
        cost_to_others=past.cost_to_others,
        suggestion=past.suggestion,
    )


async def foretold(services: Services, spec: JobSpec) -> Forecast:
    """What would become of a job, and when it would start. Submits nothing.

    Raises:
        Refused: as a submission would be.
    """
    loop, policy = services.loop, services.config.policy
    now_s = max(services.clock(), loop.state.clock_s)
    known = await read_known(services.store, [spec])
    job, found = foretell(loop.state, spec, known, number=loop.next_number, now_s=now_s, policy=policy)
    view = forecast_view(found)
    if found.prospect in (Prospect.NEVER, Prospect.HELD, Prospect.DEPENDS):
        return view
    if found.prospect is Prospect.STARTS:
        return view.model_copy(update={"expected_start": ExpectedStart(at=now_s, in_seconds=0.0, basis=_FREE)})
    expected = await _rehearsed(services, stage(loop.state, job, now_s=now_s), job.job_id, now_s)
    return view.model_copy(update={"expected_start": expected})


_FREE = "its devices are free"


async def _expected(services: Services, job: Job, now_s: float) -> ExpectedStart | None:
    """None: it does not wait for room."""
    state = services.loop.state
    if not _waits_for_room(state, job):
        return None
    return await _rehearsed(services, stage(state, now_s=now_s), job.job_id, now_s)


def _waits_for_room(state: State, job: Job) -> bool:
    is_free = job.state is JobState.QUEUED and not job.is_waiting and state.hold_on(job) is None
    return is_free and feasible(state, job.shape) is None


async def _rehearsed(services: Services, copy: State, job_id: str, now_s: float) -> ExpectedStart:
    """Played beside the loop: a long queue must not hold it up."""
    policy = services.config.policy
    found = await asyncio.to_thread(expected_start, copy, job_id, now_s=now_s, policy=policy)
    return _expected_view(found, now_s)


def _expected_view(found: Expectation, now_s: float) -> ExpectedStart:
    in_seconds = None if found.at_s is None else max(0.0, found.at_s - now_s)
    return ExpectedStart(at=found.at_s, in_seconds=in_seconds, basis=found.basis)


def _of_ended(past: Past) -> Explanation:
    return Explanation(
        job_id=past.row.job_id,
        state=past.row.state.value,
        summary=words_for_ended(past.row),
        beneficiary=past.left_for,
        departures=past.departures,
        cost_to_others=past.cost_to_others,
        details=past.proposal,
        suggestion=past.suggestion,
    )


def _with_waiting(services: Services, job: Job, reasons: Reasons, past: Past) -> Reasons:
    """What only the server knows of a job that waits: why its last attempt ended, and what stops all starts."""
    summary, details = reasons.summary, reasons.details
    if job.n_attempts > 0:
        details = (past.row.state_reason or "it ran before", *past.proposal, *details)
    notices = tuple(note for note in (services.disk.low, services.loop.trouble) if note is not None)
    if notices:
        summary, details = f"{job.job_id} waits: {notices[0]}", (*notices[1:], summary, *details)
    return Reasons(
        summary=summary, queue_position=reasons.queue_position, details=details, beneficiary=reasons.beneficiary
    )


async def _past(services: Services, job_id: str) -> Past:
    def read(connection: sa.Connection) -> Past | None:
        row = history.get_job(connection, job_id)
        if row is None:
            return None
        return Past(
            row=row,
            departures=read_departures(connection, job_id),
            cost_to_others=read_cost_to_others(connection, job_id),
            suggestion=suggestion_view(
                row, history.get_attempts(connection, [job_id])[job_id], JobSpec.model_validate(row.spec).parameters
            ),
        )

    past = await services.store.read(read)
    if past is None:
        raise no_such_job(job_id)
    return past
