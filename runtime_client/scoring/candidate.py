"""A candidate: one module of code that nobody has read, in a process of its own that answers calls.

with Candidate(folder, "model", readable=[weights]) as candidate:
    scores = candidate.call("predict", inputs, shape=(len(inputs), 10))
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from runtime_client import landlock
from runtime_client.training.gateway import Gateway

from . import calls, child, frames
from .channel import Channel, quoted
from .errors import CandidateFailed, NotConfined
from .left import check_leads_nowhere

RUN_TAG = "scoring.candidate"
"""Of the scorer's run: the layers that held its last candidate."""
_PR_SET_DUMPABLE = 4
_PASSED_ON = ("PATH", "LANG", "TZ", "LD_LIBRARY_PATH", "CUBLAS_WORKSPACE_CONFIG")
_PASSED_ON_BY_PREFIX = ("LC_", "OMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "CUDA_", "NVIDIA_")


class Candidate:
    """It can read its folder, what is in `readable`, and this Python's installation; write nothing but a scratch folder
    that goes with it; reach no network, start no process, signal nobody. So it sees neither the scorer's memory nor the
    scorer's files. Whatever it does, a call returns an answer of the shape that was asked for, or raises.

    A candidate that has failed once is over. Threads must not share one, and the thread that starts it must outlive it.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        module: str,
        *,
        readable: Iterable[str | os.PathLike[str]] = (),
        start_s: float = 120.0,
        call_s: float = 120.0,
        answer_bytes: int = 2**28,
        memory_bytes: int | None = None,
        file_bytes: int = 2**30,
        level: Literal["landlock", "process"] = "landlock",
    ) -> None:
        """Nothing starts before `with`.

        Args:
            folder: with the module and what it imports; the candidate's working folder.
            module: its name, dotted where it lies deeper.
            readable: further files and folders that it may read: what training left. Links in them lead nowhere.
            start_s: seconds for its start and the import of the module.
            call_s: seconds for one call, unless the call says otherwise.
            answer_bytes: of one answer at most.
            memory_bytes: of its data at most; None: as much as the scorer's own job has.
            file_bytes: of one file in its scratch folder at most.
            level: process: without Landlock, within reach of every file that the scorer can read. `layers` tells, and
                the tag `scoring.candidate` of the scorer's run.
        """
        self._folder, self._module = Path(folder).absolute(), module
        self._readable = [Path(path).absolute() for path in readable]
        self._start_s, self._call_s, self._answer_bytes = start_s, call_s, answer_bytes
        self._bounds = {"memory_bytes": memory_bytes, "file_bytes": file_bytes}
        self._level = level
        self._channel: Channel | None = None
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self.layers: tuple[str, ...] = ()
        """What holds it: `landlock`, `seccomp`, `rlimit`. Empty before it has started."""

    def __enter__(self) -> Candidate:
        """Start it and import its module.

        Raises:
            NotConfined: this machine can not shut it off; CandidateFailed: the import failed or took too long;
            ValueError: a path that is not there; NotUsable: one that is a link, or leads through a link of training's.
        """
        if self._channel is not None:
            raise ValueError("this candidate runs already: make another one")
        for path in (self._folder, *self._readable):
            check_leads_nowhere(path)
        _check_machine(self._level)
        hide_this_process()
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        _tell_run(self.layers)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def call(
        self,
        name: str,
        *arguments: object,
        shape: Sequence[int | None] | None = None,
        is_finite: bool = True,
        timeout_s: float | None = None,
    ) -> Any:
        """What the function of that name answers: None, numbers, text, arrays, lists and dicts of these.

        Args:
            name: of a function of the module.
            arguments: values of the same kinds; tensors are passed as arrays.
            shape: that the answer, one array, must have; None for a length that may be any.
            is_finite: whether an answer with NaN or infinity in it is a failure.
            timeout_s: None: `call_s`.

        Raises:
            CandidateFailed: it raised, ended, hung, or its answer can not be used.
            TypeError, ValueError: an argument can not be passed.
        """
        message = frames.encode([name, *arguments])
        if self._channel is None:
            raise CandidateFailed(f"{self._module} does not run: it was not started, or has failed before")
        until = time.monotonic() + (self._call_s if timeout_s is None else timeout_s)
        try:
            self._channel.say(message, until, name)
            value = self._value(child.ANSWER, self._channel.heard(until, name), name)
            _check_answer(name, value, shape, is_finite=is_finite)
        except BaseException:
            self.close()
            raise
        return value

    def close(self) -> None:
        """End it and all that it has started; nothing of it is left when this returns."""
        channel, scratch, self._channel, self._scratch = self._channel, self._scratch, None, None
        if channel is not None:
            channel.close()
        if scratch is not None:
            scratch.cleanup()

    def _start(self) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="candidate-", ignore_cleanup_errors=True)
        readable = [str(path) for path in (self._folder, *self._readable)]
        order = {"folder": str(self._folder), "module": self._module, "readable": readable, **self._bounds,
                 "scratch": self._scratch.name, "level": self._level}  # fmt: skip
        environment = _environment(self._scratch.name)
        self._channel = Channel(order, environment, most_bytes=self._answer_bytes)
        until = time.monotonic() + self._start_s
        kind, *told = self._channel.heard(until, "its start")
        if kind != child.CONFINED:
            raise NotConfined(f"the candidate could not be shut off: {' '.join(map(str, told))[:500]}")
        self.layers = tuple(told[0])
        what = f"the import of {self._module}"
        self._value(child.READY, self._channel.heard(until, what), what)

    def _value(self, kind: str, message: list[Any], what: str) -> Any:
        match message:
            case [child.RAISED, str(text)]:
                raise CandidateFailed(f"{self._module}: {what} failed:{quoted(text)}")
            case [found, *values] if found == kind and len(values) <= 1:
                return values[0] if values else None
        raise CandidateFailed(f"{self._module}: what it said for {what} is no answer")


def hide_this_process() -> None:
    """Processes of the same user can look neither into its memory nor at its files (/proc/PID) from then on."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, *(ctypes.c_ulong(0) for _ in range(4))) != 0:
        raise NotConfined(f"the scorer's own memory can not be hidden: {os.strerror(ctypes.get_errno())}")


def _tell_run(layers: Sequence[str]) -> None:
    """In a scorer's job, its run says what held the candidate. Where nobody answers, it does not."""
    url = os.environ.get("MLFLOW_TRACKING_URI")
    if "NIGHTLAB_JOB_ID" in os.environ and url:
        Gateway(url, os.environ.get("MLFLOW_TRACKING_TOKEN"), timeout_s=5.0).tag(RUN_TAG, ", ".join(layers))


def _check_machine(level: str) -> None:
    if level == "landlock" and landlock.abi() < 1:
        raise NotConfined(
            "this machine has no Landlock, so that the candidate could read what the scorer reads: run the scorer on "
            "Linux 5.13 or newer with landlock in /sys/kernel/security/lsm, or say level='process' for code you trust"
        )
    if os.uname().machine not in calls.NUMBERS:
        raise NotConfined(f"candidates need one of {', '.join(calls.NUMBERS)}; this machine is {os.uname().machine}")


def _check_answer(name: str, value: object, shape: Sequence[int | None] | None, *, is_finite: bool) -> None:
    if shape is not None and not _fits(getattr(value, "shape", None), shape):
        words = ", ".join("any" if length is None else str(length) for length in shape)
        raise CandidateFailed(f"{name} answered {frames.words(value)}, and an array of shape ({words}) was asked for")
    if is_finite and not frames.is_finite(value):
        raise CandidateFailed(f"{name} answered numbers that are NaN or infinite")


def _fits(found: tuple[int, ...] | None, wanted: Sequence[int | None]) -> bool:
    if found is None or len(found) != len(wanted):
        return False
    return all(length in (None, own) for own, length in zip(found, wanted, strict=True))


def _environment(scratch: str) -> dict[str, str]:
    """Nothing secret: the token of the metrics gateway stays with the scorer."""
    passed = {
        name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith(_PASSED_ON_BY_PREFIX)
    }
    return {**passed, "HOME": scratch, "TMPDIR": scratch}
