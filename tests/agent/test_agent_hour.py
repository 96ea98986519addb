"""A session with an hour, step by step: what is given back, what goes on, what is said, what scorers do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_worlds import World, a_task, a_world, honest, score

from agent.report import build_report, gather_report_input
from agent.report.timeline import segments
from agent.store.views import Purpose, SessionState, TrialState, TrialView
from agent.task import Task
from agent.tools.again import spec_again
from runtime_client.errors import Unreachable
from runtime_client.fake import FakeOutcome, FakeRuntime, Script
from runtime_client.models import JobSpec

POINTS: list[dict[str, Any]] = [{"x": 0.7}, {"x": 0.9}, {"x": 0.4}]


def a_list(**changes: Any) -> Task:
    search = {"use": ["points"], "points": POINTS, "confirm": False}
    idle = {"replicate": False, "explore": False}
    return a_task(**{"search": search, "idle": idle, "held_out": None, "budgets": {"trials": 4}, **changes})


def long(spec: JobSpec) -> FakeOutcome:
    """100 s with ten epochs; the best one is the third."""
    final = score(spec)
    curve = [final * part for part in (0.5, 0.8, 1.2, *(1 - 0.05 * i for i in range(7)))]
    return FakeOutcome(curves={"score": curve}, duration_s=100.0)


class Stopping(FakeRuntime):
    """Somebody asks the session to stop while its first trials run."""

    def __init__(self, world: World, script: Script) -> None:
        super().__init__(script, is_automatic=True)
        self._world = world
        self._is_asked = False
        world.store.clock = lambda: self.now

    def step(self) -> bool:
        if self._is_asked:
            return super().step()
        self._is_asked = True
        self._world.store.request_stop("s1")
        self.advance(30.0)
        return True


def next_night(world: World, night_s: float | None = 1e6, **belongs: Any) -> None:
    world.runtime.advance(3600.0)
    finish_by = None if night_s is None else world.runtime.now + night_s
    world.store.request_resume("s1", finish_by=finish_by, **belongs)


def by_state(world: World, state: TrialState) -> list[TrialView]:
    return [trial for trial in world.store.trials("s1") if trial.state is state]


def test_every_job_has_the_hour_of_its_session(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_list(), night_s=500.0)
    assert world.live() is SessionState.FINISHED
    assert {job.spec.finish_by for job in world.runtime.jobs(limit=100)} == {1_000_500.0}


def test_trials_in_flight_at_the_hour_go_on_first_from_where_they_were(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_list(), script=long, night_s=50.0)
    assert world.live() is SessionState.STOPPED
    assert world.store.session("s1").message == ("the hour by which it had to be over has come; 2 trials wait to go on")
    waiting = [trial for trial in by_state(world, TrialState.PROPOSED) if trial.has_begun]
    assert [(t.facts.continues, t.submission, t.device_seconds) for t in waiting] == [
        (("j1",), 2, 50.0),
        (("j2",), 2, 50.0),
    ]
    next_night(world)
    assert world.live() is SessionState.FINISHED
    jobs = world.runtime.jobs(limit=100)[::-1]
    again = [job for job in jobs if job.submitted_at > 1_000_100]
    assert [job.spec.continues for job in again[:2]] == ["j1", "j2"]
    first = world.store.trial("s1-t1")
    assert (first.device_seconds, first.facts.run_seconds) == (100.0, None)
    assert first.value == pytest.approx(0.7 * (1.0 - 0.5**2))
    assert world.store.session("s1").device_seconds == pytest.approx(400.0)


def test_the_best_of_a_curve_is_looked_for_in_all_of_its_jobs(tmp_path: Path) -> None:
    objective = {"metric": "score", "direction": "maximize", "read": "best"}
    world = a_world(tmp_path, task=a_list(objective=objective), script=long, night_s=50.0)
    assert world.live() is SessionState.STOPPED
    next_night(world)
    assert world.live() is SessionState.FINISHED
    assert world.store.trial("s1-t1").value == pytest.approx(1.2 * (1.0 - 0.5**2))


def test_what_is_measured_undisturbed_tells_how_long_it_ran(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_list(), script=long)
    assert world.live() is SessionState.FINISHED
    assert {trial.facts.run_seconds for trial in world.store.trials("s1")} == {100.0}


def test_a_preempted_trial_has_no_time_of_its_own(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_list(), script=long, night_s=1e6)

    class Preempting(FakeRuntime):
        def step(self) -> bool:
            if self.now < 1_000_030.0:
                self.advance(30.0)
                self.preempt("j1")
                self.reschedule()
            return super().step()

    world.runtime = Preempting(long, is_automatic=True)
    assert world.live() is SessionState.FINISHED
    assert sorted(t.facts.run_seconds is None for t in world.store.trials("s1")) == [False, False, False, True]


def test_jobs_that_do_not_know_the_hour_are_cancelled_by_the_session(tmp_path: Path) -> None:
    """They were launched by a session that had none, and left to finish at its stop."""
    world = a_world(tmp_path, task=a_list(), script=long)
    world.runtime = Stopping(world, long)
    assert world.live() is SessionState.STOPPED
    running = world.runtime.jobs(states=["running"])
    assert [job.spec.finish_by for job in running] == [None, None]
    world.store.request_resume("s1", finish_by=world.runtime.now + 1.0)
    world.runtime.advance(2.0)
    assert world.live() is SessionState.STOPPED
    assert world.runtime.jobs(states=["running", "queued"]) == []
    begun = [trial for trial in by_state(world, TrialState.PROPOSED) if trial.has_begun]
    assert [trial.facts.continues for trial in begun] == [(), ()], "what is cancelled saves nothing here"
    next_night(world)
    assert world.live() is SessionState.FINISHED
    assert len(by_state(world, TrialState.MEASURED)) == 4


def test_a_night_that_is_stopped_leaves_nothing_running(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_list(), script=long, night_s=1e6, night_id="toy-n1")
    world.runtime = Stopping(world, long)
    assert world.live() is SessionState.STOPPED
    assert world.runtime.jobs(states=["running", "queued"]) == []
    assert world.store.session("s1").message.startswith("stopped, with all of its jobs")
    world.store.request_resume("s1", finish_by=world.store.session("s1").finish_by)
    assert world.live() is SessionState.FINISHED, "the hour has not come: a stop is none"
    assert len(by_state(world, TrialState.MEASURED)) == 4


def scored(spec: JobSpec) -> FakeOutcome:
    """A training of 10 s, and its scorer of 40 s."""
    if spec.tags.get("nightlab.score_of"):
        return FakeOutcome(curves={"score": [score(spec)]}, duration_s=40.0)
    return FakeOutcome(curves={"loss": [0.5]}, duration_s=10.0)


def test_a_scorer_that_had_to_leave_is_run_again_and_the_training_is_not(tmp_path: Path) -> None:
    task = a_list(score={"command": "score"}, budgets={"trials": 4})
    world = a_world(tmp_path, task=task, script=scored, night_s=30.0)
    assert world.live() is SessionState.STOPPED
    cut = [job for job in world.runtime.jobs(limit=100) if job.exit_reason == "deadline" and job.attempts]
    assert {job.spec.tags.get("nightlab.score_of") for job in cut} == {"j1", "j2"}
    next_night(world)
    assert world.live() is SessionState.FINISHED
    measured = by_state(world, TrialState.MEASURED)
    jobs = world.runtime.jobs(limit=100)
    trained = [job for job in jobs if not job.spec.tags.get("nightlab.score_of")]
    assert (len(measured), len(trained)) == (4, 4)
    used_s = sum(job.device_seconds(world.runtime.now) for job in jobs)
    assert sum(trial.device_seconds for trial in measured) == pytest.approx(used_s)
    assert world.store.session("s1").device_seconds == pytest.approx(used_s)


def test_a_training_that_ends_at_the_hour_is_scored_the_next_night(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_list(score={"command": "score"}), script=scored, night_s=10.0)
    assert world.live() is SessionState.STOPPED
    assert [t.state for t in world.store.trials("s1") if t.job_id] == [TrialState.LAUNCHED] * 2
    next_night(world)
    assert world.live() is SessionState.FINISHED
    assert len(by_state(world, TrialState.MEASURED)) == 4


def test_a_trial_whose_earlier_job_nobody_knows_any_more_begins_anew(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_list(), script=long, night_s=50.0)
    assert world.live() is SessionState.STOPPED
    next_night(world)
    for job in (world.runtime._jobs,):
        job.clear()
    assert world.live() is SessionState.FINISHED
    assert all(trial.facts.continues == () for trial in world.store.trials("s1"))


def test_a_session_whose_runtime_is_away_at_the_hour_stops(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_list(), script=long, night_s=50.0)

    def away() -> Any:
        raise Unreachable("no runtime", code="unreachable", retryable=True)

    assert world.live(connect=away) is SessionState.STOPPED
    assert "the runtime was away then" in world.store.session("s1").message
    assert world.runtime.now >= 1_000_050.0


def test_confirming_trials_go_on_the_next_night_and_the_answer_is_the_same(tmp_path: Path) -> None:
    def answer(home: Path, nights: list[float | None]) -> Any:
        world = a_world(home, script=honest, night_s=nights[0])
        state = world.live()
        for night_s in nights[1:]:
            if state is SessionState.FINISHED:
                break
            next_night(world, night_s)
            state = world.live()
        assert state is SessionState.FINISHED
        assert len(world.store.looks("s1")) == 1
        searched = [t for t in world.store.trials("s1") if t.purpose is Purpose.SEARCH]
        return world.store.session("s1").result, len(searched)

    result, n_searched = answer(tmp_path / "one", [None])
    assert n_searched == 6
    interrupted, n_again = answer(tmp_path / "many", [27.0, None])
    assert n_again < 6, "the search ends early, for what confirms its best"
    assert interrupted is not None
    assert replace(interrupted, sentence="").verdict == result.verdict


def test_a_trial_of_two_jobs_is_one_in_the_report_and_whole_when_run_again(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_list(), script=long, night_s=50.0)
    assert world.live() is SessionState.STOPPED
    next_night(world)
    assert world.live() is SessionState.FINISHED
    facts = gather_report_input(world.store, world.runtime, "s1", model_calls=())
    held = [(s.job_id, s.trial_number) for s in segments(facts.jobs, facts.trials, now=world.runtime.now)]
    assert {number for job_id, number in held if job_id in ("j1", world.store.trial("s1-t1").job_id)} == {1}
    assert "nothing was to be confirmed" in build_report(facts)
    job = world.runtime.job(world.store.trial("s1-t1").job_id or "")
    assert (job.spec.continues, job.spec.finish_by is None) == ("j1", False)
    again = spec_again(job.spec, trial_id="s1-t1", device_model=None)
    assert (again.continues, again.finish_by) == (None, None)


def test_what_goes_on_comes_before_what_people_suggest(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_list(budgets={"trials": 5}), script=long, night_s=50.0)
    assert world.live() is SessionState.STOPPED
    world.store.suggest("s1", {"x": 0.95}, why="a guess")
    next_night(world)
    assert world.live() is SessionState.FINISHED
    again = [job for job in world.runtime.jobs(limit=100)[::-1] if job.submitted_at > 1_000_100]
    assert [job.spec.continues for job in again[:2]] == ["j1", "j2"]
    assert 0.95 in {trial.params["x"] for trial in world.store.trials("s1")}


def test_a_trial_of_many_nights_knows_all_of_its_jobs(tmp_path: Path) -> None:
    objective = {"metric": "score", "direction": "maximize", "read": "best"}
    world = a_world(tmp_path, task=a_list(objective=objective), script=long, night_s=35.0)
    for _ in range(3):
        assert world.live() is SessionState.STOPPED
        next_night(world, 35.0)
    next_night(world, None)
    world.store.request_stop("s1")
    world.store.request_resume("s1")
    assert world.live() is SessionState.FINISHED
    first = world.store.trial("s1-t1")
    assert len(first.facts.continues) >= 2
    assert first.value == pytest.approx(1.2 * (1.0 - 0.5**2)), "the best was in the first of them"


class Dying:
    """The process dies when its first submission is answered."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self._runtime = runtime

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    def submit_many(self, specs: Any) -> Any:
        self._runtime.submit_many(specs)
        raise KeyboardInterrupt


def test_a_job_whose_answer_was_lost_is_found_and_an_earlier_hour_does_not_close_the_next_night(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_list(), script=long, night_s=50.0)
    with pytest.raises(KeyboardInterrupt):
        world.live(client=Dying(world.runtime))
    world.runtime.advance(60.0)
    assert world.live() is SessionState.STOPPED
    assert world.store.trial("s1-t1").facts.continues == ("j1",)
    next_night(world)
    assert world.live() is SessionState.FINISHED


def test_jobs_that_left_for_an_earlier_hour_do_not_close_the_next_night(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_list(), script=long, night_s=50.0)
    with pytest.raises(KeyboardInterrupt):
        world.live(client=Dying(world.runtime))
    world.store.request_stop("s1")
    next_night(world)
    assert world.live() is SessionState.FINISHED
    assert len(by_state(world, TrialState.MEASURED)) == 4


def test_a_session_that_nobody_ended_by_its_hour_gets_the_next_one(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_list(), script=long, night_s=50.0)
    next_night(world, 1e6, night_id="toy-n2")
    session = world.store.session("s1")
    assert (session.state, session.finish_by, session.night_id) == (
        SessionState.RUNNING,
        world.runtime.now + 1e6,
        "toy-n2",
    )
    world.store.request_resume("s1")
    assert world.store.session("s1").finish_by == session.finish_by, "nothing was said of an hour"


def test_a_runtime_whose_clock_is_ahead_does_not_cost_a_trial(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_list(), script=long, night_s=50.0)
    world.runtime.advance(60.0)
    world.store.clock = lambda: world.runtime.now - 20.0
    assert world.live() is SessionState.STOPPED
    assert all(trial.state is TrialState.PROPOSED for trial in world.store.trials("s1"))
    next_night(world)
    assert world.live() is SessionState.FINISHED


def test_a_trial_that_went_on_over_a_change_of_its_data_is_invalid(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("1,2")
    task = a_list(data=[{"path": str(data), "fingerprint": "sha256"}])
    world = a_world(tmp_path / "home", task=task, script=long, night_s=50.0)
    assert world.live() is SessionState.STOPPED
    data.write_text("3,4")
    next_night(world)
    assert world.live() is SessionState.FINISHED
    invalid = by_state(world, TrialState.INVALID)
    assert [(t.trial_id, len(t.facts.continues)) for t in invalid] == [("s1-t1", 1), ("s1-t2", 1)]
    assert all("data" in (trial.note or "") for trial in invalid)
