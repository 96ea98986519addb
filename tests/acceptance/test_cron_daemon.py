"""A night that the machine's own cron daemon starts, at its minute, in the environment that cron gives."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command import nightlab
from cron_daemon import cron_daemon, crontab_now, is_at_work, why_not
from fault_lab import eventually
from night_lab import NAME, NightLab, Plan, check_each_once

from agent.sweeps.views import NightOutcome

REASON = why_not()
pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(300),
    pytest.mark.skipif(REASON is not None, reason=REASON or ""),
]

PLAN = Plan(n_points=2, n_seeds=2)
LEAST_AHEAD_S = 4.0
"""Of the minute that is asked for: so long the daemon and the line have to be there."""
LONGEST_S = 60.0
KILLED_INSIDE = """
import os, signal, subprocess, sys
from pathlib import Path
from cron_daemon import cron_daemon, crontab_now
folder = Path(sys.argv[1])
with cron_daemon(folder):
    subprocess.run(["crontab", "-"], input=b"# of a test\\n", check=True)
    (folder / "within").write_bytes(crontab_now())
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_cron_daemon_starts_a_whole_night_at_its_minute_and_uninstall_leaves_the_crontab_as_it_was(
    tmp_path: Path,
) -> None:
    with NightLab(tmp_path, PLAN) as lab, cron_daemon(tmp_path) as before:
        lab.write_sweep()
        lab.up_once(stay=False)
        due = 60.0 * (1 + (time.time() + LEAST_AHEAD_S) // 60)
        said = install(lab, due)
        lines = (crontab_now() or b"").splitlines()
        assert [line for line in lines if line not in (before or b"").splitlines()] == [said.encode()]

        eventually(lambda: starts(lab), within_s=due - time.time() + LONGEST_S, what="the start of the night")
        night = lab.await_settled(within_s=LONGEST_S)

        assert (night.outcome, night.message) == (NightOutcome.DONE, "")
        assert due <= night.created_at < due + LONGEST_S
        check_each_once(lab)
        assert NAME in Path(night.report_html or "").read_text()
        check_log(lab, night.night_id)
        row = listed(lab)
        assert (row["n_nights"], row["last"]["outcome"]) == (1, "done")
        assert (row["schedule"]["missed"], row["schedule"]["line"]) == ([], "in force")
        assert row["schedule"]["next_at"] > due
        done = nightlab("sweep", "uninstall", NAME, home=lab.home)
        assert done.exit_code == 0, done.err
        assert (crontab_now() or b"") == (before or b"")


def install(lab: NightLab, due: float) -> str:
    """The line that is put into the crontab, for the minute that begins then."""
    at = time.strftime("%M %H * * *", time.localtime(due))
    python = sys.executable
    done = nightlab("sweep", "install", str(lab.file), "--at", at, "--python", python, "--json", home=lab.home)
    assert done.exit_code == 0, done.err
    return str(json.loads(done.out)["data"]["line"])


def starts(lab: NightLab) -> bool:
    nights = lab.nights
    try:
        return bool(nights.nights(NAME))
    finally:
        nights.store.close()


def check_log(lab: NightLab, night_id: str) -> None:
    """The one line of `sweep run`, in the log that the line in the crontab gives it; written as the command ends."""
    log = lab.home / "logs" / f"sweep-{NAME}.log"
    eventually(lambda: f"{night_id} done: " in log.read_text(), what="the line of the night")
    assert "Traceback" not in log.read_text()


def listed(lab: NightLab) -> dict[str, Any]:
    done = nightlab("sweep", "list", "--json", home=lab.home)
    assert done.exit_code == 0, done.err
    (row,) = json.loads(done.out)["data"]
    return dict(row)


def test_the_crontab_is_put_back_and_the_daemon_ends_when_the_test_that_uses_them_is_killed(tmp_path: Path) -> None:
    before, had_daemon = crontab_now(), is_at_work()
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_INSIDE, str(tmp_path)], cwd=Path(__file__).parent, timeout=60, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "within").read_bytes() == b"# of a test\n"
    eventually(lambda: crontab_now() == before, what="the crontab from before")
    assert is_at_work() is had_daemon
