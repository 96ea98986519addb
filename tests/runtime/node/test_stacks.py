"""Where processes are, by whatever means there are."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runtime.node import stacks

WITH_FAULTHANDLER = """
import faulthandler, os, signal, time
path = f"{os.environ['NIGHTLAB_STACK_FILE']}.{os.getpid()}"
faulthandler.register(signal.SIGUSR2, file=open(path, "w"), all_threads=True)
def waits_for_ever():
    print("ready", flush=True)
    time.sleep(60)
waits_for_ever()
"""
WITHOUT = "import time; print('ready', flush=True); time.sleep(60)"


@contextmanager
def process(script: str, folder: Path) -> Iterator[int]:
    environment = {"NIGHTLAB_STACK_FILE": str(folder / stacks.PREFIX), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen((sys.executable, "-c", script), env=environment, stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None
            running.stdout.readline()
            yield running.pid
        finally:
            running.kill()


def test_a_process_that_registered_faulthandler_tells_its_frames(tmp_path: Path) -> None:
    with process(WITH_FAULTHANDLER, tmp_path) as pid:
        for _ in range(2):  # a second dump is not the first one again
            told = stacks.dump([pid], tmp_path)
            assert told.count("in waits_for_ever") == 1
            assert f"process {pid}" in told


def test_a_process_that_did_not_is_left_alive_and_described(tmp_path: Path) -> None:
    with process(WITHOUT, tmp_path) as pid:
        (tmp_path / f"{stacks.PREFIX}.{pid}").touch()  # a stale file: SIGUSR2 would end this process
        told = stacks.dump([pid], tmp_path)
        assert "time.sleep(60)" in told  # its command line
        assert Path(f"/proc/{pid}").exists()
        assert stacks.dump([pid], tmp_path)


def test_processes_that_are_gone_are_left_out(tmp_path: Path) -> None:
    began = time.monotonic()
    assert stacks.dump([2**22 - 1], tmp_path) == ""
    assert time.monotonic() - began < 1.0
