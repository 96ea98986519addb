"""`nightlab simulate`: a trace of real jobs through our scheduler, in virtual time. Needs no runtime."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import Failure, wrong_use
from nightlab.output import note, plural, print_json
from nightlab.simulation_page import print_simulation, simulation_data

from .options import JsonOption, policy_at, seconds_of

if TYPE_CHECKING:
    from runtime.scheduling.policy import Policy
    from runtime.simulator.faults import Faults
    from runtime.simulator.workload import GivenCosts, Skipped

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})

EPILOG = (
    "Example:  nightlab simulate philly_jobs.csv --format philly --nodes 64x8 "
    "--window 2017-10-02..2017-10-16 --critical-share 0.1 --plot fortnight.svg"
)


@app.command(epilog=EPILOG)
def simulate(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="The file; .gz too. For `journal`: runtime.db.")],
    trace_format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="philly, openb, hp-spot, sacct or journal.")
    ],
    nodes: Annotated[
        str | None,
        typer.Option(
            metavar="NODES",
            help="64x8 (nodes x devices), 2x8xH100,4x4xA100, or a node list of openb or HP/Spot. "
            "Not needed for `journal`, which knows its own.",
        ),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(metavar="FROM..TO", help="Only what was submitted then: 2017-10-02..2017-10-16, or 0..14d."),
    ] = None,
    critical_share: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Make this share of the jobs critical, all others normal: 0.1."),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="OLD=NEW,...", help="Rename the trace's classes (QOS): high=critical,scavenger=exploratory."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the critical share and of the faults.")] = 0,
    checkpoint_every: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="How often jobs save; `never`.", show_default="10m; journal: as they did"),
    ] = None,
    notice_checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How long saving takes when asked to leave; `never`: they can not.",
            show_default="20s; journal: as it did",
        ),
    ] = None,
    grace: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="How long they may take to leave.", show_default="30s; journal: as submitted"
        ),
    ] = None,
    restart: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="What a resumed job needs before it goes on.", show_default="30s"),
    ] = None,
    node_mtbf: Annotated[
        str | None, typer.Option(metavar="TIME", help="Mean time between faults of one node: 30d. None without.")
    ] = None,
    repair: Annotated[str, typer.Option(metavar="TIME", help="How long a failed node is away.")] = "1h",
    device_mtbf: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Mean time on one device until the job on it dies: 365d. None without."),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="As for nightlab up; the default policy without.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw devices held and jobs waiting: .svg, .png or .pdf.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Replay a trace of real jobs with this scheduler, in virtual time: waits, utilization, work lost.

    Nothing is started and no runtime is needed. The same options give the same result.
    """
    from runtime.simulator.errors import SimulationError

    try:
        _simulate(
            trace,
            _format(trace_format),
            nodes,
            window,
            share=critical_share,
            classes=_renames(classes),
            seed=seed,
            costs=_costs(checkpoint_every, notice_checkpoint, grace, restart),
            faults=_faults(seed, node_mtbf, repair, device_mtbf),
            policy=_policy(policy),
            plot=plot,
            as_json=as_json,
        )
    except SimulationError as error:
        raise _as_failure(error) from error


def _simulate(
    trace: Path,
    trace_format: str,
    nodes: str | None,
    window: str | None,
    *,
    share: float | None,
    classes: dict[str, str],
    seed: int,
    costs: GivenCosts,
    faults: Faults,
    policy: Policy,
    plot: Path | None,
    as_json: bool,
) -> None:
    from runtime.simulator.cluster import parse_nodes
    from runtime.simulator.importers import READERS, Format, journal
    from runtime.simulator.instants import parse_window
    from runtime.simulator.plot import check_picture, draw, timeline_of
    from runtime.simulator.report import report_of
    from runtime.simulator.scenario import Scenario
    from runtime.simulator.simulation import simulate as run
    from runtime.simulator.workload import Skipped, arranged, with_classes, with_critical_share, with_given_costs

    if plot is not None:
        check_picture(plot)
    if nodes is not None:
        cluster = parse_nodes(nodes)
    elif trace_format == Format.JOURNAL:
        cluster = journal.read_nodes(trace)
    else:
        raise wrong_use("--nodes is missing: give the cluster, such as --nodes 64x8", code="no_nodes", path="nodes")
    skipped = Skipped()
    found = with_given_costs(with_classes(READERS[Format(trace_format)](trace, skipped), classes), costs)
    jobs = arranged(found, None if window is None else parse_window(window))
    if share is not None:
        jobs = with_critical_share(jobs, share, seed)
    if not jobs:
        raise wrong_use(_why_no_jobs(trace, window, skipped), code="no_jobs", path="trace")
    began = time.monotonic()
    ledger = run(Scenario(jobs=jobs, nodes=cluster, policy=policy, faults=faults))
    took_s = time.monotonic() - began
    report = report_of(ledger, policy)
    if plot is not None:
        title = f"{trace.name}: {plural(len(jobs), 'job')} on {plural(ledger.n_devices, 'device')}"
        draw(timeline_of(ledger, [c.name for c in report.classes]), plot, n_devices=ledger.n_devices, title=title)
    if as_json:
        print_json(simulation_data(report, skipped, n_nodes=len(cluster), plot=plot))
    else:
        print_simulation(report, skipped, n_jobs=len(jobs), n_nodes=len(cluster), took_s=took_s)
        if plot is not None:
            note(f"drawn: {plot}")


def _format(text: str) -> str:
    from runtime.simulator.importers import Format

    if text not in list(Format):
        known = ", ".join(Format)
        raise wrong_use(f"--format {text!r} is not known; there are: {known}", code="bad_format", path="format")
    return text


def _renames(text: str | None) -> dict[str, str]:
    renames = {}
    for part in (text or "").split(","):
        old, equals, new = (piece.strip() for piece in part.partition("="))
        if part.strip() and not (old and equals and new):
            raise wrong_use(f"--classes: {part!r} is not OLD=NEW", code="bad_classes", path="classes")
        if part.strip():
            renames[old] = new
    return renames


def _costs(every: str | None, notice: str | None, grace: str | None, restart: str | None) -> GivenCosts:
    """Those fields of `Costs` that were given."""
    given: GivenCosts = {}
    if every is not None:
        given["checkpoint_every_s"] = seconds_of("checkpoint-every", every, may_be_never=True, is_positive=True)
    if notice is not None:
        given["notice_checkpoint_s"] = seconds_of("notice-checkpoint", notice, may_be_never=True)
    if grace is not None:
        given["grace_s"] = seconds_of("grace", grace) or 0.0
    if restart is not None:
        given["restart_s"] = seconds_of("restart", restart) or 0.0
    return given


def _faults(seed: int, node_mtbf: str | None, repair: str, device_mtbf: str | None) -> Faults:
    from runtime.simulator.faults import Faults

    return Faults(
        seed=seed,
        node_mtbf_s=None if node_mtbf is None else seconds_of("node-mtbf", node_mtbf, is_positive=True),
        repair_s=seconds_of("repair", repair) or 0.0,
        device_mtbf_s=None if device_mtbf is None else seconds_of("device-mtbf", device_mtbf, is_positive=True),
    )


def _policy(path: Path | None) -> Policy:
    from runtime.scheduling.policy import Policy

    return Policy() if path is None else policy_at(path)


def _as_failure(error: Exception) -> Failure:
    from nightlab.failure import work_failed
    from runtime.simulator.errors import BadScenario, BadTrace

    message = str(error)
    if isinstance(error, BadTrace):
        return wrong_use(message, code="bad_trace", path="trace")
    if isinstance(error, BadScenario):
        return wrong_use(message, code="bad_scenario")
    return work_failed(message, code="simulation_failed")


def _why_no_jobs(trace: Path, window: str | None, skipped: Skipped) -> str:
    if window is not None:
        return f"{trace}: no job was submitted in {window}; leave --window out to see all"
    reasons = "; ".join(f"{n} {reason}" for reason, n in skipped.n_by_reason.items())
    return f"{trace}: there is no job to simulate" + (f" ({reasons})" if reasons else "")
