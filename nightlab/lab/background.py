"""Urgent jobs of others that arrive while sessions work: a seeded Poisson stream of `critical` jobs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from runtime_client.models import Compute, JobSpec

from .cluster import LabCluster
from .world import Course

URGENT_CLASS = "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    every_s: float
    """Mean time between two arrivals."""
    run_s: float = 600.0
    """How long each runs."""
    n_devices: int = 1
    """That each takes."""
    seed: int = 0

    def arrive(self, cluster: LabCluster, is_over: Callable[[], bool]) -> None:
        """Have them arrive, one after another, until it is over."""
        numbers = random.Random(self.seed)

        def submit() -> None:
            if is_over():
                return
            cluster.submit([self._spec()], frozenset())
            cluster.plan(cluster.now + numbers.expovariate(1.0 / self.every_s), submit)

        cluster.plan(cluster.now + numbers.expovariate(1.0 / self.every_s), submit)

    def course(self, _spec: JobSpec) -> Course:
        return Course(run_s=self.run_s)

    def _spec(self) -> JobSpec:
        return JobSpec(
            experiment_name="urgent",
            command="urgent",
            compute=Compute(num_accelerators=self.n_devices),
            priority_class=URGENT_CLASS,
        )
