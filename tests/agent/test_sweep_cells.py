"""From a sweep to the tasks of its cells, and what is refused."""

from __future__ import annotations

from pathlib import Path

import agent_worlds
import pytest

from agent.sweeps.cells import cells_of
from agent.sweeps.prepare import examine, prepare_night
from agent.sweeps.sweep import Sweep
from agent.sweeps.sweep_file import SweepError
from agent.task import SessionNotification, Task
from agent.task_file import load_task
from runtime_client.models import ArgsStyle


def a_task(**more: object) -> Task:
    task = agent_worlds.a_task(**more)
    return task.model_copy(update={"job": task.job.model_copy(update={"args_style": ArgsStyle.ARGPARSE})})


def a_sweep(**more: object) -> Sweep:
    return Sweep.model_validate({"sweep": "s", "task": "t.yaml", "method": {"kind": "random", "trials": 5}, **more})


def names_of(task: Task) -> str:
    return next(iter(task.space))


def test_a_cell_takes_from_the_sweep_what_it_says_and_the_rest_from_the_task() -> None:
    task = a_task()
    made = cells_of(a_sweep(replicates=3, confirm=False, priority_class="normal", budgets={"device_hours": 2}), [task])
    (cell,) = made.cells
    assert cell.name == task.task
    assert (cell.task.search.use, cell.task.search.replicates, cell.task.search.confirm) == (("random",), 3, False)
    assert (cell.task.priority_class, cell.task.budgets.device_seconds, cell.task.budgets.trials) == ("normal", 7200, 5)
    assert not cell.task.idle.replicate
    assert cell.task.objective == task.objective


def test_cells_share_the_budget_of_the_night_and_have_names_of_their_own() -> None:
    sweep = a_sweep(
        budgets={"device_hours": 2}, matrix={"data": [{"name": "v1", "parameters": {"rows": 10}}, {"name": "v2"}]}
    )
    made = cells_of(sweep, [a_task()])
    assert [cell.name for cell in made.cells] == ["toy/v1", "toy/v2"]
    assert [cell.task.budgets.device_seconds for cell in made.cells] == [3600, 3600]
    assert made.cells[0].task.job.parameters["rows"] == 10


def test_an_agent_searches_with_the_model_of_the_task_beside_the_control_arm_within_its_share_of_the_tokens() -> None:
    task = a_task(model={"name": "any"}, search={"use": ["sampler", "model"]})
    data = {"data": [{"name": "v1"}, {"name": "v2"}]}
    method = {"kind": "agent", "trials": 9}
    made = cells_of(a_sweep(method=method, budgets={"tokens": 50_001}, matrix=data), [task])
    assert made.problems == ()
    for cell in made.cells:
        assert {"sampler", "model"} <= set(cell.task.search.use)
        assert (cell.task.budgets.trials, cell.task.budgets.tokens) == (9, 25_000)


def test_an_agent_without_a_model_is_refused() -> None:
    (problem,) = cells_of(a_sweep(method={"kind": "agent", "trials": 9}), [a_task()]).problems[:1]
    assert (problem.path, "names none" in problem.message) == ("method", True)


def test_a_value_outside_the_space_is_refused_with_its_place() -> None:
    task = a_task()
    made = cells_of(a_sweep(method={"kind": "grid", "values": {names_of(task): [1e9], "nothing": [1]}}), [task])
    assert made.cells == ()
    assert [p.path for p in made.problems] == [f"method.values.{names_of(task)}.0", "method.values.nothing"]
    assert any("nothing is not in the space" in p.message for p in made.problems)


def test_more_cells_than_are_possible_are_refused() -> None:
    data = [{"name": f"v{n}"} for n in range(101)]
    (problem,) = cells_of(a_sweep(matrix={"data": data}), [a_task()]).problems
    assert problem.message == "101 cells; at most 100 are possible"


def test_two_tasks_with_one_name_are_refused() -> None:
    sweep = Sweep.model_validate(
        {"sweep": "s", "method": {"kind": "random", "trials": 5}, "matrix": {"tasks": ["a", "b"]}}
    )
    assert "two cells are named 'toy'" in cells_of(sweep, [a_task(), a_task()]).problems[0].message


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("finish_by: '2020-01-01 07:00'", "finish_by: '2020-01-01 07:00' is past"),
        ("finish_by: '7'", "finish_by: '7' is no time; write 07:00"),
        ("window: '22:00-22:00'", "window: .* has no length"),
        ("time_zone: Europe/Berln", "time_zone: .* did you mean 'Europe/Berlin'"),
        ("matrix: {code: [main]}", "matrix.code.0: task toy has job.code_source.snapshot: off"),
        ("method: {kind: grid, values: {}}", "method.*values"),
        ("replicats: 3", "did you mean 'replicates'"),
    ],
)
def test_a_file_that_can_not_be_used_says_where_and_what_to_write(tmp_path: Path, line: str, said: str) -> None:
    text = (
        "sweep: s\ntask: t.yaml\n" + ("" if line.startswith("method") else "method: {kind: random, trials: 5}\n") + line
    )
    (tmp_path / "sweep.yaml").write_text(text + "\n")
    with pytest.raises(SweepError, match=said):
        prepare_night(tmp_path / "sweep.yaml", read_task=lambda _path: a_task(), now=1.8e9)


def test_outside_of_its_window_a_night_is_not_begun(tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(
        "sweep: s\ntask: t.yaml\nmethod: {kind: random, trials: 5}\nwindow: '22:00-07:00'\ntime_zone: UTC\n"
    )
    noon = 1_800_000_000 // 86400 * 86400 + 43200
    assert prepare_night(file, read_task=lambda _p: a_task(), now=noon).outside == (
        "it is 12:00, outside of its window 22:00-07:00"
    )
    night = prepare_night(file, read_task=lambda _p: a_task(), now=noon + 39600)
    assert (night.outside, night.finish_by) == (None, noon + 39600 + 8 * 3600)


def test_data_of_a_version_lies_beside_the_sweep_file_wherever_the_night_is_started_from(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").touch()
    file = tmp_path / "s.yaml"
    file.write_text(
        "sweep: s\ntask: t.yaml\nmethod: {kind: random, trials: 2}\n"
        "matrix: {data: [{name: v1, data: [{path: rows.csv}]}, {name: v2, data: "
        "[{path: 's3://rows', fingerprint: label, label: v2}]}]}\n"
    )
    night = prepare_night(file, read_task=lambda _: a_task(), now=0.0)
    paths = [one.path for cell in night.cells for one in cell.task.data]
    assert paths == [str(tmp_path.resolve() / "rows.csv"), "s3://rows"]


def test_a_cell_tells_nobody_since_the_night_does() -> None:
    task = a_task().model_copy(update={"notify": (SessionNotification(url="json://a"),)})
    (cell,) = cells_of(a_sweep(), [task]).cells
    assert cell.task.notify == ()


def test_a_problem_of_a_cell_stands_where_the_sweep_causes_it() -> None:
    task = a_task(fidelity={"parameter": "epochs", "value": 3})
    data = [{"name": "v1"}, {"name": "v2", "parameters": {"epochs": 9}}, {"name": "v3", "data": [{"path": "/no/rows"}]}]
    made = cells_of(a_sweep(matrix={"data": data}, replicates=950), [task])
    assert [one.path for one in made.problems] == [
        "replicates",
        "matrix.data.1.parameters.epochs",
        "matrix.data.2.data.0.path",
    ]
    assert all("(task toy)" in one.message for one in made.problems)


def test_what_is_written_twice_is_said_and_runs_once() -> None:
    name = names_of(a_task())
    grid = cells_of(a_sweep(method={"kind": "grid", "values": {name: [0.5, 0.25, 0.50]}}), [a_task()])
    assert [(one.path, one.message) for one in grid.notes] == [
        (f"method.values.{name}.2", f"0.5 is there already (method.values.{name}.0)")
    ]
    assert len(grid.cells[0].task.search.points) == 2
    points = [{name: 0.5}, {}, {name: 0.5}]
    listed = cells_of(a_sweep(method={"kind": "list", "points": points}), [a_task()])
    assert [one.path for one in listed.notes] == ["method.points.1", "method.points.2"]
    assert "the same configuration as method.points.0" in listed.notes[1].message


BROKEN = """
sweep: s
method: {kind: grid, values: {lr: [0.2]}}
matrix: {tasks: [good.yaml, bad.yaml, none.yaml]}
finish_by: '7'
time_zone: Europe/Berln
notify: [{url: 'json://a'}, {url_file: address}]
"""


def test_all_that_is_wrong_is_found_at_once_and_an_address_alone_lets_a_night_run(tmp_path: Path) -> None:
    task = "task: good\nobjective: {metric: m, direction: minimize}\njob: {command: run, args_style: argparse}\n"
    task += "budgets: {trials: 2}\nspace: {lr: {type: float, low: 0.1, high: 1.0, default: 0.5}}\n"
    (tmp_path / "good.yaml").write_text(task)
    (tmp_path / "bad.yaml").write_text(task.replace("minimize", "down").replace("0.1,", "9,"))
    file = tmp_path / "sweep.yaml"
    file.write_text(BROKEN)
    found = examine(file, read_task=load_task, now=0.0)
    assert [(one.path, one.message.split(":")[0]) for one in found.problems] == [
        ("time_zone", "there is no time zone 'Europe/Berln'; did you mean 'Europe/Berlin'?"),
        ("finish_by", "'7' is no time; write 07"),
        ("matrix.tasks.1", "bad.yaml"),
        ("matrix.tasks.1", "bad.yaml"),
        ("matrix.tasks.2", "none.yaml"),
    ]
    assert found.problems[2].message.startswith("bad.yaml: objective.direction: ")
    assert [one.path for one in found.addresses] == ["notify.1.url_file"]
    file.write_text("sweep: s\nmethod: {kind: random, trials: 2}\ntask: good.yaml\nnotify: [{url_file: address}]\n")
    night = prepare_night(file, read_task=load_task, now=0.0)
    assert str(tmp_path / "address") in night.notes[0].message
    (tmp_path / "address").write_text("json://a\n")
    assert prepare_night(file, read_task=load_task, now=0.0).notes == ()
