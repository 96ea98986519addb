"""Whether an action goes ahead, is asked about, waits, or is refused: by the task, its cost and the answers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from agent.gates.gate import Answer, Gate, GateKind
from agent.store.views import TrialView
from agent.task import Autonomy, Freedom


class Course(StrEnum):
    GOES = "goes"
    """Nothing is in its way."""
    ASKS = "asks"
    """A person has to be asked first, and was not yet."""
    WAITS = "waits"
    """Asked; the answer is not there yet."""
    REFUSED = "refused"
    """Denied, by a person or for want of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something that a model or an outside agent brings about."""

    subject: str
    kinds: tuple[GateKind, ...]
    """All that it is, the gravest first; empty: nobody needs to be asked, whatever the task says."""
    what: str
    """For a person: `s1-t7 (suggested by gpt): lr=0.3`."""
    cost_device_s: float | None
    """What it is expected to use, in device-seconds; None: not known."""
    trial: TrialView | None = None
    """The proposed trial, where it is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    action: Action
    course: Course
    kind: GateKind | None = None
    """Under which it is asked about; None where nobody needs to be asked."""
    why: str = ""
    """Why a person is asked, or what was answered."""
    gate: Gate | None = None
    """The question, where there is one; of what goes ahead, the one that was approved."""


Known = Mapping[tuple[GateKind, str], Gate]
"""The questions of a session, by kind and subject."""


def freedom_of(kind: GateKind, autonomy: Autonomy) -> Freedom:
    """What the task says about an action of this kind."""
    match kind:
        case GateKind.OUTSIDE_SPACE:
            return autonomy.outside_space
        case GateKind.CODE:
            return autonomy.code
        case GateKind.FIX:
            return autonomy.fixes
        case GateKind.TRIAL:
            return autonomy.trials
        case GateKind.EARLY_STOP:
            return autonomy.early_stops
    assert_never(kind)


def ruling(action: Action, autonomy: Autonomy, known: Known, now: float) -> Ruling:
    """What becomes of an action now. An answer that was given counts, whatever the cost is believed to be since."""
    asked = {kind: known[(kind, action.subject)] for kind in action.kinds if (kind, action.subject) in known}
    answers = {kind: gate.answer_at(now) for kind, gate in asked.items()}
    for kind, gate in asked.items():
        if answers[kind] is Answer.DENY:
            return Ruling(action=action, course=Course.REFUSED, kind=kind, why=_denied(gate), gate=gate)
    for kind in action.kinds:
        why = why_ask(kind, autonomy, action.cost_device_s)
        if why is None or answers.get(kind) is Answer.APPROVE:
            continue
        is_asked = kind in asked and answers[kind] is not Answer.WITHDRAWN
        course = Course.WAITS if is_asked else Course.ASKS
        return Ruling(action=action, course=course, kind=kind, why=why, gate=asked.get(kind))
    approved = next((gate for kind, gate in asked.items() if answers[kind] is Answer.APPROVE), None)
    return Ruling(action=action, course=Course.GOES, gate=approved)


def why_ask(kind: GateKind, autonomy: Autonomy, cost_device_s: float | None) -> str | None:
    """Why a person is asked about an action of this kind and cost; None: it just goes ahead."""
    limit = autonomy.ask_above_device_minutes
    match freedom_of(kind, autonomy):
        case "run":
            return None
        case "propose":
            return f"{_KEYS[kind]}: propose"
        case "ask" if cost_device_s is None:
            return f"what it costs is not known yet, which counts as more than {limit:g} device-minutes"
        case "ask" if cost_device_s > limit * 60:
            return f"about {cost_device_s / 60:.1f} device-minutes are more than {limit:g} (ask_above_device_minutes)"
        case "ask":
            return None
    raise AssertionError(kind)


_KEYS = {
    GateKind.OUTSIDE_SPACE: "autonomy.outside_space",
    GateKind.CODE: "autonomy.code",
    GateKind.FIX: "autonomy.fixes",
    GateKind.TRIAL: "autonomy.trials",
    GateKind.EARLY_STOP: "autonomy.early_stops",
}


def _denied(gate: Gate) -> str:
    """As whoever suggested it is told."""
    if gate.answer is None:
        return "denied: nobody answered in time"
    return gate.words
