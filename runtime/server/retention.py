"""What the folders of jobs hold, which of it may go, and how it goes. Logs, records and metrics are never touched.

What may go of a job are its checkpoints and its working folder. A folder that goes is renamed first, at one stroke, so
that nobody ever takes a half-deleted checkpoint for a whole one; what an interruption leaves behind goes the next time.
Links are never followed.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from runtime.model.states import ENDED, ExitReason
from runtime.sandbox import folders
from runtime.store.retained import JobFiles

WEIGHTS = ("checkpoints", "work")
"""Folders of a job that may go."""
TRASH = ".going-"


class Reason(StrEnum):
    """Why something stays, or goes."""

    LIVE = "live"
    """Its job may still resume from it."""
    CONTINUED = "continued"
    """A live job goes on from it."""
    UNFINISHED = "unfinished"
    """It ended by its hour a short while ago; a later job may go on from it."""
    PINNED = "pinned"
    WINNER = "winner"
    """Of the best or the default configuration of its session."""
    NO_VERDICT = "no_verdict"
    """Of a session that has none yet."""
    OWN = "own"
    """Of a job of no session: nobody but its owner knows."""
    UNKNOWN = "unknown"
    """The database knows no such job."""
    LOSER = "losing_trial"
    OLD = "older_than"
    OVER_QUOTA = "over_quota"
    INTERRUPTED = "interrupted"
    """Left behind by a clean-up that was interrupted."""


GOING = frozenset({Reason.LOSER, Reason.OLD, Reason.OVER_QUOTA, Reason.INTERRUPTED})
_UNDER_QUOTA = frozenset({Reason.OWN, Reason.NO_VERDICT, Reason.UNFINISHED})
"""What may have to go so that a project keeps within its quota."""
UNFINISHED_S = 7 * 86400.0
"""So long the checkpoints of a job that ended by its hour are kept, whatever has become of its session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A folder of a job."""

    path: Path
    job_id: str
    project: str
    n_bytes: int
    ended_at_s: float | None
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    now_s: float
    older_than_s: float | None = None
    """Of jobs that ended so long ago nothing stays but what is pinned or won; None: age is no reason."""
    quota_bytes: int | None = None
    """For each project; beyond it what ended first goes first. None: there is none."""


def survey(attempts_dir: Path, jobs: Mapping[str, JobFiles], rules: Rules) -> list[Holding]:
    """Every folder that could go, and why it does or does not. Reads the disk."""
    found = [_judged(path, jobs.get(path.parent.name), rules) for path in _folders(attempts_dir)]
    return _within_quota(found, rules)


def clear(holdings: Iterable[Holding]) -> Iterator[tuple[Holding, str | None]]:
    """Delete those that go; each with what went wrong, or None."""
    for holding in holdings:
        if holding.reason in GOING:
            yield holding, _delete(holding.path)


def _folders(attempts_dir: Path) -> Iterator[Path]:
    try:
        job_folders = sorted(entry.path for entry in os.scandir(attempts_dir) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return
    for job_folder in job_folders:
        for entry in sorted(os.scandir(job_folder), key=lambda entry: entry.name):
            is_ours = entry.name in WEIGHTS or entry.name.startswith(TRASH)
            if is_ours and entry.is_dir(follow_symlinks=False):
                yield Path(entry.path)


def _judged(path: Path, job: JobFiles | None, rules: Rules) -> Holding:
    return Holding(
        path=path,
        job_id=path.parent.name,
        project="" if job is None else job.project,
        n_bytes=size_of(path),
        ended_at_s=None if job is None else job.ended_at_s,
        reason=Reason.INTERRUPTED if path.name.startswith(TRASH) else judge(job, rules),
    )


def judge(job: JobFiles | None, rules: Rules) -> Reason:
    """Why the weights of a job stay or go."""
    if job is None:
        return Reason.UNKNOWN
    if job.state not in ENDED or job.ended_at_s is None:
        return Reason.LIVE
    if job.is_continued:
        return Reason.CONTINUED
    if job.is_pinned:
        return Reason.PINNED
    is_trial = job.session_id is not None and job.configuration is not None
    if is_trial and job.winners is not None:
        if job.configuration in job.winners:
            return Reason.WINNER
        if job.exit_reason is not ExitReason.DEADLINE or rules.now_s - job.ended_at_s > UNFINISHED_S:
            return Reason.LOSER
        return Reason.OLD if _is_old(job.ended_at_s, rules) else Reason.UNFINISHED
    if _is_old(job.ended_at_s, rules):
        return Reason.OLD
    return Reason.NO_VERDICT if is_trial else Reason.OWN


def _is_old(ended_at_s: float, rules: Rules) -> bool:
    return rules.older_than_s is not None and rules.now_s - ended_at_s > rules.older_than_s


def _within_quota(found: list[Holding], rules: Rules) -> list[Holding]:
    """The same, with what has to go so that each project keeps within its quota: what ended first goes first."""
    if rules.quota_bytes is None:
        return found
    kept: dict[str, int] = {}
    for holding in found:
        if holding.reason not in GOING:
            kept[holding.project] = kept.get(holding.project, 0) + holding.n_bytes
    going: set[Path] = set()
    for holding in sorted(found, key=lambda each: each.ended_at_s or 0.0):
        if holding.reason in _UNDER_QUOTA and kept[holding.project] > rules.quota_bytes:
            kept[holding.project] -= holding.n_bytes
            going.add(holding.path)
    return [replace(each, reason=Reason.OVER_QUOTA) if each.path in going else each for each in found]


def size_of(folder: Path) -> int:
    """Bytes of the files below, links counted as nothing; what vanishes meanwhile is not counted."""
    total = 0
    with suppress(folders.TooDeep):
        for where, names in folders.walk(str(folder)):
            for name in names:
                with suppress(OSError):
                    total += os.lstat(os.path.join(where, name)).st_size
    return total


def _remove(folder: Path) -> None:
    """Of any depth. Raises OSError."""
    try:
        shutil.rmtree(folder)
    except (RecursionError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.ENAMETOOLONG:
            raise
        done = subprocess.run(["rm", "-rf", "--", str(folder)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise OSError(errno.EIO, done.stderr.strip()[-300:], str(folder)) from None


def _delete(folder: Path) -> str | None:
    try:
        going = folder
        if not folder.name.startswith(TRASH):
            going = folder.with_name(f"{TRASH}{folder.name}-{os.getpid()}-{os.urandom(4).hex()}")
            folder.rename(going)
        _remove(going)
    except OSError as error:
        return f"{error.filename or folder}: {error.strerror}"
    return None
