"""Arrays of jobs, through the whole server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, lab, spec, until

from runtime.engines.fake import ByHand
from runtime_client.errors import Conflict, InvalidSpec, NotFound
from runtime_client.models import JobSpec


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Lab]:
    with lab(tmp_path, script=ByHand(), n_devices=8) as found:
        yield found


def array(indexes: str = "0-9", parallel: int | None = None, **changes: object) -> JobSpec:
    return spec(array={"indexes": indexes, "parallel": parallel}, **changes)


def ids(made: Lab, *states: str, array_id: str = "a1") -> list[str]:
    return [job.job_id for job in reversed(made.client.jobs(states=states or None, array_id=array_id))]


def test_an_array_is_one_submission_and_a_job_for_each_index(made: Lab) -> None:
    view = made.client.submit_array(array("3,5-9:2", parameters={"lr": 0.1}))
    assert (view.array_id, view.n_tasks, view.first_job_id, view.is_ended) == ("a1", 4, "j1", False)
    tasks = [made.client.job(job_id).spec for job_id in ids(made)]
    assert [task.array_task.index for task in tasks if task.array_task is not None] == [3, 5, 7, 9]
    assert all(task.parameters == {"lr": 0.1} and task.array is None for task in tasks)
    assert made.client.submit(spec()).job_id == "j5"


def test_the_tasks_of_an_array_may_have_parameters_of_their_own(made: Lab) -> None:
    made.client.submit_array(spec(parameters={"lr": 0.1, "depth": 2}, array={"parameters": [{"lr": 1}, {"width": 3}]}))
    found = [made.client.job(job_id).spec.parameters for job_id in ids(made)]
    assert found == [{"lr": 1, "depth": 2}, {"lr": 0.1, "depth": 2, "width": 3}]


def test_no_more_tasks_than_its_limit_run_at_once(made: Lab) -> None:
    made.client.submit_array(array(parallel=3))
    until(lambda: ids(made, "running") == ["j1", "j2", "j3"])
    why = made.client.explain("j7").summary
    assert why == "j7 waits for other tasks of a1, which runs 3 at once: 3 hold devices, and 0 come first"
    made.finish("j2")
    until(lambda: ids(made, "running") == ["j1", "j3", "j4"])
    assert made.client.array("a1").counts == {"queued": 6, "running": 3, "succeeded": 1}


def test_other_jobs_run_beside_an_array_at_its_limit(made: Lab) -> None:
    made.client.submit_array(array(parallel=2))
    made.client.submit(spec())
    until(lambda: made.client.job("j11").state == "running")


def test_a_whole_array_is_cancelled_at_once(made: Lab) -> None:
    made.client.submit_array(array(parallel=1))
    made.in_state("j1", "running")
    assert made.client.cancel_array("a1", reason="wrong data").counts == {"stopping": 1, "cancelled": 9}
    made.finish("j1", exit_code=-15)
    until(lambda: made.client.array("a1").is_ended)
    assert made.client.job("j5").state_reason == "wrong data"
    with pytest.raises(Conflict, match="all tasks of array a1 have ended already"):
        made.client.cancel_array("a1")
    with pytest.raises(NotFound, match="no array 'a99'"):
        made.client.cancel_array("a99")


@pytest.mark.parametrize(
    ("condition", "has_failure", "state"),
    [("ok", False, "running"), ("ok", True, "failed"), ("not_ok", True, "running"), ("any", True, "running")],
)
def test_a_job_waits_for_a_whole_array(made: Lab, condition: str, has_failure: bool, state: str) -> None:
    made.client.submit_array(array("0-2"))
    made.client.submit(spec(depends_on={"a1": condition}))
    until(lambda: len(ids(made, "running")) == 3)
    made.finish("j2", exit_code=1 if has_failure else 0)
    made.finish("j1")
    if condition == "ok" and has_failure:
        assert made.in_state("j4", "failed").exit_reason == "dependency_unmet"
    else:
        until(lambda: made.client.array("a1").counts.get("running") == 1)
        assert made.client.job("j4").state == "queued"
    made.finish("j3")
    made.in_state("j4", state)
    assert made.client.submit(spec(depends_on={"a1": condition})).state == ("starting" if state == "running" else state)


def test_an_array_waits_as_a_whole(made: Lab) -> None:
    made.client.submit(spec())
    made.client.submit_array(array("0-3", parallel=2, depends_on=["j1"]))
    assert made.client.array("a2").counts == {"queued": 4}
    made.in_state("j1", "running")
    made.finish("j1")
    until(lambda: ids(made, "running", array_id="a2") == ["j2", "j3"])


def test_the_same_token_returns_the_same_array(made: Lab) -> None:
    first = made.client.submit_array(array(idempotency_token="t"))
    again = made.client.submit_array(array("5-20", idempotency_token="t"))
    assert (again.array_id, again.n_tasks) == (first.array_id, 10)
    made.client.submit(spec(idempotency_token="u/0"))
    with pytest.raises(Conflict, match="j11 was submitted with it"):
        made.client.submit_array(array(idempotency_token="u"))
    assert len(made.client.jobs(limit=50)) == 11


def test_an_array_that_can_not_run_is_refused_whole(made: Lab) -> None:
    with pytest.raises(InvalidSpec, match="asks for 99 devices"):
        made.client.submit_array(array(compute={"num_accelerators": 99}))
    with pytest.raises(InvalidSpec, match=r"array: missing"):
        made.client.submit_array(spec())
    with pytest.raises(InvalidSpec, match="submit it to /v1/arrays"):
        made.client.submit(array())
    task = {"array_id": "a1", "index": 0, "n_tasks": 1}
    with pytest.raises(InvalidSpec, match="the server sets it"):
        made.client.submit(spec(array_task=task))
    assert made.client.jobs() == []


@pytest.mark.parametrize("indexes", ["", "a", "5-3", "0-9:0", "1,1", "0-1000", "0-999999999", "-1", "1--2"])
def test_indexes_that_are_none_are_refused(indexes: str) -> None:
    with pytest.raises(ValueError, match="array"):
        array(indexes)


def test_an_array_survives_a_restart(tmp_path: Path) -> None:
    with lab(tmp_path, script=ByHand(), n_devices=4) as made:
        made.client.submit_array(array("0-5", parallel=2))
        until(lambda: ids(made, "running") == ["j1", "j2"])
        made.finish("j1", exit_code=1)
        until(lambda: ids(made, "running") == ["j2", "j3"])
        engine = made.engine
    with lab(tmp_path, engine=engine) as made:
        assert made.client.submit(spec(depends_on=["a1"])).exit_reason == "dependency_unmet"
        made.finish("j2")
        until(lambda: ids(made, "running") == ["j3", "j4"])
