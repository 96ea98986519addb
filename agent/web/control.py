"""Stopping a session in order, going on with it, and steering it, over HTTP."""

from __future__ import annotations

import getpass

from fastapi import APIRouter

from agent.steering.word import CanNotSay, Word
from agent.store.nights import NightStore
from agent.store.steering import SteeringStore
from agent.store.store import SessionNotFound, SessionNotRunnable
from agent.web import reading
from agent.web.envelope import SAID_OF_REFUSALS
from agent.web.routes import Store
from agent.web.wire import SessionSummary, Steer, SteeringView, SteeringWord, Wish
from runtime_client.doors.refusal import refused
from runtime_client.models import Envelope, ErrorKind

router = APIRouter(prefix="/v1", responses=SAID_OF_REFUSALS)


@router.post("/sessions/{session_id}/stop")
def stop(store: Store, session_id: str, wish: Wish) -> Envelope[SessionSummary]:
    """Ask a session to stop in order: queued jobs are asked back, running ones finish. An ended one stays as it is."""
    try:
        stopped = store.request_stop(session_id, by=wish.by or getpass.getuser())
    except SessionNotFound as error:
        raise refused(ErrorKind.NOT_FOUND, "unknown_session", str(error)) from error
    return Envelope(data=reading.summary(stopped))


@router.post("/sessions/{session_id}/resume")
def resume(store: Store, session_id: str, wish: Wish) -> Envelope[SessionSummary]:
    """Go on with a stopped or failed session, without an hour by which it has to be over; a running one stays so."""
    try:
        why_not = NightStore(store).why_not_resumed(store.session(session_id))
        if why_not is not None:
            raise refused(ErrorKind.CONFLICT, "session_of_running_night", why_not)
        resumed = store.request_resume(session_id, by=wish.by or getpass.getuser())
    except SessionNotFound as error:
        raise refused(ErrorKind.NOT_FOUND, "unknown_session", str(error)) from error
    except SessionNotRunnable as error:
        raise refused(ErrorKind.CONFLICT, "session_not_runnable", str(error)) from error
    return Envelope(data=reading.summary(resumed))


@router.get("/sessions/{session_id}/steerings")
def steerings(store: Store, session_id: str) -> Envelope[tuple[SteeringView, ...]]:
    """What people said to a session, oldest first."""
    try:
        said = SteeringStore(store).steerings(session_id)
    except SessionNotFound as error:
        raise refused(ErrorKind.NOT_FOUND, "unknown_session", str(error)) from error
    return Envelope(data=tuple(reading.steering_view(one) for one in said))


@router.post("/sessions/{session_id}/steer")
def steer(store: Store, session_id: str, wish: Steer) -> Envelope[tuple[SteeringView, ...]]:
    """Say something to a session under way: forbid a direction, add an idea, change a budget, pause, take over."""
    words = [Word(**{name: getattr(one, name) for name in SteeringWord.model_fields}) for one in wish.words]
    try:
        said = SteeringStore(store).say(session_id, words, by=wish.by or getpass.getuser())
    except SessionNotFound as error:
        raise refused(ErrorKind.NOT_FOUND, "unknown_session", str(error)) from error
    except CanNotSay as error:
        raise refused(ErrorKind.CONFLICT, "can_not_steer", str(error)) from error
    return Envelope(data=tuple(reading.steering_view(one) for one in said))
