"""Faults of nodes and attempts, by seed or by script. Pure: which faults happen follows from seed and name alone.

A node's faults do not depend on what runs there, an attempt's not on what else happens; so two policies meet the
same misfortune.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFault:
    node_id: str
    at_s: float
    back_at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    seed: int = 0
    node_mtbf_s: float | None = None
    """Mean time between the faults of one node; None: nodes do not fail by themselves."""
    repair_s: float = 3600.0
    """How long a failed node is away."""
    device_mtbf_s: float | None = None
    """Mean time on one device until the attempt on it dies (a gang of 8 dies 8 times as often); None: never."""
    scripted: tuple[NodeFault, ...] = ()

    def of_node(self, node_id: str, from_s: float) -> Iterator[NodeFault]:
        """The faults of a node in order, without end unless there are only scripted ones."""
        yield from sorted((f for f in self.scripted if f.node_id == node_id), key=lambda fault: fault.at_s)
        if self.node_mtbf_s is None:
            return
        numbers = random.Random(f"{self.seed} node {node_id}")
        at_s = from_s
        while True:
            at_s += numbers.expovariate(1.0 / self.node_mtbf_s)
            yield NodeFault(node_id=node_id, at_s=at_s, back_at_s=at_s + self.repair_s)
            at_s += self.repair_s

    def of_attempt(self, job_id: str, attempt: int, n_devices: int) -> float | None:
        """After how many seconds this attempt dies, if it still runs then; None: it does not."""
        if self.device_mtbf_s is None:
            return None
        numbers = random.Random(f"{self.seed} attempt {job_id} {attempt}")
        return numbers.expovariate(n_devices / self.device_mtbf_s)


NO_FAULTS = Faults()
