"""Task files: every mistake is named by its path, with what was seen and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.task_file import TaskError, load_task, parse_task

GOOD = """
task: digits
objective: {metric: val_accuracy, direction: maximize}
job: {command: python train.py, args_style: argparse}
space:
  lr: {type: float, low: 1.0e-4, high: 1.0e-1, log: true, default: 1.0e-3}
  kind: {type: categorical, choices: [a, b], default: a}
budgets: {trials: 16}
"""


def problems_of(text: str, folder: Path) -> list[tuple[str, str]]:
    with pytest.raises(TaskError) as caught:
        parse_task(text, source=folder / "task.yaml")
    return [(problem.path, problem.message) for problem in caught.value.problems]


def the_problem(old: str, new: str, folder: Path) -> tuple[str, str]:
    assert old in GOOD
    found = problems_of(GOOD.replace(old, new), folder)
    assert len(found) == 1, found
    return found[0]


def test_code_runs_from_the_folder_of_the_task_file_by_default(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(GOOD)
    task = load_task(tmp_path / "task.yaml")
    assert task.job.code_source is not None
    assert task.job.code_source.root_path == str(tmp_path.resolve())


def test_numbers_with_an_exponent_are_numbers(tmp_path: Path) -> None:
    text = GOOD.replace(
        "args_style: argparse}", "args_style: argparse, parameters: {a: 1e-5, b: 2.5E3, c: -1e2, d: 1e}}"
    )
    assert parse_task(text, source=tmp_path / "task.yaml").job.parameters == {
        "a": 1e-5,
        "b": 2500.0,
        "c": -100.0,
        "d": "1e",
    }


def test_a_key_that_yaml_1_1_takes_for_true_is_the_word_that_was_written(tmp_path: Path) -> None:
    text = GOOD.replace("args_style: argparse}", "args_style: argparse, parameters: {on: 1, no: true, yes: no}}")
    parameters = parse_task(text, source=tmp_path / "task.yaml").job.parameters
    assert parameters == {"on": 1, "no": True, "yes": False}


def test_a_relative_code_folder_is_resolved_against_the_file(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    text = GOOD.replace("args_style: argparse}", "args_style: argparse, code_source: {root_path: src}}")
    (tmp_path / "task.yaml").write_text(text)
    task = load_task(tmp_path / "task.yaml")
    assert task.job.code_source is not None
    assert task.job.code_source.root_path == str((tmp_path / "src").resolve())


@pytest.mark.parametrize(
    ("old", "new", "path", "parts"),
    [
        ("budgets:", "budgetz:", "budgetz", ["did you mean 'budgets'"]),
        ("metric: val", "metrics: val", "objective.metrics", ["did you mean 'metric'", "direction"]),
        ("log: true", "lag: true", "space.lr.lag", ["did you mean 'log'", "low"]),
        ("trials: 16", "trails: 16", "budgets.trails", ["did you mean 'trials'", "wall_minutes"]),
        ("command: python", "comand: python", "job.comand", ["did you mean 'command'"]),
    ],
)
def test_unknown_keys_come_with_a_suggestion(old: str, new: str, path: str, parts: list[str], tmp_path: Path) -> None:
    found = dict(problems_of(GOOD.replace(old, new), tmp_path))
    assert path in found
    assert all(part in found[path] for part in parts), found[path]


@pytest.mark.parametrize(
    ("old", "new", "path", "parts"),
    [
        ("direction: maximize", "direction: up", "objective.direction", ["'maximize' or 'minimize'", "'up'"]),
        ("trials: 16", "trials: 0", "budgets.trials", ["greater than or equal to 1", "0"]),
        ("trials: 16", "trials: many", "budgets.trials", ["integer", "'many'"]),
        ("low: 1.0e-4", "low: 0.5", "space.lr", ["low (0.5) must be below high (0.1)"]),
        ("low: 1.0e-4", "low: 0.0", "space.lr", ["above 0 on a logarithmic scale"]),
        ("default: 1.0e-3", "default: 3.0", "space.lr", ["default (3.0) must lie between"]),
        ("default: a", "default: c", "space.kind", ["'c' is not among the choices ['a', 'b']"]),
        ("type: float", "type: flaot", "space.lr.type", ["must be one of 'float', 'int'", "seen: 'flaot'"]),
        ("{type: float,", "{", "space.lr.type", ["is required"]),
        ("choices: [a, b]", "choices: [a, a]", "space.kind.choices", ["'a' is given twice"]),
        ("low: 1.0e-4", "low: .nan", "space.lr.low", ["finite"]),
        ("task: digits", "task: ''", "task", ["''"]),
        (
            "argparse}",
            "argparse, code_source: {root_path: nowhere}}",
            "job.code_source.root_path",
            ["nowhere is not a folder"],
        ),
        ("argparse}", "argparse, parameters: {lr: 1}}", "job.parameters.lr", ["is searched too"]),
        ("budgets:", "fidelity: {parameter: lr, value: 3}\nbudgets:", "fidelity.parameter", ["'lr' is searched"]),
        (
            "budgets:",
            "held_out: {metric: test, parameters: {kind: b}}\nbudgets:",
            "held_out.parameters.kind",
            ["is searched"],
        ),
        ("budgets:", "held_out: {metric: val_accuracy}\nbudgets:", "held_out.metric", ["is the objective itself"]),
        ("  kind:", "  seed:", "space.seed", ["seed is set by nightlab"]),
        ("budgets:", "seeds: {first_racing: 4294967290}\nbudgets:", "seeds.first_racing", ["too large", "2147483648"]),
        ("budgets:", "seeds: {fresh: 2, max_pairs: 4}\nbudgets:", "seeds.max_pairs", ["4 pairs", "at least", "7"]),
        ("budgets:", "trust: {error_budget: 1.0e-300}\nbudgets:", "seeds.max_pairs", ["30 pairs", "error budget"]),
        ("budgets:", "score: {command: ' '}\nbudgets:", "score.command", ["is empty", "' '"]),
        (
            "direction: maximize}",
            "direction: maximize, target: 2.0, valid: {low: 0.0, high: 1.0}}",
            "objective.target",
            ["2 lies outside objective.valid"],
        ),
    ],
)
def test_impossible_values_are_named_with_what_was_seen_and_what_is_allowed(
    old: str, new: str, path: str, parts: list[str], tmp_path: Path
) -> None:
    found_path, message = the_problem(old, new, tmp_path)
    assert found_path == path
    assert all(part in message for part in parts), message


def test_parameters_that_reach_the_script_by_nothing_are_refused(tmp_path: Path) -> None:
    path, message = the_problem(", args_style: argparse", "", tmp_path)
    assert path == "job.args_style"
    assert "passes lr, kind to the command" in message
    path, message = the_problem("python train.py, args_style: argparse", "'python train.py --lr {lr}'", tmp_path)
    assert "passes kind to" in message
    filled = GOOD.replace("python train.py, args_style: argparse", "'python train.py --lr {lr} --kind {kind}'")
    found = problems_of(filled + "fidelity: {parameter: epochs, value: 3}\n", tmp_path)
    assert [path for path, _ in found] == ["job.args_style"]
    assert "epochs" in found[0][1]


@pytest.mark.parametrize(
    "job",
    [
        "{command: python train.py, args_style: none}",
        "{command: 'python train.py --lr {lr} --kind {kind}'}",
        "{command: [python, train.py, '--lr={lr}', '{kind}']}",
        "{command: python train.py --config $HYPERPARAMETERS_PATH}",
    ],
)
def test_parameters_reach_the_script_by_placeholders_or_a_file(job: str, tmp_path: Path) -> None:
    text = GOOD.replace("{command: python train.py, args_style: argparse}", job)
    assert job in text
    assert parse_task(text, source=tmp_path / "task.yaml").job.args_style == "none"


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("direction: maximize", "direction: up").replace("trials: 16", "trials: 0")
    assert {path for path, _ in problems_of(text, tmp_path)} == {"objective.direction", "budgets.trials"}


def test_missing_parts_are_named(tmp_path: Path) -> None:
    assert dict(problems_of("task: x\n", tmp_path))["objective"] == "is required"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (GOOD + "task: again\n", "'task' is given twice"),
        (GOOD.replace("  kind:", "  lr:"), "'lr' is given twice"),
        ("task: [1,\n", "line"),
        ("", "is empty"),
        ("- 1\n- 2\n", "holds a list"),
        ("{? [a]: 1}: 2", "plain value"),
        ("a: &a [*a]\n", "recursive"),
        ("task: !!python/object:os.system x\n", "line"),
    ],
)
def test_text_that_is_no_task_is_refused_with_its_place(text: str, part: str, tmp_path: Path) -> None:
    said = "; ".join(message for _, message in problems_of(text, tmp_path))
    assert part in said


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_files_that_can_not_be_read_say_why(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TaskError) as caught:
        load_task(path)
    assert "can not be read" in str(caught.value)


def test_a_file_with_an_address_lies_beside_the_task_file(tmp_path: Path) -> None:
    text = GOOD + "notify: [{url_file: address}, {url: 'json://a', on: [approval]}]\n"
    beside, plain = parse_task(text, source=tmp_path / "task.yaml").notify
    assert beside.url_file == str(tmp_path.resolve() / "address")
    assert (plain.url, plain.on) == ("json://a", ("approval",))
