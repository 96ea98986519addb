"""Jobs that wait for each other and arrays, for random lives; and what must be true of them, from the journal alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from core_driver import World
from core_language import job
from core_properties import require

from runtime.model.events import AttemptEnded, JobEnded, JobSubmitted, Recorded, StartOrdered
from runtime.model.nouns import ArrayPlace, Dependency, Job
from runtime.model.states import Condition, ExitReason, JobState


def submit_dependent(world: World) -> None:
    """A job that waits for one or two others, or for an array."""
    names = [*world.state.jobs, *world.state.index.arrays]
    if not names:
        return
    wanted = {names[world.pick(len(names))] for _ in range(1 + world.pick(2))}
    conditions = tuple(Condition)
    world.n_jobs += 1
    new = job(f"j{world.n_jobs}", submitted_at=world.now_s, queue_timeout_s=(None, None, 150.0)[world.pick(3)])
    waits_for = tuple(Dependency(on=name, condition=conditions[world.pick(3)]) for name in sorted(wanted))
    world.record(JobSubmitted(job=new.but(waits_for=waits_for)))


def submit_array(world: World) -> None:
    n_tasks, parallel = 2 + world.pick(4), (1, 2, None)[world.pick(3)]
    array_id = f"a{world.n_jobs + 1}"
    priority = ("normal", "exploratory")[world.pick(2)]
    for index in range(n_tasks):
        world.n_jobs += 1
        place = ArrayPlace(array_id=array_id, index=index, n_tasks=n_tasks, parallel=parallel)
        new = job(f"j{world.n_jobs}", priority=priority, submitted_at=world.now_s, max_retries=1)
        world.record(JobSubmitted(job=new.but(array=place)))


GRAPH_COMMANDS: tuple[Callable[[World], None], ...] = (submit_dependent, submit_dependent, submit_array, submit_array)


def check_graph(recorded: Iterable[Recorded]) -> None:
    """Nobody starts before what it waits for has ended as it had to, and no array has more than its tasks running."""
    jobs: dict[str, Job] = {}
    ends: dict[str, bool] = {}
    holding: set[str] = set()
    for entry in recorded:
        match entry.event:
            case JobSubmitted() as event:
                jobs[event.job.job_id] = event.job
            case StartOrdered() as event:
                holding.add(event.job_id)
                _check_start(event.job_id, jobs, ends, holding)
            case AttemptEnded() as event:
                holding.discard(event.job_id)
                if event.end_state is not None:
                    ends[event.job_id] = event.end_state is JobState.SUCCEEDED
            case JobEnded() as event:
                if event.exit_reason is ExitReason.DEPENDENCY_UNMET:
                    is_unmet = any(_can_never_be(d, jobs, ends) for d in jobs[event.job_id].waits_for)
                    require(is_unmet, "only an unmet dependency ends a job for that", event)
                ends[event.job_id] = event.end_state is JobState.SUCCEEDED


def _check_start(job_id: str, jobs: dict[str, Job], ends: dict[str, bool], holding: set[str]) -> None:
    for dependency in jobs[job_id].waits_for:
        tasks = _tasks(dependency.on, jobs)
        require(all(task in ends for task in tasks), "a job starts after what it waits for", (job_id, dependency))
        is_ok = all(ends[task] for task in tasks)
        is_met = {Condition.ANY: True, Condition.OK: is_ok, Condition.NOT_OK: not is_ok}[dependency.condition]
        require(is_met, "a job starts only if what it waits for ended as it had to", (job_id, dependency))
    place = jobs[job_id].array
    if place is not None and place.parallel is not None:
        n_holding = len(holding & _tasks(place.array_id, jobs))
        require(n_holding <= place.parallel, "no more tasks of an array than may hold devices", (job_id, n_holding))


def _can_never_be(dependency: Dependency, jobs: dict[str, Job], ends: dict[str, bool]) -> bool:
    tasks = _tasks(dependency.on, jobs)
    has_failed = any(not ends[task] for task in tasks if task in ends)
    has_ended = all(task in ends for task in tasks)
    if dependency.condition is Condition.OK:
        return has_failed
    return dependency.condition is Condition.NOT_OK and has_ended and not has_failed


def _tasks(name: str, jobs: dict[str, Job]) -> set[str]:
    if name in jobs:
        return {name}
    return {job.job_id for job in jobs.values() if job.array is not None and job.array.array_id == name}
