"""How a night's process ends a night, when it leaves that to the next one, and what no death at its end can lose."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from agent_worlds import a_task

from agent.store.nights import NightStore
from agent.store.store import AgentStore
from agent.store.views import SessionState
from agent.sweeps.cells import Cell
from agent.sweeps.ending import WHOLE_ENDINGS, ends_within_s
from agent.sweeps.night import SLACK_S
from agent.sweeps.night_deps import NightDeps
from agent.sweeps.running import run_night
from agent.sweeps.sweep import RandomMethod, Sweep
from agent.sweeps.views import NightOutcome, NightState, NightSummary, NightView
from agent.task import Task
from runtime_client.errors import Unreachable
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import JobSpec, SessionFence
from runtime_client.protocol import Runtime

SWEEP = Sweep(sweep="digits", task="t.yaml", method=RandomMethod(kind="random", trials=3))
PAGE = Path("/pages/digits-n1.html")


class Died(BaseException):
    """The process, in the middle of something."""


@dataclass(slots=True)
class Lives:
    """A night past its hour, and what the lives of its process bring about."""

    nights: NightStore
    runtime: FakeRuntime
    night_id: str
    deadly: dict[str, int] = field(default_factory=dict)
    """How often something still kills the process that does it."""
    done: list[str] = field(default_factory=list)
    leaves: Callable[[], bool] = lambda: False
    connect: Callable[[], Runtime] | None = None

    def live(self) -> NightView:
        return run_night(self.night_id, self.deps())

    def until_settled(self) -> list[str]:
        """Live until nothing is left to be done; what was done, in order."""
        while self.night.settled_at is None:
            try:
                self.live()
            except Died:
                continue
        return self.done

    @property
    def night(self) -> NightView:
        return self.nights.night(self.night_id)

    def deps(self) -> NightDeps:
        return NightDeps(
            store=self.nights.store,
            connect=self.connect or (lambda: self.runtime),
            summarize=lambda _store, _runtime, _night, _earlier: self.does("summary") or NightSummary(n_left=7),
            write_reports=lambda _night_id: self.does("page") or PAGE,
            write_plain_reports=lambda _night_id: self.does("plain page") or PAGE,
            tell=lambda _night, _summary, _page: self.does("tell") or ("mail: told",),
            say=lambda _text: None,
            should_leave=self.leaves,
            pause=lambda _seconds: self.runtime.advance(1.0),
        )

    def does(self, what: str) -> None:
        self.done.append(what)
        if self.deadly.get(what, 0) > 0:
            self.deadly[what] -= 1
            raise Died(what)


@pytest.fixture
def lives(tmp_path: Path) -> Lives:
    runtime = FakeRuntime(lambda _spec: FakeOutcome(duration_s=1e6))
    nights = NightStore(AgentStore.open(tmp_path, clock=lambda: runtime.now))
    begun = nights.begin(SWEEP, file="/d/sweep.yaml", cells=[Cell(name="a", task=a_task())], finish_by=1.0).night
    assert begun is not None
    nights.start_cell(begun.night_id, 0, nights.claim(begun.night_id))
    runtime.advance(3600.0)
    return Lives(nights=nights, runtime=runtime, night_id=begun.night_id)


def test_a_process_that_has_to_leave_before_it_saw_the_jobs_leaves_the_night_to_the_next(lives: Lives) -> None:
    leaving: list[bool] = []

    def away() -> Runtime:
        leaving.append(True)
        raise Unreachable("down", code="unreachable")

    lives.connect, lives.leaves = away, lambda: bool(leaving)
    left = lives.live()
    assert (left.state, left.outcome, lives.done) == (NightState.RUNNING, None, [])
    assert lives.nights.runnable() == [lives.night_id]
    lives.connect, lives.leaves = None, lambda: False
    ended = lives.live()
    assert (ended.state, ended.outcome) == (NightState.ENDED, NightOutcome.DEADLINE)
    assert lives.done == ["summary", "page", "tell", "page"]
    assert lives.nights.runnable() == []
    assert not lives.nights.is_held(lives.night_id)


def test_whatever_its_sessions_and_the_runtime_do_it_ends_within_the_time_that_others_wait_for_it(lives: Lives) -> None:
    def away() -> Runtime:
        raise Unreachable("down", code="unreachable")

    lives.connect, seen_at = away, lives.runtime.now
    assert lives.live().outcome is NightOutcome.DEADLINE
    assert SLACK_S < lives.runtime.now - seen_at <= ends_within_s(lives.night)


def test_a_long_grace_of_its_jobs_is_waited_for(lives: Lives) -> None:
    (cell,) = lives.night.cells
    task = Task.model_validate_json(cell.task_json)
    patient = task.model_copy(update={"job": task.job.model_copy(update={"grace_seconds": 600.0})})
    slow = replace(lives.night, cells=(replace(cell, task_json=patient.model_dump_json()),))
    assert ends_within_s(slow) - ends_within_s(lives.night) == 600.0 - task.job.grace_seconds


def test_a_death_between_the_end_and_the_page_loses_neither_page_nor_message(lives: Lives) -> None:
    lives.deadly = {"page": 1}
    with pytest.raises(Died):
        lives.live()
    assert (lives.night.outcome, lives.night.settled_at) == (NightOutcome.DEADLINE, None)
    assert lives.nights.runnable() == [lives.night_id]
    lives.live()
    assert lives.done == ["summary", "page", "page", "tell", "page"]


def test_a_death_while_people_are_told_has_them_told_again(lives: Lives) -> None:
    lives.deadly = {"tell": 1}
    assert lives.until_settled().count("tell") == 2
    assert lives.night.summary == NightSummary(n_left=7, notified=("mail: told",))


def test_a_death_after_they_were_told_does_not(lives: Lives) -> None:
    pages: list[str] = []

    def second_page_dies(_night_id: str) -> Path:
        pages.append("page")
        if len(pages) == 2:
            raise Died
        return PAGE

    deps = lives.deps()
    with pytest.raises(Died):
        run_night(lives.night_id, replace(deps, write_reports=second_page_dies))
    lives.live()
    assert lives.done == ["summary", "tell", "page"]


@pytest.mark.parametrize("fault", ["summary", "page"])
def test_a_summary_or_page_that_kills_every_process_leaves_the_outcome_a_plain_page_and_the_message(
    lives: Lives, fault: str
) -> None:
    lives.deadly = {fault: 100}
    done = lives.until_settled()
    assert done.count(fault) == WHOLE_ENDINGS
    assert done[-3:] == ["plain page", "tell", "plain page"]
    assert lives.night.outcome is NightOutcome.DEADLINE
    assert ("could not be worked out" in lives.night.message) == (fault == "summary")


def test_a_full_disk_is_waited_for_and_costs_nothing(lives: Lives) -> None:
    full: list[None] = [None] * 3

    def write(_night_id: str) -> Path:
        if full:
            full.pop()
            raise OSError(errno.ENOSPC, "No space left on device")
        return PAGE

    ended = run_night(lives.night_id, replace(lives.deps(), write_reports=write))
    assert ended.settled_at is not None
    assert ended.outcome is NightOutcome.DEADLINE
    assert lives.done.count("tell") == 1


def test_a_night_that_was_given_up_leaves_no_job_and_has_its_page_and_message(lives: Lives) -> None:
    session = SessionFence(session_id="s1", fence=1)
    for _ in range(3):
        lives.runtime.submit(JobSpec(experiment_name="e", command="c", session=session))
    lives.nights.fail(lives.night_id, "its process died five times")
    assert lives.nights.store.session("s1").state is SessionState.STOPPING
    lives.live()
    assert {job.state for job in lives.runtime.jobs()} == {"cancelled"}
    assert lives.done == ["page", "tell", "page"]
    assert (lives.night.outcome, lives.night.message) == (NightOutcome.FAILED, "its process died five times")


def test_jobs_that_the_next_night_has_taken_up_are_not_those_of_the_one_that_is_settled(lives: Lives) -> None:
    store = lives.nights.store
    lives.nights.fail(lives.night_id, "died")
    store._move("s1", {SessionState.STOPPING}, SessionState.STOPPED, "the hour has come")
    store.request_resume("s1", finish_by=9e9, night_id="digits-n2")
    job = lives.runtime.submit(
        JobSpec(experiment_name="e", command="c", session=SessionFence(session_id="s1", fence=1))
    )
    lives.live()
    assert lives.runtime.job(job.job_id).state == "running"
    assert store.session("s1").state is SessionState.RUNNING
