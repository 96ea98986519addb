"""What is wrong with the parts of a task that go from a small probe to the big run."""

from __future__ import annotations

from collections.abc import Iterator

from agent.task import Task

Found = Iterator[tuple[str, str]]
"""Dotted path in the task file, and what is wrong there."""


def fidelity_checks(task: Task) -> Found:
    yield from _ladder_checks(task)


def _ladder_checks(task: Task) -> Found:
    if task.ladder and task.fidelity is None:
        yield "ladder", "needs fidelity: the parameter whose value the rungs raise"
    seen: set[str] = set()
    for at, rung in enumerate(task.ladder):
        if rung.name in seen:
            yield f"ladder.{at}.name", f"{rung.name!r} is the name of two rungs"
        seen.add(rung.name)
