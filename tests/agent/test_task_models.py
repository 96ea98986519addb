"""What a task file says of models and of the research brief: paths, room, and who uses what."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.task import BRIEF_CHARACTERS, Task
from agent.task_file import TaskError, parse_task
from agent.thinking.room import beside_prompt, prompt_limit

TASK = """
task: digits
objective: {metric: val_accuracy, direction: maximize}
job: {command: python train.py, args_style: argparse}
space: {lr: {type: float, low: 0.1, high: 0.9, default: 0.5}}
budgets: {trials: 16}
"""
USE = "search: {use: [sampler, model]}\n"


def _parsed(more: str, folder: Path) -> Task:
    return parse_task(TASK + more, source=folder / "task.yaml")


def _problems(more: str, folder: Path) -> list[tuple[str, str]]:
    with pytest.raises(TaskError) as caught:
        _parsed(more, folder)
    return [(problem.path, problem.message) for problem in caught.value.problems]


def test_a_brief_is_a_file_beside_the_task_file_and_its_text_goes_into_the_task(tmp_path: Path) -> None:
    (tmp_path / "brief.md").write_text("\n# Goals\nNo dropout, bitte: kein Zurück.\n", encoding="utf-8")
    assert _parsed("brief: brief.md\n", tmp_path).brief == "# Goals\nNo dropout, bitte: kein Zurück."
    (tmp_path / "elsewhere").mkdir()
    assert _parsed(f"brief: {tmp_path}/brief.md\n", tmp_path / "elsewhere").brief is not None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "can not be read: No such file"),
        (b"", "is empty"),
        (b" \n\t", "is empty"),
        (b"caf\xe9", "is not UTF-8"),
        ("\U0001f600".encode() * (BRIEF_CHARACTERS + 1), "more than 20,000 characters"),
        (b"x" * (BRIEF_CHARACTERS + 1), "more than 20,000 characters"),
        (b"x" * (BRIEF_CHARACTERS * 40), "more than 20,000 characters"),
    ],
)
def test_a_brief_that_can_not_be_used_is_named_with_its_path(content: bytes | None, says: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "b.md").write_bytes(content)
    ((path, message),) = _problems("brief: b.md\n", tmp_path)
    assert path == "brief"
    assert message.startswith(str(tmp_path / "b.md"))
    assert says in message


def test_a_brief_of_just_as_much_as_may_be_is_taken(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("ü" * BRIEF_CHARACTERS, encoding="utf-8")
    assert len(_parsed("brief: b.md\n", tmp_path).brief or "") == BRIEF_CHARACTERS


@pytest.mark.parametrize("name", [".", "a\\0b"])
def test_a_brief_that_is_no_file_is_told(name: str, tmp_path: Path) -> None:
    assert [path for path, _ in _problems(f'brief: "{name}"\n', tmp_path)] == ["brief"]


def test_a_key_file_is_found_beside_the_task_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k")
    model = _parsed(USE + "model: {name: m, key_file: key}\n", tmp_path).model
    assert model is not None
    assert model.key_file == str(tmp_path / "key")
    ((path, message),) = _problems(USE + "model: {name: m, key_file: none}\n", tmp_path)
    assert (path, message.split(";")[0]) == ("model.key_file", f"{tmp_path / 'none'} is not a file")


def test_a_model_that_is_used_has_to_be_named(tmp_path: Path) -> None:
    ((path, message),) = _problems(USE, tmp_path)
    assert path == "model"
    assert "search.use names model; add model: {name: ..., base_url: ...}" in message


def test_a_model_that_only_diagnoses_is_taken(tmp_path: Path) -> None:
    assert _parsed("model: {name: m}\n", tmp_path).model is not None


def test_a_model_may_be_let_out_of_the_space(tmp_path: Path) -> None:
    model = _parsed(USE + "model: {name: m, outside_space: true}\n", tmp_path).model
    assert model is not None
    assert model.outside_space


def test_a_model_that_nothing_would_use_is_refused_with_how_to_use_it(tmp_path: Path) -> None:
    ((path, message),) = _problems("model: {name: m, rung: menu}\n", tmp_path)
    assert path == "model"
    assert message.startswith("nothing would use it")
    assert "use: [sampler, random, refiner, replicator, model]" in message


def test_a_context_without_room_for_a_question_its_form_and_two_answers_is_refused(tmp_path: Path) -> None:
    task = _parsed(USE + "model: {name: m, context_tokens: 6000}\n", tmp_path)
    needed = 1_500 + 2 * 1_024 + beside_prompt(task)
    fitting = _parsed(USE + f"model: {{name: m, context_tokens: {needed}}}\n", tmp_path)
    assert fitting.model is not None
    assert prompt_limit(fitting, fitting.model) == 1_500
    ((path, message),) = _problems(USE + f"model: {{name: m, context_tokens: {needed - 1}}}\n", tmp_path)
    assert path == "model.context_tokens"
    assert f"{needed:,} are needed; lower model.max_tokens to 1,023" in message


def test_answers_too_long_for_the_context_that_is_assumed_are_refused_too(tmp_path: Path) -> None:
    ((path, message),) = _problems(USE + "model: {name: m, max_tokens: 4000}\n", tmp_path)
    assert path == "model.context_tokens"
    assert "8,192 has no room" in message


def test_what_was_read_once_is_a_task_again_without_its_files(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("Be bold.")
    task = _parsed("brief: b.md\n", tmp_path)
    (tmp_path / "b.md").unlink()
    assert Task.model_validate_json(task.model_dump_json()) == task
