"""The machine's own cron for the length of a test: its daemon, and this user's crontab, put back whatever happens.

For root alone, since a daemon of one's own needs that. A shell of its own has the daemon, ends it and puts the crontab
back when the test is over, also when the test is killed: it waits for the end of a pipe.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fault_lab import eventually

NEEDED = ("cron", "crontab")
LOCK = Path("/tmp/crontab.lock")
"""One test at a time uses the crontab: the lock of all that do."""
GUARD = """
cron -f &
cat > /dev/null
kill $! 2> /dev/null
wait $!
if [ -e "$1" ]; then crontab "$1"; else crontab -r; fi
"""
PID_FILE = Path("/run/crond.pid")
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


def why_not() -> str | None:
    """Why no daemon can be started here; None: it can."""
    missing = [name for name in NEEDED if shutil.which(name, path=ENVIRONMENT["PATH"]) is None]
    if missing:
        return f"no {' and no '.join(missing)} here (on Debian: apt-get install cron)"
    return None if os.geteuid() == 0 else "a cron daemon of one's own needs root"


def crontab_now() -> bytes | None:
    """This user's crontab; None: there is none."""
    done = subprocess.run(["crontab", "-l"], env=ENVIRONMENT, capture_output=True, check=False)
    if done.returncode == 0:
        return done.stdout
    assert b"no crontab for" in done.stderr, done.stderr
    return None


@contextmanager
def cron_daemon(folder: Path) -> Iterator[bytes | None]:
    """The crontab as it was before; a daemon reads it meanwhile: the machine's, where one runs, else one of ours."""
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before, saved = crontab_now(), folder / "crontab.before"
        if before is not None:
            saved.write_bytes(before)
        guard = subprocess.Popen(
            ["sh", "-c", GUARD, "guard", str(saved)],
            env=ENVIRONMENT,
            cwd="/",
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            eventually(is_at_work, what="a cron daemon")
            yield before
        finally:
            guard.communicate(timeout=30)
        assert crontab_now() == before


def is_at_work() -> bool:
    """Whether a cron daemon runs: ours, or the one that was there before."""
    try:
        pid = PID_FILE.read_text().strip()
        return Path("/proc", pid, "comm").read_text().strip() == "cron"
    except OSError:
        return False
