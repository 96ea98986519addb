"""What the jobs of a trial left with the runtime: curves, logs, artifacts. Each answer is bounded."""

from __future__ import annotations

from collections.abc import Sequence

from agent.store.views import TrialView
from agent.web.curves import Logged, by_attempt, has_steps
from agent.web.trial_reading import job_ids
from agent.web.trial_wire import ArtifactFolder, ArtifactRow, Curve, CurvePiece, Curves, LogPiece
from runtime_client.errors import NotFound, Rejected, RuntimeClientError
from runtime_client.models import LogErrors
from runtime_client.protocol import Runtime

MOST_KEYS = 8
MOST_NAMES = 1000
LOG_BYTES = 64 * 1024
_TORN = 3
"""Bytes of a character of which the first one is missing."""


class NotOfTrial(Exception):
    """The job is none of the trial's, or it has none."""


def curves(runtime: Runtime, trial: TrialView, metric: str, wanted: Sequence[str]) -> Curves:
    """Its curves by attempt. None wanted: the objective's, else the first that there is."""
    jobs = _known_jobs(runtime, trial)
    names = sorted({name for run_id in jobs.values() for name in runtime.run(run_id).latest})
    shown = list(dict.fromkeys(wanted)) or [metric if metric in names else name for name in names[:1]]
    found: dict[str, list[Logged]] = {key: [] for key in shown[:MOST_KEYS]}
    for job_id in jobs if found else ():
        for point in runtime.metrics(job_id, keys=list(found)):
            found[point.key].append(Logged(job_id, point.attempt, point.step, point.value, point.text))
    return Curves(keys=tuple(names[:MOST_NAMES]), curves=tuple(_curve(key, points) for key, points in found.items()))


def log_piece(
    runtime: Runtime,
    trial: TrialView,
    *,
    job_id: str | None,
    attempt: int | None,
    stream: str,
    offset: int | None,
    before: int | None,
    limit: int,
) -> LogPiece:
    """A piece of what an attempt printed: from a byte on, or what is older than one, or the end of it.

    Raises:
        NotOfTrial: the job is none of its.
    """
    job = _job_of(trial, job_id)
    streams = runtime.log_streams(job, attempt=attempt)
    end = before
    if offset is None and end is None:
        end = runtime.logs(job, attempt=attempt, offset=-1, limit=1, stream=stream).next_offset
    start = offset if offset is not None else max((end or 0) - limit, 0)
    n_bytes = limit if end is None else max(end - start, 1)
    chunk = runtime.logs(job, attempt=attempt, offset=start, limit=n_bytes, stream=stream)
    text = chunk.text
    if offset is None and start > 0 and not chunk.n_cut:
        start, text = _from_whole_line(start, text)
    return LogPiece(
        job_id=job,
        attempt=chunk.attempt,
        stream=chunk.stream,
        streams=streams.streams,
        text=text,
        start=start,
        end=chunk.next_offset,
        is_complete=chunk.is_complete,
    )


def log_errors(runtime: Runtime, trial: TrialView, *, job_id: str | None, attempt: int | None) -> LogErrors:
    """
    Raises:
        NotOfTrial: the job is none of its.
    """
    return runtime.log_errors(_job_of(trial, job_id), attempt=attempt, limit=2**20)


def artifacts(runtime: Runtime, trial: TrialView, job_id: str | None, folder: str) -> ArtifactFolder:
    """Files and folders below a folder of its MLflow run; why not, where MLflow does not tell.

    Raises:
        NotOfTrial: the job is none of its.
    """
    try:
        found = runtime.list_artifacts(runtime.job(_job_of(trial, job_id)).run_id, folder)
    except Rejected as error:
        return ArtifactFolder(folder=folder, items=(), problem=error.message)
    except RuntimeClientError as error:
        return ArtifactFolder(folder=folder, items=(), problem=f"MLflow does not tell them now: {error.message}")
    rows = (ArtifactRow(path=one.path, is_folder=one.is_dir, size_bytes=one.file_size) for one in found[:MOST_NAMES])
    return ArtifactFolder(folder=folder, items=tuple(rows))


def _job_of(trial: TrialView, job_id: str | None) -> str:
    names = job_ids(trial)
    if job_id is None and trial.trained_by:
        return trial.trained_by[-1]
    if job_id is None:
        raise NotOfTrial(f"{trial.trial_id} has no job yet")
    if job_id not in names:
        raise NotOfTrial(f"{job_id!r} is no job of {trial.trial_id}; it has: {', '.join(names) or 'none yet'}")
    return job_id


def _known_jobs(runtime: Runtime, trial: TrialView) -> dict[str, str]:
    """Runs by job, of those that the runtime still knows."""
    found = {}
    for job_id in job_ids(trial):
        try:
            found[job_id] = runtime.job(job_id).run_id
        except NotFound:
            continue
    return found


def _curve(key: str, points: Sequence[Logged]) -> Curve:
    odd = [point for point in points if point.value is None]
    pieces = by_attempt(points)
    return Curve(
        key=key,
        x="step" if has_steps(points) else "point",
        n_points=len(points),
        n_not_finite=len(odd),
        first_not_finite=f"{odd[0].text or 'no number'} at step {odd[0].step}" if odd else None,
        pieces=tuple(CurvePiece(job_id=job_id, attempt=n, points=tuple(piece)) for job_id, n, piece in pieces),
    )


def _from_whole_line(start: int, text: str) -> tuple[int, str]:
    """Without the rest of a line that began before: where the text then starts, and the text."""
    n_torn = min(len(text) - len(text.lstrip("\ufffd")), _TORN)
    rest, newline, whole = text[n_torn:].partition("\n")
    if not newline or "\ufffd" in rest:
        return start, text
    return start + n_torn + len((rest + newline).encode()), whole
