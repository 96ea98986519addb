"""The ids that a reply names, and which of them exist: an invented one is shown as such."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from agent.chat.entry import Cite
from agent.chat.tool import Desk
from agent.store.store import AgentStore, SessionNotFound, TrialNotFound
from runtime_client.errors import NotFound, RuntimeClientError
from runtime_client.protocol import Runtime

MOST_IDS = 50
"""Of one reply; more are not looked up, and not linked."""
_JOBS_LOOKED_AT = 200
_ID = re.compile(
    r"(?<![\w/.:@-])(?:(?P<trial>s\d{1,9}-t\d{1,9})|(?P<session>s\d{1,9})|(?P<job>j\d{1,9})|(?P<run>[0-9a-f]{32}))"
    r"(?![\w@]|-\w|\.\d|://)"
)


@dataclass(frozen=True, slots=True)
class Cited:
    cites: tuple[Cite, ...] = ()
    unknown: tuple[str, ...] = ()


def named(text: str) -> tuple[Cite, ...]:
    """What looks like an id in a text, each once, in the order of the text; nothing is looked up."""
    found = (Cite(kind=str(one.lastgroup), id=one.group()) for one in _ID.finditer(text))
    return tuple(dict.fromkeys(found))[:MOST_IDS]


def cited(text: str, desk: Desk) -> Cited:
    """Which ids of a text exist. Where nobody can tell (the runtime is away), an id is neither linked nor unknown."""
    ids = named(text)
    if not ids:
        return Cited()
    there = {one: _is_there_in_store(one, desk.store) for one in ids}
    if any(known is None for known in there.values()):
        there.update(_in_runtime([one for one, known in there.items() if known is None], desk))
    return Cited(tuple(one for one in ids if there[one] is True), tuple(one.id for one in ids if there[one] is False))


def _is_there_in_store(cite: Cite, store: AgentStore) -> bool | None:
    """None: the store can not tell."""
    if cite.kind == "session":
        return _exists(lambda: store.session(cite.id))
    if cite.kind == "trial":
        return _exists(lambda: store.trial(cite.id))
    return None


def _exists(find: Callable[[], object]) -> bool:
    try:
        find()
    except (SessionNotFound, TrialNotFound):
        return False
    return True


def _in_runtime(ids: list[Cite], desk: Desk) -> dict[Cite, bool | None]:
    try:
        with desk.runtime() as runtime:
            return {one: _is_there(one, runtime) for one in ids}
    except RuntimeClientError:
        return dict.fromkeys(ids)


def _is_there(cite: Cite, runtime: Runtime) -> bool | None:
    try:
        if cite.kind == "job":
            runtime.job(cite.id)
        else:
            runtime.run(cite.id)
    except NotFound:
        return False if cite.kind == "job" else _is_run_of_a_job(cite.id, runtime)
    return True


def _is_run_of_a_job(run_id: str, runtime: Runtime) -> bool | None:
    """MLflow's own ids of the newest jobs' runs; None: there are more jobs than are looked at."""
    jobs = runtime.jobs(limit=_JOBS_LOOKED_AT)
    if any(run_id in (job.run_id, job.mlflow_run_id) for job in jobs):
        return True
    return None if len(jobs) == _JOBS_LOOKED_AT else False
