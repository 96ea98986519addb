"""Which of its own jobs an experiment gives up: those that promise the least for what they still cost. Pure.

Worth is what the submitter says, so it must not decide who loses devices. Victims are chosen without it; then, within
one experiment of one project and within one class, a victim is exchanged for a job that promises less, as long as the
gang still fits and no more devices are given up. Everybody else's victims stay, or become fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.model.nouns import Attempt, Job

MAX_TRIES = 64
"""Exchanges that are tried in one search at most, so that a round stays short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promising:
    """A job that may be exchanged, as `exchanged` sees it."""

    key: str
    group: tuple[int, str, str]
    """Only within it are values compared: priority, project, experiment. An experiment has one objective."""
    value: float
    n_devices: int


def group_of(job: Job) -> tuple[int, str, str]:
    return (job.priority, job.project, job.experiment)


def value_of(job: Job, attempt: Attempt, now_s: float) -> float | None:
    """Expected gain and its uncertainty, for each device-second that the job still costs; None: nobody said.

    A job that has outlived what it was expected to cost is expected to cost twice as much, and so on.
    """
    if job.worth is None:
        return None
    ran_s = 0.0 if attempt.started_at_s is None else max(0.0, now_s - attempt.started_at_s)
    used_s = (job.done_s + ran_s) * max(1, job.shape.n_devices)
    cost_s = job.worth.cost_s
    while cost_s <= used_s:
        cost_s *= 2
    return (job.worth.gain + job.worth.uncertainty) / (cost_s - used_s)


def exchanged(
    victims: Sequence[Promising], others: Sequence[Promising], is_enough: Callable[[frozenset[str]], bool]
) -> dict[str, str]:
    """Who leaves instead of whom: victim's key to the key of the one that stands in.

    Each exchange makes the sum of what leaves smaller, so it comes to an end; `MAX_TRIES` bounds it besides.

    Args:
        victims: those that were chosen, as far as they have a value.
        others: those that might leave instead.
        is_enough: whether the gang fits when these leave, beside the victims without a value.
    """
    leaving = {victim.key: victim for victim in victims}
    ascending = sorted((*victims, *others), key=lambda each: each.value)
    n_tries = 0
    has_changed = True
    while has_changed:
        has_changed = False
        for first, now in sorted(leaving.items(), key=lambda item: -item[1].value):
            for other in ascending:
                if other.value >= now.value or n_tries >= MAX_TRIES:
                    break
                if other.group != now.group or other.n_devices > now.n_devices or other in leaving.values():
                    continue
                n_tries += 1
                if is_enough(frozenset({**{f: c.key for f, c in leaving.items()}, first: other.key}.values())):
                    leaving[first] = other
                    has_changed = True
                    break
    return {first: now.key for first, now in leaving.items() if first != now.key}
