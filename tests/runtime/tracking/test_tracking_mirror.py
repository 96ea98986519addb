"""The mirror against a stand-in MLflow: everything arrives once, in order, whatever goes wrong on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.responses import JSONResponse, Response
from gateway_world import GatewayWorld
from loopback import wait_for
from standin_mlflow import StandIn

from runtime.store import records
from runtime.store.records import RunRow
from runtime.tracking import queries, recording, runs
from runtime.tracking.reconcile import reconcile
from runtime.tracking.rest import MlflowRest, open_http
from runtime_client.models import NewRun, RunUpdate

MakeWorld = Callable[..., GatewayWorld]


def only_on(path: str, answer: Response, times: int = 10**9) -> Callable[[str, dict[str, Any]], Response | None]:
    left = [times]

    def fault(called: str, body: dict[str, Any]) -> Response | None:
        if called != path or not left[0]:
            return None
        left[0] -= 1
        return answer

    return fault


def state(world: GatewayWorld) -> str:
    assert world.mirror is not None
    return world.mirror.state


def test_a_job_arrives_with_params_tags_metrics_and_status(make_world: MakeWorld, standin: StandIn) -> None:
    world = make_world(standin.url)
    script = world.job(parameters={"lr": 0.1, "net": {"depth": 3}}, seed=7, tags={"why": "test"}, mlflow_run_name="r")
    world.status("j1", "RUNNING")
    script.create_run()
    for step in range(3):
        script.log("loss", 1.0 / (step + 1), step, timestamp=step)
    script.log("bad", "NaN", timestamp=1)
    world.end("j1")
    world.wait_mirrored()
    run = standin.by_name("r")
    assert run.params == {"lr": "0.1", "net.depth": "3", "seed": "7"}
    wanted = {"nightlab.run_id": script.run_id, "nightlab.job_id": "j1", "why": "test", "mlflow.user": "anna"}
    assert wanted.items() <= run.tags.items()
    assert run.values("loss") == [1.0, 0.5, 1 / 3]
    assert run.values("bad") == ["NaN"]
    assert (run.status, run.end_ms is not None) == ("FINISHED", True)
    assert world.run(script.run_id).row.mlflow_run_id == run.run_id
    assert state(world) == "up"


def test_neighbouring_records_travel_together(make_world: MakeWorld, standin: StandIn) -> None:
    standin.stop()
    world = make_world(standin.url)
    script = world.job()
    for step in range(60):
        script.log("loss", 1.0, step)
    standin.start()
    world.wait_mirrored()
    assert len(standin.by_name("j1").metrics) == 60
    assert standin.count("runs/log-batch") <= 3


def test_parents_come_before_children_and_are_named_by_mlflows_id(make_world: MakeWorld, standin: StandIn) -> None:
    world = make_world(standin.url)
    session = new_run(world, "session")
    script = world.job(mlflow_parent_run_id=session)
    script.create_run()
    script.create_run("fold")
    world.wait_mirrored()
    assert standin.by_name("j1").tags["mlflow.parentRunId"] == standin.by_name("session").run_id
    assert standin.by_name("fold").tags["mlflow.parentRunId"] == standin.by_name("j1").run_id


def test_a_child_waits_for_a_parent_that_fails_at_first(make_world: MakeWorld, standin: StandIn) -> None:
    left = [3]

    def fault(path: str, body: dict[str, Any]) -> Response | None:
        if path == "runs/create" and body["run_name"] == "session" and left[0]:
            left[0] -= 1
            return JSONResponse({}, 500)
        return None

    standin.fault = fault
    world = make_world(standin.url)
    world.job(mlflow_parent_run_id=new_run(world, "session"))
    world.wait_mirrored()
    assert standin.by_name("j1").tags["mlflow.parentRunId"] == standin.by_name("session").run_id


def new_run(world: GatewayWorld, name: str) -> str:
    new = NewRun(experiment_name="exp", run_name=name, idempotency_token=name)
    fresh = f"{abs(hash(name)):032x}"[:32]
    return world.write(lambda c: runs.create_run(c, new, run_id=fresh, now_s=1.0))


def test_an_outage_loses_nothing_and_shows_in_the_state(make_world: MakeWorld, standin: StandIn) -> None:
    world = make_world(standin.url)
    script = world.job()
    wait_for(lambda: state(world) == "up", "never up")
    standin.stop()
    for step in range(20):
        assert script.log("loss", float(step), step).status_code == 200
    wait_for(lambda: state(world).startswith("unreachable: "), "the outage does not show")
    standin.start()
    world.wait_mirrored()
    assert standin.by_name("j1").values("loss") == [float(step) for step in range(20)]
    assert state(world) == "up"


def test_a_late_start_is_starting_and_then_up(make_world: MakeWorld, standin: StandIn) -> None:
    standin.stop()
    world = make_world(standin.url)
    world.job().log("loss", 1.0)
    assert state(world) == "starting"
    standin.start()
    world.wait_mirrored()
    assert standin.by_name("j1").values("loss") == [1.0]


@pytest.mark.parametrize("status", [500, 502, 503, 429])
def test_server_errors_are_tried_again(make_world: MakeWorld, standin: StandIn, status: int) -> None:
    standin.fault = only_on("runs/log-batch", JSONResponse({}, status), times=2)
    world = make_world(standin.url)
    world.job().log("loss", 1.0)
    world.wait_mirrored()
    assert standin.by_name("j1").values("loss") == [1.0]


@pytest.mark.parametrize("path", ["runs/create", "runs/log-batch", "runs/update"])
def test_a_lost_answer_changes_nothing_twice(make_world: MakeWorld, standin: StandIn, path: str) -> None:
    lost = [2]

    def lose(called: str) -> bool:
        if called == path and lost[0]:
            lost[0] -= 1
            return True
        return False

    standin.lose_answers = lose
    world = make_world(standin.url)
    world.job().log("loss", 1.0)
    world.end("j1")
    world.wait_mirrored()
    assert len(standin.runs) == 1
    assert standin.by_name("j1").values("loss") == [1.0]
    assert standin.by_name("j1").status == "FINISHED"


def test_a_run_created_before_a_crash_is_found_again(make_world: MakeWorld, standin: StandIn) -> None:
    standin.hold_answers = lambda path: path == "runs/create"
    world = make_world(standin.url)
    world.job().log("loss", 1.0)
    wait_for(lambda: standin.runs, "never created")
    world.close()  # in the middle of the call: it never learns that the run was created
    standin.hold_answers = lambda path: False
    again = make_world(standin.url)
    again.wait_mirrored()
    assert len(standin.runs) == 1
    assert standin.by_name("j1").values("loss") == [1.0]


def test_a_restart_goes_on_where_it_was(make_world: MakeWorld, standin: StandIn) -> None:
    standin.stop()
    world = make_world(standin.url)
    world.job().log("loss", 1.0)
    world.close()
    again = make_world(standin.url)
    again.attempt("j1", 2).log("loss", 2.0, 1)
    standin.start()
    again.wait_mirrored()
    assert standin.by_name("j1").values("loss") == [1.0, 2.0]


def test_a_refused_row_is_parked_with_its_error_and_the_rest_goes_on(make_world: MakeWorld, standin: StandIn) -> None:
    standin.stop()
    world = make_world(standin.url)
    script, other = world.job("j1"), world.job("j2")
    script.log("good", 1.0)
    script.log("poison", 1.0)
    script.log("good", 2.0, 1)
    other.log("good", 3.0)
    standin.start()
    world.wait_mirrored()
    assert standin.by_name("j1").values("good") == [1.0, 2.0]
    assert standin.by_name("j2").values("good") == [3.0]
    (row,) = world.store.read_blocking(lambda connection: queries.parked_rows(connection, limit=9))
    assert row.payload["m"][0][0] == "poison"
    assert "never taken" in (row.error or "")
    assert world.mirror is not None
    notice = asyncio.run(world.mirror.notices())
    assert len(notice) == 1
    assert "1 record" in notice[0]


def test_a_parked_row_gets_another_chance_after_a_restart(make_world: MakeWorld, standin: StandIn) -> None:
    standin.fault = only_on("runs/log-batch", JSONResponse({"error_code": "X", "message": "no"}, 400))
    world = make_world(standin.url)
    world.job().log("loss", 1.0)
    world.wait_mirrored()
    assert world.outbox() == 1
    world.close()
    standin.fault = lambda path, body: None
    again = make_world(standin.url)
    wait_for(lambda: again.outbox() == 0, "still parked")
    assert standin.by_name("j1").values("loss") == [1.0]


def test_when_a_run_can_not_be_created_its_records_are_parked_too(make_world: MakeWorld, standin: StandIn) -> None:
    refuse = JSONResponse({"error_code": "INVALID_PARAMETER_VALUE", "message": "no such luck"}, 400)
    standin.fault = lambda path, body: refuse if path == "runs/create" and body["run_name"] == "j1" else None
    world = make_world(standin.url)
    script = world.job("j1")
    script.log("loss", 1.0)
    script.create_run()
    script.create_run("child")
    world.job("j2").log("loss", 2.0)
    world.wait_mirrored()
    assert standin.by_name("j2").values("loss") == [2.0]
    assert "mlflow.parentRunId" not in standin.by_name("child").tags
    parked = world.store.read_blocking(lambda connection: queries.parked_rows(connection, limit=99))
    assert {row.run_id for row in parked} == {script.run_id}
    assert len(parked) >= 3


def test_an_experiment_that_exists_or_was_deleted_is_used(make_world: MakeWorld, standin: StandIn) -> None:
    standin.experiments["exp"] = "77"
    standin.deleted.add("77")
    world = make_world(standin.url)
    world.job()
    world.wait_mirrored()
    assert standin.by_name("j1").experiment_id == "77"


def test_an_experiment_deleted_later_is_looked_for_again(make_world: MakeWorld, standin: StandIn) -> None:
    world = make_world(standin.url)
    world.job("j1")
    world.wait_mirrored()
    standin.deleted.add(standin.experiments["exp"])
    world.job("j2")
    world.wait_mirrored()
    assert standin.by_name("j2").experiment_id == standin.experiments["exp"]


def test_artifacts_arrive_below_the_real_root_and_leave_the_spool(make_world: MakeWorld, standin: StandIn) -> None:
    world = make_world(standin.url)
    script = world.job()
    path = f"/api/2.0/mlflow-artifacts/artifacts/nightlab/{script.run_id}/artifacts"
    assert script.http.put(f"{path}/a/b c.txt", content=b"hello").status_code == 200
    world.wait_mirrored()
    run = standin.by_name("j1")
    assert standin.files == {f"{run.experiment_id}/{run.run_id}/artifacts/a/b c.txt": b"hello"}
    wait_for(lambda: not list((world.home / "spool").iterdir()), "still in the spool")
    assert script.http.get(f"{path}/a/b c.txt").content == b"hello"
    listing = script.http.get(
        "/api/2.0/mlflow-artifacts/artifacts", params={"path": f"nightlab/{script.run_id}/artifacts/a"}
    )
    assert [item["path"] for item in listing.json()["files"]] == ["b c.txt"]


def test_a_passed_through_call_speaks_mlflows_ids_after_a_flush(make_world: MakeWorld, standin: StandIn) -> None:
    world = make_world(standin.url)
    script = world.job()
    wait_for(lambda: state(world) == "up", "never up")
    script.log("loss", 1.0)
    model = script.post("logged-models", source_run_id=script.run_id, experiment_id="0").json()["model"]
    assert model["info"]["source_run_id"] == script.run_id
    _, body = next(call for call in standin.calls if call[0] == "logged-models")
    run = standin.by_name("j1")
    assert (body["source_run_id"], body["experiment_id"]) == (run.run_id, run.experiment_id)
    assert run.values("loss") == [1.0]  # it was there before the call


def test_a_passed_through_call_is_refused_while_mlflow_is_away(make_world: MakeWorld, standin: StandIn) -> None:
    standin.stop()
    world = make_world(standin.url)
    script = world.job()
    answer = script.post("logged-models", source_run_id=script.run_id)
    assert (answer.status_code, answer.json()["error_code"]) == (503, "TEMPORARILY_UNAVAILABLE")
    assert "starting" in answer.json()["message"]
    assert int(answer.headers["retry-after"]) > 0


def test_calls_with_empty_answers_do_not_wait_for_mlflow(make_world: MakeWorld, standin: StandIn) -> None:
    standin.stop()
    world = make_world(standin.url)
    script = world.job()
    assert script.post("runs/log-inputs", run_id=script.run_id, datasets=[]).status_code == 200
    standin.start()
    world.wait_mirrored()
    _, body = next(call for call in standin.calls if call[0] == "runs/log-inputs")
    assert body["run_id"] == standin.by_name("j1").run_id


def test_a_job_can_not_reach_the_runs_of_others_through_mlflow(make_world: MakeWorld, standin: StandIn) -> None:
    world = make_world(standin.url)
    script, other = world.job("j1"), world.job("j2")
    wait_for(lambda: state(world) == "up", "never up")
    for path, body in (("runs/delete", {"run_id": script.run_id}), ("logged-models", {"source_run_id": other.run_id})):
        answer = script.post(path, **body)
        assert (answer.status_code, answer.json()["error_code"]) == (403, "PERMISSION_DENIED")
    assert not standin.count("runs/delete")


def test_tags_names_and_removals_follow(make_world: MakeWorld, standin: StandIn) -> None:
    world = make_world(standin.url)
    script = world.job()
    script.create_run()
    child = script.create_run("first")
    for key, value in (("keep", "1"), ("drop", "1"), ("mlflow.runName", "second")):
        script.post("runs/set-tag", run_id=child, key=key, value=value)
    script.post("runs/delete-tag", run_id=child, key="drop")
    world.wait_mirrored()
    run = standin.by_name("second")
    assert "drop" not in run.tags
    assert run.tags["keep"] == "1"


def test_session_runs_take_updates_and_refuse_contradictions(make_world: MakeWorld, standin: StandIn) -> None:
    world = make_world(standin.url)
    run_id = new_run(world, "session")
    assert new_run(world, "session") == run_id  # the same token
    update = RunUpdate(params={"budget": "3"}, metrics={"best": 0.5}, step=2, tags={"a": "b"}, status="FINISHED")
    world.write(lambda c: runs.update_run(c, run_id, update, now_s=5.0))
    view = world.store.read_blocking(lambda c: runs.run_view(c, run_id))
    assert (view.status, view.params, view.latest, view.tags["a"]) == ("FINISHED", {"budget": "3"}, {"best": 0.5}, "b")
    for wrong, error in (
        (RunUpdate(params={"budget": "4"}), runs.RunConflict),
        (RunUpdate(status="DONE"), runs.BadRunUpdate),
        (RunUpdate(tags={"../x": "1"}), runs.BadRunUpdate),
    ):
        with pytest.raises(error):
            world.write(lambda c, wrong=wrong: runs.update_run(c, run_id, wrong, now_s=6.0))
    with pytest.raises(runs.UnknownRun):
        world.store.read_blocking(lambda c: runs.run_view(c, "f" * 32))
    world.wait_mirrored()
    assert standin.by_name("session").end_ms == 5000


def test_reconcile_finds_what_differs_and_only_that(make_world: MakeWorld, standin: StandIn) -> None:
    world = make_world(standin.url)
    for number in (1, 2):
        script = world.job(f"j{number}")
        for step in range(3):
            script.log("loss", float(step), step)
        script.log("odd", "NaN")
        world.end(f"j{number}")
    world.wait_mirrored()

    async def check() -> Any:
        async with open_http(standin.url) as http:
            return await reconcile(world.store, MlflowRest(http))

    assert asyncio.run(check()).differences == ()
    standin.by_name("j2").metrics.pop(1)
    standin.by_name("j2").status = "RUNNING"
    result = asyncio.run(check())
    assert result.n_runs == 2
    assert len(result.differences) == 2
    assert all(world.run(difference.run_id).row.job_id == "j2" for difference in result.differences)


def test_a_run_missing_from_our_tables_does_not_stop_the_mirror(make_world: MakeWorld, standin: StandIn) -> None:
    world = make_world(standin.url)
    world.write(lambda c: recording.push(c, "f" * 32, "status", {"status": "FINISHED", "end_ms": 1}))
    world.job().log("loss", 1.0)
    world.wait_mirrored()
    assert standin.by_name("j1").values("loss") == [1.0]


def test_every_stored_outbox_kind_is_known(make_world: MakeWorld, standin: StandIn) -> None:
    world = make_world(standin.url)
    row = RunRow(run_id="a" * 32, experiment_name="exp", run_name="odd", status="RUNNING", created_at=1.0)
    world.write(lambda c: recording.new_run(c, row, tags={}, params={}))
    world.write(lambda c: recording.push(c, row.run_id, "dance", {}))
    world.wait_mirrored()
    parked = world.store.read_blocking(lambda c: queries.parked_rows(c, limit=9))
    assert [item.kind for item in parked] == ["dance"]
    assert world.store.read_blocking(records.count_outbox) == 1
