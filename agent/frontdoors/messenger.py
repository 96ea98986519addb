"""The process that tells people of sessions: `python -m agent.frontdoors.messenger --home HOME`.

Started by the agent service while there is a session of which somebody wants to be told. It reads rows and sends, so no
address ever holds up a session, and a session that hangs is told of too. Ends by itself when there is nothing to tell.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.frontdoors.process import leave_on_signals, tie_to_parent
from agent.notices.notice import Notice
from agent.notices.session_events import Event, events
from agent.notices.telling import Delivery, tell
from agent.planner.budget import Spend, caps
from agent.store.faults import DiskFull, full_disk_named
from agent.store.gates import GateStore
from agent.store.steering import SteeringStore
from agent.store.store import AgentStore
from agent.store.tellings import TellingStore
from agent.store.views import SessionState, SessionView
from agent.task import Address, Task

LOOK_EVERY_S = 5.0

Send = Callable[[Sequence[tuple[Address, Notice]]], Sequence[Delivery]]


@dataclass(slots=True, kw_only=True)
class Messenger:
    store: AgentStore
    send: Send
    running_since: dict[str, float] = field(default_factory=dict)
    """When each session was first seen running: what was before is no stall."""

    def look(self) -> bool:
        """Tell what is due of every session; False when nothing will be."""
        to_tell = TellingStore(self.store).to_tell()
        for session_id in to_tell:
            self._tell_of(self.store.session(session_id))
        return bool(to_tell)

    def _tell_of(self, session: SessionView) -> None:
        task = Task.model_validate_json(session.task_json)
        told = TellingStore(self.store).told(session.session_id)
        for event in self._due(session, task):
            if event.key not in told:
                self._tell(session.session_id, event, task)

    def _due(self, session: SessionView, task: Task) -> list[Event]:
        now = self.store.clock()
        if session.state is not SessionState.RUNNING:
            self.running_since.pop(session.session_id, None)
        spend = Spend.of(session)
        return events(
            session,
            self.store.trials(session.session_id),
            GateStore(self.store).gates(session.session_id),
            caps(task.budgets, spend),
            running_since=self.running_since.setdefault(session.session_id, now),
            now=now,
            is_paused=SteeringStore(self.store).course(session.session_id).is_paused,
        )

    def _tell(self, session_id: str, event: Event, task: Task) -> None:
        rows = TellingStore(self.store)
        rows.intend(session_id, event.key)
        letters = [(address, event.notice) for address in task.notify if event.occasion in address.on]
        done = self.send(letters) if letters else ()
        rows.mark_told(session_id, event.key, "\n".join(one.words for one in done))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Tell people of sessions.")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--parent-pid", type=int, help="leave when this process is no longer the parent")
    given = parser.parse_args(arguments)
    leaving = threading.Event()
    leave_on_signals(leaving)
    if given.parent_pid is not None and not tie_to_parent(given.parent_pid):
        return 0
    store = AgentStore.open(given.home)
    messenger = Messenger(store=store, send=lambda letters: tell(letters, folder=given.home))
    try:
        while not leaving.is_set():
            try:
                with full_disk_named():
                    if not messenger.look():
                        return 0
            except DiskFull as error:
                print(error, file=sys.stderr)
            leaving.wait(LOOK_EVERY_S)
    finally:
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
