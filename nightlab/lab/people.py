"""The work of people over days: jobs that come by day, and a few by night, drawn from a seed. Pure.

A local day's jobs depend on the seed and the day alone, so that two runs over the same days meet the same ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import partial
from typing import Literal

from runtime_client.models import Compute, JobSpec

from .cluster import LabCluster
from .world import Course

DAY_HOURS = (8.0, 19.0)
"""Local hours between which people begin work."""
PeopleClass = Literal["critical", "normal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonsJob:
    name: str
    at: float
    """When it is submitted, seconds since the epoch."""
    run_s: float
    n_devices: int
    priority_class: PeopleClass
    is_by_day: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How much people do, and when."""

    day_hours: tuple[float, float] = DAY_HOURS
    critical_a_day: float = 12.0
    """Mean number of critical jobs between the hours of work."""
    normal_a_day: float = 20.0
    a_night: float = 2.0
    """Mean number of jobs between two days, half of them critical."""
    critical_run_s: float = 900.0
    """Mean run time; that of normal jobs is three times as long."""
    most_devices: int = 4
    seed: int = 0


def jobs_of_days(days: Sequence[date], zone: tzinfo, habits: Habits) -> list[PersonsJob]:
    """All jobs of these local days, each with the night after it, in the order in which they come."""
    return sorted((job for day in days for job in _of_day(day, zone, habits)), key=lambda job: (job.at, job.name))


def _of_day(day: date, zone: tzinfo, habits: Habits) -> Iterator[PersonsJob]:
    numbers = random.Random(f"{habits.seed} {day.isoformat()}")
    begin, end = habits.day_hours
    for kind, mean in (("critical", habits.critical_a_day), ("normal", habits.normal_a_day)):
        for k, hour in enumerate(_arrivals(numbers, begin, end, mean)):
            yield _job(f"{day.isoformat()}-{kind}-{k}", kind, day, hour, zone, habits, numbers)
    for k, hour in enumerate(_arrivals(numbers, end + 4.0, 24.0 + begin - 2.0, habits.a_night)):
        kind = "critical" if numbers.random() < 0.5 else "normal"
        yield _job(f"{day.isoformat()}-night-{k}", kind, day, hour, zone, habits, numbers)


def _arrivals(numbers: random.Random, begin: float, end: float, mean: float) -> Iterator[float]:
    """Hours of a Poisson stream."""
    if mean <= 0:
        return
    hour = begin + numbers.expovariate(mean / (end - begin))
    while hour < end:
        yield hour
        hour += numbers.expovariate(mean / (end - begin))


def _job(
    name: str, kind: str, day: date, hour: float, zone: tzinfo, habits: Habits, numbers: random.Random
) -> PersonsJob:
    mean_s = habits.critical_run_s * (1.0 if kind == "critical" else 3.0)
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(hours=hour)
    return PersonsJob(
        name=name,
        at=midnight.replace(tzinfo=zone).timestamp(),
        run_s=min(max(numbers.expovariate(1.0 / mean_s), 60.0), 4.0 * mean_s),
        n_devices=numbers.randint(1, habits.most_devices),
        priority_class="critical" if kind == "critical" else "normal",
        is_by_day="-night-" not in name,
    )


def submit_all(cluster: LabCluster, jobs: Sequence[PersonsJob]) -> None:
    """Have each be submitted at its time."""
    for job in jobs:
        cluster.plan(job.at, partial(_submit, cluster, job))


def _submit(cluster: LabCluster, job: PersonsJob) -> None:
    cluster.submit([spec_of(job)], frozenset())


def spec_of(job: PersonsJob) -> JobSpec:
    return JobSpec(
        experiment_name="people",
        command="work",
        compute=Compute(num_accelerators=job.n_devices),
        priority_class=job.priority_class,
        idempotency_token=f"person-{job.name}",
        parameters={"name": job.name, "run_s": job.run_s},
    )


def course_of(spec: JobSpec) -> Course:
    return Course(run_s=float(str(spec.parameters["run_s"])))


def waits_by_name(cluster: LabCluster) -> dict[str, float]:
    """Seconds from submission to the first start of each job of people that has started."""
    return {
        str(cluster.jobs[job_id].spec.parameters["name"]): attempts[0].ordered_at - cluster.rows[job_id].submitted_at
        for job_id, attempts in cluster.attempts.items()
        if cluster.jobs[job_id].spec.experiment_name == "people"
    }
