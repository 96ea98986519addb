"""The routes of the session page: the picture of a session, and its trials as a table."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from agent.store.store import SessionNotFound
from agent.web import session_view
from agent.web.envelope import SAID_OF_REFUSALS
from agent.web.routes import MAX_SEQ, Limit, Store
from agent.web.session_sorting import Order
from agent.web.session_wire import SessionPicture, TrialTable
from runtime_client.doors.refusal import refused
from runtime_client.models import Envelope, ErrorKind

router = APIRouter(prefix="/v1", responses=SAID_OF_REFUSALS)
Words = Annotated[str, Query(max_length=200, description="Each word has to occur: an id, lr=0.1, failed, why it was.")]


@router.get("/sessions/{session_id}/view")
def view(store: Store, session_id: str) -> Envelope[SessionPicture]:
    """What the page of a session draws: plan as a tree, best so far, effects, budgets, calibration. Bounded in size."""
    try:
        return Envelope(data=session_view.picture(store, session_id))
    except SessionNotFound as error:
        raise refused(ErrorKind.NOT_FOUND, "unknown_session", str(error)) from error


@router.get("/sessions/{session_id}/trial-table")
def trial_table(
    store: Store,
    session_id: str,
    words: Words = "",
    order: Order = Order.NUMBER,
    descending: bool = True,
    offset: Annotated[int, Query(ge=0, lt=MAX_SEQ)] = 0,
    limit: Limit = 50,
) -> Envelope[TrialTable]:
    """A session's trials, searched and sorted; what they lack that is sorted by comes last."""
    try:
        found = session_view.trial_table(
            store, session_id, words=words, order=order, descending=descending, offset=offset, limit=limit
        )
    except SessionNotFound as error:
        raise refused(ErrorKind.NOT_FOUND, "unknown_session", str(error)) from error
    return Envelope(data=found)
