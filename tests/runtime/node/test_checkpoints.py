"""Which checkpoint is the newest that counts."""

from __future__ import annotations

from pathlib import Path

from runtime.node.checkpoints import newest_complete


def checkpoint(folder: Path, name: str, *, is_complete: bool = True) -> None:
    (folder / name).mkdir(parents=True)
    if is_complete:
        (folder / name / "COMPLETE").touch()


def test_no_folder_means_no_checkpoint(tmp_path: Path) -> None:
    assert newest_complete(tmp_path / "none") is None


def test_steps_are_compared_as_numbers(tmp_path: Path) -> None:
    for name in ("step-9", "step-10", "step-0008"):
        checkpoint(tmp_path, name)
    assert newest_complete(tmp_path) == (10, tmp_path / "step-10")


def test_torn_ones_are_skipped(tmp_path: Path) -> None:
    checkpoint(tmp_path, "step-1")
    checkpoint(tmp_path, "step-2", is_complete=False)
    assert newest_complete(tmp_path) == (1, tmp_path / "step-1")


def test_other_names_do_not_count(tmp_path: Path) -> None:
    for name in ("step-", "step-x", "step-3.tmp", "latest", "step--4"):
        checkpoint(tmp_path, name)
    (tmp_path / "step-5").touch()
    assert newest_complete(tmp_path) is None
