"""How long one round of the scheduler takes, in the middle of a cluster's life. No files, no network."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.figure import Figure, median_of, quartiles
from runtime.model.apply import apply
from runtime.model.events import AttemptEnded, AttemptStarted, Event, JobSubmitted, NodeJoined, Recorded, Then
from runtime.model.indexes import Indexes
from runtime.model.nouns import Job, Shape
from runtime.model.state import State
from runtime.model.states import AttemptOutcome, ExitReason, JobState
from runtime.scheduling.asking import impossible
from runtime.scheduling.decision import Start
from runtime.scheduling.intent import event_of
from runtime.scheduling.policy import Policy
from runtime.scheduling.schedule import schedule
from runtime.simulator.cluster import make_nodes

SMALL = ((8, "H100"),) * 4 + ((8, "A100"),) * 4
LARGE = ((8, "H100"),) * 549 + ((8, "A100"),) * 39 + ((2, "T4"),) * 387 + ((4, "T4"),) * 16 + ((2, "P100"),) * 222
"""6,212 devices on 1,213 nodes; the sizes follow the GPU nodes of a published cluster."""
GANGS = (
    (1, None), (2, 2), (8, 8), (2, None), (4, 4), (3, 3), (16, 8), (6, 2), (5, None), (7, 7), (6, 6), (5, 5), (4, 2),
    (32, 8), (8, 4), (10, None), (3, None), (12, 4), (24, 8), (9, 3),
)  # fmt: skip
"""Devices of a gang, and devices on each node."""
N_SHAPES = 50
N_FIRST = 10_000
CLASSES = (("critical", 1), ("normal", 6), ("exploratory", 3))
"""And how often each is drawn."""


@dataclass(slots=True)
class Life:
    """A state, and the numbers that decide what happens to it."""

    shapes: Sequence[Shape]
    numbers: random.Random
    state: State = field(default_factory=State)
    policy: Policy = field(default_factory=Policy)
    now_s: float = 0.0
    n_jobs: int = 0

    def record(self, event: Event) -> None:
        seq = self.state.last_seq + 1
        apply(
            self.state,
            Recorded(seq=seq, at_s=self.now_s, actor="bench", on_behalf_of=None, project=None, event=event),
        )

    def submit(self, name: str, shape: Shape) -> None:
        self.n_jobs += 1
        level = self.policy.classes[name]
        self.record(
            JobSubmitted(
                job=Job(
                    job_id=f"j{self.n_jobs}",
                    order=self.n_jobs,
                    project="bench",
                    experiment="bench",
                    session_id=None,
                    priority_class=name,
                    priority=level.priority,
                    is_preemptible=level.is_preemptible,
                    shape=shape,
                    submitted_at_s=self.now_s,
                    grace_s=30.0,
                    max_retries=0,
                    timeout_s=86400.0,
                )
            )
        )

    def submit_any(self) -> None:
        names = [name for name, weight in CLASSES for _ in range(weight)]
        self.submit(self.numbers.choice(names), self.numbers.choice(self.shapes))

    def end_one(self) -> None:
        """An attempt that was asked to leave does so, or else some other one ends well."""
        index = self.state.index
        job_id = min(index.stopping) if index.stopping else self.numbers.choice(sorted(index.holding))
        job = self.state.jobs[job_id]
        leaves = job.state is JobState.STOPPING
        self.record(
            AttemptEnded(
                job_id=job_id,
                attempt=job.n_attempts,
                outcome=AttemptOutcome.PREEMPTED if leaves else AttemptOutcome.SUCCEEDED,
                exit_reason=ExitReason.PREEMPTED if leaves else ExitReason.COMPLETED,
                exit_code=75 if leaves else 0,
                evidence=None,
                then=Then.REQUEUE if leaves else Then.END,
                end_state=None if leaves else JobState.SUCCEEDED,
            )
        )

    def round(self) -> float:
        """Decide and carry out; how many milliseconds deciding took."""
        began = time.perf_counter()
        decision = schedule(self.state, now_s=self.now_s, policy=self.policy)
        took_ms = (time.perf_counter() - began) * 1000
        for action in decision.actions:
            self.record(event_of(action))
        for action in decision.actions:
            if isinstance(action, Start):
                self.record(AttemptStarted(job_id=action.job_id, attempt=action.attempt, pid=None))
        return took_ms


def shapes(sizes: Sequence[tuple[int, str]]) -> list[Shape]:
    """50 shapes that fit on these nodes: gangs of 1 to 32 devices, of any kind or one, loose or in whole groups."""
    index = Indexes()
    for node in make_nodes(sizes):
        index.set_node(node, held=0)
    kinds = (None, *sorted({kind for _, kind in sizes}))
    found = [
        shape
        for n_devices, per_node in GANGS
        for kind in kinds
        if impossible(
            shape := Shape(n_devices=n_devices, accelerator=kind, devices_per_node=per_node), index.kinds, index
        )
        is None
    ]
    assert len(found) >= N_SHAPES, f"{len(found)} shapes fit"
    return found[:N_SHAPES]


def grown(sizes: Sequence[tuple[int, str]], n_queued: int) -> Life:
    """A life with every device busy that can be, and this many jobs waiting.

    What runs is the same for every `n_queued` from `N_FIRST` on: what waits beyond that is of the lower classes.
    """
    life = Life(shapes(sizes), random.Random(1))
    for node in make_nodes(sizes):
        life.record(NodeJoined(node=node))
    while life.state.n_queued < N_FIRST:
        life.submit_any()
        if life.n_jobs % 2000 == 0:
            life.round()
    for _ in range(3):
        life.round()
        for _ in range(len(life.state.index.stopping)):
            life.end_one()
        life.now_s += 60.0
    life.round()
    backlog = random.Random(2)
    while life.state.n_queued < n_queued:
        life.submit(backlog.choice(("normal", "normal", "exploratory")), backlog.choice(life.shapes))
    return life


def step(life: Life, i: int) -> float:
    """Something happens, and a round follows; its milliseconds.

    Of three steps two are the end of an attempt, one a submission; every ninth brings an urgent gang of a node.
    """
    life.now_s += 7.0
    if i % 3 < 2:
        life.end_one()
    else:
        life.submit_any()
    if i % 9 == 8:
        life.submit("critical", Shape(n_devices=8, devices_per_node=8))
    return life.round()


def measured(lives: Sequence[Life], n_rounds: int) -> list[list[float]]:
    """Milliseconds of each round of each life, in turns, so that a busy machine slows all of them."""
    gc.collect()
    gc.freeze()
    samples: list[list[float]] = [[] for _ in lives]
    for i in range(n_rounds):
        for life, found in zip(lives, samples, strict=True):
            found.append(step(life, i))
    gc.unfreeze()
    return samples


def round_ms_10k(quick: bool) -> Figure:
    return _figure("sched.round_ms_10k", _of(SMALL, 10_000, quick), "10,000 queued, 64 devices")


def round_ms_100k(quick: bool) -> Figure:
    samples = _of(LARGE, 100_000, quick)
    return _figure("sched.round_ms_100k", samples, "100,000 queued, 6,212 devices on 1,213 nodes")


def growth(quick: bool) -> Figure:
    n = 60 if quick else 300
    few, many = measured([grown(LARGE, 10_000), grown(LARGE, 100_000)], n)
    return Figure(
        id="sched.growth",
        value=median_of(many) / median_of(few),
        unit="ratio",
        control=None,
        n=n,
        spread=(quartiles(many)[0] / median_of(few), quartiles(many)[1] / median_of(few)),
        note=f"median {median_of(many):.2f} ms at 100,000 over {median_of(few):.2f} ms at 10,000 queued, 1,213 nodes",
    )


def _of(sizes: Sequence[tuple[int, str]], n_queued: int, quick: bool) -> list[float]:
    (samples,) = measured([grown(sizes, n_queued)], 60 if quick else 300)
    return samples


def _figure(figure_id: str, samples: Sequence[float], what: str) -> Figure:
    return Figure(
        id=figure_id,
        value=median_of(samples),
        unit="ms",
        control=None,
        n=len(samples),
        spread=quartiles(samples),
        note=f"{what}, 50 shapes in 3 classes; ends, submissions and urgent gangs; worst {max(samples):.1f} ms; "
        "spread: quartiles",
    )
