"""Gating: which of the ready trials go ahead, which wait for a person, and which were denied.

A trial that waits stays proposed and holds no slot; the session goes on with the others. The answers are rows, so a
session that was killed between question and answer finds both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent.deps import Deps
from agent.gates.actions import action_of, with_denied
from agent.gates.freedom import Action, Course, Known, Ruling, ruling, why_ask
from agent.gates.gate import Answer, Gate, GateKind
from agent.planner.history import History, Proposal
from agent.planner.proposers.protocol import Proposer
from agent.store.views import TrialView


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    waiting: frozenset[str]
    """Trials that wait for an answer."""
    approved: frozenset[str]
    """Trials that a person let through: they go first."""
    denied: tuple[tuple[TrialView, str], ...]
    """Trials to be withdrawn, with what whoever suggested them is told."""


def gate_ready(deps: Deps) -> Gated:
    """Ask about what needs asking, and sort the ready trials by the answers. Raises nothing of its own."""
    history = deps.book.history()
    guests = guests_of(deps)
    actions = {t.trial_id: action_of(t, deps.task, history, guests) for t in history.ready if t.is_new}
    is_concerned = any(_may_ask(kind, deps) for action in actions.values() for kind in action.kinds)
    if not is_concerned and not deps.memory.open_gates:
        return Gated(waiting=frozenset(), approved=frozenset(), denied=())
    deps.gates.settle()
    known, now = deps.gates.known(), deps.clock()
    deps.memory.gates = tuple(known.values())
    rulings = {trial_id: ruling(action, deps.task.autonomy, known, now) for trial_id, action in actions.items()}
    asked = _ask([one for one in rulings.values() if one.course is Course.ASKS], deps)
    waits = [one.gate for one in rulings.values() if one.course is Course.WAITS and one.gate is not None]
    still = {gate.gate_id for gate in (*waits, *asked)} | _about_running(known.values(), history)
    idle = [gate for gate in known.values() if gate.is_open and gate.gate_id not in still]
    deps.gates.withdraw(idle, "it is not to be answered any more")
    deps.memory.open_gates = frozenset(still)
    return _sorted(rulings, deps)


def early_stop(trial: TrialView, why: str, deps: Deps) -> Ruling:
    """Whether a running trial may be ended because a model says that it is lost; asks where a person has to be asked.

    What it costs is what the trial has used, which would be lost.
    """
    view = deps.memory.jobs.get(trial.carried_by or "")
    used_s = trial.device_seconds + (0.0 if view is None else view.device_seconds(deps.clock()))
    action = Action(
        subject=trial.trial_id,
        kinds=(GateKind.EARLY_STOP,),
        what=f"end {trial.trial_id} early: {why}",
        cost_device_s=used_s,
    )
    if not _may_ask(GateKind.EARLY_STOP, deps):
        return ruling(action, deps.task.autonomy, {}, deps.clock())
    found = ruling(action, deps.task.autonomy, deps.gates.known(), deps.clock())
    if found.course is Course.ASKS:
        deps.memory.open_gates |= {gate.gate_id for gate in _ask([found], deps)}
    return found


def _sorted(rulings: dict[str, Ruling], deps: Deps) -> Gated:
    waiting = {i for i, one in rulings.items() if one.course in (Course.ASKS, Course.WAITS)}
    asked_about = {i for i, one in rulings.items() if one.course is Course.GOES and one.gate is not None}
    denied = [(deps.book.trial(i), one.why) for i, one in rulings.items() if one.course is Course.REFUSED]
    return Gated(waiting=frozenset(waiting), approved=frozenset(asked_about), denied=tuple(denied))


def recall_gates(deps: Deps) -> None:
    """What this process has not seen yet: the questions so far, and the trials that wait for their answers."""
    known = deps.gates.known()
    deps.memory.gates = tuple(known.values())
    deps.memory.waiting = _still_waiting(known, deps)


def seen_history(deps: Deps) -> History:
    """The history as proposers are shown it."""
    return with_denied(deps.book.history(), deps.memory.gates)


class Shown:
    """Implements `Proposer`: another one, which sees what people denied as tried."""

    def __init__(self, inner: Proposer, gates: Sequence[Gate]) -> None:
        self._inner = inner
        self._gates = gates

    @property
    def name(self) -> str:
        return self._inner.name

    def ask(self, history: History, n: int) -> list[Proposal]:
        return self._inner.ask(with_denied(history, self._gates), n)

    def tell(self, history: History) -> None:
        self._inner.tell(with_denied(history, self._gates))


def _still_waiting(known: Known, deps: Deps) -> frozenset[str]:
    now = deps.clock()
    if not any(gate.is_waiting(now) for gate in known.values()):
        return frozenset()
    history, guests = deps.book.history(), guests_of(deps)
    ready = {t.trial_id: action_of(t, deps.task, history, guests) for t in history.ready if t.is_new}
    courses = {i: ruling(action, deps.task.autonomy, known, now).course for i, action in ready.items()}
    return frozenset(i for i, course in courses.items() if course is Course.WAITS)


def close_gates(deps: Deps, why: str) -> None:
    """Of a session that ends: nobody needs to answer any more."""
    open_ones = [gate for gate in deps.gates.known().values() if gate.is_open]
    deps.gates.withdraw(open_ones, why)


def guests_of(deps: Deps) -> frozenset[str]:
    """Names of the proposers that are models or outside agents."""
    ideas = deps.record.suggestions() if "outside" in deps.task.search.use else []
    arms = {idea.arm for idea in ideas if idea.arm is not None and not idea.is_of_person}
    return frozenset(arms | {proposer.name for proposer in deps.memory.ahead})


def _may_ask(kind: GateKind, deps: Deps) -> bool:
    """Whether an action of this kind is ever asked about, whatever it costs."""
    return why_ask(kind, deps.task.autonomy, None) is not None


def _about_running(found: Iterable[Gate], history: History) -> set[int]:
    """Open questions whether a trial may be ended that still runs."""
    running = {trial.trial_id for trial in history.in_flight}
    early = [gate for gate in found if gate.is_open and gate.kind is GateKind.EARLY_STOP]
    return {gate.gate_id for gate in early if gate.subject in running}


def _ask(rulings: Sequence[Ruling], deps: Deps) -> list[Gate]:
    return deps.gates.ask(
        rulings,
        answer_within_s=deps.task.autonomy.answer_within_minutes * 60,
        unanswered=Answer(deps.task.autonomy.unanswered),
    )
