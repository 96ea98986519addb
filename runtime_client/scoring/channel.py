"""A process that is asked by one pipe and answers by another, within limits of time and bytes; what it prints is kept.

Nothing here believes the process: it may end, hang, flood, or say what is no message. All of that is CandidateFailed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import child, frames
from .errors import CandidateFailed, Malformed

_PIECE = 2**20
"""Also what a pipe is to hold, where the machine lets it."""
_OUTPUT_BYTES = 4096
"""Of what it prints, the end that is kept for messages."""
_TOLD_CHARACTERS = 1500
_LOOK_AT_END_S = 2.0
"""For how it ended, once it answers no more."""


class Channel:
    """It has a process group of its own. Times are on the monotonic clock, in seconds."""

    def __init__(self, order: Mapping[str, object], environment: Mapping[str, str], *, most_bytes: int) -> None:
        """Start it. `most_bytes` bounds each of its messages."""
        self._name = str(order["module"])
        self._most_bytes = most_bytes
        self._output = bytearray()
        asked, self._requests = os.pipe()
        self._answers, told = os.pipe()
        self._printed, printing = os.pipe()
        here = str(Path(__file__).parents[2])
        begin = f"import sys; sys.path.insert(0, {here!r}); from {child.__name__} import main; del sys.path[0]; main()"
        words = json.dumps({**order, "requests": asked, "answers": told, "parent": os.getpid()})
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-B", "-u", "-X", "faulthandler", "-c", begin, words],
                stdin=subprocess.DEVNULL, stdout=printing, stderr=printing, pass_fds=(asked, told), cwd="/",
                env=dict(environment), start_new_session=True,
            )  # fmt: skip
        except BaseException:
            self._let_go()
            raise
        finally:
            for descriptor in (asked, told, printing):
                os.close(descriptor)
        for descriptor in (self._requests, self._answers, self._printed):
            os.set_blocking(descriptor, False)
            with contextlib.suppress(OSError):
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIECE)

    def close(self) -> None:
        """End it and its group; nothing of it is left when this returns. Once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._let_go()

    @property
    def output(self) -> str:
        """The end of what it has printed so far."""
        return self._output.decode(errors="replace")

    def say(self, message: bytes, until: float, what: str) -> None:
        """Raises CandidateFailed, also where it has said something that it was not asked for."""
        with contextlib.suppress(BlockingIOError):
            if os.read(self._answers, 1):
                raise CandidateFailed(f"{self._name} said more than it was asked for, before {what}")
        left = memoryview(message)
        while left:
            try:
                left = left[os.write(self._requests, left[:_PIECE]) :]
            except BlockingIOError:
                self._wait(until, self._requests, selectors.EVENT_WRITE, what)
            except BrokenPipeError:
                raise self._ended(what) from None

    def heard(self, until: float, what: str) -> list[Any]:
        """Its next message, a list that begins with its kind. Raises CandidateFailed."""
        try:
            n_json, n_arrays = frames.sizes(bytes(self._read(frames.HEAD.size, until, what)), self._most_bytes)
            found = frames.decode(self._read(n_json + n_arrays, until, what), n_json)
            if not isinstance(found, list) or not found:
                raise Malformed("it is of no kind")
        except Malformed as problem:
            raise CandidateFailed(f"{self._name}: what it said for {what} can not be used: {problem}") from None
        return found

    def _read(self, n_bytes: int, until: float, what: str) -> bytearray:
        """Memory grows with what has arrived, not with what was announced."""
        found = bytearray()
        while len(found) < n_bytes:
            try:
                piece = os.read(self._answers, min(_PIECE, n_bytes - len(found)))
            except BlockingIOError:
                self._wait(until, self._answers, selectors.EVENT_READ, what)
                continue
            if not piece:
                raise self._ended(what)
            found += piece
        return found

    def _wait(self, until: float, descriptor: int, event: int, what: str) -> None:
        """Until the descriptor is ready; what it prints meanwhile is taken, so that it does not hang on that."""
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, event)
            selector.register(self._printed, selectors.EVENT_READ)
            while (left_s := until - time.monotonic()) > 0:
                ready = {key.fd for key, _ in selector.select(left_s)}
                if self._printed in ready and not self._drain():
                    selector.unregister(self._printed)
                if descriptor in ready:
                    return
        raise CandidateFailed(f"{self._name}: {what} took longer than it may, and it was ended{self._told()}")

    def _drain(self) -> bool:
        """False: there is nothing now, or never again."""
        with contextlib.suppress(BlockingIOError):
            piece = os.read(self._printed, _PIECE)
            self._output += piece
            del self._output[:-_OUTPUT_BYTES]
            return bool(piece)
        return False

    def _ended(self, what: str) -> CandidateFailed:
        try:
            how = _end(self._process.wait(_LOOK_AT_END_S))
        except subprocess.TimeoutExpired:
            how = "closed its pipe"
        while self._drain():
            continue
        return CandidateFailed(f"{self._name} {how} before {what} was done{self._told()}")

    def _told(self) -> str:
        return f"; it printed:{quoted(self.output[-_TOLD_CHARACTERS:])}" if self.output.strip() else ""

    def _let_go(self) -> None:
        for descriptor in (self._requests, self._answers, self._printed):
            os.close(descriptor)


def quoted(text: str) -> str:
    """Lines of the candidate, marked as its own: a scorer's output is searched for metrics, and these are none."""
    return "".join(f"\n  | {line}" for line in text.strip().splitlines())


def _end(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
