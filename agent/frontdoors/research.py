"""The process of one research session: `python -m agent.frontdoors.research --home HOME --session s1`.

Started by the agent service. SIGTERM or Ctrl-C: leave in order, jobs untouched, the session stays running. A second
one ends the process at once. If its parent dies, it leaves too.

Exit codes: 0 the session was left, stopped or ended; 1 it can not be worked on; 4 a bug, written to its activity.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from agent.checkpoints import quiet_environment
from agent.frontdoors.process import leave_on_signals, tie_to_parent
from agent.session import SessionDeps, run_session
from agent.store.store import AgentStore, SessionHeld, SessionNotFound, SessionNotRunnable
from agent.store.views import ActivityView, LookView, PlanView, SessionView, TrialView
from agent.waiting import EventPump, Waiter
from runtime_client.client import RuntimeClient
from runtime_client.protocol import Runtime


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Work on one research session.")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--session", required=True)
    parser.add_argument("--parent-pid", type=int, help="leave when this process is no longer the parent")
    given = parser.parse_args(arguments)
    quiet_environment()
    leaving = threading.Event()
    leave_on_signals(leaving)
    if given.parent_pid is not None and not tie_to_parent(given.parent_pid):
        return 0
    store = AgentStore.open(given.home)
    try:
        run_session(given.session, session_deps(given.home, store, leaving))
    except (SessionNotFound, SessionHeld, SessionNotRunnable) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        store.close()
    return 0


def session_deps(home: Path, store: AgentStore, leaving: threading.Event) -> SessionDeps:
    """The real world around a session: the runtime of this home over HTTP, its events, the report beside it."""

    def connect() -> Runtime:
        return RuntimeClient.from_home(home)

    def open_waiter(runtime: Runtime, since: int) -> Waiter:
        return EventPump(runtime, since=since, is_leaving=leaving.is_set)

    def pause(seconds: float) -> None:
        leaving.wait(seconds)

    return SessionDeps(
        store=store,
        connect=connect,
        open_waiter=open_waiter,
        folder=home / "sessions",
        write_report=report_writer(home, store, connect),
        should_leave=leaving.is_set,
        pause=pause,
    )


def report_writer(home: Path, store: AgentStore, connect: Callable[[], Runtime]) -> Callable[[SessionView], str]:
    """Writes `home/reports/<session>.html`, and the patch of edited code beside it.

    The plotting libraries are imported when it is called.
    """

    def write(view: SessionView) -> str:
        from agent.report import gather_report_input, write_report
        from agent.store.calls import model_calls_of

        path = home / "reports" / f"{view.session_id}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        calls = model_calls_of(store, view.session_id)
        seen = _AsItWillBe(store, view)
        facts = gather_report_input(seen, connect(), view.session_id, model_calls=calls, home=home)
        return str(write_report(facts, path))

    return write


class _AsItWillBe:
    """The store, with the session already in the state in which it is about to be left."""

    def __init__(self, store: AgentStore, view: SessionView) -> None:
        self._store = store
        self._view = view

    def session(self, session_id: str) -> SessionView:
        now = self._store.session(session_id)
        return replace(now, state=self._view.state, message=self._view.message, ended_at=self._view.ended_at)

    def trials(self, session_id: str) -> list[TrialView]:
        return self._store.trials(session_id)

    def activity(self, session_id: str, limit: int = 50) -> list[ActivityView]:
        return self._store.activity(session_id, limit)

    def looks(self, session_id: str) -> list[LookView]:
        return self._store.looks(session_id)

    def plans(self, session_id: str) -> list[PlanView]:
        return self._store.plans(session_id)


if __name__ == "__main__":
    sys.exit(main())
