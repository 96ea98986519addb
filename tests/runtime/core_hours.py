"""Jobs that have to be over by some hour, for random lives; and what must be true of them, in plain arithmetic."""

from __future__ import annotations

from collections.abc import Callable

from core_driver import CLASSES, SHAPES, World
from core_language import job
from core_properties import require

from runtime.model.events import JobSubmitted
from runtime.model.nouns import Job
from runtime.model.states import JobState


def submit_with_hour(world: World) -> None:
    world.n_jobs += 1
    new = job(
        f"j{world.n_jobs}",
        priority=CLASSES[world.pick(len(CLASSES))],
        submitted_at=world.now_s,
        max_retries=world.pick(2),
        grace_s=(0.0, 0.0, 30.0, 400.0)[world.pick(4)],
        timeout_s=(None, 50.0)[world.pick(2)],
        queue_timeout_s=(None, 150.0)[world.pick(2)],
        finish_by_s=world.now_s + (40.0, 60.0, 150.0)[world.pick(3)],
        **SHAPES[world.pick(len(SHAPES))],  # type: ignore[arg-type]
    )
    world.record(JobSubmitted(job=new))


def check_hours(world: World) -> None:
    """After a round nobody waits without time left for a start, and nobody stays longer than its hour allows."""
    for found in world.state.jobs.values():
        if found.finish_by_s is None:
            continue
        left_s = found.finish_by_s - world.now_s
        if found.attempt is None:
            require(left_s > 2.0 + found.grace_s, "who has no time left does not wait", found)
        elif found.attempt.stop is None:
            require(left_s > 2.0 + _grace_s(found), "who has to leave for its hour is asked", found)
        elif found.state is JobState.STOPPING and found.attempt.stop.ordered_at_s < found.finish_by_s:
            stop = found.attempt.stop
            is_in_time = stop.ordered_at_s + stop.grace_s <= found.finish_by_s - 2.0 + 30.0
            require(is_in_time, "nobody leaves later than its hour, but for the grace of who was asked late", found)


def _grace_s(found: Job) -> float:
    assert found.attempt is not None
    if found.attempt.leave_s is None or found.grace_s == 0.0:
        return found.grace_s
    return max(found.grace_s, min(300.0, 1.5 * found.attempt.leave_s))


def wait_for_the_next_round(world: World) -> None:
    """To the very time at which one is due, where all that is to happen then happens."""
    world.round()
    if world.wake_s is not None:
        world.now_s = max(world.now_s, world.wake_s)
        world.round()
        check_hours(world)


HOUR_COMMANDS: tuple[Callable[[World], None], ...] = (submit_with_hour, submit_with_hour, wait_for_the_next_round)
