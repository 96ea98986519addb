"""The agent's store as commands open it: the sessions and trials of a home, and what to say when one is not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import ExitCode, Failure

if TYPE_CHECKING:
    from agent.store.store import AgentStore

SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="Session id, such as s1.", show_default=False)]
TrialId = Annotated[str, typer.Argument(metavar="TRIAL", help="Trial id, such as s1-t3.", show_default=False)]


@contextmanager
def agent_store(folder: Path) -> Iterator[AgentStore]:
    from agent.store.store import AgentStore

    with closing(AgentStore.open(folder)) as store:
        yield store


@contextmanager
def known_session(folder: Path, session_id: str) -> Iterator[AgentStore]:
    """The store, which has this session.

    Raises:
        Failure: it has not.
    """
    from agent.store.store import SessionNotFound

    with agent_store(folder) as store:
        try:
            store.session(session_id)
        except SessionNotFound as error:
            raise Failure(str(error), exit_code=ExitCode.WRONG_USE, code="unknown_session", kind="not_found") from error
        yield store


@contextmanager
def known_trials(folder: Path, *trial_ids: str) -> Iterator[AgentStore]:
    """The store, which has these trials.

    Raises:
        Failure: it has not.
    """
    from agent.store.store import TrialNotFound

    with agent_store(folder) as store:
        try:
            for trial_id in trial_ids:
                store.trial(trial_id)
        except TrialNotFound as error:
            raise Failure(str(error), exit_code=ExitCode.WRONG_USE, code="unknown_trial", kind="not_found") from error
        yield store
