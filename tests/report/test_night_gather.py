"""Facts of a night come from its rows, its sessions and the runtime, which may be away or go away."""

from __future__ import annotations

from dataclasses import replace

from agent.report.night import gather_night
from agent.report.night.rows import capacity_rows
from agent.report.night.sample import sample_night
from agent.report.sample import sample_report_input
from agent.sweeps.views import NightSummary
from runtime_client.errors import Unreachable
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import JobSpec, SessionFence

REPORT = sample_night(n_nights=4, cells=("digits@main",))


class Nights:
    def __init__(self, *more):
        self.known = (*REPORT.nights, *more)

    def night(self, night_id):
        return next(n for n in self.known if n.night_id == night_id)

    def nights(self, sweep):
        return self.known[::-1]


class Sessions:
    def __init__(self):
        self.facts = sample_report_input()

    def session(self, session_id):
        return self.facts.session

    def trials(self, session_id):
        return self.facts.trials


class GoingAway(FakeRuntime):
    """Stops answering once it has told the jobs."""

    def nodes(self):
        raise Unreachable("connection refused", code="unreachable")


def a_runtime(kind=FakeRuntime):
    runtime = kind(lambda spec: FakeOutcome(curves={"val_accuracy": [0.5]}, duration_s=10.0))
    fence = SessionFence(session_id="s1", fence=1)
    spec = JobSpec(experiment_name="digits", command="x", priority_class="exploratory", session=fence)
    for token in ("a", "b"):
        runtime.submit(spec.model_copy(update={"idempotency_token": token}))
    runtime.advance(4.0)
    runtime.preempt("j2", beneficiary="j3")
    runtime.submit(JobSpec(experiment_name="paper", command="x", priority_class="critical"))
    runtime.advance(60.0)
    return runtime


def gathered(client, nights=None, **more):
    return gather_night(nights or Nights(), Sessions(), client, "digits-nightly-n4", now=2_000_000_000.0, **more)


def test_jobs_and_whom_they_stepped_aside_for_come_from_the_runtime():
    nights = Nights()
    nights.known = tuple(replace(n, created_at=0.0) for n in nights.known)
    report = gathered(a_runtime(), nights)
    assert [job.job_id for job in report.cells[0].jobs] == ["j1", "j2"]
    assert capacity_rows(report).for_whom == ("j3 (critical)",)
    assert report.n_devices == 2
    assert report.notes == ()


def test_jobs_that_ended_before_the_night_are_no_part_of_it():
    assert gathered(a_runtime()).cells[0].jobs == ()


def test_without_the_runtime_the_rest_is_told_and_the_page_says_what_is_missing():
    report = gathered(None)
    assert report.cells[0].trials
    assert report.summary == REPORT.summary
    assert report.notes == ("The runtime did not answer, so jobs, capacity and links into MLflow are left out.",)


def test_a_runtime_that_goes_away_meanwhile_is_asked_no_more_and_noted_once():
    report = gathered(a_runtime(GoingAway))
    assert report.n_devices == 0
    assert report.notes == ("The runtime stopped answering (connection refused), so some of the jobs are left out.",)


def test_history_is_what_came_before_and_a_later_night_makes_this_one_no_longer_the_newest():
    assert [n.number for n in gathered(None).history] == [1, 2, 3]
    assert gathered(None).is_newest
    later = replace(REPORT.night, night_id="digits-nightly-n5", number=5)
    report = gathered(None, Nights(later))
    assert [n.number for n in report.history] == [1, 2, 3]
    assert not report.is_newest


def test_a_cell_with_two_sessions_has_the_best_of_its_own():
    first, second = (replace(REPORT.summary.cells[0], session_id=s, n_trials=n) for s, n in (("s1", 3), ("s2", 8)))
    cell = REPORT.night.cells[0]
    nights = Nights()
    tonight = replace(nights.known[-1], cells=(cell, replace(cell, position=1, session_id="s2")))
    nights.known = (*nights.known[:-1], tonight)
    report = gathered(None, nights, summary=NightSummary(cells=(first, second)))
    assert [part.best.n_trials for part in report.cells if part.best] == [3, 8]


def test_rows_of_another_version_of_nightlab_are_told_without_what_they_do_not_say():
    nights = Nights()
    odd = replace(nights.known[-1], sweep_json='{"new": 1}', cells=(replace(REPORT.night.cells[0], task_json="{}"),))
    nights.known = (*nights.known[:-1], odd)
    report = gathered(None, nights)
    assert report.sweep is None
    assert report.zone is None
    assert report.cells[0].task is None
