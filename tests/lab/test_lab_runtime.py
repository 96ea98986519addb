"""The simulated runtime does what the real one does: tokens, fences, budgets, priorities, preemption, endings."""

from __future__ import annotations

import math

import pytest
from lab_worlds import a_course, a_runtime, a_spec, advance

from runtime.simulator.workload import Costs
from runtime_client.errors import Conflict, InvalidSpec, NotFound, OverBudget
from runtime_client.models import SessionFence, SuccessCriteria

OOM = "Traceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def test_a_job_starts_logs_and_succeeds_at_its_time() -> None:
    runtime = a_runtime()
    job = runtime.submit(a_spec())
    assert (job.state, job.attempts[0].placements[0].node_id) == ("running", "n1")
    advance(runtime, 50)
    assert [point.value for point in runtime.metrics(job.job_id)] == [0.1, 0.2]
    advance(runtime, 50)
    ended = runtime.job(job.job_id)
    assert (ended.state, ended.exit_reason, ended.device_seconds(0)) == ("succeeded", "completed", 100.0)
    assert [point.value for point in runtime.metrics(job.job_id, keys=["score"])] == [0.1, 0.2, 0.3, 0.4]


def test_the_run_of_a_job_holds_what_it_logged() -> None:
    runtime = a_runtime()
    job = runtime.submit(a_spec())
    advance(runtime, 60)
    run = runtime.run(job.run_id)
    assert (run.status, run.latest, run.params) == ("RUNNING", {"score": 0.2}, {"name": "a"})
    advance(runtime, 60)
    assert (runtime.run(job.run_id).status, runtime.run(job.run_id).latest) == ("FINISHED", {"score": 0.4})
    with pytest.raises(NotFound):
        runtime.run("unknown")


def test_a_known_token_returns_the_earlier_job() -> None:
    runtime = a_runtime()
    first, second = runtime.submit_many([a_spec(idempotency_token="t"), a_spec(idempotency_token="t")])
    third = runtime.submit_many([a_spec(idempotency_token="t")])[0]
    assert first.job is not None
    assert [answer.job.job_id for answer in (second, third) if answer.job] == [first.job.job_id] * 2
    assert (second.is_existing, third.is_existing, len(runtime.jobs())) == (True, True, 1)


def test_a_job_may_depend_on_one_that_has_ended() -> None:
    runtime = a_runtime()
    first = runtime.submit(a_spec())
    advance(runtime, 100)
    second = runtime.submit(a_spec("b", depends_on=(first.job_id,)))
    assert (runtime.job(first.job_id).state, second.state) == ("succeeded", "running")


def test_an_older_fence_is_refused() -> None:
    runtime = a_runtime()
    runtime.submit(a_spec(session=SessionFence(session_id="s1", fence=2)))
    with pytest.raises(Conflict, match="overtaken"):
        runtime.submit(a_spec(session=SessionFence(session_id="s1", fence=1)))


def test_a_budget_that_is_used_up_refuses_and_ends_what_runs() -> None:
    runtime = a_runtime()
    fence = SessionFence(session_id="s1", fence=1, device_seconds=40)
    job = runtime.submit(a_spec(session=fence))
    advance(runtime, 200)
    assert runtime.job(job.job_id).exit_reason == "over_budget"
    with pytest.raises(OverBudget):
        runtime.submit(a_spec(session=fence))


def test_what_can_never_start_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="could never start"):
        a_runtime().submit(a_spec(compute={"num_accelerators": 3}))


def test_an_urgent_job_preempts_and_the_curve_goes_on_where_it_was() -> None:
    runtime = a_runtime(
        {"urgent": a_course(30.0, curves={})}, nodes="1x1", costs=Costs(notice_checkpoint_s=5.0, restart_s=10.0)
    )
    long = runtime.submit(a_spec(priority_class="exploratory"))
    advance(runtime, 55)
    urgent = runtime.submit(a_spec("urgent", priority_class="critical"))
    assert runtime.job(long.job_id).state == "stopping"
    advance(runtime, 5)
    assert (runtime.job(long.job_id).state, runtime.job(urgent.job_id).state) == ("queued", "running")
    advance(runtime, 30 + 10 + 45)
    ended = runtime.job(long.job_id)
    assert (ended.state, ended.n_preemptions) == ("succeeded", 1)
    assert [attempt.outcome for attempt in ended.attempts] == ["preempted", "succeeded"]
    assert ended.attempts[0].beneficiary == urgent.job_id
    assert [(point.value, point.attempt) for point in runtime.metrics(long.job_id)] == [
        (0.1, 1),
        (0.2, 1),
        (0.3, 2),
        (0.4, 2),
    ]


def test_without_time_to_save_the_work_is_done_again() -> None:
    costs = Costs(notice_checkpoint_s=None, checkpoint_every_s=None, restart_s=0.0)
    runtime = a_runtime({"urgent": a_course(30.0, curves={})}, nodes="1x1", costs=costs)
    long = runtime.submit(a_spec(priority_class="exploratory"))
    advance(runtime, 55)
    runtime.submit(a_spec("urgent", priority_class="critical"))
    advance(runtime, 30 + 100)
    assert runtime.job(long.job_id).state == "succeeded"
    assert [point.value for point in runtime.metrics(long.job_id)] == [0.1, 0.2, 0.1, 0.2, 0.3, 0.4]


def test_a_failure_is_classified_from_its_output() -> None:
    runtime = a_runtime({"big": a_course(10.0, curves={}, exit_code=1, output=OOM)})
    job = runtime.submit(a_spec("big"))
    advance(runtime, 10)
    ended = runtime.job(job.job_id)
    assert (ended.state, ended.exit_reason) == ("failed", "out_of_memory_device")
    assert "out of memory" in (ended.attempts[0].evidence or "")
    assert runtime.log_errors(job.job_id).lines[0].text.startswith("torch.OutOfMemoryError")


@pytest.mark.parametrize(
    ("curves", "reason"),
    [({"loss": (1.0,)}, "criteria_not_met"), ({"score": (1.0, math.nan)}, "non_finite_metric")],
    ids=["missing", "nan"],
)
def test_a_required_metric_that_is_missing_or_not_finite_fails_the_job(
    curves: dict[str, tuple[float, ...]], reason: str
) -> None:
    runtime = a_runtime({"bad": a_course(10.0, curves=curves)})
    job = runtime.submit(a_spec("bad", success=SuccessCriteria(required_metrics=("score",))))
    advance(runtime, 10)
    assert (runtime.job(job.job_id).state, runtime.job(job.job_id).exit_reason) == ("failed", reason)


def test_a_queued_job_is_cancelled_at_once_and_a_running_one_soon() -> None:
    runtime = a_runtime(nodes="1x1")
    running, queued = runtime.submit(a_spec()), runtime.submit(a_spec())
    assert runtime.cancel(queued.job_id).state == "cancelled"
    assert runtime.cancel(running.job_id).state == "stopping"
    advance(runtime, 0)
    assert runtime.job(running.job_id).state == "cancelled"
    with pytest.raises(Conflict):
        runtime.cancel(running.job_id)


def test_events_are_numbered_and_passing_ones_are_told_once() -> None:
    runtime = a_runtime()
    runtime.submit(a_spec())
    advance(runtime, 100)
    told = list(runtime.events(since=0))
    assert [event.seq for event in told if event.seq is not None] == list(range(1, runtime.info().last_seq + 1))
    assert [event.type for event in told if event.seq is None] == ["metrics_logged"]
    assert list(runtime.events(since=runtime.info().last_seq)) == []


def test_a_forecast_changes_nothing_and_an_explanation_names_the_wait() -> None:
    runtime = a_runtime(nodes="1x1")
    runtime.submit(a_spec())
    assert runtime.what_if(a_spec()).prospect == "waits"
    assert len(runtime.jobs()) == 1
    second = runtime.submit(a_spec())
    assert runtime.explain(second.job_id).queue_position == 1
    with pytest.raises(NotFound):
        runtime.job("j99")


def test_by_its_hour_a_job_has_left_with_a_checkpoint_and_nothing_waits() -> None:
    runtime = a_runtime(nodes="1x1", costs=Costs(notice_checkpoint_s=5.0))
    hour = runtime.cluster.now + 60.0
    runs, waits = (runtime.submit(a_spec(finish_by=hour)).job_id for _ in range(2))
    advance(runtime, 27)
    assert (runtime.job(runs).state, runtime.job(waits).state) == ("running", "queued")
    advance(runtime, 33)
    for job_id, step in ((runs, 1), (waits, None)):
        ended = runtime.job(job_id)
        assert (ended.state, ended.exit_reason, ended.checkpoint_step) == ("cancelled", "deadline", step)
    assert runtime.job(runs).ended_at == hour - 32.0 + 5.0
    with pytest.raises(InvalidSpec, match="was 0 s ago, so nothing of it could run; give a later time"):
        runtime.submit(a_spec(finish_by=hour))


def test_a_job_goes_on_where_an_ended_one_of_its_experiment_was_and_so_on() -> None:
    runtime = a_runtime(nodes="1x1", costs=Costs(notice_checkpoint_s=5.0, restart_s=10.0))
    first = runtime.submit(a_spec(finish_by=runtime.cluster.now + 62.0)).job_id
    advance(runtime, 62)
    second = runtime.submit(a_spec(continues=first, finish_by=runtime.cluster.now + 72.0)).job_id
    advance(runtime, 72)
    third = runtime.submit(a_spec(continues=second)).job_id
    advance(runtime, 50)
    assert [runtime.job(each).state for each in (first, second, third)] == ["cancelled", "cancelled", "succeeded"]
    steps = [[point.step for point in runtime.metrics(each)] for each in (first, second, third)]
    assert steps == [[0], [1], [2, 3]]
    with pytest.raises(InvalidSpec, match="there is no job 'j9'"):
        runtime.submit(a_spec(continues="j9"))
    live = runtime.submit(a_spec(finish_by=runtime.cluster.now + 1000.0)).job_id
    with pytest.raises(Conflict, match="has not ended"):
        runtime.submit(a_spec(continues=live))
