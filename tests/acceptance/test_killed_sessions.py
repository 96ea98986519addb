"""A running session whose parts are killed with SIGKILL, early, in the search, and while it confirms.

It ends as if nothing had happened: every trial once, on one job, with the curve of an undisturbed execution.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from fault_lab import (
    FaultLab,
    check_nothing_is_left,
    check_whole,
    eventually,
    is_alive,
    processes_with,
)

from agent.store.views import SessionState

pytestmark = pytest.mark.kills

MOMENTS = ("start", "search", "confirm", "held_out")


@pytest.mark.parametrize("victim", ["session", "agent", "server", "launcher"])
def test_a_killed_service_costs_nothing(victim: str, tmp_path: Path) -> None:
    with FaultLab(tmp_path) as lab:
        lab.start_session()
        for moment in MOMENTS:
            lab.await_moment(moment)
            lab.kill(victim)
        lab.await_end()
        check_whole(lab, with_retries=False)
        lab.down()
        check_nothing_is_left(lab.home)


@pytest.mark.parametrize("victim", ["leader", "attempt supervisor"])
def test_killed_training_goes_on_from_its_checkpoint(victim: str, tmp_path: Path) -> None:
    with FaultLab(tmp_path) as lab:
        lab.start_session()
        for moment in ("search", "confirm"):
            lab.await_moment(moment)
            lab.kill(victim)
        lab.await_end()
        check_whole(lab, with_retries=True)
        again = [job for job in lab.jobs() if len(job.attempts) == 2]
        assert len(again) == 2
        reason = {"leader": "killed_by_signal", "attempt supervisor": "supervisor_lost"}[victim]
        assert [job.attempts[0].exit_reason for job in again] == [reason, reason]
        lab.down()
        check_nothing_is_left(lab.home)


def test_services_killed_with_their_supervisor_go_on_after_up(tmp_path: Path) -> None:
    with FaultLab(tmp_path) as lab:
        lab.start_session()
        for moment in ("start", "search", "confirm"):
            lab.await_moment(moment)
            pids = [lab.service_pid(name) for name in ("supervisor", "server", "agent")]
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            eventually(lambda pids=pids: not any(is_alive(pid) for pid in pids))
            lab.up()
        lab.await_end()
        check_whole(lab, with_retries=False)


def test_a_session_goes_on_after_everything_was_killed_at_once(tmp_path: Path) -> None:
    """As a power cut, but for the disk."""
    with FaultLab(tmp_path) as lab:
        lab.start_session()
        for moment in ("search", "confirm"):
            lab.await_moment(moment)
            lab.running_attempt(is_checkpointed=True)
            for _ in range(3):
                for pid in processes_with(lab.home):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            eventually(lambda: not processes_with(lab.home))
            lab.up()
            assert lab.session().state is SessionState.RUNNING
        lab.await_end()
        check_whole(lab, with_retries=True)
        assert any(len(job.attempts) == 2 for job in lab.jobs())
        lab.down()
        check_nothing_is_left(lab.home)
