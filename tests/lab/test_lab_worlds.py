"""Worlds tell the same for the same, know their truth, and say what is wrong with a file."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest
from lab_worlds import a_task

from nightlab.lab.recorded import RecordedWorld
from nightlab.lab.synthetic import RECIPES, SyntheticWorld
from nightlab.lab.world import BadWorld, World
from nightlab.lab.worlds import open_world
from runtime_client.models import JobSpec

DEFAULT = {"x": 0.2, "kind": "a"}


def final(world: World, params: dict[str, object], seed: int = 0, draw: int = 0, metric: str = "score") -> float:
    spec = JobSpec(experiment_name="toy", command="train", parameters=params, seed=seed)
    return world.course(spec, draw).curves[metric][-1]


def test_the_same_submission_gives_the_same_and_another_draw_another_value() -> None:
    world = SyntheticWorld("sphere", a_task())
    assert final(world, DEFAULT) == final(SyntheticWorld("sphere", a_task()), DEFAULT)
    assert len({final(world, DEFAULT, seed, draw) for seed in range(3) for draw in range(3)}) == 9


@pytest.mark.parametrize("kind", list(RECIPES))
def test_the_truth_is_the_mean_over_seeds(kind: str) -> None:
    world = SyntheticWorld(kind, a_task())
    values = [final(world, DEFAULT, seed) for seed in range(600)]
    error = statistics.stdev(values) / len(values) ** 0.5
    truth = world.truth(DEFAULT)
    assert truth is not None
    assert abs(statistics.fmean(values) - truth) < 4 * error


def test_a_task_that_minimizes_has_its_best_at_zero() -> None:
    objective = {"metric": "score", "direction": "minimize"}
    up, down = SyntheticWorld("sphere", a_task()), SyntheticWorld("sphere", a_task(objective=objective))
    assert (down.extent.best, down.extent.worst) == (0.0, 1.0)
    assert down.truth(DEFAULT) == pytest.approx(1.0 - (up.truth(DEFAULT) or 0.0))


def test_beyond_the_cliff_is_out_of_memory_and_no_truth() -> None:
    world = SyntheticWorld("cliff", a_task())
    beyond = {"x": 1.0, "kind": "b"}
    course = world.course(JobSpec(experiment_name="t", command="c", parameters=beyond, seed=0), 0)
    assert (course.exit_code, world.truth(beyond)) == (1, None)
    assert "out of memory" in course.output


def test_a_table_gives_recorded_seeds_and_draws_the_others(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("x,kind,seed,score,train_time\n0.2,a,0,0.5,90\n0.2,a,1,0.7,80\n0.9,b,0,0.9,70\n")
    world = open_world(str(path), a_task())
    assert (final(world, DEFAULT, 0), final(world, DEFAULT, 1)) == (0.5, 0.7)
    drawn = [final(world, DEFAULT, seed) for seed in range(1000, 1200)]
    assert set(drawn) == {0.5, 0.7}
    assert 60 < drawn.count(0.5) < 140
    assert (world.truth(DEFAULT), world.extent.best, world.extent.worst) == (
        pytest.approx(0.6),
        0.9,
        pytest.approx(0.6),
    )


def test_what_was_not_recorded_is_the_nearest_that_was(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("x,kind,score\n0.2,a,0.5\n0.9,a,0.6\n0.9,b,0.9\n")
    world = RecordedWorld(path, a_task())
    assert final(world, {"x": 0.7, "kind": "a"}) == 0.6
    assert final(world, {"x": 0.5, "kind": "b"}) == 0.9


def test_recorded_curves_fail_as_recorded(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    records = [
        {"parameters": DEFAULT, "seed": 0, "metrics": {"score": [0.1, 0.4]}, "train_time": 12},
        {"parameters": {"x": 0.9, "kind": "b"}, "metrics": {}, "exit_code": 1, "output": "boom"},
    ]
    path.write_text("\n".join(json.dumps(record) for record in records))
    world = RecordedWorld(path, a_task())
    course = world.course(JobSpec(experiment_name="t", command="c", parameters=DEFAULT, seed=0), 0)
    assert (course.run_s, course.curves["score"]) == (12.0, (0.1, 0.4))
    assert world.truth({"x": 0.9, "kind": "b"}) is None


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("t.csv", "x,score\n0.2,1\n", "no column kind"),
        ("t.csv", "x,kind,score\nmany,a,1\n", "line 2: could not convert"),
        ("t.csv", "x,kind,score\n7,a,1\n", "outside 0.0 to 1.0"),
        ("t.csv", "x,kind,score\n", "no record"),
        ("t.csv", "x,kind,score\n0.2,a,nan\n", "no record has a finite value"),
        ("t.jsonl", "[1]\n", "not a record of a run"),
        ("t.txt", "", "a world is a table"),
    ],
)
def test_a_file_that_can_not_be_used_is_refused_with_the_reason(
    name: str, text: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadWorld, match=said):
        RecordedWorld(path, a_task())
