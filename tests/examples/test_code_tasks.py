"""The code tasks: their known edits come out as they are said to, and their scorers take no bad answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from code_tasks import CODE, Copy, Failed

from agent.edits import EditRules, apply, objections
from agent.task import Direction
from agent.task_file import load_task

pytestmark = pytest.mark.code


@dataclass(frozen=True)
class Quick:
    """A code task with less training than its file says."""

    name: str
    arguments: tuple[str, ...]
    seeds: tuple[int, ...] = (21, 22, 23)


CHARLM = Quick("charlm", ("--steps", "800"))
SPEED = Quick("speed", ("--steps", "20"), seeds=(21,))
SFT = Quick("sft", ())
PREFERENCE = Quick("preference", ("--steps", "120"))
POLICY = Quick("policy", ("--updates", "150", "--boats", "64"))
TASKS = [CHARLM, SFT, PREFERENCE, POLICY, SPEED]


def values(folder: Path, quick: Quick, patch: Path | None, seeds: tuple[int, ...] = ()) -> list[float]:
    """One for each seed, turned so that higher is better."""
    objective = load_task(CODE / f"{quick.name}.yaml").objective
    sign = 1.0 if objective.direction is Direction.MAXIMIZE else -1.0
    copy = Copy(folder, patch)
    return [sign * copy.value(quick.name, objective.metric, seed, *quick.arguments) for seed in seeds or quick.seeds]


def edit(name: str, start: str) -> Path:
    (found,) = (CODE / name / "edits").glob(f"{start}-*.patch")
    return found


@pytest.mark.parametrize("file", sorted(CODE.glob("*.yaml")), ids=lambda file: file.stem)
def test_task_file_is_valid_and_names_files_that_trials_may_edit(file: Path) -> None:
    task = load_task(file)
    assert task.task == file.stem.replace(".", "-")
    assert task.code is not None
    assert task.job.code_source is not None
    assert Path(task.job.code_source.root_path) == CODE
    assert all((CODE / name).is_file() for name in task.code.editable)
    assert not [name for name in task.code.editable if name.endswith(("train.py", "score.py"))]


@pytest.mark.parametrize("quick", TASKS, ids=lambda quick: quick.name)
def test_every_known_edit_is_one_that_a_session_takes(quick: Quick) -> None:
    task = load_task(CODE / f"{quick.name}.yaml")
    assert task.code is not None
    sources = {name: (CODE / name).read_bytes() for name in task.code.editable}
    rules = EditRules(editable=task.code.editable, max_changed_lines=task.code.max_changed_lines)
    for kind in ("good-1", "good-2", "good-3", "bad-1", "bad-2", "bad-3"):
        changed = apply(edit(quick.name, kind).read_text(), sources, rules)
        assert changed
        assert not objections(changed, sources, rules)


def test_a_good_edit_is_better_than_the_default_and_a_bad_one_worse(tmp_path: Path) -> None:
    (default,) = values(tmp_path / "default", CHARLM, None, (21,))
    (good,) = values(tmp_path / "good", CHARLM, edit("charlm", "good-1"), (21,))
    (bad,) = values(tmp_path / "bad", CHARLM, edit("charlm", "bad-1"), (21,))
    assert good > default > bad


def test_an_edit_that_breaks_the_model_ends_the_training(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="gelu"):
        values(tmp_path / "broken", CHARLM, edit("charlm", "bad-2"), (21,))


def test_a_fast_answer_that_is_wrong_is_not_scored(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="off by"):
        values(tmp_path / "wrong", SPEED, edit("speed", "bad-3"), (21,))


def test_a_model_that_answers_nan_is_not_scored(tmp_path: Path) -> None:
    copy = Copy(tmp_path / "nan")
    copy.train("charlm", 0, "--steps", "1")
    with np.load(copy.folder / "model.npz") as left:
        weights = {name: left[name] for name in left.files}
    np.savez(copy.folder / "model.npz", **{**weights, "out_bias": np.full_like(weights["out_bias"], np.nan)})
    with pytest.raises(Failed, match="not scored"):
        copy.score("charlm", "bits_per_character")


def test_the_same_seed_gives_the_same_model_and_another_one_does_not(tmp_path: Path) -> None:
    copy = Copy(tmp_path / "copy")
    left = []
    for seed in (1, 1, 2):
        copy.train("charlm", seed, "--steps", "20")
        with np.load(copy.folder / "model.npz") as model:
            left.append({name: model[name].tolist() for name in model.files})
    assert left[0] == left[1] != left[2]


@pytest.mark.parametrize("task", ["charlm", "sft", "preference"])
def test_the_data_are_what_their_script_writes(task: str, tmp_path: Path) -> None:
    copy = Copy(tmp_path / "copy")
    copy.make_data(task)
    files = [file for part in ("data", "private") for file in sorted((CODE / task / part).iterdir())]
    assert len(files) == 3
    for file in files:
        assert (copy.folder / file.relative_to(CODE)).read_bytes() == file.read_bytes()


@pytest.mark.acceptance
@pytest.mark.parametrize("quick", TASKS, ids=lambda quick: quick.name)
def test_every_good_edit_is_better_on_fresh_seeds_and_the_bad_one_worse(quick: Quick, tmp_path: Path) -> None:
    def mean(kind: str) -> float:
        return fmean(values(tmp_path / kind, quick, None if kind == "default" else edit(quick.name, kind)))

    kinds = ("default", "good-1", "good-2", "good-3", "bad-1")
    with ThreadPoolExecutor(max_workers=2) as pool:
        found = dict(zip(kinds, pool.map(mean, kinds), strict=True))
    assert min(found["good-1"], found["good-2"], found["good-3"]) > found["default"] > found["bad-1"], found
