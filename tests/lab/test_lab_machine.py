"""The machine of the lab: it sleeps, all of it is killed; and the people who work on it."""

from __future__ import annotations

from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest
from lab_worlds import a_course, a_runtime, a_spec, advance

from nightlab.lab.people import Habits, jobs_of_days
from runtime.simulator.workload import Costs

BERLIN = ZoneInfo("Europe/Berlin")


def test_while_the_machine_sleeps_no_work_is_done_and_what_was_due_happens_when_it_wakes() -> None:
    runtime, happened = a_runtime(), list[float]()
    cluster = runtime.cluster
    began = cluster.now
    job = runtime.submit(a_spec())
    cluster.plan(began + 50.0, lambda: cluster.suspend(began + 1050.0))
    cluster.plan(began + 500.0, lambda: happened.append(cluster.now))
    advance(runtime, 1060.0)
    assert happened == [began + 1050.0]
    assert (runtime.job(job.job_id).state, len(runtime.metrics(job.job_id))) == ("running", 2)
    advance(runtime, 40.0)
    assert runtime.job(job.job_id).ended_at == began + 1100.0


def test_asked_to_leave_before_the_machine_slept_it_has_saved_after_that() -> None:
    runtime = a_runtime(nodes="1x1", costs=Costs(notice_checkpoint_s=20.0))
    hour = runtime.cluster.now + 60.0
    job = runtime.submit(a_spec(finish_by=hour))
    runtime.cluster.plan(hour - 30.0, lambda: runtime.cluster.suspend(hour + 1000.0))
    advance(runtime, 2000.0)
    ended = runtime.job(job.job_id)
    assert (ended.exit_reason, ended.checkpoint_step, ended.ended_at) == ("deadline", 1, hour + 1018.0)


@pytest.mark.parametrize(("every_s", "worked_again_s"), [(20.0, 5.0), (None, 45.0)])
def test_a_kill_of_everything_loses_what_was_not_saved_and_nothing_else(
    every_s: float | None, worked_again_s: float
) -> None:
    runtime = a_runtime({"a": a_course(100.0)}, costs=Costs(checkpoint_every_s=every_s, restart_s=0.0))
    began = runtime.cluster.now
    job = runtime.submit(a_spec())
    advance(runtime, 45.0)
    runtime.cluster.kill_all(began + 600.0)
    advance(runtime, 10_000.0)
    ended = runtime.job(job.job_id)
    assert (ended.state, [attempt.outcome for attempt in ended.attempts]) == ("succeeded", ["node_lost", "succeeded"])
    second = ended.attempts[1].started_at
    assert second is not None
    assert second >= began + 600.0
    assert ended.ended_at == second + 100.0 - 45.0 + worked_again_s


def test_after_a_kill_over_the_hour_nothing_of_a_job_starts_again() -> None:
    runtime = a_runtime()
    hour = runtime.cluster.now + 70.0
    job = runtime.submit(a_spec(finish_by=hour))
    advance(runtime, 30.0)
    runtime.cluster.kill_all(hour + 300.0)
    advance(runtime, 1000.0)
    ended = runtime.job(job.job_id)
    assert (ended.state, ended.exit_reason, len(ended.attempts)) == ("cancelled", "deadline", 1)


def test_people_do_the_same_each_time_and_keep_their_hours_on_days_of_23_and_25_hours() -> None:
    days = [date(2026, 3, 28), date(2026, 3, 29), date(2026, 10, 24), date(2026, 10, 25)]
    habits = Habits(day_hours=(7.0, 19.0), a_night=6.0)
    jobs = jobs_of_days(days, BERLIN, habits)
    assert jobs == jobs_of_days(days, BERLIN, habits)
    assert len({job.name for job in jobs}) == len(jobs)
    for job in jobs:
        hour = datetime.fromtimestamp(job.at, BERLIN).hour
        assert (7 <= hour < 19) if job.is_by_day else (hour >= 23 or hour < 5), job
    assert any(not job.is_by_day and job.priority_class == "critical" for job in jobs)
