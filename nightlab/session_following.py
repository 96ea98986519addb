"""Following a session to its end: the live view on a terminal, its lines elsewhere, nothing when asked for silence."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from agent.store.gates import GateStore
from agent.store.store import AgentStore
from agent.store.views import SessionState, SessionView
from runtime_client.client import RuntimeClient

from .live import LiveSnapshot, LiveView, SnapshotSource
from .output import console
from .patience import patiently

POLL_S = 0.5
AT_WORK = (SessionState.RUNNING, SessionState.STOPPING)


def follow_session(home: Path, session_id: str, *, is_quiet: bool) -> SessionView:
    """Return when the session works no more. Its process belongs to the service: to leave early stops nothing."""
    with closing(AgentStore.open(home)) as store:
        if not is_quiet:
            with RuntimeClient.from_home(home) as client:
                source = SnapshotSource(
                    client, store, session_id, questions=lambda: GateStore(store).waiting(session_id)
                )
                view = LiveView(source, console(), ctrl_c="Ctrl-C leaves it running")
                patiently(lambda: view.follow(_has_ended))
        while (session := store.session(session_id)).state in AT_WORK:
            time.sleep(POLL_S)
        return session


def _has_ended(snapshot: LiveSnapshot) -> bool:
    return snapshot.session_state not in AT_WORK
