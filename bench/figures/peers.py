"""Starting a command with us and with others, in one run: a line of a table each."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from bench.figure import Figure, Unavailable, median_of, quartiles
from bench.figures.start import FIRST_LINE
from bench.peers import PEERS, Submit
from bench.server import running_server
from runtime_client.models import JobSpec

START_S = 30.0


def start_table(quick: bool) -> Figure:
    """Submission to the first line of a job's Python, with us and with each peer; the table is the note."""
    n = 10 if quick else 30
    with running_server("cpu:2") as (client, _):
        ours = _measure(lambda command: client.submit(JobSpec(experiment_name="bench", command=command)), n)
    rows = [("nightlab", ours)]
    absent = []
    for name, peer in PEERS.items():
        try:
            with peer() as submit:
                rows.append((name, _measure(submit, n)))
        except Unavailable as why:
            absent.append(f"{name}: {why}")
    told = [f"{name} {median_of(times) * 1000:.0f} ms ({_span(times)})" for name, times in rows]
    return Figure(
        id="start.peers",
        value=median_of(ours) * 1000,
        unit="ms",
        control=median_of(dict(rows)["Popen, no queue"]) * 1000,
        n=n,
        spread=(quartiles(ours)[0] * 1000, quartiles(ours)[1] * 1000),
        note="; ".join([*told, *absent]),
    )


def _span(times: list[float]) -> str:
    first, third = quartiles(times)
    return f"{first * 1000:.0f} to {third * 1000:.0f}"


def _measure(submit: Submit, n: int) -> list[float]:
    """One after another on an idle queue; the first two are not counted."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return [_first_line(submit, Path(folder, str(i))) for i in range(n + 2)][2:]


def _first_line(submit: Submit, out: Path) -> float:
    began = time.time()
    submit((sys.executable, "-c", FIRST_LINE, str(out)))
    deadline = time.monotonic() + START_S
    while not (out.exists() and out.stat().st_size):
        if time.monotonic() > deadline:
            raise Unavailable(f"a command did not start within {START_S:g} s")
        time.sleep(0.002)
    return float(out.read_text()) - began
