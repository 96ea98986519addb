"""A program on a terminal of its own: what it prints, and keys pressed, Ctrl-C among them."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ON_TERMINAL = (
    "import os, sys\n"
    "os.login_tty(os.open(sys.argv[1], os.O_RDWR))\n"
    "os.execv(sys.executable, [sys.executable, *sys.argv[2:]])\n"
)
_ESCAPES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>]|\x1b\][^\x07]*\x07")
WAIT_S = 30.0
CTRL_C, CTRL_D, ALT_ENTER, ENTER, TAB = "\x03", "\x04", "\x1b\r", "\r", "\t"


@dataclass(slots=True)
class Terminal:
    process: subprocess.Popen[bytes]
    keyboard: int
    raw: bytes = b""
    n_read: int = 0
    """Characters of the plain text that were waited for already."""

    def press(self, *keys: str) -> None:
        os.write(self.keyboard, "".join(keys).encode())

    def until(self, text: str, *, within_s: float = WAIT_S) -> str:
        """What is printed up to and with this text, beyond what was waited for before.

        Raises:
            AssertionError: it does not come in time.
        """
        deadline = time.monotonic() + within_s
        while (place := self.plain.find(text, self.n_read)) < 0:
            assert self._read(deadline), f"{text!r} did not come, but {self.plain[self.n_read :]!r}"
        before, self.n_read = self.n_read, place + len(text)
        return self.plain[before : self.n_read]

    def end(self, *, within_s: float = WAIT_S) -> int:
        """Exit code, once it has ended by itself."""
        deadline = time.monotonic() + within_s
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read(time.monotonic() + 0.05)
        return self.process.wait(timeout=1)

    @property
    def plain(self) -> str:
        return _ESCAPES.sub(b"", self.raw).decode(errors="replace").replace("\r", "")

    def _read(self, deadline: float) -> bool:
        """More of what is printed; False: no more, or not in time."""
        if not select.select([self.keyboard], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return False
        try:
            more = os.read(self.keyboard, 65536)
        except OSError:  # the other end is closed
            return False
        self.raw += more
        return bool(more)


@contextmanager
def on_terminal(arguments: Sequence[str], home: Path) -> Iterator[Terminal]:
    """`nightlab ARGUMENTS` on a terminal of 100 columns; ended with the block."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(ours, (40, 100))
    names = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTLAB_")}
    environment = {**names, "NIGHTLAB_HOME": str(home), "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"}
    command = [sys.executable, "-c", ON_TERMINAL, os.ttyname(theirs), "-m", "nightlab", *arguments]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
    try:
        yield Terminal(process, ours)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait(timeout=10)
        os.close(theirs)
        os.close(ours)
