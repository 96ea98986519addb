"""What a trial is, to people who may have to be asked about it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from agent.gates.freedom import Action
from agent.gates.gate import Answer, Gate, GateKind
from agent.planner.budget import mean_device_seconds
from agent.planner.history import History
from agent.planner.reach import beyond
from agent.store.views import ParamValue, Purpose, TrialState, TrialView
from agent.task import Task

DENIED = "denied"
"""Exit reason of a trial that people did not want, where those who suggest are shown it."""


def action_of(trial: TrialView, task: Task, history: History, guests: Collection[str]) -> Action:
    """A proposed trial as something that may need a person.

    Args:
        guests: proposers that are models or outside agents, beside those that the trial's own facts tell of.
    """
    return Action(
        subject=subject_of(trial),
        kinds=_kinds(trial, task, history, guests),
        what=_words(trial, task),
        cost_device_s=mean_device_seconds(history) if trial.worth is None else trial.worth.cost_s,
        trial=trial,
    )


def subject_of(trial: TrialView) -> str:
    """The same for the same idea, under whatever number it comes: what was denied is not asked about again."""
    if trial.purpose is Purpose.SEARCH:
        return trial.configuration
    return f"{trial.configuration}/{trial.purpose}/{trial.seed}"


def with_denied(history: History, gates: Iterable[Gate]) -> History:
    """The history as those who suggest see it: what people denied stands in it as tried, with what they said.

    So nobody suggests it again, and whoever did reads why.
    """
    known = {trial.trial_id for trial in history.trials}
    denied = [gate for gate in gates if gate.answer is Answer.DENY and gate.trial is not None]
    told = [
        replace(gate.trial, state=TrialState.INVALID, note=gate.words, exit_reason=DENIED)
        for gate in denied
        if gate.trial is not None and gate.trial.trial_id not in known
    ]
    return History.of((*history.trials, *told)) if told else history


def _kinds(trial: TrialView, task: Task, history: History, guests: Collection[str]) -> tuple[GateKind, ...]:
    is_guest = trial.facts.model is not None or trial.facts.prompt is not None or trial.suggested_by in guests
    is_asked = is_guest or trial.facts.fixes is not None
    kinds = [GateKind.OUTSIDE_SPACE] if is_asked and beyond(trial.params, task) else []
    if is_asked and _is_new_code(trial, history):
        kinds.append(GateKind.CODE)
    if trial.facts.fixes is not None:
        kinds.append(GateKind.FIX)
    elif is_guest:
        kinds.append(GateKind.TRIAL)
    return tuple(kinds)


def _is_new_code(trial: TrialView, history: History) -> bool:
    """It edits the code, and no trial before it ran that."""
    code = trial.facts.edited
    known = (one.facts.edited for one in history.trials if one.number < trial.number and not one.is_new)
    return code is not None and all(one is None or one.tree != code.tree for one in known)


def _words(trial: TrialView, task: Task) -> str:
    params = ", ".join(f"{name}={_shown(value)}" for name, value in trial.params.items())
    code = trial.facts.edited
    if code is not None:
        edit = f"an edit of {code.parent or 'the base'}, +{code.added} -{code.removed} lines in {', '.join(code.files)}"
        params = f"{edit}{', ' if params else ''}{params}"
    outside = beyond(trial.params, task)
    mends = f"; mends {trial.facts.fixes}" if trial.facts.fixes is not None else ""
    said = f" ({'; '.join(outside)})" if outside else ""
    return f"run {trial.trial_id}, suggested by {trial.suggested_by}: {params}{said}{mends}; why: {trial.why}"


def _shown(value: ParamValue) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
