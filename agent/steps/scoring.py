"""Scoring: the job that measures a trial after its training, where the task has one.

It is submitted when the training has ended well, with a token that follows from the trial: a session that was killed
in between submits it again and gets the same job. It finds what the training left by `depends_on`
(NIGHTLAB_AFTER_FOLDERS). Where the scorer is kept apart (`agent.pinned_scorer`), nothing else measures.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from agent.command_words import command_words
from agent.deps import Deps
from agent.planner.comparable import OTHER_USER, SEALED, WITHIN_REACH
from agent.store.fenced import Line
from agent.store.views import TrialFacts, TrialState, TrialView
from agent.task import Score
from agent.tools.jobs import OVER_BUDGET, TOO_LATE, Submitted, submit_trials
from agent.tools.trial_job import score_job
from runtime_client.models import JobSpec, JobView, Sandbox

_BLOCK = 1 << 20
CHANGED = "the scorer changed since the session began"
SCORER_CHANGED = "scorer_changed"


def is_to_be_scored(trial: TrialView, job: JobView, deps: Deps) -> bool:
    """Whether the trial's training has ended well and is not measured yet."""
    return deps.task.score is not None and trial.facts.score_job_id is None and job.state == "succeeded"


def submit_score(trial: TrialView, training: JobView, deps: Deps) -> tuple[TrialView, Line | None]:
    """Submit the scorer of a trial whose training has ended; the trial as it is then, and what is to be said.

    Raises:
        StaleSession: as `submit_trials`.
    """
    assert deps.task.score is not None
    what = deps.scorer.changed() if deps.scorer is not None else None
    if what is not None:
        return _worthless(trial, f"{CHANGED}: {what}; a new session measures with it", SCORER_CHANGED, deps)
    (answer,) = submit_trials(deps.runtime, [_spec(trial, training, deps)])
    if answer.job is None:
        return _refused(trial, answer, deps)
    deps.memory.refusal = None
    deps.memory.jobs[answer.job.job_id] = answer.job
    facts = replace(
        trial.facts,
        score_job_id=answer.job.job_id,
        scorer=_digest(answer.job, training, deps),
        scorer_reach=None if deps.scorer is None else reach_of(training),
    )
    is_counted = trial.facts.scorer is not None  # an earlier scorer had to leave
    trained_s = 0.0 if is_counted else training.device_seconds(training.ended_at or deps.clock())
    scored = replace(trial, facts=facts, device_seconds=trial.device_seconds + trained_s)
    text = f"{trial.trial_id} is trained ({training.job_id}); {answer.job.job_id} measures it"
    return scored, Line(step="assess", text=text, trial_id=trial.trial_id, job_id=answer.job.job_id)


def is_another(facts: TrialFacts, deps: Deps) -> bool:
    """Whether something else measured than what was kept when the session began."""
    return deps.scorer is not None and facts.scorer != deps.scorer.digest


def reach_of(training: JobView) -> str:
    """How far the training was from what measures it, by how its last attempt was shut off."""
    reached = training.attempts[-1].sandbox if training.attempts else None
    if reached is None:
        return SEALED if training.spec.sandbox is Sandbox.SEALED else WITHIN_REACH
    if reached.level != Sandbox.SEALED:
        return WITHIN_REACH
    return OTHER_USER if reached.uid is not None and "uid" in reached.layers else SEALED


def _spec(trial: TrialView, training: JobView, deps: Deps) -> JobSpec:
    scorer, session, fence = deps.scorer, deps.memory.session, deps.book.fence
    if scorer is None:
        return score_job(deps.task, session, trial, training.spec, training.job_id, fence=fence)
    return score_job(
        deps.task,
        session,
        trial,
        training.spec,
        training.job_id,
        fence=fence,
        code=scorer.code,
        readable=scorer.readable,
        tags={"nightlab.scorer": scorer.digest, "nightlab.scorer_reach": reach_of(training)},
    )


def _digest(job: JobView, training: JobView, deps: Deps) -> str:
    assert deps.task.score is not None
    if deps.scorer is None:
        return scorer_digest(deps.task.score, job, training)
    return deps.scorer.digest_of(None if job.spec.code_source is None else job.spec.code_source.snapshot_id)


def scorer_digest(score: Score, job: JobView, training: JobView) -> str:
    """What measured: the command, and its code. Without a snapshot, the files that the command names."""
    command = score.command if isinstance(score.command, str) else list(score.command)
    whole = hashlib.sha256(json.dumps(command).encode())
    source = job.spec.code_source or training.spec.code_source
    if source is not None and source.snapshot_id is not None:
        whole.update(source.snapshot_id.encode())
    elif source is not None:
        for name in command_words(score.command):
            whole.update(_file_digest(Path(source.root_path) / name))
    return whole.hexdigest()


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
    return _worthless(trial, f"its scorer was refused by the runtime: {answer.refusal}", "refused", deps)


def _worthless(trial: TrialView, note: str, reason: str, deps: Deps) -> tuple[TrialView, Line]:
    ended = replace(trial, state=TrialState.INVALID, note=note, exit_reason=reason, ended_at=deps.clock())
    text = f"{trial.trial_id} gave no value: {note}"
    return ended, Line(step="assess", text=text, trial_id=trial.trial_id)
