"""What is to be simulated: jobs as a trace tells them, and what saving and restarting costs them. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict

from runtime.model.nouns import Node, Shape

from .errors import BadScenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What stopping and going on costs a job; all in seconds of wall clock."""

    checkpoint_every_s: float | None = 600.0
    """A checkpoint each time it has worked this long, at no cost; None: never."""
    notice_checkpoint_s: float | None = 20.0
    """How long its checkpoint takes when it is asked to leave; None: it can not, and leaves at once."""
    restart_s: float = 30.0
    """What an attempt needs before it goes on where the last one was saved; the first attempt pays nothing."""
    grace_s: float = 30.0
    """How long it may take to leave; a notice checkpoint that takes longer is in vain."""


DEFAULT_COSTS = Costs()


class GivenCosts(TypedDict, total=False):
    """Fields of `Costs` that somebody chose for all jobs."""

    checkpoint_every_s: float | None
    notice_checkpoint_s: float | None
    restart_s: float
    grace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceJob:
    job_id: str
    submitted_at_s: float
    """Seconds; where zero lies is the trace's choice."""
    run_s: float
    """What it needs undisturbed, from its first start to its end."""
    n_devices: int
    devices_per_node: int | None = None
    """Size of its parts where the trace tells it; None: `shaped` decides."""
    accelerator: str | None = None
    """Device kind; None takes any."""
    priority_class: str = "normal"
    project: str = "default"
    experiment: str = ""
    """What groups jobs that are expected to run equally long, beside project and shape; empty: the trace tells none."""
    recorded_wait_s: float | None = None
    """How long it waited in reality; None: the trace does not say."""
    costs: Costs = DEFAULT_COSTS


@dataclass(slots=True, kw_only=True)
class Skipped:
    """Rows of a trace that are no jobs for us, by reason, and what was simplified in those that are."""

    n_by_reason: dict[str, int] = field(default_factory=dict)
    n_simplified: dict[str, int] = field(default_factory=dict)

    def skip(self, reason: str) -> None:
        self.n_by_reason[reason] = self.n_by_reason.get(reason, 0) + 1

    def simplify(self, how: str) -> None:
        self.n_simplified[how] = self.n_simplified.get(how, 0) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Submissions from `from_s` up to, but not including, `to_s`; None: open."""

    from_s: float | None = None
    to_s: float | None = None

    def has(self, at_s: float) -> bool:
        return (self.from_s is None or at_s >= self.from_s) and (self.to_s is None or at_s < self.to_s)


def arranged(jobs: Iterable[TraceJob], window: Window | None = None) -> list[TraceJob]:
    """The jobs of a window in order of submission; jobs submitted at the same time keep the order of the file."""
    chosen = jobs if window is None else (job for job in jobs if window.has(job.submitted_at_s))
    return sorted(chosen, key=lambda job: job.submitted_at_s)


def with_critical_share(
    jobs: Sequence[TraceJob], share: float, seed: int, *, urgent: str = "critical", rest: str = "normal"
) -> list[TraceJob]:
    """Give a seeded share of the jobs the class `urgent`, all others `rest`: for traces without priorities.

    Raises:
        BadScenario: the share is not between 0 and 1.
    """
    if not 0.0 <= share <= 1.0:
        raise BadScenario(f"a share of {share:g} is not possible; give a number from 0 to 1, such as 0.1")
    numbers = random.Random(seed)
    return [replace(job, priority_class=urgent if numbers.random() < share else rest) for job in jobs]


def with_classes(jobs: Iterable[TraceJob], classes: Mapping[str, str]) -> Iterator[TraceJob]:
    """Rename priority classes: {"the trace's word": "our class"}; words that are not listed stay."""
    for job in jobs:
        name = classes.get(job.priority_class)
        yield job if name is None else replace(job, priority_class=name)


def with_costs(jobs: Iterable[TraceJob], costs: Costs) -> Iterator[TraceJob]:
    return (replace(job, costs=costs) for job in jobs)


def with_given_costs(jobs: Iterable[TraceJob], given: GivenCosts) -> Iterator[TraceJob]:
    """Replace these fields of each job's `Costs`; the others stay as the trace tells them, or as they usually are."""
    return (replace(job, costs=replace(job.costs, **given)) for job in jobs)


def shaped(job: TraceJob, node_size: int) -> Shape:
    """The gang: in the parts that the trace tells, else on one node where it fits on one, else anywhere.

    Args:
        node_size: Devices of the largest node.
    """
    unit = job.devices_per_node
    if unit is None and job.n_devices <= node_size:
        unit = job.n_devices
    return Shape(n_devices=job.n_devices, accelerator=job.accelerator, devices_per_node=None if unit == 1 else unit)


def node_size(nodes: Iterable[Node]) -> int:
    return max((len(node.devices) for node in nodes), default=0)
