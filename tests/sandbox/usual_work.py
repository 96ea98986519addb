"""Run inside a sealed job: what training does as ever. A JSON line for each: its name, and `done`, or why not."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from multiprocessing.managers import SyncManager
from pathlib import Path


def add(numbers: tuple[int, int]) -> int:
    return sum(numbers)


def with_a_pool() -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(add, [(1, 2), (3, 4)]) == [3, 7]


def with_a_manager() -> None:
    """Its processes talk over a socket in the temporary folder."""
    with multiprocessing.Manager() as manager:
        assert isinstance(manager, SyncManager)
        shared = manager.dict()
        shared["a"] = 1
        assert dict(shared) == {"a": 1}


def end_a_child() -> None:
    child = subprocess.Popen(["sleep", "30"])
    child.terminate()
    assert child.wait(10) == -signal.SIGTERM
    group = subprocess.Popen(["sleep", "30"], start_new_session=True)
    os.killpg(group.pid, signal.SIGKILL)
    assert group.wait(10) == -signal.SIGKILL


def end_itself() -> None:
    child = subprocess.run([sys.executable, "-c", "import os; os.abort()"], check=False)
    assert child.returncode == -signal.SIGABRT, child


def copy_with_modes_and_times() -> None:
    Path("a").write_text("x")
    os.chmod("a", 0o640)
    os.utime("a", (1000.0, 2000.0))
    shutil.copy2("a", "b")
    os.fchmod(os.open("b", os.O_RDONLY), 0o600)
    assert (os.stat("b").st_mode & 0o777, os.stat("b").st_mtime) == (0o600, 2000.0)
    os.utime("b")
    assert time.time() - os.stat("b").st_mtime < 60
    os.symlink("a", "l")
    os.utime("l", (5.0, 5.0), follow_symlinks=False)
    assert (os.lstat("l").st_mtime, os.stat("l").st_mtime) == (5.0, 2000.0)
    folder = os.open(".", os.O_RDONLY)
    os.chmod("b", 0o644, dir_fd=folder)
    assert os.stat("b").st_mode & 0o777 == 0o644


def import_the_sdk() -> None:
    from runtime_client import training

    assert training.log_metrics


def own_temporary_folder() -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert os.path.dirname(folder) == os.environ.get("TMPDIR", "/tmp")
        Path(folder, "x").touch()


def own_output_by_name() -> None:
    with open("/dev/stdout", "a") as file:
        print(json.dumps(["by name", "done"]), file=file, flush=True)


def ask_the_gateway() -> None:
    address = os.environ["MLFLOW_TRACKING_URI"]
    try:
        urllib.request.urlopen(address, timeout=10).close()
    except urllib.error.HTTPError:
        return


async def _ask_without_blocking() -> None:
    port = int(os.environ["MLFLOW_TRACKING_URI"].rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    assert (await reader.read(4)) == b"HTTP"
    writer.close()


def ask_it_without_blocking() -> None:
    asyncio.run(_ask_without_blocking())


def talk_locally() -> None:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as asker:
        server.bind("local")
        server.listen()
        asker.connect("local")
        server.accept()[0].close()
        ours, theirs = socket.socketpair()
        ours.send(b"x")
        assert theirs.recv(1) == b"x"


def bind_threads() -> None:
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    os.nice(1)


WORK: tuple[Callable[[], None], ...] = (
    with_a_pool, with_a_manager, end_a_child, end_itself, copy_with_modes_and_times, own_temporary_folder,
    import_the_sdk, own_output_by_name, ask_the_gateway, ask_it_without_blocking, talk_locally, bind_threads,
)  # fmt: skip

if __name__ == "__main__":
    for one in WORK:
        try:
            one()
            told = "done"
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            told = f"{type(error).__name__}: {error}"
        print(json.dumps([one.__name__, told]), flush=True)
