"""Jobs through the whole server: submission, idempotency, fences, cancel in each state, preemption, reading."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, key, lab, spec, until

from runtime.engines.contract import StopAttempt
from runtime.engines.fake import ByHand, FakeEngine, Obedient, Refusal
from runtime.model.states import ExitReason
from runtime.scheduling.policy import Policy
from runtime_client.errors import Conflict, InvalidSpec, NotFound
from runtime_client.models import NewRun, RunUpdate


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Lab]:
    with lab(tmp_path, script=ByHand()) as found:
        yield found


def test_a_job_runs_from_submission_to_success(made: Lab) -> None:
    job = made.client.submit(spec(tags={"a": "b"}))
    assert (job.job_id, job.state) == ("j1", "starting")
    made.in_state("j1", "running")
    made.do(lambda: made.engine.print(key("j1"), "hello\n"))
    made.finish("j1")
    ended = made.in_state("j1", "succeeded")
    assert ended.exit_reason == "completed"
    assert ended.attempts[0].outcome == "succeeded"
    assert ended.submitted_at <= ended.attempts[0].ordered_at <= ended.attempts[0].started_at <= ended.ended_at  # type: ignore[operator]
    assert made.client.logs("j1").text == "hello\n"
    assert made.client.run(job.run_id).status == "FINISHED"
    assert made.client.explain("j1").summary == "j1 succeeded"


def test_job_ids_count_from_one(made: Lab) -> None:
    assert [made.client.submit(spec()).job_id for _ in range(3)] == ["j1", "j2", "j3"]


def test_a_known_token_returns_the_earlier_job(made: Lab) -> None:
    first = made.client.submit(spec(idempotency_token="t"))
    made.in_state("j1", "running")
    again = made.client.submit(spec(idempotency_token="t", command="something else"))
    assert (again.job_id, again.run_id, again.state) == (first.job_id, first.run_id, "running")
    assert len(made.client.jobs()) == 1


def test_a_token_is_known_after_its_job_has_ended(made: Lab) -> None:
    made.client.submit(spec(idempotency_token="t"))
    made.in_state("j1", "running")
    made.finish("j1")
    made.in_state("j1", "succeeded")
    assert made.client.submit(spec(idempotency_token="t")).state == "succeeded"


class Saving(Obedient):
    """Checkpoints when it is asked to leave, as a training script does, however late that is."""

    def stopped(self, engine: FakeEngine, order: StopAttempt) -> None:
        engine.checkpoint(order.key, step=order.key.attempt)
        super().stopped(engine, order)


def test_a_job_goes_on_after_its_time_limit_until_its_total_is_used_up(tmp_path: Path) -> None:
    with lab(tmp_path, script=Saving()) as made:
        limits = {"timeout_minutes": 0.01, "on_timeout": "resume", "max_total_minutes": 0.0275}
        job = made.client.submit(spec(**limits))
        ended = made.in_state("j1", "failed")
    assert [attempt.stop_cause for attempt in ended.attempts] == ["renew", "renew", "timeout"]
    assert [attempt.outcome for attempt in ended.attempts] == ["timed_out"] * 3
    assert (ended.n_preemptions, ended.n_retries, ended.run_id) == (0, 0, job.run_id)
    assert ended.state_reason == "run timeout: its total running time of 1.65 s is over"


def test_a_job_that_saves_nothing_is_not_renewed_for_ever(tmp_path: Path) -> None:
    with lab(tmp_path, script=Obedient(), policy=Policy(retry_backoff_s=0.01)) as made:
        made.client.submit(spec(timeout_minutes=0.001, on_timeout="resume"))
        ended = made.in_state("j1", "failed")
    assert (ended.exit_reason, len(ended.attempts)) == ("no_checkpoint_progress", 3)


def test_tokens_of_different_projects_are_different(made: Lab) -> None:
    jobs = [made.client.submit(spec(idempotency_token="t", project=project)).job_id for project in ("a", "b")]
    assert jobs == ["j1", "j2"]


def test_a_batch_answers_each_job_by_itself(made: Lab) -> None:
    results = made.client.submit_many(
        [
            spec(idempotency_token="t"),
            spec(priority_class="urgent"),
            spec(idempotency_token="t"),
            spec(compute={"num_accelerators": 9}),
            spec(),
        ]
    )
    assert [(r.job and r.job.job_id, r.error and r.error.code, r.is_existing) for r in results] == [
        ("j1", None, False),
        (None, "unknown_priority_class", False),
        ("j1", None, True),
        (None, "infeasible", False),
        ("j2", None, False),
    ]


def test_a_batch_takes_the_readable_ones_when_others_are_not(made: Lab) -> None:
    good = spec().model_dump(mode="json")
    body = {"jobs": [good, {"experiment_name": "x"}, 7, {**good, "extra": 1}]}
    answer = made.http.post("/v1/jobs/batch", json=body, headers=made.auth).json()["data"]
    assert [item["error"] and (item["error"]["code"], item["error"]["path"]) for item in answer] == [
        None,
        ("missing_key", "command"),
        ("invalid_value", None),
        ("unknown_key", "extra"),
    ]


@pytest.mark.parametrize("n", [0, 1001])
def test_a_batch_has_between_one_and_a_thousand_jobs(made: Lab, n: int) -> None:
    answer = made.http.post("/v1/jobs/batch", json={"jobs": [{}] * n}, headers=made.auth)
    assert answer.status_code == 422


def test_an_older_fence_is_refused(made: Lab) -> None:
    made.client.submit(spec(session={"session_id": "s1", "fence": 1}))
    made.client.submit(spec(session={"session_id": "s1", "fence": 2}))
    with pytest.raises(Conflict) as refused:
        made.client.submit(spec(session={"session_id": "s1", "fence": 1}))
    assert (refused.value.code, refused.value.path) == ("stale_session", "session.fence")
    assert made.client.submit(spec(session={"session_id": "s2", "fence": 1})).job_id == "j3"


def test_a_known_token_is_answered_also_to_an_older_fence(made: Lab) -> None:
    """Who asks again what it has asked before learns the answer; it starts nothing."""
    made.client.submit(spec(session={"session_id": "s1", "fence": 1}, idempotency_token="t"))
    made.client.submit(spec(session={"session_id": "s1", "fence": 2}))
    assert made.client.submit(spec(session={"session_id": "s1", "fence": 1}, idempotency_token="t")).job_id == "j1"


def test_a_queued_job_is_cancelled_at_once(made: Lab) -> None:
    made.client.submit(spec(compute={"num_accelerators": 2}))
    waiting = made.client.submit(spec())
    assert (waiting.state, waiting.attempts) == ("queued", ())
    ended = made.client.cancel(waiting.job_id, reason="not needed")
    assert (ended.state, ended.state_reason, ended.exit_reason) == ("cancelled", "not needed", "cancelled")
    assert made.client.run(waiting.run_id).status == "KILLED"


def test_a_running_job_is_given_its_grace_to_end(made: Lab) -> None:
    made.client.submit(spec(grace_seconds=7))
    made.in_state("j1", "running")
    assert made.client.cancel("j1", reason="enough").state == "stopping"
    (order,) = until(lambda: made.engine.stops)
    assert (order.cause, order.grace_s) == ("cancel", 7)
    assert made.client.cancel("j1").state == "stopping"
    made.finish("j1", exit_code=0)
    ended = made.in_state("j1", "cancelled")
    assert (ended.state_reason, ended.attempts[0].outcome) == ("enough", "cancelled")
    assert len(made.engine.stops) == 1


def test_a_starting_job_can_be_cancelled(made: Lab) -> None:
    job = made.client.submit(spec())
    made.client.cancel(job.job_id)
    until(lambda: made.engine.stops)
    made.finish(job.job_id, exit_code=-15)
    made.in_state(job.job_id, "cancelled")


def test_an_ended_job_can_not_be_cancelled(made: Lab) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")
    made.finish("j1")
    made.in_state("j1", "succeeded")
    with pytest.raises(Conflict, match="j1 succeeded"):
        made.client.cancel("j1")


def test_a_cancel_overtakes_a_preemption(made: Lab) -> None:
    made.client.submit(spec(compute={"num_accelerators": 2}, priority_class="exploratory"))
    made.in_state("j1", "running")
    made.client.submit(spec(priority_class="critical"))
    made.in_state("j1", "stopping")
    made.client.cancel("j1")
    until(lambda: len(made.engine.stops) == 2)
    made.finish("j1", exit_code=75)
    made.in_state("j1", "cancelled")


def test_a_critical_job_preempts_and_the_victim_resumes_from_its_checkpoint(tmp_path: Path) -> None:
    with lab(tmp_path, n_devices=1) as made:
        made.client.submit(spec(priority_class="exploratory"))
        made.in_state("j1", "running")
        made.do(lambda: made.engine.checkpoint(key("j1"), 40))
        until(lambda: made.client.job("j1").checkpoint_step == 40)
        made.client.submit(spec(priority_class="critical"))
        made.in_state("j2", "running")
        victim = made.client.job("j1")
        assert (victim.state, victim.n_preemptions) == ("queued", 1)
        assert (victim.attempts[0].outcome, victim.attempts[0].beneficiary) == ("preempted", "j2")
        assert victim.state_reason == "waits for devices again; was preempted for j2"
        assert made.client.run(victim.run_id).status == "SCHEDULED"
        told = made.client.explain("j1")
        assert (told.queue_position, told.beneficiary) == (1, "j2")
        assert told.details[0] == "waits for devices again; was preempted for j2"
        made.finish("j2")
        made.in_state("j1", "running")
        assert made.engine.attempts[key("j1", 2)].order.resume_step == 40
        made.finish("j1", 2)
        resumed = made.in_state("j1", "succeeded")
        assert [attempt.outcome for attempt in resumed.attempts] == ["preempted", "succeeded"]
        assert resumed.run_id == victim.run_id


def test_a_failure_says_why(made: Lab) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")
    log = "Traceback (most recent call last):\n  File 'x'\nModuleNotFoundError: No module named 'torhc'\n"
    made.do(lambda: made.engine.fail(key("j1"), log=log))
    ended = made.in_state("j1", "failed")
    assert ended.exit_reason == "import_error"
    assert ended.state_reason == "import error: ModuleNotFoundError: No module named 'torhc'"
    assert "torhc" in made.client.explain("j1").summary


def test_a_command_that_never_ran_fails(made: Lab) -> None:
    made.engine.refusals.append(Refusal(exit_reason=ExitReason.BAD_PYTHON, evidence="/no/python does not exist"))
    made.client.submit(spec(max_retries=3))
    ended = made.in_state("j1", "failed")
    assert (ended.exit_reason, ended.attempts[0].outcome) == ("bad_python", "launch_failed")
    assert "/no/python does not exist" in (ended.state_reason or "")


def test_a_required_metric_that_never_came_fails_the_job(made: Lab) -> None:
    made.client.submit(spec(success={"required_metrics": ["acc"]}))
    made.in_state("j1", "running")
    made.finish("j1")
    assert made.in_state("j1", "failed").exit_reason == "criteria_not_met"


@pytest.mark.parametrize(("value", "state", "reason"), [(0.5, "succeeded", "completed"), ("nan", "failed", None)])
def test_a_required_metric_must_be_finite(made: Lab, value: object, state: str, reason: str | None) -> None:
    made.client.submit(spec(success={"required_metrics": ["acc"]}))
    made.in_state("j1", "running")

    def log_and_finish() -> None:
        made.engine.log_metric(key("j1"), "acc", float(value))  # type: ignore[arg-type]
        made.engine.finish(key("j1"))

    made.do(log_and_finish)
    assert made.in_state("j1", state).exit_reason == (reason or "non_finite_metric")


def test_metrics_are_read_in_order_of_arrival(made: Lab) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")

    def log() -> None:
        for step, value in enumerate((1.0, float("inf"), 0.5)):
            made.engine.log_metric(key("j1"), "loss", value, step)
        made.engine.log_metric(key("j1"), "acc", 0.9)

    made.do(log)
    points = until(lambda: (found := made.client.metrics("j1")) and len(found) == 4 and found)
    assert [(p.key, p.value, p.text, p.step) for p in points] == [
        ("loss", 1.0, None, 0),
        ("loss", None, "Infinity", 1),
        ("loss", 0.5, None, 2),
        ("acc", 0.9, None, 0),
    ]
    assert [p.key for p in made.client.metrics("j1", keys=["acc"])] == ["acc"]


def test_jobs_are_listed_newest_first_and_paged(made: Lab) -> None:
    made.client.submit_many([spec(project="p"), spec(), spec(project="p"), spec()])
    assert [job.job_id for job in made.client.jobs(limit=3)] == ["j4", "j3", "j2"]
    assert [job.job_id for job in made.client.jobs(before="j2")] == ["j1"]
    assert [job.job_id for job in made.client.jobs(project="p")] == ["j3", "j1"]
    assert [job.job_id for job in made.client.jobs(states=["queued"])] == ["j4", "j3"]
    assert made.client.jobs(states=[]) == []


def test_nodes_show_who_holds_what(made: Lab) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")
    (node,) = made.client.nodes()
    assert [(device.job_id, device.attempt) for device in node.devices] == [("j1", 1), (None, None)]


def test_a_grouped_accelerator_type_asks_for_whole_groups(tmp_path: Path) -> None:
    with lab(tmp_path, n_devices=8, kind="H100") as made:
        assert made.client.submit(spec(compute={"accelerator_type": "GPU_4xh100"})).state == "starting"
        (node,) = made.client.nodes()
        assert sum(device.job_id == "j1" for device in node.devices) == 4
        with pytest.raises(InvalidSpec, match="asks for 1 A100 device"):
            made.client.submit(spec(compute={"accelerator_type": "A100"}))


def test_a_run_that_no_job_carries(made: Lab) -> None:
    new = NewRun(experiment_name="e", run_name="session", idempotency_token="s1")
    run = made.client.create_run(new)
    assert made.client.create_run(new).run_id == run.run_id
    update = RunUpdate(params={"a": "1"}, metrics={"best": 0.5}, status="FINISHED")
    assert made.client.update_run(run.run_id, update).latest == {"best": 0.5}
    with pytest.raises(Conflict):
        made.client.update_run(run.run_id, RunUpdate(params={"a": "2"}))
    made.client.log_artifact(run.run_id, "plots/a b.html", b"<html>")
    assert [(one.path, one.is_dir) for one in made.client.list_artifacts(run.run_id)] == [("plots", True)]
    (file,) = made.client.list_artifacts(run.run_id, "plots")
    assert (file.path, file.is_dir, file.file_size) == ("a b.html", False, 6)
    with pytest.raises(InvalidSpec):
        made.client.list_artifacts(run.run_id, "../..")
    with pytest.raises(NotFound):
        made.client.list_artifacts("0" * 32)
    with pytest.raises(NotFound):
        made.client.log_artifact("0" * 32, "x", b"")
    child = made.client.submit(spec(mlflow_parent_run_id=run.run_id))
    assert made.client.run(child.run_id).parent_run_id == run.run_id


def test_nothing_is_started_while_the_disk_is_low(tmp_path: Path) -> None:
    with lab(tmp_path, low_disk_bytes=1000) as made:
        made.engine.free = 10
        made.server.services.disk.recheck_s = 0.01
        until(lambda: made.client.submit(spec()).state == "queued")
        waiting = made.client.submit(spec())
        assert waiting.state == "queued"
        assert any("low disk" in notice for notice in made.client.info().notices)
        assert "low disk" in made.client.explain(waiting.job_id).summary
        made.engine.free = 10**9
        made.in_state(made.client.jobs(states=["queued"])[-1].job_id, "running", "starting")
        assert made.client.info().notices == ()


def test_a_restart_of_the_machine_sends_jobs_back_to_their_checkpoint(made: Lab) -> None:
    made.client.submit(spec(max_retries=0))
    made.in_state("j1", "running")
    made.do(lambda: made.engine.checkpoint(key("j1"), 5))
    until(lambda: made.client.job("j1").checkpoint_step == 5)
    made.do(lambda: made.engine.finish(key("j1"), exit_code=None, supervisor_lost=True, node_restarted=True))
    again = until(lambda: (len((view := made.client.job("j1")).attempts) == 2 and view) or None)
    first = again.attempts[0]
    assert (first.outcome, first.exit_reason) == ("node_lost", "node_lost")
    assert first.evidence == "the machine was restarted while it ran"
    assert until(lambda: made.engine.attempts.get(key("j1", 2))).order.resume_step == 5
