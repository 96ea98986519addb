"""Small clusters and jobs in a line each, simulated with every invariant checked after every event."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from runtime.model.check import check
from runtime.scheduling.policy import Policy
from runtime.simulator.cluster import parse_nodes
from runtime.simulator.faults import NO_FAULTS, Faults
from runtime.simulator.importers import philly
from runtime.simulator.ledger import JobLine, Ledger
from runtime.simulator.scenario import Scenario
from runtime.simulator.simulation import simulate
from runtime.simulator.workload import Costs, Skipped, TraceJob, arranged, with_costs, with_critical_share

DATA = Path(__file__).parent / "data"
COSTS = Costs(checkpoint_every_s=200.0, notice_checkpoint_s=20.0, restart_s=30.0, grace_s=30.0)
NO_NOTICE = replace(COSTS, notice_checkpoint_s=None)


def trace_job(
    job_id: str,
    at_s: float,
    run_s: float,
    *,
    n: int = 1,
    priority: str = "normal",
    costs: Costs = COSTS,
    kind: str | None = None,
) -> TraceJob:
    return TraceJob(
        job_id=job_id,
        submitted_at_s=at_s,
        run_s=run_s,
        n_devices=n,
        priority_class=priority,
        costs=costs,
        accelerator=kind,
    )


def played(nodes: str, *jobs: TraceJob, faults: Faults = NO_FAULTS, policy: Policy | None = None) -> Ledger:
    """Simulate, and check the state after each event."""
    scenario = Scenario(jobs=arranged(jobs), nodes=parse_nodes(nodes), policy=policy or Policy(), faults=faults)
    return simulate(scenario, watch=lambda state, _: check(state))


def line(ledger: Ledger, job_id: str) -> JobLine:
    return ledger.lines[job_id]


def excerpt(*, share: float = 0.2, costs: Costs = COSTS, spacing_s: float = 60.0) -> list[TraceJob]:
    """The Philly excerpt, with submissions close enough together to fill a small cluster."""
    jobs = arranged(with_costs(philly.read(DATA / "philly_jobs_400.csv", Skipped()), costs))
    close = [replace(job, submitted_at_s=i * spacing_s, run_s=min(job.run_s, 20_000.0)) for i, job in enumerate(jobs)]
    return with_critical_share(close, share, 0)


def everything(ledger: Ledger) -> list[tuple[object, ...]]:
    return [
        (one.job.job_id, one.started_s, one.ended_s, one.end_state, one.n_attempts, one.n_preemptions,
         one.held_device_s, one.lost_device_s)
        for one in ledger.lines.values()
    ]  # fmt: skip
