"""Scoring: the job that measures a trial after its training, where the task has one.

It is submitted when the training has ended well, with a token that follows from the trial: a session that was killed
in between submits it again and gets the same job. It finds what the training left by `depends_on`
(NIGHTLAB_AFTER_FOLDERS).
"""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import replace
from pathlib import Path

from agent.deps import Deps
from agent.store.fenced import Line
from agent.store.views import TrialState, TrialView
from agent.task import Score
from agent.tools.jobs import OVER_BUDGET, TOO_LATE, Submitted, submit_trials
from agent.tools.trial_job import score_job
from runtime_client.models import JobView

_BLOCK = 1 << 20


def is_to_be_scored(trial: TrialView, job: JobView, deps: Deps) -> bool:
    """Whether the trial's training has ended well and is not measured yet."""
    return deps.task.score is not None and trial.facts.score_job_id is None and job.state == "succeeded"


def submit_score(trial: TrialView, training: JobView, deps: Deps) -> tuple[TrialView, Line | None]:
    """Submit the scorer of a trial whose training has ended; the trial as it is then, and what is to be said.

    Raises:
        StaleSession: as `submit_trials`.
    """
    assert deps.task.score is not None
    spec = score_job(deps.task, deps.memory.session, trial, training.spec, training.job_id, fence=deps.book.fence)
    (answer,) = submit_trials(deps.runtime, [spec])
    if answer.job is None:
        return _refused(trial, answer, deps)
    deps.memory.refusal = None
    deps.memory.jobs[answer.job.job_id] = answer.job
    facts = replace(
        trial.facts, score_job_id=answer.job.job_id, scorer=scorer_digest(deps.task.score, answer.job, training)
    )
    is_counted = trial.facts.scorer is not None  # an earlier scorer had to leave
    trained_s = 0.0 if is_counted else training.device_seconds(training.ended_at or deps.clock())
    scored = replace(trial, facts=facts, device_seconds=trial.device_seconds + trained_s)
    text = f"{trial.trial_id} is trained ({training.job_id}); {answer.job.job_id} measures it"
    return scored, Line(step="assess", text=text, trial_id=trial.trial_id, job_id=answer.job.job_id)


def scorer_digest(score: Score, job: JobView, training: JobView) -> str:
    """What measured: the command, and its code. Without a snapshot, the files that the command names."""
    command = score.command if isinstance(score.command, str) else list(score.command)
    whole = hashlib.sha256(json.dumps(command).encode())
    source = job.spec.code_source or training.spec.code_source
    if source is not None and source.snapshot_id is not None:
        whole.update(source.snapshot_id.encode())
    elif source is not None:
        for name in _words(score):
            whole.update(_file_digest(Path(source.root_path) / name))
    return whole.hexdigest()


def _words(score: Score) -> list[str]:
    if not isinstance(score.command, str):
        return list(score.command)
    try:
        return shlex.split(score.command)
    except ValueError:
        return score.command.split()


def _file_digest(path: Path) -> bytes:
    """Of a file's bytes; empty where the word is no name of a file that can be read."""
    whole = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                whole.update(block)
    except (OSError, ValueError):
        return b""
    return whole.digest()


def _refused(trial: TrialView, answer: Submitted, deps: Deps) -> tuple[TrialView, Line | None]:
    """A refusal for good makes the trial invalid; one for now leaves it as it is, and is said once."""
    if answer.is_retryable or answer.code == TOO_LATE:
        if answer.refusal == deps.memory.refusal:
            return trial, None
        deps.memory.refusal = answer.refusal
        text = f"the scorer of {trial.trial_id} can not be submitted now: {answer.refusal}"
        return trial, Line(step="assess", text=text, trial_id=trial.trial_id)
    if answer.code == OVER_BUDGET:
        deps.memory.over_budget = answer.refusal
    ended = replace(
        trial,
        state=TrialState.INVALID,
        note=f"its scorer was refused by the runtime: {answer.refusal}",
        exit_reason="refused",
        ended_at=deps.clock(),
    )
    text = f"{trial.trial_id} gave no value: {ended.note}"
    return ended, Line(step="assess", text=text, trial_id=trial.trial_id)
