"""The corpus: how jobs ended and what they printed, as files, and each as the evidence that the doctor would get.

A case is what the whole way makes of it: the runtime's own reading of the exit and the output, the error lines and ends
that its server tells, and then the rules.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from agent.doctor.diagnosis import FailureClass
from agent.doctor.evidence import Evidence
from runtime.model.evidence import ExitPattern, parse_patterns
from runtime.model.outcome import ExitFacts, classify
from runtime.server.error_lines import group_errors
from runtime.server.log_ends import log_ends
from runtime_client.models import LogErrorLine, LogErrors

CASES = Path(__file__).parent / "cases"
_TAIL = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    failure: FailureClass
    source: str
    evidence: Evidence


def cases() -> list[Case]:
    return [_case(path) for path in sorted(CASES.glob("*.txt"))]


def _case(path: Path) -> Case:
    head, _, output = path.read_bytes().decode().partition("---\n")
    given = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    return Case(
        name=path.stem,
        failure=FailureClass(given["failure"]),
        source=given["source"],
        evidence=evidence_of(output, given),
    )


def evidence_of(output: str, given: dict[str, str]) -> Evidence:
    """The evidence of a job that printed this; `given` is what else is known of it."""
    code = int(given["exit_code"]) if given.get("exit_code") else None
    reason, line = given.get("exit_reason"), given.get("line")
    if reason is None:
        facts = ExitFacts(
            stop=None,
            exit_code=code,
            log_tail=output[-_TAIL:],
            n_ranks=int(given.get("n_ranks", 1)),
            patterns=patterns(),
        )
        ending = classify(facts)
        reason, line = ending.reason.value, ending.evidence
    return Evidence(
        exit_reason=reason,
        exit_code=code,
        line=line,
        output=read_output(output),
        metrics=json.loads(given.get("metrics", "{}")),
        peak_memory_mb=float(given["peak_memory_mb"]) if "peak_memory_mb" in given else None,
        memory_mb=float(given["memory_mb"]) if "memory_mb" in given else None,
    )


def read_output(output: str) -> LogErrors:
    """What the server tells of an output."""
    lines = tuple(
        LogErrorLine(text=one.text, count=one.count, ranks=tuple(sorted(one.ranks)))
        for one in group_errors([(None, output)])
    )
    return LogErrors(job_id="j1", attempt=1, lines=lines, is_whole=True, ends=log_ends([(None, output)]))


@cache
def patterns() -> tuple[ExitPattern, ...]:
    return parse_patterns(files("runtime.model").joinpath("exit_patterns.toml").read_text(encoding="utf-8"))
