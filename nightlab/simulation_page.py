"""A simulation as text for people and as data for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from nightlab.output import Cell, duration, plural, print_table

if TYPE_CHECKING:
    from runtime.simulator.report import ClassReport, Report, Spread
    from runtime.simulator.workload import Skipped


def simulation_data(report: Report, skipped: Skipped, *, n_nodes: int, plot: Path | None) -> dict[str, object]:
    return {
        **asdict(report),
        "lost_percent": report.lost_percent,
        "n_nodes": n_nodes,
        "skipped": skipped.n_by_reason,
        "simplified": skipped.n_simplified,
        "plot": None if plot is None else str(plot),
    }


def print_simulation(report: Report, skipped: Skipped, *, n_jobs: int, n_nodes: int, took_s: float) -> None:
    print(
        f"{plural(n_jobs, 'job')} on {plural(report.n_devices, 'device')} of {plural(n_nodes, 'node')}, "
        f"{duration(report.span_s)} simulated in {duration(took_s)}"
    )
    print()
    _print_classes(report.classes)
    print()
    _print_devices(report)
    for one in report.classes:
        if one.n_refused:
            print(f"! {plural(one.n_refused, one.name + ' job')} could not run on an empty cluster and were left out")
        n_failed = one.n_jobs - one.n_succeeded - one.n_unended
        if n_failed:
            print(f"! {plural(n_failed, one.name + ' job')} failed")
        if one.n_unended:
            print(f"! {plural(one.n_unended, one.name + ' job')} never ended")
    for reason, n in skipped.n_by_reason.items():
        print(f"! left out: {plural(n, 'row')}: {reason}")
    for how, n in skipped.n_simplified.items():
        print(f"! simplified: {plural(n, 'row')}: {how}")


def _print_classes(classes: Sequence[ClassReport]) -> None:
    has_recorded = any(one.recorded_wait is not None for one in classes)
    titles = ["class", "#jobs", "#wait mean", "#p50", "#p99", "#to the end mean", "#p50", "#p99", "#preempted"]
    rows: list[list[Cell]] = []
    for one in classes:
        row = [one.name, one.n_jobs, *_times(one.wait), *_times(one.completion), one.n_jobs_preempted]
        rows.append(row + (_times(one.recorded_wait)[::2] if has_recorded else []))
    print_table([*titles, *(["#recorded wait mean", "#p99"] if has_recorded else [])], rows)


def _print_devices(report: Report) -> None:
    lost, faults = report.lost_to_preemption, report.lost_to_faults
    print(
        f"devices held {report.busy_percent_submitting:.1f} % of the time until the last submission "
        f"({report.busy_percent:.1f} % until the last end); "
        f"{report.idle_device_hours:,.0f} device-hours idle until then"
    )
    print(
        f"{plural(report.n_preemptions, 'preemption')}; {report.lost_percent:.3f} % of the device time lost: "
        f"{_hours(lost.recomputed_s + faults.recomputed_s)} done again, {_hours(lost.notice_s + faults.notice_s)} "
        f"saving on notice, {_hours(lost.restart_s + faults.restart_s)} restarting"
    )
    if report.n_node_faults or report.n_attempt_faults:
        print(f"{plural(report.n_node_faults, 'node fault')}, {plural(report.n_attempt_faults, 'dead attempt')}")


def _times(times: Spread | None) -> list[Cell]:
    if times is None:
        return ["", "", ""]
    return [duration(times.mean_s), duration(times.p50_s), duration(times.p99_s)]


def _hours(device_s: float) -> str:
    return f"{device_s / 3600.0:,.1f} h"
