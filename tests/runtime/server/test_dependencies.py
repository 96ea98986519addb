"""Jobs that wait for each other, through the whole server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, lab, spec, until

from runtime.engines.fake import ByHand
from runtime_client.errors import InvalidSpec
from runtime_client.models import JobSpec, SubmitResult


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Lab]:
    with lab(tmp_path, script=ByHand(), n_devices=4) as found:
        yield found


def run_out(made: Lab, job_id: str, *, exit_code: int = 0) -> None:
    made.in_state(job_id, "running")
    made.finish(job_id, exit_code=exit_code)


def after(*names: str | dict[str, str], **changes: object) -> JobSpec:
    return spec(depends_on=list(names), **changes)


def refusals(results: list[SubmitResult]) -> list[str | None]:
    return [None if result.error is None else result.error.code for result in results]


@pytest.mark.parametrize(
    ("condition", "exit_code", "state"),
    [
        ("ok", 0, "running"),
        ("ok", 1, "failed"),
        ("any", 0, "running"),
        ("any", 1, "running"),
        ("not_ok", 1, "running"),
        ("not_ok", 0, "failed"),
    ],
)
def test_a_job_starts_when_the_other_has_ended_as_it_had_to(
    made: Lab, condition: str, exit_code: int, state: str
) -> None:
    made.client.submit(spec())
    waiting = made.client.submit(spec(depends_on={"j1": condition}))
    assert waiting.state == "queued"
    assert waiting.state_reason is not None
    assert waiting.state_reason.startswith("waits for j1 to")
    run_out(made, "j1", exit_code=exit_code)
    ended = made.in_state("j2", state)
    assert (ended.exit_reason == "dependency_unmet") == (state == "failed")
    if state == "failed":
        assert "waited for j1 to" in (ended.state_reason or "")
        assert ended.attempts == ()


def test_explain_names_what_a_job_waits_for(made: Lab) -> None:
    made.client.submit(spec())
    made.client.submit(after("j1", {"job": "j1", "condition": "any"}))
    assert made.client.explain("j2").summary == "j2 waits for j1 to succeed, j1 to end"
    assert made.client.what_if(after("j2")).prospect == "depends"


def test_a_chain_behind_a_failure_ends_as_a_whole(made: Lab) -> None:
    made.client.submit(spec())
    for number in range(1, 5):
        made.client.submit(after(f"j{number}"))
    cleaner = made.client.submit(spec(depends_on={"j5": "not_ok"}))
    run_out(made, "j1", exit_code=1)
    assert made.in_state("j5", "failed").exit_reason == "dependency_unmet"
    made.in_state(cleaner.job_id, "running")
    assert [job.state for job in made.client.jobs(limit=6)] == ["running"] + ["failed"] * 5


def test_a_cancelled_job_is_no_success(made: Lab) -> None:
    made.client.submit(spec(compute={"num_accelerators": 4}))
    made.client.submit(spec())
    made.client.submit(after("j2"))
    made.client.cancel("j2")
    ended = made.in_state("j3", "failed")
    assert ended.state_reason == "waited for j2 to succeed, but j2 was cancelled"


def test_what_has_ended_already_is_decided_at_once(made: Lab) -> None:
    made.client.submit(spec())
    run_out(made, "j1")
    made.in_state("j1", "succeeded")
    assert made.client.submit(after("j1")).state == "starting"
    assert made.client.submit(spec(depends_on={"j1": "not_ok"})).exit_reason == "dependency_unmet"


@pytest.mark.parametrize("name", ["j7", "a7", "token:nobody", "#0", "#3"])
def test_what_is_not_there_can_not_be_waited_for(made: Lab, name: str) -> None:
    with pytest.raises(InvalidSpec, match=r"depends_on"):
        made.client.submit(after(name))
    assert made.client.jobs() == []


def test_jobs_of_one_submission_may_name_each_other_in_any_order(made: Lab) -> None:
    results = made.client.submit_many(
        [after("#2", "token:b"), spec(idempotency_token="b"), spec(idempotency_token="c", experiment_name="c")]
    )
    jobs = [result.job for result in results]
    assert [job.job_id for job in jobs if job is not None] == ["j3", "j1", "j2"]
    assert jobs[0] is not None
    assert [one.job for one in jobs[0].spec.depends_on] == ["j2", "j1"]
    run_out(made, "j1")
    run_out(made, "j2")
    made.in_state("j3", "running")


def test_jobs_that_wait_for_each_other_are_refused_and_so_are_those_behind_them(made: Lab) -> None:
    specs = [after("#1"), after("#2"), after("#1"), after("#3"), spec()]
    results = made.client.submit_many(specs)
    assert refusals(results) == [
        "dependency_refused",
        "dependency_cycle",
        "dependency_cycle",
        "dependency_cycle",
        None,
    ]
    assert results[1].error is not None
    assert "#1 -> #2 -> #1" in results[1].error.message
    assert len(made.client.jobs()) == 1


def test_places_count_what_was_submitted_also_when_a_part_of_it_is_no_job(made: Lab) -> None:
    jobs = [{"experiment_name": "x"}, after("#2").model_dump(mode="json"), spec(command="b").model_dump(mode="json")]
    answer = made.http.post("/v1/jobs/batch", json={"jobs": jobs}, headers=made.auth).json()["data"]
    assert [one["job"] and one["job"]["job_id"] for one in answer] == [None, "j2", "j1"]
    assert answer[1]["job"]["spec"]["depends_on"] == [{"job": "j1", "condition": "ok"}]


def test_a_place_that_would_shift_on_the_way_is_refused_by_the_client(made: Lab) -> None:
    bad = spec(code_source={"root_path": "/nowhere/at/all", "snapshot": "auto"})
    results = made.client.submit_many([bad, spec(), after("#1")])
    assert refusals(results)[1:] == [None, "position_shifted"]


def test_waiting_survives_a_restart(tmp_path: Path) -> None:
    with lab(tmp_path, script=ByHand(), n_devices=1) as made:
        made.client.submit(spec())
        made.client.submit(after("j1"))
        made.in_state("j1", "running")
        engine = made.engine
    with lab(tmp_path, engine=engine) as made:
        assert made.client.explain("j2").summary == "j2 waits for j1 to succeed"
        made.finish("j1")
        made.in_state("j2", "running")


def test_a_queue_timeout_counts_from_the_moment_the_others_have_ended(made: Lab) -> None:
    made.client.submit(spec(compute={"num_accelerators": 4}))
    made.client.submit(after("j1", queue_timeout_minutes=0.002))
    made.in_state("j1", "running")
    assert made.client.submit(spec(queue_timeout_minutes=0.002)).state == "queued"
    assert made.in_state("j3", "failed").exit_reason == "queue_timeout"
    assert made.client.job("j2").state == "queued"
    made.finish("j1")
    made.in_state("j2", "running")


def test_the_end_of_a_job_that_expired_frees_those_behind_it(made: Lab) -> None:
    made.client.submit(spec(compute={"num_accelerators": 3}))
    made.client.submit(spec(compute={"num_accelerators": 2}, queue_timeout_minutes=0.002))
    made.client.submit(spec(depends_on={"j2": "not_ok"}))
    until(lambda: made.client.job("j3").state in ("starting", "running"))
