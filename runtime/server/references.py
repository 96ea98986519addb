"""What a submission says about other jobs: names become ids, known ends are decided. Changes nothing."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runtime.model.dependencies import after_end
from runtime.model.nouns import Dependency, Job
from runtime.model.states import Condition, JobState
from runtime_client.doors.refusal import Refused, refused
from runtime_client.models import DependsOn, ErrorKind, JobSpec

from .draft import Draft

TokenKey = tuple[str, str]
"""Project and idempotency token."""
TOKEN = "token:"
MAX_NAMED = 10
"""Jobs of a cycle that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What the store says about jobs and arrays that are named."""

    states: Mapping[str, JobState]
    """By job; tasks of the arrays too."""
    tasks: Mapping[str, Sequence[str]]
    """Jobs by array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the names in a submission stand for."""

    by_token: Mapping[TokenKey, str]
    """Jobs by the token that they were submitted with, now or earlier."""
    by_position: Mapping[int, str]
    """Jobs of the same submission that are taken already."""
    past: Past


def resolve(draft: Draft, spec: JobSpec, job: Job, names: Names) -> tuple[Job, tuple[DependsOn, ...]]:
    """The job with what it waits for, and the same with ids for names.

    Raises:
        Refused: it names what is not there.
    """
    found: list[DependsOn] = []
    for at, wanted in enumerate(spec.depends_on):
        name = _id_of(wanted.job, spec, names, path=f"depends_on.{at}.job")
        found.append(DependsOn(job=name, condition=wanted.condition))
    unique = tuple(dict.fromkeys((one.job, one.condition) for one in found))
    wanted_ends = tuple(Dependency(on=name, condition=Condition(condition.value)) for name, condition in unique)
    job = job.but(waits_for=wanted_ends)
    for at, dependency in enumerate(wanted_ends):
        if draft.state.is_there(dependency.on):
            if dependency.on in draft.state.spoiled and dependency.condition is Condition.OK:
                how = f"not all tasks of {dependency.on} succeeded"
                job = after_end(job, dependency, is_ok=False, how=how, at_s=draft.at_s)
            continue
        is_ok, how = _ended(draft, dependency.on, names.past, path=f"depends_on.{at}.job")
        job = after_end(job, dependency, is_ok=is_ok, how=how, at_s=draft.at_s)
    return job, tuple(found)


def named_jobs(specs: Iterable[JobSpec]) -> tuple[set[str], set[str], list[TokenKey]]:
    """The jobs, arrays and tokens that these name."""
    jobs: set[str] = set()
    arrays: set[str] = set()
    tokens: list[TokenKey] = []
    for spec in specs:
        for wanted in spec.depends_on:
            if wanted.job.startswith(TOKEN):
                tokens.append((spec.project, wanted.job.removeprefix(TOKEN)))
            elif not wanted.job.startswith("#"):
                (jobs if wanted.job.startswith("j") else arrays).add(wanted.job)
    return jobs, arrays, tokens


def taking_order(specs: Sequence[tuple[int, JobSpec]]) -> tuple[list[int], dict[int, Refused]]:
    """The order in which jobs of one submission are taken in, so that each finds those it names; and who is refused.

    Args:
        specs: with their position in the submission.

    Returns: Indexes into `specs`, earlier ones first where nothing is said; refusals of those that wait for each other.
    """
    edges = _edges(specs)
    n_missing = [len(before) for before in edges]
    after: dict[int, list[int]] = {}
    for at, before in enumerate(edges):
        for other in before:
            after.setdefault(other, []).append(at)
    ready = [at for at, n in enumerate(n_missing) if not n]
    order: list[int] = []
    while ready:
        at = heapq.heappop(ready)
        order.append(at)
        for other in after.get(at, ()):
            n_missing[other] -= 1
            if not n_missing[other]:
                heapq.heappush(ready, other)
    left = sorted(set(range(len(specs))) - set(order))
    return [*order, *left], _cycles(specs, edges, left)


def _edges(specs: Sequence[tuple[int, JobSpec]]) -> list[set[int]]:
    """Of each: which others of the submission it names."""
    by_position = {position: at for at, (position, _) in enumerate(specs)}
    by_token = {(spec.project, spec.idempotency_token): at for at, (_, spec) in enumerate(specs)}
    edges: list[set[int]] = []
    for _, spec in specs:
        named: set[int] = set()
        for wanted in spec.depends_on:
            if wanted.job.startswith("#"):
                other = by_position.get(int(wanted.job[1:]))
            else:
                other = by_token.get((spec.project, wanted.job.removeprefix(TOKEN)))
                other = other if wanted.job.startswith(TOKEN) else None
            if other is not None:
                named.add(other)
        edges.append(named)
    return edges


def _cycles(specs: Sequence[tuple[int, JobSpec]], edges: Sequence[set[int]], left: Sequence[int]) -> dict[int, Refused]:
    """Refusals of those who are part of a cycle; who only waits for one is refused when it is taken in."""
    found: dict[int, Refused] = {}
    remaining, seen = set(left), set[int]()
    for start in left:
        path: dict[int, None] = {}
        following = start
        while following not in seen:
            seen.add(following)
            path[following] = None
            following = min(edges[following] & remaining)
        if following in path:
            walked = list(path)
            cycle = walked[walked.index(following) :]
            first = cycle.index(min(cycle))
            refusal = _cycle_refusal([specs[at][0] for at in (*cycle[first:], *cycle[:first])])
            found.update(dict.fromkeys(cycle, refusal))
    return found


def _cycle_refusal(positions: Sequence[int]) -> Refused:
    shown = [f"#{position}" for position in positions]
    middle = shown if len(shown) <= MAX_NAMED else [*shown[:MAX_NAMED], "..."]
    names = " -> ".join((*middle, shown[0]))
    message = f"depends_on: these jobs of the submission wait for each other: {names}; take one of them out"
    return refused(ErrorKind.INVALID, "dependency_cycle", message, path="depends_on")


def _id_of(name: str, spec: JobSpec, names: Names, *, path: str) -> str:
    if name.startswith("#"):
        job_id = names.by_position.get(int(name[1:]))
        if job_id is None:
            message = f"{path}: {name} is no job of this submission, or was refused; positions count from 0"
            raise refused(ErrorKind.INVALID, "dependency_refused", message, path=path)
        return job_id
    if name.startswith(TOKEN):
        token = name.removeprefix(TOKEN)
        job_id = names.by_token.get((spec.project, token))
        if job_id is None:
            message = f"{path}: no job of project {spec.project} has the idempotency token {token!r}, or it was refused"
            raise refused(ErrorKind.INVALID, "unknown_dependency", message, path=path)
        return job_id
    return name


def _ended(draft: Draft, name: str, past: Past, *, path: str) -> tuple[bool, str]:
    """Whether what is not live ended well, and in words how."""
    ids = past.tasks.get(name, ()) if name.startswith("a") else (name,)
    states = [state for job_id in ids if (state := _state_of(draft, job_id, past)) is not None]
    if not states:
        what = "array" if name.startswith("a") else "job"
        message = f"{path}: there is no {what} {name}; `nightlab job list --all` shows those that there are"
        raise refused(ErrorKind.INVALID, "unknown_dependency", message, path=path)
    is_ok = all(state is JobState.SUCCEEDED for state in states)
    if name.startswith("a"):
        return is_ok, f"{'all' if is_ok else 'not all'} tasks of {name} succeeded"
    return is_ok, f"{name} {'was cancelled' if states[0] is JobState.CANCELLED else states[0].value}"


def _state_of(draft: Draft, job_id: str, past: Past) -> JobState | None:
    """What this transaction has made of it, else what the store knows."""
    row = draft.rows.new_jobs.get(job_id)
    if row is not None:
        return row.state
    return draft.rows.jobs.get(job_id, {}).get("state") or past.states.get(job_id)
