"""Metrics from what a script prints or writes, for scripts that do not log with MLflow.

Each reader follows growing files: `read` returns the points that came since the last call. What can not be read is
skipped: half lines wait for their end, garbage is no metric, a file that became shorter is read from its start. Where
readers stand can be saved and loaded, so that a new server goes on where the old one was.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from runtime.node import records
from runtime.node.event_files import NotAnEventFile, first_record_bytes, scalars, whole_records
from runtime.node.output import data_from
from runtime_client.models import JobSpec, JsonLines, Sandbox, StdoutPattern, TensorBoardFiles
from runtime_client.models.spec import compile_pattern

Point = tuple[str, float, int, float]
"""(name, value, step, seconds since the epoch)"""

LONGEST_LINE = 8 * 1024
"""Bytes of a line that are looked at. Patterns can take time that grows steeply with the length."""
MOST_BYTES = 1024 * 1024
"""Of one file in one `read`."""
PATTERN_CPU_S = 0.25
"""Processor time that a pattern may take in one `read`."""
_FOLDER_LOOK_S = 5.0
"""Between two searches for new event files."""
_LONGEST_NAME = 250
_RANK_PREFIX = re.compile(rb"^\[(?:default|rank)\d+\]:\s?")
"""That torchrun and torch put before the lines of a rank."""
_STEP_FIELDS = ("step", "epoch")


class SourceFailed(Exception):
    """This source can not be read any more; the text says why. The others go on."""


class Reader(Protocol):
    def read(self, *, is_final: bool = False) -> list[Point]:
        """New points; at the end a last line without its newline counts too. Raises SourceFailed."""
        ...

    def skip_existing(self) -> None:
        """Leave out what is there now: it is of an earlier attempt."""
        ...

    def save(self) -> dict[str, Any]: ...

    def load(self, saved: dict[str, Any]) -> None: ...


def read_to_end(reader: Reader) -> list[Point]:
    """All that is left, once nothing is written any more. Raises SourceFailed."""
    points: list[Point] = []
    while True:
        before = reader.save()
        points += reader.read(is_final=True)
        if reader.save() == before:
            return points


def readers(spec: JobSpec, *, log: Path, folder: Path, job_id: str) -> list[Reader]:
    """One reader per declared source. `log` is the attempt's output, `folder` the job's working directory.

    What a sealed job put in the place of a file below `folder` is not followed: the server may read more than the job.

    Raises ValueError for a pattern that is none.
    """
    below = folder if spec.sandbox is Sandbox.SEALED else None
    return [_reader(source, log, folder, below, job_id) for source in spec.metric_sources]


def _reader(
    source: StdoutPattern | JsonLines | TensorBoardFiles, log: Path, folder: Path, below: Path | None, job_id: str
) -> Reader:
    match source:
        case StdoutPattern():
            return _PatternLines(_GrowingFile(log), compile_pattern(source.pattern))
        case JsonLines(path=None):
            return _JsonLines(_GrowingFile(log), is_of_this_attempt=True)
        case JsonLines(path=path):
            file = _GrowingFile(folder / str(path).replace("{job_id}", job_id), below)
            return _JsonLines(file, is_of_this_attempt=False)
        case TensorBoardFiles():
            return _EventFiles(folder / source.path.replace("{job_id}", job_id), below)


class _GrowingFile:
    """The whole new bytes of a file since the last look."""

    def __init__(self, path: Path, below: Path | None = None) -> None:
        self.path = path
        self._below = below
        self._offset = 0
        self._inode = 0
        self._size = 0

    def read(self) -> bytes:
        """Up to MOST_BYTES from where we stand; does not move on."""
        try:
            descriptor = self._open()
        except OSError:
            return b""
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                return b""
            if found.st_size < self._offset or (self._inode and found.st_ino != self._inode):
                self._offset = 0
            self._inode, self._size = found.st_ino, found.st_size
            self._offset = data_from(descriptor, self._offset, found.st_size)  # behind what was cut out
            return os.pread(descriptor, MOST_BYTES, self._offset)
        except OSError:
            return b""
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        if self._below is not None:
            return records.open_plain(str(self.path), below=str(self._below))
        return os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)

    def holds(self, n_bytes: int) -> bool:
        """Whether the file had this many bytes from where we stand, when it was last read."""
        return self._offset + n_bytes <= self._size

    def move_on(self, n_bytes: int) -> None:
        self._offset += n_bytes

    def lines(self, *, is_final: bool) -> list[bytes]:
        """New whole lines, each cut at LONGEST_LINE."""
        data = self.read()
        end = data.rfind(b"\n") + 1
        if (is_final and len(data) < MOST_BYTES) or (end == 0 and len(data) == MOST_BYTES):
            end = len(data)  # The last line, or one of a megabyte.
        self.move_on(end)
        return [_RANK_PREFIX.sub(b"", line[:LONGEST_LINE]) for line in data[:end].splitlines()]

    def skip_existing(self) -> None:
        try:
            found = self.path.stat()
        except OSError:
            return
        self._offset, self._inode = found.st_size, found.st_ino

    def save(self) -> list[int]:
        return [self._offset, self._inode]

    def load(self, saved: Sequence[int]) -> None:
        self._offset, self._inode = saved


class _Steps:
    """Steps for metrics that were printed without one: 0, 1, 2, ... for each name."""

    def __init__(self) -> None:
        self.next_by_name: dict[str, int] = {}

    def step(self, name: str, given: int | None) -> int:
        step = self.next_by_name.get(name, 0) if given is None else given
        self.next_by_name[name] = step + 1
        return step


class _PatternLines:
    def __init__(self, file: _GrowingFile, pattern: re.Pattern[str]) -> None:
        self._file = file
        self._pattern = pattern
        self._steps = _Steps()

    def read(self, *, is_final: bool = False) -> list[Point]:
        lines = self._file.lines(is_final=is_final)
        at_s = time.time()
        points: list[Point] = []
        if lines:
            with _cpu_limit(PATTERN_CPU_S, f"the pattern {self._pattern.pattern!r} took too long on a line"):
                for line in lines:
                    for match in self._pattern.finditer(line.decode(errors="replace")):
                        points += self._points(match, at_s)
        return points

    def _points(self, match: re.Match[str], at_s: float) -> list[Point]:
        groups = {name: text for name, text in match.groupdict().items() if text is not None}
        given = _as_step(groups.pop("step", None))
        if "value" in self._pattern.groupindex:
            groups = {groups["name"]: groups["value"]} if "name" in groups and "value" in groups else {}
        found = [(name.strip(), _as_number(text)) for name, text in groups.items()]
        return [
            (name, value, self._steps.step(name, given), at_s)
            for name, value in found
            if value is not None and 0 < len(name) <= _LONGEST_NAME
        ]

    def skip_existing(self) -> None:
        """Output belongs to the attempt: nothing of it is old."""

    def save(self) -> dict[str, Any]:
        return {"file": self._file.save(), "steps": dict(self._steps.next_by_name)}

    def load(self, saved: dict[str, Any]) -> None:
        self._file.load(saved["file"])
        self._steps.next_by_name = dict(saved["steps"])


class _JsonLines:
    def __init__(self, file: _GrowingFile, *, is_of_this_attempt: bool) -> None:
        self._file = file
        self._is_of_this_attempt = is_of_this_attempt
        self._steps = _Steps()

    def read(self, *, is_final: bool = False) -> list[Point]:
        at_s = time.time()
        return [point for line in self._file.lines(is_final=is_final) for point in self._points(line, at_s)]

    def _points(self, line: bytes, at_s: float) -> list[Point]:
        if not line.lstrip().startswith(b"{"):
            return []
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return []
        step_field = next((field for field in _STEP_FIELDS if _is_number(record.get(field))), None)
        given = _as_step(record.pop(step_field)) if step_field else None
        return [
            (name, value, self._steps.step(name, given), at_s)
            for name, raw in record.items()
            if _is_number(raw) and 0 < len(name) <= _LONGEST_NAME and (value := _as_number(raw)) is not None
        ]

    def skip_existing(self) -> None:
        if not self._is_of_this_attempt:
            self._file.skip_existing()

    def save(self) -> dict[str, Any]:
        return {"file": self._file.save(), "steps": dict(self._steps.next_by_name)}

    def load(self, saved: dict[str, Any]) -> None:
        self._file.load(saved["file"])
        self._steps.next_by_name = dict(saved["steps"])


class _EventFiles:
    def __init__(self, folder: Path, below: Path | None = None) -> None:
        self._folder = folder
        self._below = below
        self._files: dict[str, _GrowingFile] = {}
        self._broken: set[str] = set()
        self._next_look_s = 0.0

    def read(self, *, is_final: bool = False) -> list[Point]:
        if is_final or time.monotonic() >= self._next_look_s:
            self._look_for_files()
            self._next_look_s = time.monotonic() + _FOLDER_LOOK_S
        return [p for path, file in self._files.items() if path not in self._broken for p in self._points(path, file)]

    def _look_for_files(self) -> None:
        for path in self._folder.rglob("*tfevents*"):
            self._files.setdefault(str(path), _GrowingFile(path, self._below))

    def _points(self, path: str, file: _GrowingFile) -> list[Point]:
        data = file.read()
        try:
            records, n_bytes = whole_records(data)
        except NotAnEventFile:
            self._broken.add(path)
            return []
        if not records and len(data) == MOST_BYTES:
            n_bytes = first_record_bytes(data)  # An image, say.
            if not file.holds(n_bytes):
                return []
        file.move_on(n_bytes)
        return [
            (scalar.tag, scalar.value, scalar.step, scalar.wall_time_s)
            for record in records
            for scalar in scalars(record)
            if 0 < len(scalar.tag) <= _LONGEST_NAME
        ]

    def skip_existing(self) -> None:
        self._look_for_files()
        for file in self._files.values():
            file.skip_existing()

    def save(self) -> dict[str, Any]:
        return {"files": {path: file.save() for path, file in self._files.items()}}

    def load(self, saved: dict[str, Any]) -> None:
        for path, position in saved["files"].items():
            self._files[path] = _GrowingFile(Path(path))
            self._files[path].load(position)


def _is_number(raw: Any) -> bool:
    return isinstance(raw, int | float) and not isinstance(raw, bool)


def _as_number(raw: str | float) -> float | None:
    """`nan` and `inf` are numbers here: that a metric is not finite is a fact to report."""
    try:
        return float(raw.strip().rstrip(",;%").replace("_", "x") if isinstance(raw, str) else raw)
    except (ValueError, OverflowError):
        return None


def _as_step(raw: str | float | None) -> int | None:
    number = _as_number(raw) if raw is not None else None
    return int(number) if number is not None and math.isfinite(number) and abs(number) < 2**62 else None


@contextmanager
def _cpu_limit(seconds: float, complaint: str) -> Iterator[None]:
    """Raise SourceFailed in the block when it takes more processor time than that.

    Python's regular expressions ask for pending signals while they match, so a timer can interrupt them. Timers belong
    to the main thread; in another one there is no limit but the length of the lines.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(_signum: int, _frame: FrameType | None) -> None:
        raise SourceFailed(f"{complaint} (more than {seconds:g} s of processor time)")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
