"""Measure figures: `python bench/run.py [--quick] [ID...]` prints one JSON line each.

Without ids all are measured. `--quick` takes under 50 s an id. Exit 0 when every figure asked for was measured.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.figure import Measure, Unavailable

MEASURES = {
    "start.cold_ratio": "start:cold_ratio",
    "start.warm_speedup": "warm:warm_speedup",
    "start.peers": "peers:start_table",
    "start.throughput": "start:throughput",
    "start.submits": "start:submits",
    "start.submits_batch": "start:submits_batch",
    "snapshot.ms": "warm:snapshot_ms",
    "preempt.latency_s": "attempts:preempt_latency_s",
    "kill.seconds": "attempts:kill_seconds",
    "adopt.seconds": "attempts:adopt_seconds",
    "health.level0_ms": "attempts:level0_ms",
    "idle.cpu_percent": "attempts:idle_cpu_percent",
    "idle.rss_mb": "attempts:idle_rss_mb",
    "ingest.log_ms": "ingest:log_ms",
    "sched.round_ms_10k": "rounds:round_ms_10k",
    "sched.round_ms_100k": "rounds:round_ms_100k",
    "sched.growth": "rounds:growth",
    "sched.philly_seconds": "sched:philly_seconds",
    "sched.philly_critical_p99_s": "sched:philly_critical_p99_s",
    "sched.philly_lost_percent": "sched:philly_lost_percent",
    "sched.philly_rest_ratio": "sched:philly_rest_ratio",
    "sched.overload_p99_s": "sched:overload_p99_s",
    "sched.openb_allocation": "openb:openb_allocation",
    "sched.busy_percent": "busy:busy_percent",
    "agent.step_ms": "agent:step_ms",
    "agent.trials_ratio": "digits:trials_ratio",
    "agent.busy_percent": "lab:busy_percent",
    "agent.hours_per_true_gain": "gains:hours_per_true_gain",
    "agent.regret25": "search:regret25",
    "agent.regret50": "search:regret50",
    "agent.optimism": "search:optimism",
    "agent.rubbish_ratio": "search:rubbish_ratio",
    "agent.proposal_ms": "search:proposal_ms",
    "model.strong_ratio": "model:strong_ratio",
    "model.strong_share": "model:strong_share",
    "model.weak_ratio": "model:weak_ratio",
    "model.lost_turns_percent": "live:lost_turns_percent",
    "model.live_difference": "live:live_difference",
    "agent.null_sessions_percent": "trust:null_sessions_percent",
    "agent.power_percent": "trust:power_percent",
    "sweeps.nights": "nights:nights",
    "sandbox.escapes": "sandbox:escapes",
    "sandbox.start_ms": "sandbox:start_ms",
    "edits.commit_ms": "edits:commit_ms",
    "edits.checkout_ms": "edits:checkout_ms",
    "scoring.start_ms": "scoring:start_ms",
    "scoring.call_ms": "scoring:call_ms",
    "code.cheats_refused": "code:cheats_refused",
    "code.parallel": "code:parallel",
    "chat.first_token_ms": "chat:first_token_ms",
    "chat.rounds_ratio": "chat:rounds_ratio",
    "cli.help_ms": "cli:help_ms",
    "web.interactive_ms": "web:interactive_ms",
    "web.event_p95_ms": "web:event_p95_ms",
}
"""Figure id -> module of `bench.figures` and function; imported on use, so that groups do not load each other."""


def measure_of(figure_id: str) -> Measure:
    module, _, function = MEASURES[figure_id].partition(":")
    found: Measure = getattr(import_module(f"bench.figures.{module}"), function)
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", metavar="ID", help=", ".join(MEASURES))
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, under 50 s an id")
    parser.add_argument(
        "--traces", metavar="DIR", help="folder of philly_jobs.csv and the openb lists; NIGHTLAB_TRACES without it"
    )
    args = parser.parse_args(argv)
    if args.traces is not None:
        os.environ["NIGHTLAB_TRACES"] = args.traces
    unknown = [i for i in args.ids if i not in MEASURES]
    if unknown:
        parser.error(f"unknown figure {', '.join(unknown)}; there are: {', '.join(MEASURES)}")
    all_measured = True
    for figure_id in args.ids or MEASURES:
        try:
            print(measure_of(figure_id)(args.quick).line(), flush=True)
        except Unavailable as why:
            print(f"{figure_id}: not measured: {why}", file=sys.stderr, flush=True)
            all_measured = False
    return 0 if all_measured else 1


if __name__ == "__main__":
    sys.exit(main())
