"""What would make a verdict untrustworthy is refused in the task file, with what to change."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_task_file import GOOD, problems_of

from agent.task_file import parse_task

SPEED = GOOD.replace("maximize}", "maximize, kind: speed}")


@pytest.mark.parametrize(
    ("more", "path", "part"),
    [
        ("seeds: {first_racing: 990}", "seeds.first_racing", "(990 to 1049) meet those of the end (1000 to 1029)"),
        ("seeds: {first_racing: 1029}", "seeds.first_racing", "which nothing may have touched"),
        ("seeds: {search: 1029}", "seeds.search", "from seeds.first_fresh on (1000 to 1029)"),
        ("seeds: {search: 100}", "seeds.search", "from seeds.first_racing on (100 to 159)"),
        ("seeds: {fresh: 12, max_pairs: 11}", "seeds.max_pairs", "11 is less than seeds.fresh (12)"),
        ("data: [{path: nowhere}]", "data.0.path", "does not exist; what is not reachable from here is named by"),
        ("data: [{path: .}, {path: ./}]", "data.1.path", "is given twice (data.0)"),
        ("data: [{path: ., fingerprint: label}]", "data.0", "label is needed with fingerprint: label"),
    ],
)
def test_seeds_that_meet_and_data_that_is_not_there_are_refused(
    more: str, path: str, part: str, tmp_path: Path
) -> None:
    (found,) = problems_of(f"{GOOD}{more}\n", tmp_path)
    assert found[0] == path
    assert part in found[1]


@pytest.mark.parametrize("more", ["seeds: {first_racing: 1030}", "seeds: {first_racing: 940}", "seeds: {search: 999}"])
def test_seeds_that_do_not_meet_are_taken(more: str, tmp_path: Path) -> None:
    parse_task(f"{GOOD}{more}\n", source=tmp_path / "task.yaml")


def test_relative_data_is_resolved_against_the_file_and_a_labelled_address_is_not(tmp_path: Path) -> None:
    (tmp_path / "train.bin").touch()
    more = "data: [{path: train.bin}, {path: 's3://b/c', fingerprint: label, label: v3}]\n"
    task = parse_task(GOOD + more, source=tmp_path / "task.yaml")
    assert [source.path for source in task.data] == [str(tmp_path.resolve() / "train.bin"), "s3://b/c"]


def test_a_gain_that_no_trial_could_make_is_not_asked_for(tmp_path: Path) -> None:
    objective = "maximize, valid: {low: 0, high: 1}, min_effect: 1}"
    (found,) = problems_of(GOOD.replace("maximize}", objective), tmp_path)
    assert found[0] == "objective.min_effect"


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("args_style: argparse}", "args_style: argparse, compute: {accelerator_share: 0.5}}", "job.compute"),
        ("budgets:", "score: {command: python s.py, compute: {accelerator_share: 0.5}}\nbudgets:", "score.compute"),
    ],
)
def test_a_speed_is_not_measured_on_a_share_of_a_device(old: str, new: str, path: str, tmp_path: Path) -> None:
    (found,) = problems_of(SPEED.replace(old, new), tmp_path)
    assert found[0] == f"{path}.accelerator_share"
    parse_task(GOOD.replace(old, new), source=tmp_path / "task.yaml")


def test_a_scorer_needs_trials_that_work_in_folders_of_their_own(tmp_path: Path) -> None:
    scored = GOOD + "score: {command: python score.py}\n"
    parse_task(scored, source=tmp_path / "task.yaml")
    code = "code_source: {root_path: ., snapshot: off}}"
    (found,) = problems_of(scored.replace("argparse}", f"argparse, {code}"), tmp_path)
    assert found[0] == "job.code_source.snapshot"


@pytest.mark.parametrize("use", ["[]", "[replicator]"])
def test_a_search_without_anybody_who_suggests_is_refused(use: str, tmp_path: Path) -> None:
    (found,) = problems_of(GOOD + f"search: {{use: {use}}}\n", tmp_path)
    assert found[0] == "search"
    assert "sampler, random, refiner" in found[1]
