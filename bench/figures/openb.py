"""How much of a cluster can be given away before what arrives no longer fits. Files: `--traces DIR` or NIGHTLAB_TRACES.

Pods are drawn with replacement until they have asked for as many thousandths of devices as there are; each is tried
once, what does not fit is dropped, and none leaves. Shares, cores, memory and lists of devices bind. The code that
places is the scheduler's own. Protocol: Weng et al., "Beware of Fragmentation", USENIX ATC 2023.
"""

from __future__ import annotations

import csv
import os
import random
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bench.figure import Figure, Unavailable, median_of
from runtime.model.devices import Masks
from runtime.model.indexes import Indexes
from runtime.model.nouns import WHOLE, Device, Needs, Node, Shape
from runtime.scheduling.fit import place, usable
from runtime.scheduling.fragments import Typical, thousandths_of, typical_of
from runtime.scheduling.room import Room, free_room

PODS_VARIABLE = "NIGHTLAB_OPENB_PODS"
PODS = "openb_pod_list_default.csv"
NODES = "openb_node_list_gpu_node.csv"
N_SEEDS = 10
N_QUICK = 2


def openb_allocation(quick: bool) -> Figure:
    pods(), cluster()
    n_seeds = N_QUICK if quick else N_SEEDS
    with ProcessPoolExecutor() as pool:
        values = list(pool.map(aware, range(n_seeds)))
        plain = list(pool.map(tightest_first, range(1 if quick else n_seeds)))
    return Figure(
        id="sched.openb_allocation",
        value=sum(values) / len(values),
        unit="%",
        control=sum(plain) / len(plain),
        n=n_seeds,
        spread=(min(values), max(values)),
        note=f"{pods_file().name}, {len(cluster()):,} nodes, given away when 100 % have arrived; mean, spread: "
        f"least and most; median {median_of(values):.2f}; control: tightest node first, {len(plain)} seeds",
    )


def aware(seed: int) -> float:
    return Filling(cluster()).filled(pods(), seed)


def tightest_first(seed: int) -> float:
    return Filling(cluster(), is_aware=False).filled(pods(), seed)


def trace_file(name: str) -> Path:
    """
    Raises:
        Unavailable: it was not said where the traces are, or the file is not there.
    """
    folder = os.environ.get("NIGHTLAB_TRACES")
    if not folder:
        raise Unavailable(f"give the folder of {name} with --traces DIR or NIGHTLAB_TRACES")
    path = Path(folder) / name
    if not path.is_file():
        raise Unavailable(f"{path} does not exist; docs/simulator.md says where it comes from")
    return path


def pods_file() -> Path:
    """Another variant of the trace is named in NIGHTLAB_OPENB_PODS."""
    return trace_file(os.environ.get(PODS_VARIABLE, PODS))


@cache
def pods() -> tuple[Shape, ...]:
    with pods_file().open(newline="") as file:
        return tuple(_shape(row) for row in csv.DictReader(file))


@cache
def cluster() -> tuple[Node, ...]:
    with trace_file(NODES).open(newline="") as file:
        return tuple(_node(row) for row in csv.DictReader(file))


def _shape(row: Mapping[str, str]) -> Shape:
    n_devices = int(row["num_gpu"])
    kinds = row["gpu_spec"].split("|") if row["gpu_spec"] and n_devices else [None]
    needs = Needs(
        or_accelerators=tuple(kind for kind in kinds[1:] if kind),
        device_thousandths=int(row["gpu_milli"]) if n_devices == 1 else WHOLE,
        cpu_milli=int(row["cpu_milli"]),
        memory_mb=int(row["memory_mib"]),
    )
    return Shape(n_devices=n_devices, accelerator=kinds[0], devices_per_node=n_devices or None, needs=needs)


def _node(row: Mapping[str, str]) -> Node:
    name = row["sn"]
    return Node(
        node_id=name,
        generation=1,
        boot_id="",
        hostname=name,
        cpus=int(row["cpu_milli"]) // 1000,
        memory_mb=int(row["memory_mib"]),
        devices=tuple(Device(index=i, kind=row["model"], uuid=f"{name}-{i}") for i in range(int(row["gpu"]))),
    )


@dataclass(slots=True)
class Filling:
    """A cluster that fills up."""

    nodes: tuple[Node, ...]
    is_aware: bool = True
    """Whether it is heeded what a placement spoils."""
    index: Indexes = field(default_factory=Indexes)
    usable_by: dict[Shape, Masks] = field(default_factory=dict)
    mix: dict[Shape, int] = field(default_factory=dict)
    """Bits of the number of jobs by shape: what the estimate hangs on."""
    typical: Typical | None = None

    def filled(self, shapes: tuple[Shape, ...], seed: int) -> float:
        """Percent of all thousandths of devices that are given away when as many have been asked for."""
        for node in self.nodes:
            self.index.set_node(node, held=0)
        room = free_room(self.index)
        capacity = sum(len(node.devices) for node in self.nodes) * WHOLE
        given = 0
        for shape in _arrivals(shapes, random.Random(seed), capacity):
            given += self._give(shape, room)
        return 100 * given / capacity

    def _give(self, shape: Shape, room: Room) -> int:
        wanted = self.usable_by.get(shape)
        if wanted is None:
            wanted = self.usable_by[shape] = usable(shape, self.index.kinds, self.index)
        placements = place(shape, room.within(shape, wanted), self._typical_with(shape) if self.is_aware else None)
        if placements is None:
            return 0
        room.take(placements)
        return shape.n_devices * thousandths_of(shape)

    def _typical_with(self, shape: Shape) -> Typical | None:
        n_alive = self.index.n_alive
        n_alive[shape] = n = n_alive.get(shape, 0) + 1
        if self.mix.get(shape) != n.bit_length():
            self.mix[shape] = n.bit_length()
            self.typical = typical_of(n_alive, self.usable_by, self.typical)
        return self.typical


def _arrivals(shapes: tuple[Shape, ...], chance: random.Random, capacity: int) -> Iterator[Shape]:
    asked = 0
    while asked < capacity:
        shape = chance.choice(shapes)
        asked += shape.n_devices * thousandths_of(shape)
        yield shape
