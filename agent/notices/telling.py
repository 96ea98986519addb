"""Telling people through Apprise: every address in a process of its own, bounded in time, never fatal."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from agent.notices.notice import Notice
from agent.notices.sending import public_scheme
from agent.task import Address

TIMEOUT_S = 20.0
"""For one address and one try."""
AT_ONCE = 8
"""Processes that send side by side."""
READABLE_BY_OTHERS = stat.S_IRGRP | stat.S_IROTH
MAX_ADDRESS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What became of a message to one address."""

    address: str
    """Scheme and machine; no secret."""
    outcome: str
    """sent, failed (the service did not take it), hung, invalid (the address)."""
    detail: str = ""
    warning: str = ""

    @property
    def is_sent(self) -> bool:
        return self.outcome == "sent"

    @property
    def words(self) -> str:
        """`json://example.org: told`."""
        said = {"sent": "told", "hung": "not told, no answer in time"}.get(self.outcome, "not told")
        return "; ".join(
            part
            for part in (f"{self.address}: {said}{', ' + self.detail if self.detail else ''}", self.warning)
            if part
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Letter:
    place: int
    url: str
    notice: Notice
    warning: str


def tell(
    letters: Sequence[tuple[Address, Notice]], *, folder: Path, timeout_s: float = TIMEOUT_S
) -> tuple[Delivery, ...]:
    """Send each message; what a service refuses is tried once more. Raises nothing for what addresses do.

    Args:
        folder: what `url_file` is relative to.
        timeout_s: of one try; the whole ends within twice that for each AT_ONCE addresses.
    """
    found: dict[int, Delivery] = {}
    ready = []
    for place, (address, message) in enumerate(letters):
        read = _address(address, folder)
        if isinstance(read, Delivery):
            found[place] = read
        else:
            url, warning = read
            ready.append(_Letter(place=place, url=url, notice=message, warning=warning))
    for start in range(0, len(ready), AT_ONCE):
        some = ready[start : start + AT_ONCE]
        found.update(_post(some, timeout_s))
        again = [letter for letter in some if found[letter.place].outcome == "failed"]
        found.update(_post(again, timeout_s))
    return tuple(found[place] for place in range(len(letters)))


def why_no_address(address: Address, folder: Path) -> str | None:
    """What is wrong with the file that holds an address, and what to do; None: there is one, or no file."""
    read = _address(address, folder)
    if not isinstance(read, Delivery):
        return None
    return f"{read.address}: {read.detail}; write the address into its first line (chmod 600)"


def _address(address: Address, folder: Path) -> tuple[str, str] | Delivery:
    """The address and a warning, or why there is none."""
    if address.url is not None:
        return address.url.strip(), ""
    path = folder / Path(address.url_file or "").expanduser()
    try:
        with path.open(encoding="utf-8") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            url = opened.readline(MAX_ADDRESS).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        return Delivery(address=str(path), outcome="invalid", detail=f"the file with the address: {reason}")
    if not url:
        return Delivery(address=str(path), outcome="invalid", detail="the first line of the file has no address")
    warning = f"others can read {path}: chmod 600 {path}" if mode & READABLE_BY_OTHERS else ""
    return url, warning


def _post(letters: Sequence[_Letter], timeout_s: float) -> dict[int, Delivery]:
    """One try for each, side by side."""
    deadline = time.monotonic() + timeout_s
    started: list[tuple[_Letter, subprocess.Popen[str]]] = []
    found: dict[int, Delivery] = {}
    for letter in letters:
        try:
            started.append((letter, _start()))
        except OSError as error:
            detail = f"no process could be started for it: {error.strerror}"
            found[letter.place] = Delivery(
                address=_public(letter), outcome="failed", detail=detail, warning=letter.warning
            )
    for letter, process in started:
        _hand_over(letter, process)
    return found | {letter.place: _outcome(letter, process, deadline) for letter, process in started}


def _public(letter: _Letter) -> str:
    """What is told of an address whose process did not answer."""
    return public_scheme(letter.url)


def _start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "agent.notices.sending"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )


def _hand_over(letter: _Letter, process: subprocess.Popen[str]) -> None:
    """Small enough for the pipe: nobody waits for the reader."""
    text = json.dumps({"url": letter.url, "title": letter.notice.title, "body": letter.notice.body})
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(text)
        process.stdin.close()
    process.stdin = None


def _outcome(letter: _Letter, process: subprocess.Popen[str], deadline: float) -> Delivery:
    lost = Delivery(address=_public(letter), outcome="hung", warning=letter.warning)
    try:
        written, _ = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        _end(process)
        return lost
    try:
        answer = json.loads(written)
        told = replace(lost, address=answer["address"], outcome=answer["outcome"], detail=answer["detail"])
    except (ValueError, KeyError):
        detail = f"the process that sends it ended with exit code {process.returncode}"
        return replace(lost, outcome="failed", detail=detail)
    return told


def _end(process: subprocess.Popen[str]) -> None:
    """With everything that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
