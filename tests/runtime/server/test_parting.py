"""The end of a server: it parts with its jobs as asked, starts nothing more, and ends when the last one is gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from lab import Lab, key, lab, spec, until

from runtime.engines.fake import ByHand
from runtime.model.states import EXIT_REQUEUE
from runtime_client.models import JobView


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Lab]:
    with lab(tmp_path, script=ByHand(), n_devices=1) as found:
        yield found


def part(made: Lab, jobs: str) -> httpx.Response:
    return made.http.post("/v1/shutdown", json={"jobs": jobs}, headers=made.auth)


def is_gone(made: Lab) -> bool:
    try:
        made.http.get("/v1/health")
    except httpx.TransportError:
        return True
    return False


def seen_after(home: Path, job_id: str, *states: str) -> JobView:
    """The job at a later server, once it is in one of these states."""
    with lab(home, script=ByHand(), n_devices=1) as later:
        return later.in_state(job_id, *states)


def test_requeued_jobs_go_on_at_the_next_server(made: Lab, tmp_path: Path) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")
    made.do(lambda: made.engine.checkpoint(key("j1"), 7))
    assert part(made, "requeue").status_code == 202
    made.in_state("j1", "stopping")
    made.finish("j1", exit_code=EXIT_REQUEUE)
    until(lambda: is_gone(made))
    job = seen_after(tmp_path, "j1", "starting", "running")
    first, second = job.attempts
    assert (first.outcome, first.stop_cause) == ("preempted", "shutdown")
    assert second.attempt == 2
    assert job.checkpoint_step == 7


def test_cancelled_jobs_end_for_good(made: Lab, tmp_path: Path) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")
    assert part(made, "cancel").status_code == 202
    made.in_state("j1", "stopping")
    made.finish("j1", exit_code=0)
    until(lambda: is_gone(made))
    assert seen_after(tmp_path, "j1", "cancelled").attempts[0].outcome == "cancelled"


def test_nothing_is_started_while_jobs_leave(made: Lab) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")
    part(made, "requeue")
    made.in_state("j1", "stopping")
    urgent = made.client.submit(spec(priority_class="critical"))
    assert urgent.state == "queued"
    made.finish("j1", exit_code=EXIT_REQUEUE)
    until(lambda: is_gone(made))
    assert made.engine.running == ()


def test_an_idle_server_ends_at_once(made: Lab) -> None:
    assert part(made, "requeue").status_code == 202
    until(lambda: is_gone(made))


def test_a_cancel_overtakes_a_requeue(made: Lab) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")
    part(made, "requeue")
    made.in_state("j1", "stopping")
    part(made, "cancel")
    assert until(lambda: made.client.job("j1").attempts[0].stop_cause == "cancel")


def test_an_unknown_word_is_refused_and_changes_nothing(made: Lab) -> None:
    made.client.submit(spec())
    made.in_state("j1", "running")
    refused = part(made, "abandon")
    assert refused.status_code == 422
    assert refused.json()["error"]["path"] == "jobs"
    assert made.client.job("j1").state == "running"


def test_only_the_owner_may_end_it(made: Lab) -> None:
    assert made.http.post("/v1/shutdown", json={"jobs": "cancel"}).status_code == 401
    assert made.client.info().n_devices == 1
