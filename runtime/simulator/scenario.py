"""What a simulation is made of, and whether it makes sense. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from runtime.model.nouns import Node
from runtime.scheduling.policy import Policy

from .errors import BadScenario
from .faults import NO_FAULTS, Faults
from .workload import TraceJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    jobs: Sequence[TraceJob]
    """In order of submission."""
    nodes: Sequence[Node]
    policy: Policy
    faults: Faults = NO_FAULTS
    reports_every_checkpoint: bool = False
    """Whether each checkpoint is an event when it is made, or only the newest ones when victims are chosen. The
    decisions are the same, since nothing else reads them; this way is slower."""


def verify(scenario: Scenario) -> None:
    """
    Raises:
        BadScenario: no devices, a class that the policy does not know, an id used twice, or jobs out of order.
    """
    if not any(node.devices for node in scenario.nodes):
        raise BadScenario("there are no devices to simulate with; give nodes, such as 64x8")
    unknown = sorted({job.priority_class for job in scenario.jobs} - set(scenario.policy.classes))
    if unknown:
        known = ", ".join(scenario.policy.classes)
        raise BadScenario(f"priority class {unknown[0]!r} is not in the policy; there are: {known}")
    if len({job.job_id for job in scenario.jobs}) != len(scenario.jobs):
        raise BadScenario("two jobs of the trace have one id")
    times = [job.submitted_at_s for job in scenario.jobs]
    if any(later < earlier for earlier, later in pairwise(times)):
        raise BadScenario("the jobs are not in order of submission; `arranged` sorts them")
