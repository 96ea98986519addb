"""Whole sessions in memory, from the first proposal to the verdict."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from pathlib import Path

import pytest
from agent_worlds import World, a_task, a_world, honest, score

from agent.steps.propose import N_QUEUED
from agent.store.views import Purpose, SessionState, SessionView, TrialState
from runtime_client.errors import Unreachable
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import JobSpec, JobView, SuggestionView


def text_of(world: World) -> str:
    return "\n".join(line.text for line in world.store.activity(world.session_id, limit=1000))


def jobs_of(world: World) -> list[JobView]:
    return list(reversed(world.runtime.jobs(limit=1000)))


def purposes(world: World) -> dict[str, int]:
    found: dict[str, int] = {}
    for trial in world.store.trials(world.session_id):
        found[trial.purpose.value] = found.get(trial.purpose.value, 0) + 1
    return found


def assert_whole(world: World, *, n_search: int) -> None:
    """Everything was run once: the search, whole pairs until they decided, one look."""
    found = purposes(world)
    assert (found["search"], found["held_out"]) == (n_search, 1)
    pairs = Counter(t.seed for t in world.store.trials("s1") if t.purpose is Purpose.REPLICATE)
    assert set(pairs.values()) == {2}
    assert len(pairs) >= 7  # fewer can not decide


def test_a_session_searches_confirms_looks_once_and_ends(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    assert world.live() is SessionState.FINISHED
    assert_whole(world, n_search=6)
    assert all(trial.state is TrialState.MEASURED for trial in world.store.trials("s1"))
    session = world.store.session("s1")
    assert session.result is not None
    assert (session.result.verdict, session.result.held_out_looks) == ("supported", 1)
    assert session.pid is None
    assert session.device_seconds == pytest.approx(sum(t.device_seconds for t in world.store.trials("s1")))
    assert [look.value for look in world.store.looks("s1")] == [session.result.held_out_value]


def test_the_default_is_launched_first(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    world.live()
    first = jobs_of(world)[0].spec
    assert (first.parameters["x"], first.parameters["kind"], first.seed) == (0.2, "a", 0)
    assert first.tags["nightlab.suggested_by"] == "default"


def test_best_and_default_have_the_same_fresh_seeds(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    world.live()
    seeds: dict[str, set[int]] = {}
    for trial in world.store.trials("s1"):
        if trial.purpose is Purpose.REPLICATE:
            seeds.setdefault(trial.configuration, set()).add(trial.seed)
    best, default = seeds.values()
    assert best == default == set(range(1000, 1000 + len(best)))
    assert len(best) >= 7  # fewer pairs can not decide


@pytest.mark.parametrize(
    "n_devices", [1, pytest.param(2, marks=pytest.mark.lives), pytest.param(5, marks=pytest.mark.lives)]
)
def test_slots_are_busy_from_the_first_start_to_the_last_end(n_devices: int, tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_task(budgets={"trials": 20}), n_devices=n_devices)
    world.live()
    attempts = [attempt for job in jobs_of(world) for attempt in job.attempts]
    used = sum((a.ended_at or 0) - a.ordered_at for a in attempts)
    span = max(a.ended_at or 0 for a in attempts) - min(a.ordered_at for a in attempts)
    assert used / (n_devices * span) >= 0.85


def test_no_more_jobs_are_in_flight_than_slots_and_one_waiting(tmp_path: Path) -> None:
    seen: list[int] = []

    class Watching(FakeRuntime):
        def submit_many(self, specs: object) -> object:  # type: ignore[override]
            answer = super().submit_many(specs)  # type: ignore[arg-type]
            info = self.info()
            seen.append(info.n_queued + info.n_running)
            return answer

    world = a_world(tmp_path, task=a_task(budgets={"trials": 20}))
    world.live(client=Watching(honest, n_devices=2, is_automatic=True))
    assert max(seen) == 2 + N_QUEUED


def test_slots_of_the_task_bound_what_is_in_flight(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_task(slots=1), n_devices=4)
    world.live()
    running = sorted((a.ordered_at, a.ended_at or 0) for job in jobs_of(world) for a in job.attempts)
    assert max(sum(1 for s, e in running if s <= at < e) for at, _ in running) <= 1 + N_QUEUED


def test_minimizing_finds_the_smallest(tmp_path: Path) -> None:
    objective = {"metric": "score", "direction": "minimize"}
    world = a_world(tmp_path, task=a_task(objective=objective, budgets={"trials": 8}))
    world.live()
    values = {t.configuration: t.value for t in world.store.trials("s1") if t.purpose is Purpose.SEARCH}
    result = world.store.session("s1").result
    assert result is not None
    assert values[result.best_configuration] == min(v for v in values.values() if v is not None)


def test_plan_revisions_are_kept_and_published_with_the_run(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    world.live()
    plans = world.store.plans("s1")
    assert [plan.revision for plan in plans] == list(range(1, len(plans) + 1))
    assert (plans[0].phase, plans[-1].phase) == ("search", "done")
    run_id = world.store.session("s1").run_id
    assert run_id is not None
    published = {path: content for (run, path), content in world.runtime.artifacts.items() if run == run_id}
    assert list(published) == [f"plan/revision-{plan.revision}.json" for plan in plans]
    assert json.loads(published["plan/revision-1.json"])["hypotheses"][0]["alpha"] == 0.025


def test_lineage_is_session_hypothesis_trial(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    world.live()
    session = world.store.session("s1")
    assert session.hypothesis_run_id is not None
    hypothesis = world.runtime.run(session.hypothesis_run_id)
    assert hypothesis.parent_run_id == session.run_id
    assert {world.runtime.run(job.run_id).parent_run_id for job in jobs_of(world)} == {hypothesis.run_id}
    assert hypothesis.status == "FINISHED"
    assert hypothesis.tags["nightlab.verdict"] == "supported"


def test_a_trial_without_the_metric_says_which_metrics_there_were(tmp_path: Path) -> None:
    def script(spec: JobSpec) -> FakeOutcome:
        return FakeOutcome(curves={"loss": [1.0]}) if spec.parameters["x"] > 0.5 else honest(spec)

    world = a_world(tmp_path, script=script)
    assert world.live() is SessionState.FINISHED
    bad = [trial for trial in world.store.trials("s1") if trial.state is TrialState.INVALID]
    assert bad
    assert all(trial.note == "metric 'score' never appeared; metrics that did appear: loss" for trial in bad)
    assert all(trial.exit_reason == "criteria_not_met" for trial in bad)


def test_nan_is_never_the_best(tmp_path: Path) -> None:
    def script(spec: JobSpec) -> FakeOutcome:
        is_bad = spec.parameters["x"] > 0.5
        return FakeOutcome(curves={"score": [9.0, math.nan]}) if is_bad else honest(spec)

    world = a_world(tmp_path, script=script, task=a_task(budgets={"trials": 10}))
    assert world.live() is SessionState.FINISHED
    result = world.store.session("s1").result
    assert result is not None
    assert float(result.best["x"] or 0) <= 0.5


@pytest.mark.parametrize("reason", ["code_error", "run_timeout", "hung", "out_of_memory_host"])
def test_a_failed_trial_keeps_its_reason_and_the_session_goes_on(reason: str, tmp_path: Path) -> None:
    def script(spec: JobSpec) -> FakeOutcome:
        is_bad = spec.parameters["x"] > 0.6
        return FakeOutcome(exit_reason=reason, evidence="it broke") if is_bad else honest(spec)

    world = a_world(tmp_path, script=script, task=a_task(budgets={"trials": 8}))
    assert world.live() is SessionState.FINISHED
    bad = [trial for trial in world.store.trials("s1") if trial.state is TrialState.INVALID]
    assert {trial.exit_reason for trial in bad} == {reason}
    assert all((trial.note or "").startswith(f"{reason}: it broke; ") for trial in bad)


def test_what_a_job_suggests_stands_in_the_note_of_its_trial(tmp_path: Path) -> None:
    why = "out of memory device: halve batch_size (64 to 32) before the next attempt"
    proposal = SuggestionView(change="batch_size", factor=0.5, old=64, new=32, why=why)

    def script(spec: JobSpec) -> FakeOutcome:
        is_bad = spec.parameters["x"] > 0.6
        return FakeOutcome(exit_reason="out_of_memory_device", suggestion=proposal) if is_bad else honest(spec)

    world = a_world(tmp_path, script=script, task=a_task(budgets={"trials": 8}))
    assert world.live() is SessionState.FINISHED
    bad = [trial for trial in world.store.trials("s1") if trial.state is TrialState.INVALID]
    assert bad
    assert all(why in (trial.note or "") for trial in bad)


def test_a_metric_that_never_appears_ends_the_session_with_advice(tmp_path: Path) -> None:
    world = a_world(tmp_path, script=lambda spec: FakeOutcome(curves={"acc": [0.5]}), n_devices=8)
    assert world.live() is SessionState.FAILED
    session = world.store.session("s1")
    assert "metrics that did appear: acc" in session.message
    assert "objective.metric" in session.message
    assert world.runtime.jobs(states=["queued", "running"]) == []
    assert all(trial.is_ended for trial in world.store.trials("s1"))
    assert session.run_id is not None
    assert world.runtime.run(session.run_id).status == "FAILED"


def test_a_failed_session_goes_on_after_the_mistake_is_mended(tmp_path: Path) -> None:
    broken = [True]

    def script(spec: JobSpec) -> FakeOutcome:
        return FakeOutcome(exit_reason="import_error") if broken[0] else honest(spec)

    world = a_world(tmp_path, script=script)
    assert world.live() is SessionState.FAILED
    broken[0] = False
    world.store.request_resume("s1")
    assert world.live() is SessionState.FINISHED
    assert_whole(world, n_search=6)


def test_a_priority_class_that_is_unknown_ends_the_session_with_the_servers_words(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_task(priority_class="urgent"))
    assert world.live() is SessionState.FAILED
    assert "unknown priority class 'urgent'" in world.store.session("s1").message


def test_the_device_budget_is_hard_and_what_is_in_flight_finishes(tmp_path: Path) -> None:
    task = a_task(budgets={"trials": 50, "device_seconds": 200})
    world = a_world(tmp_path, task=task)
    assert world.live() is SessionState.FINISHED
    session = world.store.session("s1")
    assert 200 - 60 <= session.device_seconds <= 200 + 3 * 12
    assert all(trial.is_ended for trial in world.store.trials("s1"))
    assert session.result is not None
    assert session.result.comparison != "invalid"


def test_the_wall_budget_is_hard(tmp_path: Path) -> None:
    task = a_task(budgets={"trials": 500, "wall_minutes": 2})
    world = a_world(tmp_path, task=task)
    assert world.live() is SessionState.FINISHED
    assert world.store.session("s1").wall_seconds <= 120 + 24
    assert len(world.store.trials("s1")) < 40


def test_a_target_that_is_reached_ends_the_search_early(tmp_path: Path) -> None:
    objective = {"metric": "score", "direction": "maximize", "target": 0.9}
    world = a_world(tmp_path, task=a_task(objective=objective, budgets={"trials": 60}))
    assert world.live() is SessionState.FINISHED
    assert purposes(world)["search"] < 30
    assert "target 0.9 was reached" in text_of(world)


def test_a_finite_space_ends_the_search_when_it_is_tried_out(tmp_path: Path) -> None:
    space = {"x": {"type": "categorical", "choices": [0.1, 0.5, 0.7], "default": 0.1}}
    world = a_world(tmp_path, task=a_task(space=space))
    assert world.live() is SessionState.FINISHED
    assert_whole(world, n_search=3)


def test_a_stop_asks_queued_jobs_back_leaves_running_ones_and_resumes(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    stops = [False]

    class Stopping(FakeRuntime):
        def step(self) -> bool:
            if not stops[0] and len(self.jobs(states=["succeeded"])) >= 3:
                stops[0] = True
                world.store.request_stop("s1")
            return super().step()

    world.runtime = Stopping(honest, n_devices=2, is_automatic=True)
    assert world.live() is SessionState.STOPPED
    assert world.runtime.jobs(states=["queued"]) == []
    assert len(world.runtime.jobs(states=["cancelled"])) == 1
    assert "asked back from the queue" in text_of(world)
    world.store.request_resume("s1")
    assert world.live() is SessionState.FINISHED
    assert_whole(world, n_search=6)
    assert all(trial.state is TrialState.MEASURED for trial in world.store.trials("s1"))


def test_a_process_that_is_asked_to_leave_touches_no_job_and_stays_running(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    leaving = [False]

    class Leaving(FakeRuntime):
        def step(self) -> bool:
            leaving[0] = leaving[0] or len(self.jobs(states=["succeeded"])) >= 3
            return super().step()

    world.runtime = Leaving(honest, n_devices=2, is_automatic=True)
    assert world.live(should_leave=lambda: leaving[0]) is SessionState.RUNNING
    assert not world.store.is_held("s1")
    assert world.runtime.jobs(states=["cancelled"]) == []
    leaving[0] = False
    assert world.live(should_leave=lambda: False) is SessionState.FINISHED
    assert_whole(world, n_search=6)


def test_a_session_waits_for_a_runtime_that_is_away_and_goes_on(tmp_path: Path) -> None:
    class Flaky(FakeRuntime):
        n_submits = 0

        def submit_many(self, specs: object) -> object:  # type: ignore[override]
            self.n_submits += 1
            if self.n_submits in (2, 3, 7):
                raise Unreachable("nobody answers", code="unreachable", retryable=True)
            return super().submit_many(specs)  # type: ignore[arg-type]

    world = a_world(tmp_path)
    world.runtime = Flaky(honest, n_devices=2, is_automatic=True)
    assert world.live() is SessionState.FINISHED
    assert_whole(world, n_search=6)
    assert "the runtime is back" in text_of(world)


def test_a_preempted_trial_is_told_and_counts_once(tmp_path: Path) -> None:
    class Preempting(FakeRuntime):
        is_done = False

        def step(self) -> bool:
            if not self.is_done and len(self.jobs(states=["succeeded"])) == 2:
                self.is_done = True
                running = self.jobs(states=["running"])[0]
                self.advance(1.0)
                self.preempt(running.job_id, beneficiary="j99")
            return super().step()

    world = a_world(tmp_path)
    world.runtime = Preempting(honest, n_devices=2, is_automatic=True)
    assert world.live() is SessionState.FINISHED
    assert "was preempted for j99" in text_of(world)
    assert_whole(world, n_search=6)


def test_the_report_is_written_from_the_finished_session(tmp_path: Path) -> None:
    seen: list[SessionView] = []

    def write(view: SessionView) -> str:
        seen.append(view)
        return "/reports/s1.html"

    world = a_world(tmp_path)
    world.live(write_report=write)
    assert seen[0].state is SessionState.FINISHED
    assert seen[0].result is not None
    assert world.store.session("s1").report_path == "/reports/s1.html"


def test_a_report_that_can_not_be_written_does_not_take_the_result_away(tmp_path: Path) -> None:
    def write(view: SessionView) -> str:
        raise OSError(28, "No space left on device")

    world = a_world(tmp_path)
    assert world.live(write_report=write) is SessionState.FINISHED
    assert "could not be written" in text_of(world)
    assert world.store.session("s1").result is not None


def test_a_session_of_noise_does_not_claim_a_gain(tmp_path: Path) -> None:
    def script(spec: JobSpec) -> FakeOutcome:
        text = f"{spec.seed}/{spec.parameters['x']}".encode()
        noise = int.from_bytes(hashlib.sha256(text).digest()[:4], "big") / 2**32
        return FakeOutcome(curves={"score": [noise], "test_score": [noise]}, duration_s=10)

    world = a_world(tmp_path, script=script, task=a_task(seeds={"fresh": 5}, budgets={"trials": 12}))
    assert world.live() is SessionState.FINISHED
    result = world.store.session("s1").result
    assert result is not None
    assert result.verdict != "supported"


def test_state_of_the_graph_stays_small(tmp_path: Path) -> None:
    import sqlite3

    world = a_world(tmp_path, task=a_task(budgets={"trials": 60}))
    world.live()
    with sqlite3.connect(tmp_path / "sessions" / "s1.graph.db") as connection:
        sizes = [len(row[0]) for row in connection.execute("SELECT checkpoint FROM checkpoints")]
    assert max(sizes) < 4000
    assert len(sizes) < 120


def test_scores_differ_by_seed() -> None:
    specs = [JobSpec(experiment_name="e", command="c", parameters={"x": 0.5}, seed=seed) for seed in (1000, 1001)]
    assert score(specs[0]) != score(specs[1])


def test_a_session_submits_again_what_was_refused_while_all_agents_were_stopped(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    world.runtime.n_refusals = 5
    assert world.live() is SessionState.FINISHED
    assert world.runtime.n_refusals == 0
    assert all(trial.state is TrialState.MEASURED for trial in world.store.trials("s1"))
    assert text_of(world).count("can not be submitted now: all agents were stopped") == 1


def test_a_session_whose_budget_is_used_up_ends_with_what_it_has_and_says_why(tmp_path: Path) -> None:
    """Somebody gave it less device time than its task asks for."""
    world = a_world(tmp_path)
    world.runtime.budgets["s1"] = 35.0
    assert world.live() is SessionState.FINISHED
    trials = world.store.trials("s1")
    measured = [trial for trial in trials if trial.state is TrialState.MEASURED]
    refused = [trial for trial in trials if trial.exit_reason == "refused"]
    assert len(measured) >= 3
    assert len(refused) <= 2, "it stops asking"
    assert "may use 35 device-seconds" in text_of(world)
