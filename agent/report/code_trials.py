"""Trials of edited code as a tree, and the chosen code with its diff, ready to be shown: every value is text. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.planner.objective import gain
from agent.store.views import CodeState, TrialState, TrialView

from . import wording
from .facts import ReportInput, best_trial, is_measured

MAX_DIFF_LINES = 600
MAX_LINE = 300
"""Characters of a line of the diff that are shown; the patch file has all of it."""
MAX_ROWS = 300
MAX_DEPTH = 12
"""Levels that are set in; deeper ones are shown at this one."""
_KINDS = (("+++", "head"), ("---", "head"), ("diff ", "head"), ("@@", "at"), ("+", "added"), ("-", "removed"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRow:
    number: int
    depth: int
    """0: made from the base."""
    made_from: str
    size: str
    files: str
    value: str
    over_parent: str
    """Gain over the value of the trial whose code it was made from, both on the search seed."""
    note: str
    """Why it has no value, or what should be known of it."""
    summary: str
    suggested_by: str
    is_best: bool
    is_bad: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    kind: str
    """head, at, added, removed; empty: as it was."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    trial: str
    size: str
    summary: str
    made_from: str
    over_parent: str
    chosen_over: str
    branch: str
    diff: tuple[DiffLine, ...]
    n_left_out: int
    """Lines of the diff that are not shown."""
    patch_name: str | None
    """The patch file beside the report; None: it can not be had, and `problem` says why."""
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeTables:
    rows: tuple[CodeRow, ...]
    n_left_out: int
    n_trials: int
    n_valid: int
    winner: Winner | None
    """None: the best runs the base code."""


def code_tables(facts: ReportInput) -> CodeTables | None:
    """None: the task edits no code."""
    edited = edited_trials(facts)
    if facts.task.code is None and not edited:
        return None
    rows = tuple(_row(trial, depth, facts) for trial, depth in _tree(edited))
    return CodeTables(
        rows=rows[:MAX_ROWS],
        n_left_out=max(0, len(rows) - MAX_ROWS),
        n_trials=len(edited),
        n_valid=sum(is_measured(trial) for trial in edited),
        winner=_winner(facts),
    )


def edited_trials(facts: ReportInput) -> list[TrialView]:
    """Search trials of edited code, in the order of their numbers."""
    return [trial for trial in facts.search_trials if trial.facts.edited is not None]


def best_code(facts: ReportInput) -> CodeState | None:
    """The code of the session's best configuration, so far; None: the base."""
    best = best_trial(facts)
    return None if best is None else best.facts.edited


def code_in_short(trial: TrialView, numbers: dict[str, int]) -> str:
    """`+12 -3 from 4`; `base`."""
    edited = trial.facts.edited
    return "base" if edited is None else f"{_lines(edited)} from {_made_from(edited, numbers)}"


def numbers_of(facts: ReportInput) -> dict[str, int]:
    return {trial.trial_id: trial.number for trial in facts.trials}


def _tree(edited: list[TrialView]) -> Iterator[tuple[TrialView, int]]:
    """Each after the one that it was made from, with its depth."""
    known = {trial.trial_id for trial in edited}
    children: dict[str | None, list[TrialView]] = {}
    for trial in edited:
        parent = trial.facts.edited.parent if trial.facts.edited is not None else None
        children.setdefault(parent if parent in known and parent != trial.trial_id else None, []).append(trial)
    open_ones = [(trial, 0) for trial in reversed(children.get(None, []))]
    while open_ones:
        trial, depth = open_ones.pop()
        yield trial, depth
        open_ones += [(child, depth + 1) for child in reversed(children.get(trial.trial_id, []))]


def _row(trial: TrialView, depth: int, facts: ReportInput) -> CodeRow:
    edited, best = trial.facts.edited, best_trial(facts)
    assert edited is not None
    return CodeRow(
        number=trial.number,
        depth=min(depth, MAX_DEPTH),
        made_from=_made_from(edited, numbers_of(facts)),
        size=_lines(edited),
        files=", ".join(edited.files),
        value=wording.number(trial.value),
        over_parent=_over_parent(trial, edited, facts),
        note=trial.note or ("" if trial.is_ended else trial.state.value),
        summary=edited.summary,
        suggested_by=trial.suggested_by,
        is_best=best is not None and best.trial_id == trial.trial_id,
        is_bad=trial.state is TrialState.INVALID,
    )


def _over_parent(trial: TrialView, edited: CodeState, facts: ReportInput) -> str:
    """Only where nothing but the code differs."""
    parent = parent_of(edited, facts)
    if parent is None or parent.value is None or trial.value is None or parent.params != trial.params:
        return wording.NONE
    return f"{gain(trial.value, parent.value, facts.task.objective.direction):+.4g}"


def parent_of(edited: CodeState, facts: ReportInput) -> TrialView | None:
    """The trial whose code it was made from; of the base, the default's. None: it was never run."""
    of_base = (t for t in facts.search_trials if t.facts.edited is None and t.suggested_by == "default")
    known = (t for t in facts.search_trials if t.trial_id == edited.parent)
    return next(of_base if edited.parent is None else known, None)


def _winner(facts: ReportInput) -> Winner | None:
    best, edited = best_trial(facts), best_code(facts)
    if best is None or edited is None:
        return None
    found = None if facts.session.result is None else facts.session.result.code
    over = None if found is None else found.over_parent
    lines = () if facts.patch is None else tuple(_diff_lines(facts.patch))
    return Winner(
        trial=best.trial_id,
        size=edited.size,
        summary=edited.summary,
        made_from=edited.parent or "the base",
        over_parent=""
        if over is None
        else f"{wording.estimate(over, signed=True)} {wording.bounds(over, signed=True)} over "
        f"{wording.plural(over.n, 'paired fresh seed')}",
        chosen_over="" if found is None else found.chosen_over,
        branch=edited.branch,
        diff=lines[:MAX_DIFF_LINES],
        n_left_out=max(0, len(lines) - MAX_DIFF_LINES),
        patch_name=None if facts.patch is None else patch_name(facts),
        problem=facts.patch_problem,
    )


def patch_name(facts: ReportInput) -> str:
    return f"{facts.session.session_id}.patch"


def _diff_lines(patch: bytes) -> Iterator[DiffLine]:
    for line in patch.decode("utf-8", errors="replace").split("\n"):
        kind = next((kind for start, kind in _KINDS if line.startswith(start)), "")
        yield DiffLine(kind=kind, text=line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…")


def _lines(edited: CodeState) -> str:
    return f"+{edited.added} −{edited.removed}"


def _made_from(edited: CodeState, numbers: dict[str, int]) -> str:
    return "base" if edited.parent is None else str(numbers.get(edited.parent, edited.parent))
