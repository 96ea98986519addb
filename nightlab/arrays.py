"""Arrays of jobs for a person: how many tasks are where, and waiting for the end of all."""

from __future__ import annotations

import time

from runtime_client.client import RuntimeClient
from runtime_client.models import ArrayView

from .output import ago, note
from .patience import patiently

ORDER = ("queued", "starting", "running", "stopping", "succeeded", "failed", "cancelled")
PAUSE_S = 1.0


def is_array(name: str) -> bool:
    """`a10` and not `j10`."""
    return name[:1] == "a" and name[1:].isdigit()


def array_line(array: ArrayView) -> str:
    """`a10: 100 tasks, 8 at once; 60 queued, 8 running, 32 succeeded`."""
    at_once = "" if array.parallel is None else f", {array.parallel} at once"
    counts = ", ".join(f"{array.counts[state]} {state}" for state in ORDER if array.counts.get(state))
    noun = "task" if array.n_tasks == 1 else "tasks"
    return f"{array.array_id}: {array.n_tasks} {noun}{at_once}; {counts}"


def print_array(array: ArrayView) -> None:
    print(array_line(array))
    print(f"  {'experiment':<11} {array.experiment_name}")
    print(f"  {'submitted':<11} {ago(array.submitted_at)}")
    print(f"  {'tasks':<11} nightlab job list --all --array {array.array_id}")


def follow_array(client: RuntimeClient, array: ArrayView, *, shows_state: bool) -> ArrayView:
    """Return when all of its tasks have ended.

    Raises:
        RuntimeClientError: the runtime stayed away.
    """
    array_id, said = array.array_id, ""
    while True:
        line = array_line(array)
        if shows_state and line != said:
            note(line)
        said = line
        if array.is_ended:
            return array
        time.sleep(PAUSE_S)
        array = patiently(lambda: client.array(array_id))
