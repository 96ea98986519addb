"""A checkpoint is there whole or not at all, whatever happens while it is written."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime_client.training.checkpoints import Checkpoints
from runtime_client.training.manifest import complete_in, folder_name, is_complete
from runtime_client.training.process_context import Context, context_from


def job(folder: Path, *, resume: bool = True) -> Context:
    """The facts of an attempt of a job that keeps its checkpoints there, as the server would state them."""
    found = {"NIGHTLAB_JOB_ID": "j1", "NIGHTLAB_CHECKPOINT_DIR": str(folder)}
    newest = next((path for _, path in complete_in(folder)), None)
    if newest is not None and resume:
        found["NIGHTLAB_RESUME_FROM"] = str(newest)
    return context_from(found, default_dir=folder)


def checkpoints(folder: Path, keep: int = 2) -> Checkpoints:
    return Checkpoints(keep=keep, of=job(folder))


def steps(folder: Path) -> list[int]:
    return [step for step, _ in complete_in(folder)]


def test_any_object_comes_back(tmp_path: Path) -> None:
    value = {"weights": [1.5, float("inf")], "done": (3, {4})}
    checkpoints(tmp_path).save(3, value)
    saved = checkpoints(tmp_path).restore()
    assert saved is not None
    assert (saved.step, saved.value) == (3, value)


def test_a_folder_that_a_function_writes_comes_back(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "deep").mkdir()
        (folder / "deep" / "weights").write_bytes(b"12345")

    checkpoints(tmp_path).save(1, write=write)
    saved = checkpoints(tmp_path).restore(read=lambda folder: (folder / "deep" / "weights").read_bytes())
    assert saved is not None
    assert saved.value == b"12345"
    assert json.loads((saved.folder / "COMPLETE").read_text()) == {"step": 1, "files": {"deep/weights": 5}}


def test_without_a_checkpoint_training_begins_from_nothing(tmp_path: Path) -> None:
    assert checkpoints(tmp_path / "none").restore() is None


def test_outside_a_job_nothing_is_resumed_unless_it_is_named(tmp_path: Path) -> None:
    checkpoints(tmp_path).save(1, "old")
    outside = context_from({}, default_dir=tmp_path)
    assert Checkpoints(of=outside).restore() is None
    named = context_from({"NIGHTLAB_RESUME_FROM": str(tmp_path / "step-1")}, default_dir=tmp_path)
    saved = Checkpoints(of=named).restore()
    assert saved is not None
    assert saved.value == "old"


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_the_newest_few_are_kept(keep: int, tmp_path: Path) -> None:
    kept = checkpoints(tmp_path, keep=keep)
    for step in range(1, 6):
        kept.save(step, step)
    assert steps(tmp_path) == [5, 4, 3][:keep]


def test_torn_ones_do_not_count_among_those_that_are_kept(tmp_path: Path) -> None:
    kept = checkpoints(tmp_path, keep=2)
    for step in (1, 2):
        kept.save(step, step)
    (tmp_path / "step-2" / "state.pickle").unlink()
    kept.save(3, 3)
    assert steps(tmp_path) == [3, 1]


def test_keeping_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="keep=0"):
        Checkpoints(tmp_path, keep=0)


@pytest.mark.parametrize("step", [-1, 1.5, True, "3", 10**18])
def test_a_step_is_a_whole_number(step: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="whole number"):
        checkpoints(tmp_path).save(step, None)


def test_a_step_saved_twice_is_left_as_it_is(tmp_path: Path) -> None:
    kept = checkpoints(tmp_path)
    kept.save(1, "first")
    kept.save(1, "second")
    saved = checkpoints(tmp_path).restore()
    assert saved is not None
    assert saved.value == "first"


def cut_short(folder: Path) -> None:
    (folder / "state.pickle").write_bytes((folder / "state.pickle").read_bytes()[:-1])


def grown(folder: Path) -> None:
    with (folder / "state.pickle").open("ab") as file:
        file.write(b"x")


def lost(folder: Path) -> None:
    (folder / "state.pickle").unlink()


def linked_out(folder: Path) -> None:
    (folder / "state.pickle").rename(folder.parent / "elsewhere")
    (folder / "state.pickle").symlink_to(folder.parent / "elsewhere")


def half_a_marker(folder: Path) -> None:
    (folder / "COMPLETE").write_bytes((folder / "COMPLETE").read_bytes()[:-3])


def no_marker(folder: Path) -> None:
    (folder / "COMPLETE").unlink()


def linked_marker(folder: Path) -> None:
    (folder / "COMPLETE").rename(folder.parent / "marker")
    (folder / "COMPLETE").symlink_to(folder.parent / "marker")


@pytest.mark.parametrize(
    "tear", [cut_short, grown, lost, linked_out, half_a_marker, no_marker, linked_marker], ids=lambda f: f.__name__
)
def test_a_torn_one_is_skipped_for_the_one_before(tear: Callable[[Path], None], tmp_path: Path) -> None:
    kept = checkpoints(tmp_path)
    kept.save(1, "good")
    kept.save(2, "torn")
    tear(tmp_path / "step-2")
    assert not is_complete(tmp_path / "step-2")
    told_of_it = context_from(
        {"NIGHTLAB_JOB_ID": "j1", "NIGHTLAB_RESUME_FROM": str(tmp_path / "step-2")}, default_dir=tmp_path
    )
    saved = Checkpoints(tmp_path, of=told_of_it).restore()
    assert saved is not None
    assert saved.value == "good"


@pytest.mark.parametrize("text", ["", "done", "2026-01-01", '{"loss": 0.1}', "[1]"])
def test_a_marker_of_another_writer_says_complete_whatever_it_holds(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "step-4"
    folder.mkdir()
    (folder / "COMPLETE").write_text(text)
    assert is_complete(folder)


def test_one_that_looks_whole_and_can_not_be_read_is_set_aside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = checkpoints(tmp_path)
    kept.save(1, "good")
    kept.save(2, write=lambda folder: (folder / "state.pickle").write_bytes(b"no pickle"))
    saved = checkpoints(tmp_path).restore()
    assert saved is not None
    assert saved.value == "good"
    assert "step-2 can not be read" in capsys.readouterr().err
    assert steps(tmp_path) == [1], "the server must not choose it again"


def test_asking_for_an_object_where_files_were_written_is_a_mistake_and_harms_nothing(tmp_path: Path) -> None:
    checkpoints(tmp_path).save(1, write=lambda folder: (folder / "weights").write_bytes(b"1"))
    with pytest.raises(ValueError, match="read="):
        checkpoints(tmp_path).restore()
    assert steps(tmp_path) == [1]


def test_code_that_changed_is_the_scripts_end_and_not_the_checkpoints(tmp_path: Path) -> None:
    checkpoints(tmp_path).save(1, write=lambda folder: (folder / "state.pickle").write_bytes(b"cno_such_module\nX\n."))
    with pytest.raises(ModuleNotFoundError):
        checkpoints(tmp_path).restore()
    assert steps(tmp_path) == [1]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_loses_nothing_that_was_there(number: int, tmp_path: Path) -> None:
    kept = checkpoints(tmp_path, keep=1)
    kept.save(1, "good")

    def write(folder: Path) -> None:
        (folder / "weights").write_bytes(b"1" * 1000)
        raise OSError(number, os.strerror(number))

    with pytest.raises(OSError, match=os.strerror(number)):
        kept.save(2, write=write)
    assert steps(tmp_path) == [1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-1"], "what was half written takes no room"


def crash_after(n_calls: int, work: Callable[[], object]) -> bool:
    """Do it in a child process that ends at once, as by SIGKILL, after so many system calls; whether it got through."""
    pid = os.fork()
    if pid == 0:
        left = [n_calls]

        def dying(call: Callable[..., Any]) -> Callable[..., Any]:
            def wrapped(*args: Any, **named: Any) -> Any:
                if left[0] == 0:
                    os._exit(99)
                left[0] -= 1
                return call(*args, **named)

            return wrapped

        for name in ("open", "rename", "fsync", "unlink", "rmdir", "mkdir", "close"):
            setattr(os, name, dying(getattr(os, name)))
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_process_killed_at_any_moment_leaves_a_good_checkpoint(tmp_path: Path) -> None:
    n_calls, got_through = 0, False
    while not got_through:
        folder = tmp_path / str(n_calls)
        checkpoints(folder, keep=1).save(1, "old")
        got_through = crash_after(n_calls, lambda: checkpoints(folder, keep=1).save(2, "new"))  # noqa: B023
        saved = checkpoints(folder).restore()
        assert saved is not None, f"nothing left after {n_calls} calls"
        assert saved.value == {1: "old", 2: "new"}[saved.step]
        checkpoints(folder, keep=1).save(3, "next")
        assert [path.name for path in folder.iterdir()] == [folder_name(3)], f"leftovers after {n_calls} calls"
        n_calls += 1
    assert n_calls > 10, "the crash was not tried at many points"
