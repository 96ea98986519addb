"""Figures of code trials in whole sessions of real sealed jobs: cheats that gain nothing, and many trials at once."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.code_session import (
    CHILD,
    TRUE,
    a_code_folder,
    a_code_task,
    disk_bytes,
    edits,
    n_right,
    run_at_once,
    run_edits,
    twenty,
    why_refused,
)
from bench.figure import Figure
from bench.server import running_server
from runtime_client.models import JobView


def cheats_refused(quick: bool) -> Figure:
    """Edits that cheat and gained nothing by it, with a reason; a true improvement in the same session."""
    with running_server("cpu:4") as (_, home), tempfile.TemporaryDirectory(dir=home) as folder:
        code = a_code_folder(Path(folder) / "code")
        texts = edits(code)
        model, search = {"name": "small"}, {"use": ["coder"], "replicates": 3}
        task = a_code_task(code, n_trials=9, model=model, search=search, seeds={"fresh": 8})
        ended = run_edits(home, code, texts, task)
        cheats = [name for name in texts if name not in (TRUE, CHILD)]
        missed = [name for name in cheats if why_refused(ended, name) is None]
    result = ended.session.result
    won = result is not None and result.code is not None and result.code.state.summary == CHILD
    verdict = "none" if result is None else result.verdict
    over = None if result is None or result.code is None else result.code.over_parent
    last = "" if over is None else f", its last change by {over.estimate:+.2g} [{over.low:+.2g}, {over.high:+.2g}]"
    difference = "" if result is None or result.difference is None else f" by {result.difference.estimate:+.3g}"
    return Figure(
        id="code.cheats_refused",
        value=len(cheats) - len(missed),
        unit="cheats",
        control=None,
        n=len(cheats),
        spread=(len(cheats) - len(missed),) * 2,
        note=f"got through: {', '.join(missed) or 'none'}; the true improvement {'won' if won else 'did not win'}"
        f"{difference} ({verdict}){last}",
    )


def parallel(quick: bool) -> Figure:
    """Trials of different edits of one repository, on a device each, that have the value of their own code."""
    with running_server("cpu:21") as (client, home), tempfile.TemporaryDirectory(dir=home) as folder:
        code = a_code_folder(Path(folder) / "code")
        task = a_code_task(code, n_trials=21, max_slowdown=None, search={"use": ["outside"], "confirm": False})
        ended = run_at_once(home, code, twenty(), task)
        jobs = client.jobs(session_id=ended.session.session_id, limit=100)
        right, n_folders = n_right(ended, code), len(list((ended.workshop / "trees").iterdir()))
        used = disk_bytes(ended.workshop)
    return Figure(
        id="code.parallel",
        value=right,
        unit="trials",
        control=None,
        n=len(twenty()),
        spread=(right, right),
        note=f"{_most_at_once(jobs)} jobs at once at most, {ended.session.wall_seconds:.1f} s in all; left: "
        f"{n_folders} folder(s) of code, {used / 1e3:.0f} kB with the repository",
    )


def _most_at_once(jobs: Sequence[JobView]) -> int:
    """Of the attempts of these jobs."""
    edges = [
        edge
        for job in jobs
        for attempt in job.attempts
        if attempt.started_at is not None and attempt.ended_at is not None
        for edge in ((attempt.started_at, 1), (attempt.ended_at, -1))
    ]
    most = now = 0
    for _, step in sorted(edges):
        now += step
        most = max(most, now)
    return most
