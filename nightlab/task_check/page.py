"""What a check found, for a person or as data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from agent.planner.readiness import Level, Readiness
from agent.task import Task
from nightlab.output import duration, print_words

from .running import Checked


def check_data(checked: Checked, readiness: Readiness) -> dict[str, Any]:
    return {
        **asdict(readiness),
        "runs": [asdict(run) for run in checked.runs],
        "preemption": None if checked.preemption is None else asdict(checked.preemption),
    }


def print_check(task: Task, checked: Checked, readiness: Readiness) -> None:
    metric = task.objective.metric
    for run in checked.runs:
        value = f"{metric} = {run.value:.6g}" if run.value is not None else f"no value: {run.note}"
        print_words(f"seed {run.seed}: {value} ({duration(run.run_s)})")
    print()
    for name, text in _lines(checked, readiness):
        print(f"  {name:22} {text}")
    print()
    for finding in readiness.findings:
        advice = f" What to do: {finding.what_to_do}." if finding.what_to_do else ""
        print_words(f"{finding.level.value}: {finding.text}.{advice}")
    n_warnings = sum(1 for finding in readiness.findings if finding.level is Level.WARNING)
    if not readiness.can_succeed:
        print("a session on this task could not succeed")
    else:
        print("ready" if not n_warnings else "a session could succeed; read the warnings first")


def _lines(checked: Checked, readiness: Readiness) -> list[tuple[str, str]]:
    host = max((run.host_memory_mb or 0 for run in checked.runs), default=0)
    device = max((run.device_memory_mb or 0 for run in checked.runs), default=0)
    lines = [
        ("noise between seeds", "" if readiness.noise is None else f"{readiness.noise:.3g} (standard deviation)"),
        ("time of a trial", duration(readiness.trial_s)),
        ("memory of a trial", f"{host} MB of the machine" if host else ""),
        ("device memory", f"{device} MB" if device else ""),
        ("the whole session", f"about {duration(readiness.session_s)}" if readiness.session_s else ""),
        ("pairs at the end", "" if readiness.n_pairs is None else f"at most {readiness.n_pairs}"),
        (
            "smallest gain seen",
            "" if readiness.smallest_gain is None else f"{readiness.smallest_gain:.3g} (with a chance of 80 %)",
        ),
    ]
    return [(name, text) for name, text in lines if text]
