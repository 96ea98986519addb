"""Jobs that wait for others: what the end of one means for those, and how they end when it is the wrong one. Pure."""

from __future__ import annotations

from .events import JobEnded
from .nouns import Dependency, Job
from .state import State
from .states import Condition, ExitReason, JobState


def is_met(condition: Condition, *, is_ok: bool) -> bool:
    """Whether an end is the one that was waited for."""
    match condition:
        case Condition.OK:
            return is_ok
        case Condition.ANY:
            return True
        case Condition.NOT_OK:
            return not is_ok


def tell_dependents(state: State, ended: Job, end_state: JobState, at_s: float) -> None:
    """Let those who waited for a job that has just left the state go on, or know that they never will.

    An array is over with its last task. That it can not end well any more is known with the first that did not.
    """
    is_ok = end_state is JobState.SUCCEEDED
    _tell(state, ended.job_id, is_ok=is_ok, how=f"{ended.job_id} {_ended_words(end_state)}", at_s=at_s)
    if ended.array is None:
        return
    array_id = ended.array.array_id
    if not is_ok:
        state.spoiled.add(array_id)
        _doom(state, Dependency(on=array_id, condition=Condition.OK), f"{ended.job_id} of {array_id} {end_state}", at_s)
    if array_id not in state.index.arrays:
        is_all_ok = array_id not in state.spoiled
        state.spoiled.discard(array_id)
        how = f"all tasks of {array_id} succeeded" if is_all_ok else f"not all tasks of {array_id} succeeded"
        _tell(state, array_id, is_ok=is_all_ok, how=how, at_s=at_s)


def after_end(waiting: Job, dependency: Dependency, *, is_ok: bool, how: str, at_s: float) -> Job:
    """A waiting job once this dependency is decided.

    Args:
        how: how it ended, for the words of one that can never start.
    """
    rest = tuple(other for other in waiting.waits_for if other != dependency)
    if not is_met(dependency.condition, is_ok=is_ok):
        return waiting.but(waits_for=(), unmet=waiting.unmet or f"waited for {describe(dependency)}, but {how}")
    return waiting.but(waits_for=rest, queued_since_s=waiting.queued_since_s if rest else at_s)


def unmet_endings(state: State) -> list[JobEnded]:
    """How the jobs end that can never start, in order of submission. Their own dependents may follow."""
    doomed = sorted((state.jobs[job_id] for job_id in state.index.doomed), key=lambda job: job.order)
    return [
        JobEnded(
            job_id=job.job_id,
            end_state=JobState.FAILED,
            exit_reason=ExitReason.DEPENDENCY_UNMET,
            reason=job.unmet or "",
        )
        for job in doomed
    ]


def describe(dependency: Dependency) -> str:
    """`j3 to succeed`, `a10 to end`, `j4 to end without success`."""
    what = {
        Condition.OK: "to succeed",
        Condition.ANY: "to end",
        Condition.NOT_OK: "to end without success",
    }[dependency.condition]
    return f"{dependency.on} {what}"


def _tell(state: State, name: str, *, is_ok: bool, how: str, at_s: float) -> None:
    for job in _dependents(state, name):
        for dependency in job.waits_for:
            if dependency.on == name:
                job = after_end(job, dependency, is_ok=is_ok, how=how, at_s=at_s)
        state.put_job(job)


def _doom(state: State, dependency: Dependency, how: str, at_s: float) -> None:
    for job in _dependents(state, dependency.on):
        if dependency in job.waits_for:
            state.put_job(after_end(job, dependency, is_ok=False, how=how, at_s=at_s))


def _dependents(state: State, name: str) -> list[Job]:
    found = (state.jobs[job_id] for job_id in state.index.dependents.get(name, ()))
    return sorted(found, key=lambda job: job.order)


def _ended_words(end_state: JobState) -> str:
    return "was cancelled" if end_state is JobState.CANCELLED else end_state.value
