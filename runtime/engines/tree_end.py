"""Kill what is left of an attempt whose supervisor is gone."""

from __future__ import annotations

import asyncio
from pathlib import Path

from runtime.node import cgroups, processes, records


async def end_lost_tree(folder: Path, marker: str) -> bool:
    """Kill every process of the attempt, until none is left. Returns whether there was one.

    The leader dies with its supervisor by itself; the others are known by the control group, by the marker in their
    environment, by the leader's session, and by descent.
    """
    group = (records.read(str(folder / records.SUPERVISOR)) or {}).get("cgroup")
    if not cgroups.is_of(group, marker):
        group = None
    started = records.read(str(folder / records.STARTED)) or {}
    was_killed = False
    pause_s = 0.01
    while True:
        is_populated = group is not None and cgroups.kill(group)
        alive = processes.tree_of_lost_attempt(marker, started.get("pid"), started.get("start_ticks"))
        if not alive and not is_populated:
            if group is not None:
                cgroups.remove(group)
            return was_killed
        was_killed = True
        processes.kill(alive)
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, 1.0)
