"""One trial over HTTP: what the store knows, what the runtime adds, and what is said while that is away."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from agent_worlds import World
from code_worlds import a_code_world
from trial_worlds import FAILED, HOSTILE, LOG, N_STEPS, PREEMPTED, edited_twice, lived_world, mlflows_own

from agent.store.views import Purpose
from agent.web.app import create_app
from agent.web.curves import Logged, by_attempt, thinned
from agent.web.keys import Keys
from runtime_client.errors import Unreachable

pytestmark = pytest.mark.web


@dataclass(slots=True)
class Door:
    """The real app in process, over a world whose runtime can be taken away."""

    world: World
    is_away: bool = False
    app: Any = field(init=False)

    def __post_init__(self) -> None:
        self.app = create_app(
            self.world.store, Keys(owner_token="owner", reader_token="reader"), self.world.home, connect=self.connect
        )

    def connect(self) -> Any:
        if self.is_away:
            raise Unreachable("no runtime is running; start it with: nightlab up", code="not_running", retryable=True)
        return nullcontext(self.world.runtime)

    def call(self, path: str, **query: Any) -> httpx.Response:
        async def made() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7072") as client:
                return await client.get(path, params=query or None, headers={"Authorization": "Bearer reader"})

        return asyncio.run(made())

    def read(self, path: str, **query: Any) -> Any:
        answer = self.call(path, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    world = lived_world(tmp_path_factory.mktemp("home"))
    yield Door(world)
    world.store.close()


@pytest.fixture
def door(lived: Door) -> Door:
    lived.is_away = False
    return lived


def best(door: Door) -> str:
    """The first trial of what the session chose."""
    result = door.world.store.session("s1").result
    assert result is not None
    return next(t.trial_id for t in door.world.store.trials("s1") if t.configuration == result.best_configuration)


def test_a_trial_is_told_with_its_parameters_its_jobs_and_how_it_stands(door: Door) -> None:
    trial_id = best(door)
    told = door.read(f"/v1/trials/{trial_id}/view")
    assert (told["trial"]["trial_id"], told["metric"], told["direction"]) == (trial_id, "score", "maximize")
    (x,) = [row for row in told["parameters"] if row["name"] == "x"]
    assert (x["value"], x["default"], x["parent"]) == (told["trial"]["params"]["x"], 0.2, 0.2)
    (job,) = told["jobs"]
    assert (job["role"], job["state"], job["problem"]) == ("training", "succeeded", None)
    assert job["mlflow_url"].startswith("http://127.0.0.1:5000/")
    assert told["runtime_problem"] is None
    assert told["against_default"]["n_pairs"] >= 3
    assert told["standing"]
    assert {row["purpose"] for row in told["replicates"]} >= {"replicate"}
    assert trial_id not in {row["trial_id"] for row in told["replicates"]}


def test_a_trial_that_had_to_leave_has_two_attempts_and_says_for_whom(door: Door) -> None:
    (job,) = door.read(f"/v1/trials/{PREEMPTED}/view")["jobs"]
    assert [(one["outcome"], one["beneficiary"]) for one in job["attempts"]] == [
        ("preempted", "j99"),
        ("succeeded", None),
    ]
    (curve,) = door.read(f"/v1/trials/{PREEMPTED}/curves")["curves"]
    assert [piece["attempt"] for piece in curve["pieces"]] == [1, 2]
    assert curve["n_points"] == N_STEPS


def test_a_look_at_the_held_out_metric_is_told_by_that_and_is_no_replicate(door: Door) -> None:
    (look,) = [one for one in door.world.store.trials("s1") if one.purpose is Purpose.HELD_OUT][:1]
    told = door.read(f"/v1/trials/{look.trial_id}/view")
    assert told["metric"] == "test_score"
    assert "held_out" not in {row["purpose"] for row in door.read(f"/v1/trials/{best(door)}/view")["replicates"]}
    assert door.read(f"/v1/trials/{look.trial_id}/curves")["curves"][0]["key"] == "test_score"


def test_the_default_is_held_against_nothing(door: Door) -> None:
    told = door.read("/v1/trials/s1-t1/view")
    assert (told["is_default"], told["against_default"], told["gain_over_default"]) == (True, None, None)


def test_a_failed_trial_says_why(door: Door) -> None:
    told = door.read(f"/v1/trials/{FAILED}/view")
    assert told["trial"]["state"] == "invalid"
    assert told["jobs"][0]["attempts"][0]["exit_reason"] == "code_error"
    assert told["trial"]["facts"]["diagnosis"]["cause"]


def test_what_the_store_knows_is_told_without_the_runtime_and_the_rest_is_refused(door: Door) -> None:
    door.is_away = True
    told = door.read("/v1/trials/s1-t1/view")
    assert "nightlab up" in told["runtime_problem"]
    assert told["trial"]["value"] is not None
    assert [job["problem"] for job in told["jobs"]] == ["the runtime does not answer"]
    for what in ("curves", "log", "log-errors"):
        answer = door.call(f"/v1/trials/s1-t1/{what}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "runtime_away")


def test_a_job_that_the_runtime_no_longer_knows_is_named(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door.world.runtime, "_jobs", {})
    (job,) = door.read("/v1/trials/s1-t1/view")["jobs"]
    assert "no job" in job["problem"]
    assert door.read("/v1/trials/s1-t1/curves") == {
        "keys": [],
        "curves": [],
    }


def test_curves_are_the_objectives_unless_others_are_asked_for(door: Door) -> None:
    told = door.read("/v1/trials/s1-t1/curves")
    assert told["keys"] == sorted([HOSTILE, "loss", "score"])
    assert [curve["key"] for curve in told["curves"]] == ["score"]
    assert [step for step, _ in told["curves"][0]["pieces"][0]["points"]] == list(range(N_STEPS))
    (odd,) = door.read("/v1/trials/s1-t1/curves", key=HOSTILE)["curves"]
    assert [value for _, value in odd["pieces"][0]["points"]] == [1.0, None, 3.0]
    assert (odd["n_not_finite"], odd["first_not_finite"]) == (1, "NaN at step 1")
    assert door.read("/v1/trials/s1-t1/curves", key="never")["curves"][0]["pieces"] == []


def test_a_log_is_read_backwards_in_whole_lines_without_a_gap(door: Door) -> None:
    piece = door.read(f"/v1/trials/{FAILED}/log", limit=4096)
    assert piece["end"] == len(LOG)
    assert piece["is_complete"]
    texts = [piece["text"]]
    while piece["start"] > 0:
        piece = door.read(f"/v1/trials/{FAILED}/log", before=piece["start"], limit=4096)
        texts.insert(0, piece["text"])
        assert piece["text"].endswith("\n")
    assert len(texts) > 4
    assert "".join(texts) == LOG


def test_a_log_goes_on_where_it_was(door: Door) -> None:
    first = door.read(f"/v1/trials/{FAILED}/log", offset=0, limit=100)
    rest = door.read(f"/v1/trials/{FAILED}/log", offset=first["end"], limit=50)
    assert first["text"] + rest["text"] == LOG[:150]


def test_the_error_lines_of_a_log_are_told_as_text(door: Door) -> None:
    lines = door.read(f"/v1/trials/{FAILED}/log-errors")["lines"]
    assert [HOSTILE in line["text"] for line in lines] == [True, False]


def test_artifacts_are_listed_by_folder(door: Door) -> None:
    runtime = door.world.runtime
    run_id = runtime.job(door.world.store.trial("s1-t1").job_id or "").run_id
    runtime.log_artifact(run_id, f"logs/{HOSTILE}", b"12")
    assert door.read("/v1/trials/s1-t1/artifacts")["items"] == [{"path": "logs", "is_folder": True, "size_bytes": None}]
    (file,) = door.read("/v1/trials/s1-t1/artifacts", folder="logs")["items"]
    assert file == {"path": HOSTILE, "is_folder": False, "size_bytes": 2}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("s1-t99/view", (404, "unknown_trial")),
        ("s1-t99/curves", (404, "unknown_trial")),
        ("..%2f..%2fetc/log", (404, "no_such_path")),
        ("s1-t1/log?job_id=j999", (404, "no_such_job")),
        ("s1-t1/log?job_id=../../x", (404, "no_such_job")),
        ("s1-t1/log?stream=../secret", (422, "invalid_value")),
        ("s1-t1/log?offset=-1", (422, "invalid_value")),
        ("s1-t1/log?offset=1&before=2", (422, "invalid_value")),
        ("s1-t1/log?limit=65537", (422, "invalid_value")),
        ("s1-t1/log-errors?attempt=0", (422, "invalid_value")),
        ("s1-t1/curves?" + "&".join(f"key=k{n}" for n in range(9)), (422, "invalid_value")),
        ("s1-t1/diff?against=HEAD", (422, "invalid_value")),
    ],
)
def test_what_is_not_a_trials_is_refused(door: Door, path: str, expected: tuple[int, str]) -> None:
    answer = door.call(f"/v1/trials/{path}")
    assert (answer.status_code, answer.json()["error"]["code"]) == expected


def test_code_is_shown_against_the_trial_that_it_was_made_from_or_the_base(tmp_path: Path) -> None:
    door = Door(a_code_world(tmp_path))
    first, second = edited_twice(door.world)
    by_parent = door.read(f"/v1/trials/{second}/diff")
    by_base = door.read(f"/v1/trials/{second}/diff", against="base")
    assert (by_parent["against"], by_base["against"]) == (first, "base")
    assert "+STEPS = 3" in by_parent["diff"]
    assert "-GAIN = 0.5" not in by_parent["diff"]
    assert "-GAIN = 0.5" in by_base["diff"]
    assert door.read(f"/v1/trials/{second}/view")["parent_id"] == first
    assert door.read(f"/v1/trials/{first}/diff")["against"] == "base"
    assert door.read(f"/v1/trials/{second}/curves") == {"keys": [], "curves": []}
    assert door.call(f"/v1/trials/{second}/log").json()["error"]["code"] == "no_such_job"


def test_a_trial_of_the_base_code_says_that_nothing_was_changed(door: Door) -> None:
    assert door.read("/v1/trials/s1-t1/diff")["problem"] == "it runs the session's base code, unchanged"


def logged(*points: tuple[int, int, float]) -> list[Logged]:
    return [Logged("j1", attempt, step, value) for attempt, step, value in points]


def test_what_an_attempt_did_again_is_in_both_attempts() -> None:
    found = by_attempt(logged((1, 0, 5.0), (1, 1, 4.0), (2, 1, 4.5), (2, 2, 3.0)))
    assert found == [("j1", 1, [(0, 5.0), (1, 4.0)]), ("j1", 2, [(1, 4.5), (2, 3.0)])]


def test_values_without_steps_are_numbered_over_all_attempts() -> None:
    found = by_attempt(logged((1, 0, 5.0), (1, 0, 4.0), (2, 0, 3.0)))
    assert found == [("j1", 1, [(0, 5.0), (1, 4.0)]), ("j1", 2, [(2, 3.0)])]


def test_thinning_keeps_the_ends_the_extremes_and_gaps() -> None:
    points: list[tuple[int, float | None]] = [(step, float(step % 10)) for step in range(20_000)]
    points[7_777], points[8_888], points[9_999] = (7_777, 1e9), (8_888, -1e9), (9_999, None)
    few = thinned(points, 1000)
    assert len(few) <= 1000
    assert (few[0], few[-1]) == (points[0], points[-1])
    assert {points[7_777], points[8_888], points[9_999]} <= set(few)
    assert [step for step, _ in few] == sorted(step for step, _ in few)


def test_all_attempts_together_stay_within_the_bound() -> None:
    found = by_attempt([Logged("j1", attempt, step, 1.0) for attempt in range(1, 4) for step in range(9_000)])
    assert sum(len(points) for _, _, points in found) <= 1000


def test_a_run_is_found_by_its_id(door: Door) -> None:
    (job,) = door.read("/v1/trials/s1-t1/view")["jobs"]
    told = door.read(f"/v1/runs/{job['run_id']}")
    assert (told["run_id"], told["mlflow_url"]) == (job["run_id"], door.world.runtime.run(job["run_id"]).mlflow_url)
    assert door.read(f"/v1/runs/{mlflows_own(job['run_id'])}")["run_id"] == job["run_id"]
    missing = door.call(f"/v1/runs/{'f' * 32}")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "run_not_found")
    door.is_away = True
    assert door.call(f"/v1/runs/{job['run_id']}").status_code == 503
