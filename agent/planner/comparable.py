"""Which trials may be compared with each other, and why two may not. Pure.

Only what is known can tell two trials apart. What is not known is no reason against a pair: it is said beside the
verdict instead (`unpinned`), and so is a value that the script reported about itself (`is_self_reported`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from agent.store.views import TrialFacts, TrialState, TrialView
from agent.task import Task

MIXED = "mixed"
"""Attempts on several accelerator models gave one value: comparable with nothing, unless the task says so."""
UNREADABLE = "?"
"""The word of a source of data that could not be read."""


class Circumstance(StrEnum):
    """What may tell two trials apart."""

    DEVICE = "device"
    DATA = "data"
    CODE = "code"
    SCORER = "scorer"


def needs_exclusive(task: Task) -> bool:
    """Whether a value depends on what else the machine does, so that its trials must run alone."""
    is_timed = task.fidelity is not None and task.fidelity.unit == "seconds"
    return task.objective.kind != "quality" or is_timed


def why_not_comparable(
    one: TrialView, other: TrialView, task: Task, *, may_differ: Collection[Circumstance] = ()
) -> str | None:
    """The first reason why two trials may not form a pair, in words; None: they may. Symmetric but for its wording.

    Says nothing of their values: whether those are valid is the trials' own state. What the question is about
    `may_differ`: the code, where one asks what a change of the code did.
    """
    for trial in (one, other):
        alone = why_invalid(trial.facts, task)
        if alone is not None:
            return alone
    for circumstance in Circumstance:
        if circumstance in may_differ:
            continue
        reason = _differ_in(circumstance, one.facts, other.facts, task)
        if reason is not None:
            return reason
    return None


def _differ_in(circumstance: Circumstance, one: TrialFacts, other: TrialFacts, task: Task) -> str | None:
    match circumstance:
        case Circumstance.DEVICE:
            return _devices_differ(one, other, task)
        case Circumstance.DATA:
            return _data_differs(one, other, task)
        case Circumstance.CODE:
            return None if _is_declared(one, other) else _differ("the code differs", one.code, other.code)
        case Circumstance.SCORER:
            return _scorers_differ(one, other)


def why_invalid(facts: TrialFacts, task: Task) -> str | None:
    """Why a trial measured under these circumstances is worth nothing, whatever it is held against; None: it is."""
    if facts.data is not None and facts.data_after is not None and facts.data != facts.data_after:
        return f"the data changed while it ran ({_changed_paths(facts.data, facts.data_after, task)})"
    if needs_exclusive(task) and facts.is_alone is False:
        return f"was not alone on its devices: {_what_needs_it(task)} needs `exclusive`"
    return None


def unpinned(trials: Iterable[TrialView], task: Task) -> tuple[str, ...]:
    """What is not known of these trials, in words: beside a verdict on them it has to be said."""
    facts = [trial.facts for trial in trials]
    if not facts:
        return ()
    said = []
    if not task.data:
        said.append("data: the task names none")
    elif n := sum(1 for one in facts if not _has_data(one)):
        said.append(f"data: no fingerprint of {n} of {len(facts)} trials")
    if n := sum(1 for one in facts if one.code is None):
        said.append(f"code: no snapshot of {n} of {len(facts)} trials")
    if not task.comparable.across_devices and (n := sum(1 for one in facts if one.device_model is None)):
        said.append(f"device: the model is not known of {n} of {len(facts)} trials")
    return tuple(said)


WITHIN_REACH, SEALED, OTHER_USER = "within reach", "sealed", "sealed, other user"
"""How far a scorer that is kept apart was from the training that it measured (`TrialFacts.scorer_reach`)."""


def is_self_reported(task: Task) -> bool:
    """Whether the values are what the training script says of itself."""
    return task.score is None


def caveats(task: Task, trials: Sequence[TrialView]) -> str:
    """What a verdict on these trials rests on without having seen it, as a sentence; empty: on nothing."""
    said = []
    missing = unpinned(trials, task)
    if missing:
        said.append(f"unpinned ({'; '.join(missing)})")
    if is_self_reported(task):
        said.append("values self-reported by the training script")
    if n := sum(1 for trial in trials if trial.facts.scorer_reach == WITHIN_REACH):
        said.append(
            f"the scorer and its private files were within reach of the training of {n} of {len(trials)} trials"
        )
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def measured_apart(trials: Sequence[TrialView]) -> str:
    """That what measured these trials was out of reach of their training, as a sentence; empty: not of all."""
    reached = {trial.facts.scorer_reach for trial in trials}
    if not reached or not reached <= {SEALED, OTHER_USER}:
        return ""
    return (
        f"Measured by a scorer that was kept apart from the training ({'; or '.join(sorted(filter(None, reached)))})."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Two sides on the same seeds."""

    pairs: tuple[tuple[TrialView, TrialView], ...]
    """Measured and comparable, in the order of their seeds."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many pairs are not comparable, by reason."""

    @property
    def values(self) -> list[tuple[float, float]]:
        return [(a.value, b.value) for a, b in self.pairs if a.value is not None and b.value is not None]

    def sentence(self) -> str | None:
        """What was left out, for a person; None: nothing."""
        if not self.left_out:
            return None
        n = sum(self.left_out.values())
        reasons = "; ".join(f"{count}: {reason}" for reason, count in sorted(self.left_out.items()))
        return f"{n} pair{'s' if n > 1 else ''} left out as not comparable ({reasons})."


def comparable_pairs(
    first: Iterable[TrialView],
    second: Iterable[TrialView],
    task: Task,
    *,
    by: Callable[[TrialView], tuple[str | int, ...]] = lambda trial: (trial.seed,),
    may_differ: Collection[Circumstance] = (),
) -> Pairs:
    """Pair measured trials by seed (or by what `by` says), and leave out what may not be compared.

    Each side has one measured trial at most for each value of `by`.
    """
    partners = {by(trial): trial for trial in second if _is_measured(trial)}
    pairs: list[tuple[TrialView, TrialView]] = []
    left_out: Counter[str] = Counter()
    for trial in sorted(first, key=by):
        partner = partners.get(by(trial))
        if partner is None or not _is_measured(trial):
            continue
        reason = why_not_comparable(trial, partner, task, may_differ=may_differ)
        if reason is None:
            pairs.append((trial, partner))
        else:
            left_out[reason] += 1
    return Pairs(pairs=tuple(pairs), left_out=dict(left_out))


def _is_measured(trial: TrialView) -> bool:
    return trial.state is TrialState.MEASURED and trial.value is not None


def _has_data(facts: TrialFacts) -> bool:
    known = (facts.data, facts.data_after)
    return all(text is not None and UNREADABLE not in text.split() for text in known)


def _what_needs_it(task: Task) -> str:
    return "a fidelity in seconds" if task.objective.kind == "quality" else f"a metric of {task.objective.kind}"


def _devices_differ(one: TrialFacts, other: TrialFacts, task: Task) -> str | None:
    if task.comparable.across_devices:
        return None
    if MIXED in (one.device_model, other.device_model):
        return "attempts on several accelerator models gave one value"
    return _differ("the accelerator models differ", one.device_model, other.device_model)


def _data_differs(one: TrialFacts, other: TrialFacts, task: Task) -> str | None:
    if one.data is None or other.data is None or one.data == other.data:
        return None
    return f"the data changed between them ({_changed_paths(one.data, other.data, task)})"


def _scorers_differ(one: TrialFacts, other: TrialFacts) -> str | None:
    if (one.scorer is None) != (other.scorer is None):
        return "one value comes from the scorer, the other from the script itself"
    return _differ("the scorer differs", one.scorer, other.scorer)


def _is_declared(one: TrialFacts, other: TrialFacts) -> bool:
    """Whether they run different code on purpose."""
    return (None if one.edited is None else one.edited.tree) != (None if other.edited is None else other.edited.tree)


def _differ(what: str, one: str | None, other: str | None) -> str | None:
    if one is None or other is None or one == other:
        return None
    first, second = sorted((_short(one), _short(other)))
    return f"{what}: {first} and {second}"


def _short(text: str) -> str:
    """A digest by its first characters; a model's name whole."""
    is_digest = len(text) >= 32 and all(c in "0123456789abcdef" for c in text)
    return text[:12] if is_digest else text


def _changed_paths(before: str, after: str, task: Task) -> str:
    """Which sources of the task changed: a fingerprint has one word for each, in the order of the task."""
    words = before.split(), after.split()
    if len(words[0]) != len(words[1]) or len(words[0]) != len(task.data):
        return "another list of sources"
    changed = [source.path for source, a, b in zip(task.data, *words, strict=True) if a != b]
    return ", ".join(changed)
