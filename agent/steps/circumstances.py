"""Circumstances: what is known of how a trial was run, read from its job, its devices and its data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.deps import Deps
from agent.planner.comparable import MIXED
from agent.planner.replicates import is_its_own
from agent.store.fenced import Line
from agent.store.views import TrialFacts, TrialState, TrialView
from runtime_client.models import AttemptView, JobView, NodeView


def before_launch(trials: list[TrialView], deps: Deps) -> list[TrialView]:
    """The trials with the fingerprint of the data as it is now."""
    look = deps.data.look()
    _tell_problems(look.problems, deps)
    return [replace(trial, facts=_on_data(trial.facts, look.text)) for trial in trials]


def _on_data(facts: TrialFacts, data: str | None) -> TrialFacts:
    """A trial that goes on keeps the data that it began on: another one now means that it changed under it."""
    return replace(facts, data=facts.data if facts.continues else data, data_after=None)


def after_end(trial: TrialView, job: JobView, deps: Deps, nodes: Sequence[NodeView]) -> TrialFacts:
    """What a trial's job tells once it has ended; of the data, see `after_data`."""
    source = job.spec.code_source
    return replace(
        trial.facts,
        device_model=model_of_all(trial, device_model(job, nodes)),
        is_alone=job.spec.compute.exclusive and not _is_disturbed(job, nodes),
        code=source.snapshot_id if source is not None else None,
        run_seconds=run_seconds(trial, job),
        cpu_seconds=cpu_seconds(trial, job),
        peak_memory_mb=job.attempts[-1].peak_memory_mb if job.attempts else None,
        checkpoint_step=trial.facts.checkpoint_step if job.checkpoint_step is None else job.checkpoint_step,
    )


def run_seconds(trial: TrialView, job: JobView) -> float | None:
    """Of a training from its start to its end; None: something else interrupted it, or it is not known.

    Attempts that it ended itself count all together: to ask for another start is no way to a longer training.
    """
    return _whole([_ran_for(attempt) for attempt in _of_its_own(trial, job)])


def cpu_seconds(trial: TrialView, job: JobView) -> float | None:
    """Processor time of the same training: what else the machine does at the time changes it little."""
    return _whole([attempt.cpu_s for attempt in _of_its_own(trial, job)])


def _of_its_own(trial: TrialView, job: JobView) -> list[AttemptView]:
    """The attempts that make a training which nothing else interrupted; none: something did, or it did not succeed."""
    started = [attempt for attempt in job.attempts if attempt.started_at is not None]
    if job.state != "succeeded" or trial.facts.continues:
        return []
    return started if all(is_its_own(attempt.exit_reason) for attempt in started[:-1]) else []


def _whole(seconds: list[float | None]) -> float | None:
    return None if not seconds or None in seconds else sum(one for one in seconds if one is not None)


def _ran_for(attempt: AttemptView) -> float | None:
    """By its own machine; else by when the server heard of its start and of its end."""
    if attempt.run_s is not None or attempt.started_at is None or attempt.ended_at is None:
        return attempt.run_s
    return attempt.ended_at - attempt.started_at


def model_of_all(trial: TrialView, model: str | None) -> str | None:
    """The accelerator model of all jobs of a trial, given that of its last one: `mixed` where they differ."""
    before = trial.facts.device_model
    if not trial.facts.continues or model is None or before is None:
        return model if not trial.facts.continues else None
    return model if before == model else MIXED


def after_data(facts: TrialFacts, deps: Deps, *, is_last: bool) -> TrialFacts:
    """With the fingerprint after the end. Where a look is dear it may come later, by `checked_later`.

    Args:
        is_last: nothing else is in flight, so that there may be no later one.
    """
    look = deps.data.look(must_be_fresh=is_last)
    _tell_problems(look.problems, deps)
    return replace(facts, data_after=look.text if look.is_fresh else None)


def checked_later(deps: Deps) -> list[TrialView]:
    """Measured trials whose data is to be looked at once more, with a look that is fresh now; else none."""
    waiting = [
        trial
        for trial in deps.book.history().trials
        if trial.state is TrialState.MEASURED and trial.facts.data is not None and trial.facts.data_after is None
    ]
    if not waiting:
        return []
    look = deps.data.look()
    if not look.is_fresh:
        return []
    return [replace(trial, facts=replace(trial.facts, data_after=look.text)) for trial in waiting]


def device_model(job: JobView, nodes: Sequence[NodeView]) -> str | None:
    """The accelerator model of the attempts that made the result; None: a node of theirs is not known any more.

    Those are the last one, and earlier ones whose checkpoint it may have gone on from.
    """
    kinds = {(node.node_id, device.index): device.kind for node in nodes for device in node.devices}
    started = [attempt for attempt in job.attempts if attempt.started_at is not None]
    made = [attempt for attempt in started[:-1] if attempt.checkpoint_step is not None] + started[-1:]
    found = {kinds.get(place) for attempt in made for place in _places(attempt)}
    if not found or None in found:
        return None
    return next(iter(found)) if len(found) == 1 else MIXED


def _is_disturbed(job: JobView, nodes: Sequence[NodeView]) -> bool:
    """Whether somebody outside computes on a device of its last attempt."""
    used = set(_places(job.attempts[-1])) if job.attempts else set()
    return any(
        device.busy_external and (node.node_id, device.index) in used for node in nodes for device in node.devices
    )


def _places(attempt: AttemptView) -> list[tuple[str, int]]:
    return [(placement.node_id, device) for placement in attempt.placements for device in placement.devices]


def _tell_problems(problems: tuple[str, ...], deps: Deps) -> None:
    """Once for each list of problems: it may stay the same for hours."""
    if problems and problems != deps.memory.data_problems:
        text = f"not all of the data can be read, so that a change of it may go unseen: {'; '.join(problems)}"
        deps.record.say([Line(step="launch", text=text)])
    deps.memory.data_problems = problems
