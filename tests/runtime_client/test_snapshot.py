"""Code snapshots: what belongs to one, when it is the same one, and what a job finds of it."""

from __future__ import annotations

import os
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from runtime_client.snapshot import CodeStore, SnapshotMissing, SnapshotRefused, unpack
from runtime_client.snapshot.tree import walk


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    write(folder, {"train.py": "print(1)\n", "pkg/__init__.py": "", "pkg/net.py": "x = 1\n"})
    return folder


@pytest.fixture
def repository(root: Path) -> Path:
    write(root, {".gitignore": "data/\n*.log\n", "data/big.bin": "x" * 100, "pkg/old.log": "l"})
    git(root, "init", "-q", "-b", "main")
    commit(root)
    return root


@pytest.fixture
def store(tmp_path: Path) -> CodeStore:
    return CodeStore(tmp_path / "store")


@pytest.fixture
def without_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def write(folder: Path, contents: dict[str, str]) -> None:
    for name, text in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=e@localhost", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "m")


def unpacked(store: CodeStore, root: Path) -> Path:
    work = store.folder.parent / f"work-{time.monotonic_ns()}"
    unpack(store.folder, store.take(root).snapshot_id, work)
    return work


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def age(folder: Path) -> None:
    """Until the file system's clock has moved on, so that nothing in the folder counts as changed just now."""
    deadline = time.monotonic() + 5
    probe = folder.parent / "probe"
    began = time.time_ns()
    while time.monotonic() < deadline:
        probe.write_text("")
        if probe.stat().st_mtime_ns > began + 100_000_000:
            return
    raise AssertionError("the clock of the file system stands still")


def test_a_repository_gives_tracked_and_new_files_and_links_what_it_ignores(store: CodeStore, repository: Path) -> None:
    write(repository, {"new.py": "n"})
    (repository / "pkg" / "net.py").write_text("x = 2\n")
    work = unpacked(store, repository)
    assert contents(work) == {
        ".gitignore": "data/\n*.log\n", "new.py": "n", "pkg/__init__.py": "", "pkg/net.py": "x = 2\n",
        "train.py": "print(1)\n",
    }  # fmt: skip
    assert (work / "data").is_symlink()
    assert (work / "data" / "big.bin").read_text() == "x" * 100
    assert (work / "pkg" / "old.log").is_symlink()


def test_without_git_the_ignore_files_of_all_folders_hold(store: CodeStore, root: Path, without_git: None) -> None:
    write(root, {".gitignore": "*.bin\n", "a.bin": "", "pkg/.gitignore": "!keep.bin\nout/\n", "pkg/keep.bin": "k",
                 "pkg/out/o.txt": "o", "__pycache__/c.pyc": "c", ".venv/lib.py": "v"})  # fmt: skip
    work = unpacked(store, root)
    assert set(contents(work)) == {
        ".gitignore", "pkg/.gitignore", "pkg/keep.bin", "pkg/__init__.py", "pkg/net.py", "train.py",
    }  # fmt: skip
    assert (work / "pkg" / "out" / "o.txt").read_text() == "o"
    assert (work / ".venv").is_symlink()
    assert not (work / "__pycache__").exists()
    assert store.take(root).commit is None


def test_an_unchanged_folder_is_known_again_without_asking_git(
    tmp_path: Path, repository: Path, store: CodeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    age(repository)
    first = store.take(repository)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert store.take(repository) == first
    assert CodeStore(tmp_path / "store").take(repository) == first
    assert first.commit is not None


def test_the_same_code_has_the_same_snapshot_also_when_it_is_read_anew(
    tmp_path: Path, store: CodeStore, root: Path
) -> None:
    first = store.take(root)
    (root / "train.py").touch()
    assert store.take(root).snapshot_id == first.snapshot_id
    assert len(list((tmp_path / "store").glob("*.tar"))) == 1


def _same_size_and_time(root: Path) -> None:
    path = root / "train.py"
    before = path.stat()
    path.write_text("print(2)\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _other_mode(root: Path) -> None:
    (root / "train.py").chmod(0o755)


def _in_an_empty_folder(root: Path) -> None:
    write(root, {"empty/new.py": "n"})


def _removed(root: Path) -> None:
    (root / "pkg" / "net.py").unlink()


def _rule_outside_of_the_tree(root: Path) -> None:
    write(root, {".git/info/exclude": "net.py\ntrain.py\n*.py\n"})
    git(root, "rm", "-q", "--cached", "train.py")


@pytest.mark.parametrize(
    "change", [_same_size_and_time, _other_mode, _in_an_empty_folder, _removed, _rule_outside_of_the_tree]
)
def test_every_change_of_the_code_makes_another_snapshot(
    store: CodeStore, repository: Path, change: object, tmp_path: Path
) -> None:
    (repository / "empty").mkdir()
    age(repository)
    before = store.take(repository)
    assert callable(change)
    change(repository)
    assert store.take(repository).snapshot_id != before.snapshot_id


def test_a_change_right_after_a_snapshot_is_seen(store: CodeStore, root: Path) -> None:
    seen = set()
    for number in range(20):
        (root / "train.py").write_text(f"{number:08d}")
        seen.add(store.take(root).snapshot_id)
    assert len(seen) == 20


def test_the_commit_is_recorded_and_uncommitted_changes_are_kept_as_a_patch(
    store: CodeStore, repository: Path, tmp_path: Path
) -> None:
    clean = store.take(repository).commit
    assert clean is not None
    assert (clean.branch, clean.is_dirty) == ("main", False)
    (repository / "train.py").write_text("print(3)\n")
    dirty = store.take(repository)
    assert dirty.commit is not None
    assert (dirty.commit.commit, dirty.commit.is_dirty) == (clean.commit, True)
    (patch,) = (tmp_path / "store").glob(f"{dirty.snapshot_id}.*.diff")
    assert "+print(3)" in patch.read_text()
    commit(repository)
    after = store.take(repository).commit
    assert after is not None
    assert after.commit != clean.commit
    assert not after.is_dirty


@pytest.mark.parametrize("has_git", [True, False])
def test_a_home_below_the_code_is_no_code(root: Path, repository: Path, has_git: bool) -> None:
    """It grows with every job, and would be taken again and again."""
    place = repository if has_git else root
    home = place / "runs" / "home"
    (home / "attempts" / "j1").mkdir(parents=True)
    (home / "attempts" / "j1" / "weights").write_bytes(b"x" * 1000)
    store = CodeStore(home / "code")
    before = store.take(place)
    (home / "attempts" / "j1" / "more").write_bytes(b"x" * 1000)
    assert CodeStore(home / "code").take(place) == before
    assert "weights" not in " ".join(walk(place, left_out=frozenset({str(home)})).files)
    assert "runs/home/attempts/j1/weights" in walk(place).files


def test_a_folder_inside_a_repository_is_taken_alone(store: CodeStore, repository: Path) -> None:
    write(repository, {"pkg/data/d.txt": "d"})
    work = unpacked(store, repository / "pkg")
    assert set(contents(work)) == {"__init__.py", "net.py"}
    assert (work / "data").is_symlink()


def test_a_submodule_is_taken_with_its_files(store: CodeStore, repository: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    write(inner, {"lib.py": "l"})
    git(inner, "init", "-q")
    commit(inner)
    git(repository, "submodule", "add", "-q", str(inner), "third")
    assert contents(unpacked(store, repository))["third/lib.py"] == "l"


def test_links_stay_links_and_those_that_leave_the_folder_still_lead_there(store: CodeStore, root: Path) -> None:
    write(root.parent, {"shared/s.txt": "s"})
    (root / "inside").symlink_to("train.py")
    (root / "pkg" / "outside").symlink_to("../../shared/s.txt")
    work = unpacked(store, root)
    assert os.readlink(work / "inside") == "train.py"
    assert (work / "pkg" / "outside").read_text() == "s"


def test_what_may_be_executed_stays_so(store: CodeStore, root: Path) -> None:
    (root / "train.py").chmod(0o755)
    work = unpacked(store, root)
    assert os.access(work / "train.py", os.X_OK)
    assert not os.access(work / "pkg" / "net.py", os.X_OK)


def test_a_copy_is_the_jobs_own(store: CodeStore, root: Path) -> None:
    (unpacked(store, root) / "train.py").write_text("spoilt")
    assert (unpacked(store, root) / "train.py").read_text() == "print(1)\n"


def test_the_archive_is_a_tar_that_every_tar_reads(store: CodeStore, root: Path, tmp_path: Path) -> None:
    snapshot = store.take(root)
    with tarfile.open(tmp_path / "store" / f"{snapshot.snapshot_id}.tar") as archive:
        member = archive.extractfile("pkg/net.py")
        assert member is not None
        assert member.read() == b"x = 1\n"


def test_too_much_is_refused_with_the_largest_files_and_what_to_do(store: CodeStore, root: Path) -> None:
    (root / "weights.bin").write_bytes(b"w" * 1_500_000)
    with pytest.raises(SnapshotRefused, match=r"2 MB.*limit is 1 MB.*weights\.bin \(1\.5 MB\).*snapshot_limit_mb"):
        store.take(root, limit_mb=1)


def test_what_git_ignores_does_not_count(store: CodeStore, repository: Path) -> None:
    (repository / "data" / "weights.bin").write_bytes(b"w" * 1_500_000)
    store.take(repository, limit_mb=1)


def test_no_folder_is_refused(store: CodeStore, tmp_path: Path) -> None:
    with pytest.raises(SnapshotRefused, match="not a folder"):
        store.take(tmp_path / "none")


@pytest.mark.parametrize("damage", ["removed", "cut"])
def test_a_damaged_store_is_said_and_leaves_no_half_copy(
    store: CodeStore, root: Path, tmp_path: Path, damage: str
) -> None:
    snapshot = store.take(root)
    archive = tmp_path / "store" / f"{snapshot.snapshot_id}.tar"
    if damage == "removed":
        archive.unlink()
    else:
        os.truncate(archive, 600)
    with pytest.raises(SnapshotMissing, match="Submit the job again"):
        unpack(tmp_path / "store", snapshot.snapshot_id, tmp_path / "work")
    assert not (tmp_path / "work").exists()
    assert not list(tmp_path.glob("work.*"))


def test_a_removed_archive_is_made_again(store: CodeStore, root: Path, tmp_path: Path) -> None:
    age(root)
    snapshot = store.take(root)
    for path in (tmp_path / "store").glob(f"{snapshot.snapshot_id}.*"):
        path.unlink()
    assert store.take(root) == snapshot
    assert contents(unpacked(store, root))["train.py"] == "print(1)\n"


def test_names_that_are_no_text_survive(store: CodeStore, root: Path) -> None:
    (root / os.fsdecode(b"caf\xe9.txt")).write_text("c")
    work = unpacked(store, root)
    assert (work / os.fsdecode(b"caf\xe9.txt")).read_text() == "c"


@pytest.mark.parametrize("has_git", [True, False])
def test_what_is_left_out_is_neither_copied_nor_linked(
    store: CodeStore, root: Path, has_git: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        root, {".gitignore": "data\n", "data/train.txt": "t", "data/test.txt": "secret", "score.py": "s", "held/x": "y"}
    )
    (root / "alias.py").symlink_to("score.py")
    if has_git:
        git(root, "init", "-q", "-b", "main")
        commit(root)
    else:
        monkeypatch.setenv("PATH", str(root / "nothing"))
    without = ("score.py", "data/test.txt", "held")
    snapshot = store.take(root, without=without)
    work = store.folder.parent / "work"
    unpack(store.folder, snapshot.snapshot_id, work)
    found = {str(path.relative_to(work)) for path in work.rglob("*")}
    assert found == {".gitignore", "train.py", "pkg", "pkg/__init__.py", "pkg/net.py", "data", "data/train.txt"}
    assert (work / "data" / "train.txt").is_symlink()
    assert store.take(root).snapshot_id != snapshot.snapshot_id
    assert store.take(root, without=without).snapshot_id == snapshot.snapshot_id


def test_a_file_that_appears_beside_what_is_left_out_is_linked_too(store: CodeStore, repository: Path) -> None:
    write(repository, {"data/test.txt": "secret"})
    before = store.take(repository, without=("data/test.txt",))
    age(repository)
    write(repository, {"data/more.bin": "m"})
    assert store.take(repository, without=("data/test.txt",)).snapshot_id != before.snapshot_id
