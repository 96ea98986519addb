"""Where the graph's checkpoints lie: one small SQLite file per session, since it has one writer."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agent.store.schema import write_ahead

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite import SqliteSaver

PRUNE_EVERY = 50
"""Wake-ups between two prunings."""


def quiet_environment() -> None:
    """Set what LangGraph reads from the environment; before its first import.

    No tracing to a service, and no classes from a checkpoint file.
    """
    os.environ["LANGSMITH_TRACING"] = "false"
    os.environ["LANGCHAIN_TRACING_V2"] = "false"
    os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"


@contextmanager
def open_checkpoints(path: Path) -> Iterator[SqliteSaver]:
    """The checkpointer of one session; durable against the death of the process, not against power loss."""
    quiet_environment()
    from langgraph.checkpoint.sqlite import SqliteSaver

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        connection.execute("PRAGMA busy_timeout=10000")
        write_ahead(connection)
        connection.execute("PRAGMA synchronous=NORMAL")
        saver = SqliteSaver(connection)
        saver.setup()
        yield saver


def prune(saver: SqliteSaver, thread_id: str) -> None:
    """Keep the newest checkpoint of a thread alone."""
    with saver.cursor() as cursor:
        newest = "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = :thread"
        for table in ("writes", "checkpoints"):
            cursor.execute(
                f"DELETE FROM {table} WHERE thread_id = :thread AND checkpoint_id < ({newest})",
                {"thread": thread_id},
            )
