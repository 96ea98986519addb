"""From a sweep to the tasks of its cells, and what is refused."""

from __future__ import annotations

from pathlib import Path

import agent_worlds
import pytest

from agent.sweeps.cells import cells_of
from agent.sweeps.prepare import prepare_night
from agent.sweeps.sweep import Sweep
from agent.sweeps.sweep_file import SweepError
from agent.task import SessionNotification, Task
from runtime_client.models import ArgsStyle


def a_task() -> Task:
    task = agent_worlds.a_task()
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


def test_a_value_outside_the_space_is_refused_with_its_place() -> None:
    task = a_task()
    made = cells_of(a_sweep(method={"kind": "grid", "values": {names_of(task): [1e9], "nothing": [1]}}), [task])
    assert made.cells == ()
    assert {p.path for p in made.problems} == {"method.values"}
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
        ("matrix: {code: [main]}", "matrix.code: states of the code are not supported yet"),
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
