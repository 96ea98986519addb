"""What training left is read where it is a plain file, and refused with the reason where it is anything else."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from runtime_client.scoring import NotUsable, read_left, training_folder


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NIGHTLAB_AFTER_FOLDERS", str(tmp_path / "j1"))
    made = tmp_path / "j1" / "work"
    made.mkdir(parents=True)
    (tmp_path / "private.npy").write_bytes(b"the answers")
    return made


def test_a_plain_file_is_read(work: Path) -> None:
    (work / "model.npz").write_bytes(b"weights")
    assert read_left("work/model.npz", most_bytes=7) == b"weights"
    assert training_folder() == work.parent


def test_a_link_to_private_data_is_not_followed(work: Path) -> None:
    (work / "predictions.npy").symlink_to(work.parents[1] / "private.npy")
    with pytest.raises(NotUsable, match="is a link"):
        read_left("work/predictions.npy")


def test_a_folder_that_is_a_link_is_not_followed(work: Path) -> None:
    (work / "out").symlink_to(work.parents[1])
    with pytest.raises(NotUsable, match="is a link"):
        read_left("work/out/private.npy")


def test_a_pipe_does_not_hold_the_scorer_up(work: Path) -> None:
    os.mkfifo(work / "model.npz")
    with pytest.raises(NotUsable, match="no plain file"):
        read_left("work/model.npz")


def test_a_socket_is_refused(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work)  # Names of sockets are short.
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("model.npz")
    with pytest.raises(NotUsable, match="can be read"):
        read_left("work/model.npz")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a device")
def test_a_device_is_refused(work: Path) -> None:
    try:
        os.mknod(work / "model.npz", 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this container makes no devices")
    with pytest.raises(NotUsable, match=r"no plain file|can be read"):
        read_left("work/model.npz")


def test_a_huge_file_is_refused_unread(work: Path) -> None:
    with (work / "model.npz").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(NotUsable, match=f"has {2**40} bytes, and {2**28} are allowed"):
        read_left("work/model.npz")


def test_what_is_not_there_is_told(work: Path) -> None:
    with pytest.raises(NotUsable, match=r"no work/model.npz that can be read: No such file"):
        read_left("work/model.npz")
    (work / "model.npz").mkdir()
    with pytest.raises(NotUsable, match="no plain file"):
        read_left("work/model.npz")


@pytest.mark.parametrize("path", ["/etc/passwd", "../private.npy", "work/../../private.npy", ""])
def test_a_path_elsewhere_is_wrong_use(work: Path, path: str) -> None:
    with pytest.raises(ValueError, match="below the training's folder"):
        read_left(path)


def test_outside_of_a_scorer_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTLAB_AFTER_FOLDERS", raising=False)
    with pytest.raises(ValueError, match="NIGHTLAB_AFTER_FOLDERS"):
        training_folder()
