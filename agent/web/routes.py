"""The routes: what is read, the answers to gates, and the event stream."""

from __future__ import annotations

import asyncio
import getpass
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from starlette.responses import StreamingResponse

from agent.gates.gate import Answer
from agent.store.gates import GateNotFound, GateStore
from agent.store.journal import Journal
from agent.store.store import AgentStore, SessionNotFound, TrialNotFound
from agent.store.views import TrialView
from agent.web import reading
from agent.web.envelope import SAID_OF_REFUSALS
from agent.web.events import Pulse, event_of, event_stream
from agent.web.wire import (
    Event,
    GateAnswer,
    GateDiff,
    GateView,
    Health,
    Me,
    Notice,
    Page,
    SessionDetail,
    SessionSummary,
)
from runtime_client.doors.refusal import refused
from runtime_client.models import Envelope, ErrorKind

router = APIRouter(prefix="/v1", responses=SAID_OF_REFUSALS)
MAX_SEQ = 2**62


def _store(request: Request) -> AgentStore:
    found: AgentStore = request.app.state.store
    return found


def _pulse(request: Request) -> Pulse:
    found: Pulse = request.app.state.pulse
    return found


Store = Annotated[AgentStore, Depends(_store)]
After = Annotated[int, Query(ge=0, lt=MAX_SEQ, description="What comes beyond this number.")]
Limit = Annotated[int, Query(ge=1, le=500)]


@router.get("/health")
def health() -> Envelope[Health]:
    """Whether the service answers; needs no token."""
    return Envelope(data=Health())


@router.get("/me")
def me(request: Request) -> Envelope[Me]:
    """What the token that is sent may do."""
    return Envelope(data=Me(role=request.state.role))


@router.get("/sessions")
def sessions(store: Store) -> Envelope[tuple[SessionSummary, ...]]:
    """All sessions, newest first."""
    return Envelope(data=tuple(reading.summary(one) for one in store.sessions()))


@router.get("/sessions/{session_id}")
def session(store: Store, session_id: str) -> Envelope[SessionDetail]:
    """One session: plan, hypotheses, verdicts, budgets, best so far, arms, counts of model calls."""
    try:
        return Envelope(data=reading.detail(store, session_id))
    except SessionNotFound as error:
        raise refused(ErrorKind.NOT_FOUND, "unknown_session", str(error)) from error


@router.get("/sessions/{session_id}/trials")
def trials(store: Store, session_id: str, after: After = 0, limit: Limit = 100) -> Envelope[Page[TrialView]]:
    """A session's trials by their numbers; `after` is a trial's number."""
    _known(store, session_id)
    found = [trial for trial in store.trials(session_id) if trial.number > after]
    page = tuple(found[:limit])
    return Envelope(data=Page(items=page, next_after=page[-1].number if len(found) > limit else None))


@router.get("/trials/{trial_id}")
def trial(store: Store, trial_id: str) -> Envelope[TrialView]:
    """One trial with its circumstances and, where it failed, its diagnosis."""
    try:
        return Envelope(data=store.trial(trial_id))
    except TrialNotFound as error:
        raise refused(ErrorKind.NOT_FOUND, "unknown_trial", str(error)) from error


@router.get("/sessions/{session_id}/notices")
def notices(store: Store, session_id: str) -> Envelope[tuple[Notice, ...]]:
    """The messages to people about a session, oldest first."""
    _known(store, session_id)
    return Envelope(data=tuple(Notice(**row) for row in Journal(store).notices(session_id)))


@router.get("/gates")
def gates(store: Store, session_id: str | None = None, with_answered: bool = False) -> Envelope[tuple[GateView, ...]]:
    """What waits for a person, the most urgent first; with `with_answered`, every question, oldest first."""
    if session_id is not None:
        _known(store, session_id)
    people = GateStore(store)
    found = people.gates(session_id) if with_answered else people.waiting(session_id)
    now = store.clock()
    return Envelope(data=tuple(reading.gate_view(one, now) for one in found))


@router.get("/gates/{gate_id}")
def gate(store: Store, gate_id: int) -> Envelope[GateView]:
    """One question and its answer."""
    try:
        return Envelope(data=reading.gate_view(GateStore(store).gate(_small(gate_id)), store.clock()))
    except GateNotFound as error:
        raise refused(ErrorKind.NOT_FOUND, "unknown_gate", str(error)) from error


@router.get("/gates/{gate_id}/diff")
def diff(request: Request, store: Store, gate_id: int) -> Envelope[GateDiff]:
    """What the edited code changes that one question is about."""
    view = gate(store, gate_id).data
    assert view is not None
    found = reading.gate_diff(store, request.app.state.home, view.gate)
    if found is None:
        said = f"gate {gate_id} is about no edited code, or that code was removed"
        raise refused(ErrorKind.NOT_FOUND, "no_diff", said)
    return Envelope(data=found)


@router.post("/gates/{gate_id}/approve")
def approve(store: Store, gate_id: int, said: GateAnswer) -> Envelope[GateView]:
    """Let it go ahead. The first answer counts; the same one again from the same person changes nothing."""
    return _answered(store, gate_id, Answer.APPROVE, said)


@router.post("/gates/{gate_id}/deny")
def deny(store: Store, gate_id: int, said: GateAnswer) -> Envelope[GateView]:
    """Refuse it: it is withdrawn, and not asked about again. The first answer counts, as with approve."""
    return _answered(store, gate_id, Answer.DENY, said)


@router.get("/events/page")
def events_page(
    store: Store, after: After = 0, limit: Limit = 100, session_id: str | None = None
) -> Envelope[Page[Event]]:
    """Events beyond a number as one answer, for readers that do without a stream."""
    rows = Journal(store).after(after, limit, session_id)
    items = tuple(event_of(row) for row in rows)
    return Envelope(data=Page(items=items, next_after=items[-1].seq if len(items) == limit else None))


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "`data` of each is an Event"}},
)
async def events(
    request: Request,
    after: After | None = None,
    session_id: str | None = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    """Server-sent events beyond `Last-Event-ID`, else `after`, else from now on; a comment every 15 s when quiet."""
    store, pulse = _store(request), _pulse(request)
    pulse.admit()
    if last_event_id is not None and last_event_id.strip():
        after = sequence_number(last_event_id.strip())
    if session_id is not None:
        await asyncio.to_thread(_known, store, session_id)
    journal = Journal(store)
    since = await asyncio.to_thread(journal.newest) if after is None else after
    stream = event_stream(pulse, journal, after=since, session_id=session_id)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


def _answered(store: AgentStore, gate_id: int, answer: Answer, said: GateAnswer) -> Envelope[GateView]:
    by = said.by or getpass.getuser()
    try:
        done = GateStore(store).answer(_small(gate_id), answer, by=by, note=said.note)
    except GateNotFound as error:
        raise refused(ErrorKind.NOT_FOUND, "unknown_gate", str(error)) from error
    found = done.gate
    is_said_again = (found.answer, found.answered_by, found.note) == (answer, by, said.note)
    if not done.is_first and not is_said_again:
        at = "" if found.answered_at is None else f" at {found.answered_at:.0f} (seconds since the epoch)"
        words = f"gate {gate_id} was answered before, and that counts: {found.words}{at}"
        raise refused(ErrorKind.CONFLICT, "answered_before", words)
    return Envelope(data=reading.gate_view(found, store.clock()))


def _known(store: AgentStore, session_id: str) -> None:
    try:
        store.session(session_id)
    except SessionNotFound as error:
        raise refused(ErrorKind.NOT_FOUND, "unknown_session", str(error)) from error


def _small(gate_id: int) -> int:
    """A number that a database can hold; no gate has a larger one."""
    return gate_id if -MAX_SEQ < gate_id < MAX_SEQ else 0


def sequence_number(text: str) -> int:
    """
    Raises:
        Refused: it is none.
    """
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    said = f"Last-Event-ID: {text[:40]!r} is not a sequence number"
    raise refused(ErrorKind.INVALID, "invalid_value", said, path="last_event_id")
