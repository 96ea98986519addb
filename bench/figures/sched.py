"""Figures of the scheduler on a published trace, replayed in virtual time. Files: `--traces DIR` or NIGHTLAB_TRACES."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from bench.easy import easy_waits
from bench.figure import Figure, Unavailable, median_of
from runtime.scheduling.policy import Policy
from runtime.simulator.cluster import parse_nodes
from runtime.simulator.importers import philly
from runtime.simulator.instants import instant
from runtime.simulator.ledger import Ledger
from runtime.simulator.report import report_of, spread
from runtime.simulator.scenario import Scenario
from runtime.simulator.simulation import simulate
from runtime.simulator.workload import Costs, Skipped, TraceJob, Window, arranged, with_costs, with_critical_share

FORTNIGHT = Window(from_s=instant("2017-10-02"), to_s=instant("2017-10-16"))
COSTS = Costs(checkpoint_every_s=600.0, notice_checkpoint_s=20.0, restart_s=30.0, grace_s=30.0)
CRITICAL_SHARE = 0.1
N_SEEDS = 5
BURST_FROM_S = instant("2017-10-09")
BURST_S = 6 * 3600.0
BURST_LOAD = 1.1
BURST_RUN_S = 1800.0
BURST_GANGS = (1, 2, 4, 8)
NOTE = "fortnight of 2017-10-02, 64 nodes x 8; a seeded 10 % critical; spread: over seeds"


def philly_file() -> Path:
    """
    Raises:
        Unavailable: it was not said where the traces are, or the file is not there.
    """
    folder = os.environ.get("NIGHTLAB_TRACES")
    if not folder:
        raise Unavailable("give the folder of philly_jobs.csv with --traces DIR or NIGHTLAB_TRACES")
    path = Path(folder) / "philly_jobs.csv"
    if not path.is_file():
        raise Unavailable(f"{path} does not exist; docs/simulator.md says where it comes from")
    return path


@cache
def fortnight() -> tuple[TraceJob, ...]:
    return tuple(arranged(with_costs(philly.read(philly_file(), Skipped()), COSTS), FORTNIGHT))


@cache
def replay(seed: int) -> Ledger:
    jobs = with_critical_share(fortnight(), CRITICAL_SHARE, seed)
    return simulate(Scenario(jobs=jobs, nodes=parse_nodes("64x8"), policy=Policy()))


@cache
def easy() -> dict[str, float]:
    return easy_waits(fortnight(), parse_nodes("64x8"))


def philly_seconds(quick: bool) -> Figure:
    """Reading, simulating and summing up the whole file; `quick` makes no difference."""
    path = philly_file()
    began = time.perf_counter()
    jobs = with_critical_share(arranged(with_costs(philly.read(path, Skipped()), COSTS)), CRITICAL_SHARE, 0)
    report = report_of(simulate(Scenario(jobs=jobs, nodes=parse_nodes("128x8"), policy=Policy())), Policy())
    took_s = time.perf_counter() - began
    note = f"{len(jobs):,} jobs, 1,024 devices, {report.n_preemptions} preemptions; one run, reading included"
    return Figure(
        id="sched.philly_seconds", value=took_s, unit="s", control=None, n=1, spread=(took_s, took_s), note=note
    )


def philly_critical_p99_s(quick: bool) -> Figure:
    return _over_seeds("sched.philly_critical_p99_s", "s", quick, lambda seed: _p99(_waits(replay(seed), "critical")))


def philly_lost_percent(quick: bool) -> Figure:
    return _over_seeds(
        "sched.philly_lost_percent", "%", quick, lambda seed: report_of(replay(seed), Policy()).lost_percent
    )


def philly_rest_ratio(quick: bool) -> Figure:
    """Mean wait of the jobs that are not critical, over that of the same jobs in the control."""
    control = easy()
    ours: list[float] = []
    theirs: list[float] = []

    def ratio(seed: int) -> float:
        waits = _waits(replay(seed), "normal")
        ours.append(sum(waits.values()) / len(waits))
        theirs.append(sum(control[job_id] for job_id in waits) / len(waits))
        return ours[-1] / theirs[-1]

    figure = _over_seeds("sched.philly_rest_ratio", "ratio", quick, ratio)
    return Figure(
        id=figure.id,
        value=figure.value,
        unit=figure.unit,
        control=median_of(theirs),
        n=figure.n,
        spread=figure.spread,
        note=f"{NOTE}; mean wait {median_of(ours):,.0f} s; control: mean wait under EASY with true run times, in s",
    )


def overload_p99_s(quick: bool) -> Figure:
    """Urgent gangs at 110 % of the devices for 6 h: how long urgent jobs wait once they stop coming."""
    jobs = with_critical_share(fortnight(), CRITICAL_SHARE, 0)
    ledger = simulate(Scenario(jobs=arranged([*jobs, *burst()]), nodes=parse_nodes("64x8"), policy=Policy()))
    over_s = BURST_FROM_S + BURST_S
    lines = [line for line in ledger.lines.values() if line.job.priority_class == "critical"]
    after = {
        line.job.job_id: line.started_s - line.job.submitted_at_s
        for line in lines
        if line.started_s is not None and line.job.submitted_at_s >= over_s
    }
    n_lost = sum(line.end_state != "succeeded" for line in ledger.lines.values() if line.refusal is None)
    value = _p99(after)
    during = _p99(_waits(ledger, "critical", FORTNIGHT.from_s, over_s))
    return Figure(
        id="sched.overload_p99_s",
        value=value,
        unit="s",
        control=None,
        n=len(after),
        spread=(min(after.values()), max(after.values())),
        note=f"{len(burst()):,} urgent gangs of 1 to 8 from 2017-10-09, 30 min each; p99 up to then and during: "
        f"{during:,.0f} s; jobs lost: {n_lost}; seed 0",
    )


@cache
def burst() -> tuple[TraceJob, ...]:
    n = round(BURST_LOAD * 512 * BURST_S / (BURST_RUN_S * sum(BURST_GANGS) / len(BURST_GANGS)))
    return tuple(
        TraceJob(
            job_id=f"burst{i}",
            submitted_at_s=BURST_FROM_S + i * BURST_S / n,
            run_s=BURST_RUN_S,
            n_devices=BURST_GANGS[i % len(BURST_GANGS)],
            priority_class="critical",
            costs=COSTS,
        )
        for i in range(n)
    )


def _over_seeds(figure_id: str, unit: str, quick: bool, value_of: Callable[[int], float]) -> Figure:
    values = [value_of(seed) for seed in range(1 if quick else N_SEEDS)]
    return Figure(
        id=figure_id,
        value=median_of(values),
        unit=unit,
        control=None,
        n=len(values),
        spread=(min(values), max(values)),
        note=NOTE,
    )


def _waits(ledger: Ledger, name: str, from_s: float | None = None, to_s: float | None = None) -> dict[str, float]:
    """Submission to first start by job, of one class and submitted then."""
    window = Window(from_s=from_s, to_s=to_s)
    return {
        line.job.job_id: line.started_s - line.job.submitted_at_s
        for line in ledger.lines.values()
        if line.job.priority_class == name and line.started_s is not None and window.has(line.job.submitted_at_s)
    }


def _p99(waits: dict[str, float]) -> float:
    found = spread(waits.values())
    assert found is not None, "somebody started"
    return found.p99_s
