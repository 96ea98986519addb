"""Fingerprints of data: what changes them, what does not, and how often a dear one is taken."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.data import WALK_EVERY_S, DataFingerprints
from agent.planner.comparable import UNREADABLE
from agent.task import DataSource


def fingerprint(path: Path, kind: str = "manifest") -> str:
    source = DataSource.model_validate({"path": str(path), "fingerprint": kind})
    text = DataFingerprints(sources=[source]).look().text
    assert text is not None
    return text


def a_tree(root: Path) -> Path:
    (root / "train" / "deep").mkdir(parents=True)
    (root / "train" / "a.bin").write_bytes(b"one")
    (root / "train" / "deep" / "b.bin").write_bytes(b"two")
    for path in root.rglob("*"):
        os.utime(path, (1, 1))
    return root


def add(root: Path) -> None:
    (root / "train" / "c.bin").write_bytes(b"")


def remove(root: Path) -> None:
    (root / "train" / "a.bin").unlink()


def rename(root: Path) -> None:
    (root / "train" / "a.bin").rename(root / "train" / "z.bin")


def touch(root: Path) -> None:
    os.utime(root / "train" / "deep" / "b.bin", ns=(1_000_000_000, 1_000_000_001))


def add_folder(root: Path) -> None:
    (root / "empty").mkdir()


@pytest.mark.parametrize("change", [add, remove, rename, touch, add_folder])
def test_a_manifest_sees_names_sizes_and_times(change: Callable[[Path], None], tmp_path: Path) -> None:
    root = a_tree(tmp_path)
    before = fingerprint(root)
    assert fingerprint(root) == before
    change(root)
    assert fingerprint(root) != before


def test_equal_trees_in_other_places_have_one_manifest_whatever_the_order_of_creation(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    names = [f"{n}.bin" for n in range(50)]
    for root, order in ((one, names), (other, names[::-1])):
        root.mkdir()
        for name in order:
            (root / name).write_bytes(name.encode())
            os.utime(root / name, (1, 1))
    assert fingerprint(one) == fingerprint(other)


def test_sha256_sees_bytes_that_a_manifest_does_not_and_no_touch(tmp_path: Path) -> None:
    root = a_tree(tmp_path)
    manifest, whole = fingerprint(root), fingerprint(root, "sha256")
    (root / "train" / "a.bin").write_bytes(b"eno")
    os.utime(root / "train" / "a.bin", (1, 1))
    assert fingerprint(root) == manifest
    assert fingerprint(root, "sha256") != whole
    (root / "train" / "a.bin").write_bytes(b"one")
    assert fingerprint(root, "sha256") == whole


def test_sha256_reads_a_file_again_once_it_was_written_to(tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(b"one")
    data = DataFingerprints(sources=[DataSource(path=str(file), fingerprint="sha256")])
    before = data.look().text
    assert data.look().text == before
    file.write_bytes(b"another")
    assert data.look().text != before


def test_data_behind_links_counts_and_a_loop_of_links_ends(tmp_path: Path) -> None:
    outside = a_tree(tmp_path / "outside")
    root = tmp_path / "root"
    root.mkdir()
    (root / "data").symlink_to(outside)
    (root / "again").symlink_to(root)
    before = fingerprint(root)
    touch(outside)
    assert fingerprint(root) != before


def test_a_link_to_nothing_and_a_missing_source_are_named(tmp_path: Path) -> None:
    root = a_tree(tmp_path / "root")
    (root / "gone").symlink_to(tmp_path / "nowhere")
    sources = [DataSource(path=str(root)), DataSource(path=str(tmp_path / "missing"))]
    look = DataFingerprints(sources=sources).look()
    assert look.text is not None
    assert look.text.split()[1] == UNREADABLE
    assert [str(root / "gone") in problem for problem in look.problems] == [True, False]
    assert "missing" in look.problems[1]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    root = a_tree(tmp_path)
    (root / "train" / "deep").chmod(0)
    look = DataFingerprints(sources=[DataSource(path=str(root))]).look()
    (root / "train" / "deep").chmod(0o700)
    assert "deep" in look.problems[0]


def test_a_label_is_taken_at_its_word() -> None:
    data = DataFingerprints(sources=[DataSource(path="s3://far", fingerprint="label", label="v3 of May")])
    assert data.look().text == "label:v3%20of%20May"


def test_without_sources_there_is_no_fingerprint() -> None:
    assert DataFingerprints().look().text is None


class DearClock:
    """Every look at it costs some seconds."""

    def __init__(self, cost_s: float) -> None:
        self.now, self.cost_s = 0.0, cost_s

    def __call__(self) -> float:
        self.now += self.cost_s
        return self.now


def test_a_dear_look_is_taken_once_a_minute_unless_it_must_be_fresh(tmp_path: Path) -> None:
    clock = DearClock(0.1)
    data = DataFingerprints(sources=[DataSource(path=str(a_tree(tmp_path)))], monotonic=clock)
    first = data.look()
    add(tmp_path)
    again = data.look()
    assert (first.is_fresh, again.is_fresh, again.text == first.text) == (True, False, True)
    fresh = data.look(must_be_fresh=True)
    assert fresh.is_fresh
    assert fresh.text != first.text
    clock.now += WALK_EVERY_S
    assert data.look().is_fresh


def test_a_cheap_look_is_always_fresh(tmp_path: Path) -> None:
    data = DataFingerprints(sources=[DataSource(path=str(a_tree(tmp_path)))], monotonic=DearClock(0.001))
    assert [data.look().is_fresh for _ in range(3)] == [True] * 3
