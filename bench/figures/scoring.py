"""Figures of scoring: what it costs to ask code that nobody has read in a process that is shut off."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy

from bench.figure import Figure, Unavailable, median_of, quartiles
from runtime_client import landlock
from runtime_client.scoring import Candidate

MODEL = "import numpy\ndef same(value): return value\n"
N_VALUES = 2**17
"""One MiB of doubles."""


def start_ms(quick: bool) -> Figure:
    """From nothing to a candidate that has imported its module and numpy; beside it a bare Python that does so."""
    n = 10 if quick else 40
    ours, theirs = [], []
    with _model() as folder:
        for _ in range(n):
            ours.append(_ms(lambda: _started(folder)))
            bare = [sys.executable, "-I", "-B", "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); import model"]
            theirs.append(_ms(lambda words=bare: subprocess.run(words, check=True)))  # type: ignore[misc]
    return Figure(
        id="scoring.start_ms",
        value=median_of(ours),
        unit="ms",
        control=median_of(theirs),
        n=n,
        spread=quartiles(ours),
        note="started, asked nothing, ended; control: a bare Python that imports the same",
    )


def call_ms(quick: bool) -> Figure:
    """One MiB of numbers to a candidate and back; beside it through two bare pipes, as bytes."""
    n = 50 if quick else 300
    values = numpy.arange(N_VALUES, dtype="f8")
    small = numpy.zeros(1)
    with _model() as folder, Candidate(folder, "model") as candidate:
        ours = [_ms(lambda: candidate.call("same", values)) for _ in range(n)]
        least = [_ms(lambda: candidate.call("same", small)) for _ in range(n)]
    echo = f"import sys\nwhile piece := sys.stdin.buffer.read({values.nbytes}):\n sys.stdout.buffer.write(piece)"
    words = [sys.executable, "-u", "-c", echo]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        theirs = [_ms(lambda: _echoed(process, values.tobytes())) for _ in range(n)]
        process.kill()
    return Figure(
        id="scoring.call_ms",
        value=median_of(ours),
        unit="ms",
        control=median_of(theirs),
        n=n,
        spread=quartiles(ours),
        note=f"1 MiB there and back; control: the bytes through two bare pipes; one number: {median_of(least):.2f} ms",
    )


def _started(folder: Path) -> None:
    with Candidate(folder, "model"):
        pass


def _echoed(process: subprocess.Popen[bytes], content: bytes) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    left, n_back = memoryview(content), 0
    while left:
        left = left[process.stdin.write(left) or 0 :]
    while n_back < len(content):
        n_back += len(process.stdout.read(len(content) - n_back))


@contextmanager
def _model() -> Iterator[Path]:
    if landlock.abi() < 1:
        raise Unavailable("this machine has no Landlock")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.py").write_text(MODEL)
        yield Path(folder)


def _ms(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - began)
