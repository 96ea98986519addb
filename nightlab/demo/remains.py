"""Processes that belong to a home folder: training, its supervisors, services. To prove that nothing is left."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from nightlab.services.processes import MARK

MODULES = ("nightlab.services.supervisor", "runtime.node.launcher")


def processes_of(home: Path) -> list[psutil.Process]:
    """This user's processes that were started for `home`, this one and its parents left out."""
    kin = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid not in kin and process.uids().real == os.getuid() and _is_of(process, home):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


def _is_of(process: psutil.Process, home: Path) -> bool:
    environment = process.environ()
    if environment.get("NIGHTLAB_CHECKPOINT_DIR", "").startswith(f"{home}{os.sep}"):
        return True
    if environment.get(MARK, "").endswith(f"@{home}"):
        return True
    command = process.cmdline()
    is_ours = any(module in part for part in command for module in MODULES)
    return is_ours and any(part == str(home) or part.startswith(f"{home}{os.sep}") for part in command)


def end_remains(home: Path, *, grace_s: float) -> int:
    """Wait for what is about to end by itself, then kill the rest; how many had to be killed."""
    _, alive = psutil.wait_procs(processes_of(home), timeout=grace_s)
    n_killed = 0
    while alive:
        n_killed += len(alive)
        for process in alive:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(alive, timeout=5.0)
        # A supervisor that was killed may have left children, now found by their environment.
        alive = processes_of(home)
    return n_killed
