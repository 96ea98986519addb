"""Attempts on disk that the server does not know: end them, so that they hold no device."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from runtime.engines.tree_end import end_lost_tree
from runtime.engines.watched import is_of_earlier_boot, is_supervised, lost_record
from runtime.node import processes, records

OBEY_S = 5.0
"""After that a supervisor that does not obey is killed with its tree."""


async def end_strangers(attempts_dir: Path, named: AbstractSet[Path], boot_id: str) -> None:
    """End every attempt without an exit record whose folder is not in `named`. Returns when they are gone."""
    found = await asyncio.to_thread(_find, attempts_dir, named)
    await asyncio.gather(*(_end(folder, supervisor, boot_id) for folder, supervisor in found))


def _find(attempts_dir: Path, named: AbstractSet[Path]) -> list[tuple[Path, dict[str, Any]]]:
    found = []
    for folder in attempts_dir.glob("*/[0-9]*"):
        if folder in named or (folder / records.EXIT).exists():
            continue
        supervisor = records.read(str(folder / records.SUPERVISOR))
        if supervisor is not None and "pid" in supervisor:
            found.append((folder, supervisor))
    return found


async def _end(folder: Path, supervisor: dict[str, Any], boot_id: str) -> None:
    with contextlib.suppress(OSError):
        order = {"cause": "cancel", "reason": "not known to the server", "grace_s": 0.0, "ordered_at": time.time()}
        records.write(str(folder / records.STOP), order, is_durable=False)
    deadline = time.monotonic() + OBEY_S
    if is_supervised(supervisor, boot_id):
        processes.send_exactly(supervisor["pid"], supervisor["start_ticks"], signal.SIGUSR1)
    while is_supervised(supervisor, boot_id):
        if time.monotonic() > deadline:
            processes.send_exactly(supervisor["pid"], supervisor["start_ticks"], signal.SIGKILL)
        await asyncio.sleep(0.02)
    was_killed = await end_lost_tree(folder, supervisor["marker"])
    if not (folder / records.EXIT).exists():
        with contextlib.suppress(OSError):
            record = lost_record(was_killed, is_of_earlier_boot=is_of_earlier_boot(supervisor, boot_id))
            records.write(str(folder / records.EXIT), record)
