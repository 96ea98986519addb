"""What in a task file would make its verdict untrustworthy: seeds that meet, data that is not there, neighbors.

Each problem is the path in the file and what to change. Read by `agent.task_checks`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agent.planner.comparable import needs_exclusive
from agent.planner.held_out import n_looks
from agent.task import Task
from runtime_client.models import SnapshotMode

N_RACING = 60
"""So many racing seeds may be used before the end at most, and so many must be free of others."""

Found = Iterator[tuple[str, str]]


def trust_checks(task: Task) -> Found:
    """Every problem, as path and message."""
    yield from _seeds(task)
    yield from _data(task)
    yield from _range(task)
    yield from _neighbors(task)
    yield from _score(task)


def _seeds(task: Task) -> Found:
    """The three uses of seeds may not meet: a seed on which something was chosen says nothing of how good it is."""
    seeds = task.seeds
    if "max_pairs" in seeds.model_fields_set and seeds.max_pairs < seeds.fresh:
        yield "seeds.max_pairs", f"{seeds.max_pairs} is less than seeds.fresh ({seeds.fresh}); give at least that many"
    fresh = range(seeds.first_fresh, seeds.first_fresh + max(seeds.max_pairs, seeds.fresh, n_looks(task)))
    racing = range(seeds.first_racing, seeds.first_racing + max(N_RACING, seeds.max_pairs, task.search.replicates))
    for name, taken in (("first_fresh", fresh), ("first_racing", racing)):
        if seeds.search in taken:
            what = f"{seeds.search} is among the seeds from seeds.{name} on ({taken[0]} to {taken[-1]}); choose another"
            yield "seeds.search", what
    if racing[0] <= fresh[-1] and fresh[0] <= racing[-1]:
        yield (
            "seeds.first_racing",
            f"the seeds of the replicates in the search ({racing[0]} to {racing[-1]}) meet those of the end "
            f"({fresh[0]} to {fresh[-1]}), which nothing may have touched; move one of them",
        )


def _data(task: Task) -> Found:
    seen: dict[str, int] = {}
    for at, source in enumerate(task.data):
        if source.path in seen:
            yield f"data.{at}.path", f"{source.path} is given twice (data.{seen[source.path]})"
        seen.setdefault(source.path, at)
        if source.fingerprint == "label":
            continue
        path = Path(source.path)
        if not path.exists():
            what = f"{source.path} does not exist; what is not reachable from here is named by fingerprint: label"
            yield f"data.{at}.path", what
        elif not os.access(path, os.R_OK | os.X_OK if path.is_dir() else os.R_OK):
            yield f"data.{at}.path", f"{source.path} can not be read by this user"


def _range(task: Task) -> Found:
    objective = task.objective
    low, high = objective.valid.low, objective.valid.high
    if low is not None and high is not None and objective.min_effect >= high - low:
        what = f"{objective.min_effect:g} is as much as objective.valid is wide: no trial could be better by more"
        yield "objective.min_effect", what


def _neighbors(task: Task) -> Found:
    """Trials that have to run alone can not take a part of a device."""
    if not needs_exclusive(task):
        return
    what = "the trials of this task run alone (a speed, a memory, or a fidelity in seconds): leave the share out"
    if (task.job.compute.accelerator_share or 1) < 1:
        yield "job.compute.accelerator_share", what
    if task.score is not None and (task.score.compute.accelerator_share or 1) < 1:
        yield "score.compute.accelerator_share", what


def _score(task: Task) -> Found:
    """A scorer must find what its own training left, not what another one wrote over it."""
    code = task.job.code_source
    if task.score is not None and code is not None and code.snapshot is SnapshotMode.OFF:
        yield (
            "job.code_source.snapshot",
            "off makes all trials write into one folder, and the scorer would measure what another trial left; "
            "leave it out, so that each trial works in a copy of its own",
        )
