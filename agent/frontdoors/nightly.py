"""The process of one night: `python -m agent.frontdoors.nightly --home HOME --night digits-n3`.

Started by the agent service, like the processes of sessions. SIGTERM or Ctrl-C: leave in order; the night stays running
and goes on when the service is up again. A second one ends the process at once.

Exit codes: 0 the night has ended or was left; 1 it can not be worked on; 4 a bug.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from agent.frontdoors.process import leave_on_signals, tie_to_parent
from agent.store.night_reading import NightNotFound
from agent.store.nights import NightHeld, NightStore
from agent.store.store import AgentStore
from agent.sweeps.morning import MorningDeps, tell_of, write_plain_reports, write_reports
from agent.sweeps.night_deps import NightDeps
from agent.sweeps.running import run_night
from agent.sweeps.summary import summarize
from agent.sweeps.views import NightSummary, NightView
from runtime_client.client import RuntimeClient
from runtime_client.protocol import Runtime


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Work on one night of a sweep.")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--night", required=True)
    parser.add_argument("--parent-pid", type=int, help="leave when this process is no longer the parent")
    given = parser.parse_args(arguments)
    leaving = threading.Event()
    leave_on_signals(leaving)
    if given.parent_pid is not None and not tie_to_parent(given.parent_pid):
        return 0
    store = AgentStore.open(given.home)
    deps = night_deps(
        given.home,
        store,
        connect=lambda: RuntimeClient.from_home(given.home),
        say=_say,
        should_leave=leaving.is_set,
        pause=lambda seconds: _wait(leaving, seconds),
    )
    try:
        run_night(given.night, deps)
    except (NightNotFound, NightHeld) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        store.close()
    return 0


def night_deps(
    home: Path,
    store: AgentStore,
    *,
    connect: Callable[[], Runtime],
    say: Callable[[str], None],
    should_leave: Callable[[], bool],
    pause: Callable[[float], None],
) -> NightDeps:
    """The world around a night of this home: its pages, who is told; the rest as `NightDeps` says."""
    morning = MorningDeps(home=home, nights=NightStore(store), store=store, connect=connect, clock=store.clock)

    def write(night_id: str) -> Path | None:
        files = write_reports(morning, night_id)
        NightStore(store).save_reports(night_id, str(files.html), str(files.markdown))
        return files.html

    def write_plain(night_id: str) -> Path | None:
        files = write_plain_reports(morning, night_id)
        NightStore(store).save_reports(night_id, str(files.html), str(files.markdown))
        return files.html

    def tell(night: NightView, summary: NightSummary, page: Path | None) -> tuple[str, ...]:
        return tell_of(night, summary, report=page)

    return NightDeps(
        store=store,
        connect=connect,
        summarize=summarize,
        write_reports=write,
        write_plain_reports=write_plain,
        tell=tell,
        say=say,
        should_leave=should_leave,
        pause=pause,
    )


def _say(text: str) -> None:
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _wait(leaving: threading.Event, seconds: float) -> None:
    leaving.wait(seconds)


if __name__ == "__main__":
    sys.exit(main())
