"""Asking a model why a job failed where rules can not tell: what it is shown, and what of its answer holds. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

import prompts
from agent.doctor.answer import ASKED, Answer
from agent.doctor.diagnosis import Diagnosis, FailureClass
from agent.doctor.evidence import Evidence
from agent.doctor.signs import signs
from agent.llm.untrusted import clean, fenced
from agent.planner.configuration import canonical, problems
from agent.planner.suggested import allowed
from agent.store.views import ParamValue
from agent.task import Task
from prompts import Rendered

PROMPT = "diagnose"
MAX_TOKENS = 400
"""Of an answer."""
_OUTPUT_CHARACTERS = 5_000
_METRICS_CHARACTERS = 600
_SENTENCE = 240
_LINES_OF_RANK = 12
_MOST_RANKS = 4
_MOST_CHANGES = 3
_VARIES = re.compile(r"0x[0-9a-fA-F]+|\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What holds of an answer."""

    diagnosis: Diagnosis
    refusals: tuple[str, ...]
    """What of it does not, a sentence each."""


def shown_output(evidence: Evidence) -> str:
    """The ends of the outputs, the common one first; empty: there is none."""
    if evidence.output is None:
        return evidence.line or ""
    parts = []
    for end in evidence.output.ends[: 1 + _MOST_RANKS]:
        lines = end.lines if end.rank is None else end.lines[-_LINES_OF_RANK:]
        title = [] if end.rank is None else [f"rank {end.rank}:"]
        parts.append("\n".join([*title, *lines]))
    return "\n".join(parts)


def signature(evidence: Evidence) -> str:
    """The same for failures that differ in numbers only."""
    text = f"{evidence.exit_reason}\n{evidence.exit_code}\n{shown_output(evidence)}"
    return hashlib.sha256(_VARIES.sub("#", text).encode("utf-8", "replace")).hexdigest()[:16]


def question(evidence: Evidence, params: Mapping[str, ParamValue], task: Task) -> Rendered:
    """The prompt. All that a job has written, names of metrics too, is inside fences."""
    words = signs().words
    metrics = "\n".join(f"{name} = {'not finite' if v is None else f'{v:.6g}'}" for name, v in evidence.metrics.items())
    return prompts.load(PROMPT).render(
        classes="\n".join(f"{each.value}: {words[each].cause}" for each in ASKED),
        ended=_ended(evidence),
        parameters="\n".join(f"{name} = {params[name]}; allowed: {allowed(name, task)}" for name in task.space),
        metrics=fenced(metrics or "none", label="last values of its metrics", limit=_METRICS_CHARACTERS),
        output=fenced(shown_output(evidence) or "nothing", label="end of its output", limit=_OUTPUT_CHARACTERS),
    )


def checked(answer: Answer, evidence: Evidence, params: Mapping[str, ParamValue], task: Task, *, by: str) -> Checked:
    """The answer as a diagnosis, never a sure one.

    Without a line that the output really has it does not count: guesses of small models are worse than none.
    """
    refusals: list[str] = []
    failure = answer.failure
    if failure not in ASKED:
        refusals.append(f"that it was {failure.value} would be known to the runtime")
        failure = FailureClass.UNKNOWN
    words = signs().words[failure]
    line = _sentence(answer.evidence)
    shown = [line for line in shown_output(evidence).splitlines() if line.strip()]
    found = next((each for each in reversed(shown) if line and line in clean(each)), None)
    if found is None and line:
        refusals.append(f"the output has no line {line[:80]!r}")
    elif found is None and failure is not FailureClass.UNKNOWN:
        refusals.append(f"it calls it {failure.value} without any line that says so")
    is_told = failure is not FailureClass.UNKNOWN and found is not None
    change = _change(answer, params, task, refusals) if is_told else None
    if not is_told:
        failure, words = FailureClass.UNKNOWN, signs().words[FailureClass.UNKNOWN]
    diagnosis = Diagnosis(
        failure=failure,
        evidence=(found[:_SENTENCE],) if found is not None else tuple(each[:_SENTENCE] for each in shown[-2:]),
        cause=(_sentence(answer.cause) or words.cause) if is_told else words.cause,
        suggestion=(_sentence(answer.suggestion) or words.suggestion) if is_told else words.suggestion,
        change=change,
        made_by=by,
        prompt=f"{PROMPT}@{prompts.load(PROMPT).version}",
        signature=signature(evidence),
    )
    return Checked(diagnosis=diagnosis, refusals=tuple(refusals))


def _ended(evidence: Evidence) -> str:
    code = "" if evidence.exit_code is None else f", exit code {evidence.exit_code}"
    peak = "" if evidence.peak_memory_mb is None else f", most memory held {evidence.peak_memory_mb:.0f} MiB"
    earlier = "" if not evidence.earlier else f", after {', '.join(evidence.earlier)}"
    return f"{evidence.exit_reason or 'unknown'}{code}{peak}{earlier}"


def _change(
    answer: Answer, params: Mapping[str, ParamValue], task: Task, refusals: list[str]
) -> dict[str, ParamValue] | None:
    """What it wants to set otherwise, if all of that is allowed."""
    wanted = {name: value for name, value in answer.change.items() if params.get(name) != value}
    if not wanted:
        return None
    if len(wanted) > _MOST_CHANGES:
        refusals.append(f"a fix changes {_MOST_CHANGES} parameters at most, not {len(wanted)}")
        return None
    whole = {**params, **wanted}
    wrong = problems(whole, task)
    if wrong:
        refusals.append(f"the change can not be tried: {_sentence('; '.join(wrong))}")
        return None
    typed = canonical(whole, task)
    changed = {name: typed[name] for name in wanted if typed[name] != params.get(name)}
    return changed or None


def _sentence(text: str) -> str:
    return " ".join(clean(text[: 8 * _SENTENCE]).split())[:_SENTENCE]
