"""What a person or a model means by an id; what is not there is answered with what is."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from agent.chat.tool import Desk
from agent.planner.plan_text import UnknownPlanVersion
from agent.reading.session import Known, read_known
from agent.store.store import SessionNotFound, TrialNotFound
from agent.store.views import TrialView
from agent.tools.errors import FixAndRetry, ToolFailed, tool_boundary
from runtime_client.errors import NotFound, RuntimeClientError
from runtime_client.models import JobView
from runtime_client.protocol import Runtime

_N_NAMED = 5
_N_LOOKED = 200


def session_id_of(desk: Desk, given: str | None) -> str:
    """
    Raises:
        FixAndRetry: none is named, and the chat belongs to none; or there is none of this id.
    """
    session_id = given or desk.session_id
    if session_id is None:
        raise FixAndRetry(f"which session? There are: {named(_session_ids(desk))}", code="no_session")
    try:
        return desk.store.session(session_id).session_id
    except SessionNotFound as error:
        near = _close(session_id, _session_ids(desk))
        raise FixAndRetry(f"no session {session_id!r}; {near}", code="unknown_session") from error


def known_of(desk: Desk, given: str | None) -> Known:
    """
    Raises:
        FixAndRetry: as `session_id_of`.
        ToolFailed: a newer nightlab works on it.
    """
    try:
        return read_known(desk.store, session_id_of(desk, given))
    except UnknownPlanVersion as error:
        raise ToolFailed(str(error), code="newer_plan") from error


def trial_of(desk: Desk, given: str) -> TrialView:
    """`s1-t7`; in a chat of s1 also `t7` and `7`.

    Raises:
        FixAndRetry: there is none.
    """
    text = given.strip()
    short = f"t{text}" if text.isdecimal() else text
    trial_id = f"{desk.session_id}-{short}" if desk.session_id is not None and "-" not in short else short
    try:
        return desk.store.trial(trial_id)
    except TrialNotFound as error:
        session_id = trial_id.partition("-")[0] if "-" in trial_id else desk.session_id
        known = [] if session_id is None else _trial_ids(desk, session_id)
        raise FixAndRetry(f"no trial {given!r}; {_close(trial_id, known)}", code="unknown_trial") from error


@contextmanager
def at_runtime(desk: Desk) -> Iterator[Runtime]:
    """
    Raises:
        FixAndRetry: what was asked for is not there, or is asked for in a wrong way.
        ToolFailed: it does not answer, or refuses for good.
    """
    try:
        with tool_boundary(), desk.runtime() as runtime:
            yield runtime
    except RuntimeClientError as error:
        said = error.message if "nightlab up" in error.message else f"{error.message}; start it with: nightlab up"
        raise ToolFailed(said, code="runtime_away") from error


def job_of(runtime: Runtime, job_id: str) -> JobView:
    """
    Raises:
        FixAndRetry: there is none of this id.
    """
    try:
        return runtime.job(job_id)
    except NotFound as error:
        known = [one.job_id for one in runtime.jobs(limit=_N_LOOKED)]
        raise FixAndRetry(f"no job {job_id!r}; {_close(job_id, known)}", code=error.code) from error


def _session_ids(desk: Desk) -> list[str]:
    return [one.session_id for one in desk.store.sessions()]


def _trial_ids(desk: Desk, session_id: str) -> list[str]:
    try:
        desk.store.session(session_id)
    except SessionNotFound:
        return []
    return [one.trial_id for one in reversed(desk.store.trials(session_id))]


def _close(wanted: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.6)
    return f"there are: {named([*near, *(one for one in known if one not in near)])}"


def named(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _N_NAMED} more" if len(ids) > _N_NAMED else ""
    return (", ".join(ids[:_N_NAMED]) or "none yet") + more
