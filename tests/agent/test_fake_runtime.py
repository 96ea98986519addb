"""The runtime in memory keeps the promises of the real one."""

from __future__ import annotations

import math

import pytest

from runtime_client.errors import Conflict, InvalidSpec, NotFound
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import Compute, JobSpec, NewRun, RunUpdate, SessionFence, SuccessCriteria
from runtime_client.protocol import Runtime


def a_spec(**changes: object) -> JobSpec:
    return JobSpec.model_validate({"experiment_name": "e", "command": "c"} | changes)


def a_runtime(outcome: FakeOutcome | None = None, *, n_devices: int = 2) -> FakeRuntime:
    found = outcome or FakeOutcome(curves={"loss": [3.0, 2.0, 1.0, 0.5]}, duration_s=8.0)
    return FakeRuntime(lambda spec: found, n_devices=n_devices)


def test_it_is_a_runtime() -> None:
    runtime: Runtime = a_runtime()
    assert runtime.info().n_devices == 2


def test_what_it_does_not_do_is_refused() -> None:
    specs = [a_spec(depends_on=["j1"]), a_spec(array={"indexes": "0-3"})]
    assert [one.error and one.error.path for one in a_runtime().submit_many(specs)] == ["depends_on", "array"]


def test_a_job_may_follow_one_that_has_succeeded() -> None:
    runtime = a_runtime()
    first = runtime.submit(a_spec())
    too_early = runtime.submit_many([a_spec(depends_on=[first.job_id])])[0]
    assert too_early.error is not None
    runtime.advance(8.0)
    assert runtime.submit(a_spec(depends_on=[first.job_id])).state == "running"


def test_jobs_run_on_free_devices_in_order_of_class_and_submission() -> None:
    runtime = a_runtime(n_devices=1)
    first, second = runtime.submit(a_spec()), runtime.submit(a_spec())
    urgent = runtime.submit(a_spec(priority_class="critical"))
    runtime.advance(8.0)
    assert runtime.job(first.job_id).state == "succeeded"
    assert runtime.job(urgent.job_id).state == "running"
    assert runtime.explain(second.job_id).queue_position == 1


def test_a_gang_starts_whole_or_not_at_all() -> None:
    runtime = a_runtime(n_devices=3)
    runtime.submit(a_spec(compute=Compute(num_accelerators=2)))
    waiting = runtime.submit(a_spec(compute=Compute(num_accelerators=2)))
    assert waiting.state == "queued"
    runtime.step()
    assert runtime.job(waiting.job_id).state == "running"


def test_the_same_token_returns_the_earlier_job() -> None:
    runtime = a_runtime()
    first, again = runtime.submit_many([a_spec(idempotency_token="t")] * 2)
    assert first.job is not None
    assert again.job is not None
    assert (again.job.job_id, again.is_existing) == (first.job.job_id, True)
    other = runtime.submit_many([a_spec(idempotency_token="t", project="other")])[0]
    assert not other.is_existing


def test_an_older_fence_is_refused_even_for_a_known_token() -> None:
    runtime = a_runtime()
    runtime.submit(a_spec(session=SessionFence(session_id="s1", fence=1), idempotency_token="t"))
    runtime.submit(a_spec(session=SessionFence(session_id="s1", fence=2)))
    with pytest.raises(Conflict) as caught:
        runtime.submit(a_spec(session=SessionFence(session_id="s1", fence=1), idempotency_token="t"))
    assert caught.value.code == "stale_session"


def test_one_refused_job_does_not_refuse_the_others() -> None:
    runtime = a_runtime()
    bad, good = runtime.submit_many([a_spec(priority_class="urgent"), a_spec()])
    assert bad.error is not None
    assert good.job is not None
    with pytest.raises(InvalidSpec):
        runtime.submit(a_spec(priority_class="urgent"))


def test_metrics_arrive_as_time_passes() -> None:
    runtime = a_runtime()
    job = runtime.submit(a_spec())
    runtime.advance(4.0)
    assert [point.value for point in runtime.metrics(job.job_id)] == [3.0, 2.0]
    runtime.advance(4.0)
    assert [point.step for point in runtime.metrics(job.job_id, keys=["loss"])] == [0, 1, 2, 3]
    assert runtime.run(job.run_id).latest == {"loss": 0.5}


@pytest.mark.parametrize(
    ("curves", "reason"),
    [
        ({"loss": [1.0]}, "criteria_not_met"),
        ({"acc": [0.5, math.nan]}, "non_finite_metric"),
        ({"acc": [0.5]}, "completed"),
    ],
)
def test_a_required_metric_decides(curves: dict[str, list[float]], reason: str) -> None:
    runtime = a_runtime(FakeOutcome(curves=curves))
    job = runtime.submit(a_spec(success=SuccessCriteria(required_metrics=("acc",))))
    runtime.step()
    ended = runtime.job(job.job_id)
    assert ended.exit_reason == reason
    assert ended.state == ("succeeded" if reason == "completed" else "failed")


def test_a_preempted_job_goes_on_where_it_was() -> None:
    runtime = a_runtime(n_devices=1)
    job = runtime.submit(a_spec(priority_class="exploratory"))
    runtime.advance(4.0)
    runtime.preempt(job.job_id, beneficiary="j2")
    urgent = runtime.submit(a_spec(priority_class="critical"))
    assert runtime.job(urgent.job_id).state == "running"
    runtime.advance(8.0)
    runtime.advance(4.0)
    ended = runtime.job(job.job_id)
    assert ended.state == "succeeded"
    assert [attempt.outcome for attempt in ended.attempts] == ["preempted", "succeeded"]
    assert [point.value for point in runtime.metrics(job.job_id)] == [3.0, 2.0, 1.0, 0.5]


def test_cancelled_jobs_end_and_can_not_be_cancelled_again() -> None:
    runtime = a_runtime(n_devices=1)
    running, queued = runtime.submit(a_spec()), runtime.submit(a_spec())
    assert runtime.cancel(queued.job_id).state == "cancelled"
    assert runtime.cancel(running.job_id).state == "cancelled"
    with pytest.raises(Conflict):
        runtime.cancel(running.job_id)


def test_events_are_numbered_without_gaps_and_replayed_from_any() -> None:
    runtime = a_runtime()
    runtime.submit(a_spec())
    runtime.step()
    events = [event for event in runtime.events(since=0) if event.seq is not None]
    assert [event.seq for event in events] == list(range(1, runtime.info().last_seq + 1))
    assert [event.type for event in events] == ["job_submitted", "attempt_started", "attempt_ended"]
    assert [event.seq for event in runtime.events(since=2)] == [3]


def test_runs_are_made_once_per_token_and_updated() -> None:
    runtime = a_runtime()
    new = NewRun(experiment_name="e", run_name="s1", idempotency_token="k")
    first = runtime.create_run(new)
    assert runtime.create_run(new).run_id == first.run_id
    updated = runtime.update_run(first.run_id, RunUpdate(metrics={"m": 1.0}, status="FINISHED"))
    assert (updated.latest, updated.status) == ({"m": 1.0}, "FINISHED")


def test_unknown_names_are_not_found() -> None:
    runtime = a_runtime()
    for ask in (runtime.job, runtime.run, runtime.metrics, runtime.explain, runtime.cancel):
        with pytest.raises(NotFound):
            ask("nothing")


def test_jobs_are_listed_newest_first_in_pages() -> None:
    runtime = a_runtime()
    for _ in range(5):
        runtime.submit(a_spec())
    page = runtime.jobs(limit=2)
    assert [job.job_id for job in page] == ["j5", "j4"]
    assert [job.job_id for job in runtime.jobs(before=page[-1].job_id)] == ["j3", "j2", "j1"]


def test_by_its_hour_a_job_has_left_and_another_one_goes_on_from_it() -> None:
    runtime = a_runtime(n_devices=1)
    hour = runtime.now + 4.0
    runs, waits = (runtime.submit(a_spec(finish_by=hour)).job_id for _ in range(2))
    assert runtime.step()
    assert {(runtime.job(each).state, runtime.job(each).exit_reason) for each in (runs, waits)} == {
        ("cancelled", "deadline")
    }
    again = runtime.submit(a_spec(continues=runs)).job_id
    runtime.advance(4.0)
    assert runtime.job(again).state == "succeeded"
    curves = [[point.value for point in runtime.metrics(each)] for each in (runs, again)]
    assert curves == [[3.0, 2.0], [1.0, 0.5]]


def test_what_can_not_be_gone_on_from_and_an_hour_that_is_past_are_refused() -> None:
    runtime = a_runtime()
    live = runtime.submit(a_spec()).job_id
    with pytest.raises(InvalidSpec, match="there is no job 'j9'"):
        runtime.submit(a_spec(continues="j9"))
    with pytest.raises(Conflict, match="has not ended"):
        runtime.submit(a_spec(continues=live))
    runtime.cancel(live)
    with pytest.raises(InvalidSpec, match="another experiment"):
        runtime.submit(a_spec(continues=live, experiment_name="other"))
    with pytest.raises(InvalidSpec, match="is past; give a later time"):
        runtime.submit(a_spec(finish_by=runtime.now))
