"""The plan of a session as a tree with its evidence: claims, the pairs they rest on, what people expect. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.planner.claims import compared
from agent.planner.hypothesis import FINAL, Hypothesis
from agent.planner.pairing import Paired
from agent.planner.plan import Plan
from agent.steering.word import Kind
from agent.store.plan_reading import RevisionTold
from agent.store.steering import Steering
from agent.store.views import Purpose, SuggestionView, TrialView
from agent.task import Task
from agent.web.session_wire import Claim, Idea, Pair, RevisionLine

MOST_CLAIMS = 60
MOST_PAIRS = 40
MOST_IDEAS = 60


def claims(plan: Plan, task: Task, trials: Sequence[TrialView]) -> tuple[Claim, ...]:
    """The session's own, then the newest; at most `MOST_CLAIMS`."""
    by_id = {trial.trial_id: trial for trial in trials}
    firsts = _first_trials(trials)
    own, *others = plan.hypotheses
    shown = (own, *others[-(MOST_CLAIMS - 1) :])
    by_configuration = {h.configuration: h.hypothesis_id for h in shown[1:] if h.configuration is not None}
    return tuple(_claim(one, task, by_id, firsts, by_configuration) for one in shown)


def ideas(
    said: Sequence[Steering], suggestions: Sequence[SuggestionView], trials: Sequence[TrialView], plan: Plan | None
) -> tuple[Idea, ...]:
    """What people expect, oldest first; the newest `MOST_IDEAS` of them."""
    by_id = {trial.trial_id: trial for trial in trials}
    about = {} if plan is None else {h.configuration: h.hypothesis_id for h in plan.hypotheses[1:]}
    made = {(one.at, one.why): one for one in suggestions if one.arm is None}
    found = []
    for one in [one for one in said if one.word.kind is Kind.HYPOTHESIS][-MOST_IDEAS:]:
        suggestion = made.get((one.at, one.word.text))
        trial = None if suggestion is None else by_id.get(suggestion.trial_id or "")
        found.append(
            Idea(
                steering_id=one.steering_id,
                at=one.at,
                by=one.by,
                text=one.word.text,
                params=one.word.params,
                taken_at=one.taken_at,
                trial_id=None if trial is None else trial.trial_id,
                hypothesis_id=None if trial is None else about.get(trial.configuration),
                note=None if suggestion is None else suggestion.note,
            )
        )
    return tuple(found)


def revision_lines(told: Sequence[RevisionTold], said: Sequence[Steering]) -> tuple[RevisionLine, ...]:
    """Each with the people whose words it tells of: those that were taken with it, before the next one was written.

    Args:
        told: the newest first.
    """
    found, until = [], float("inf")
    for one in told:
        by = [s.by for s in said if s.taken_at is not None and one.at <= s.taken_at < until and s.words in one.reason]
        found.append(
            RevisionLine(
                revision=one.revision, at=one.at, phase=one.phase, reason=one.reason, said_by=tuple(dict.fromkeys(by))
            )
        )
        until = one.at
    return tuple(found)


def _first_trials(trials: Sequence[TrialView]) -> dict[str, TrialView]:
    """The search trial that tried each configuration first."""
    found: dict[str, TrialView] = {}
    for trial in trials:
        if trial.purpose is Purpose.SEARCH:
            found.setdefault(trial.configuration, trial)
    return found


def _claim(
    one: Hypothesis,
    task: Task,
    by_id: Mapping[str, TrialView],
    firsts: Mapping[str, TrialView],
    by_configuration: Mapping[str, str],
) -> Claim:
    first = firsts.get(one.configuration or "")
    pairs = _pairs(one, by_id)
    return Claim(
        hypothesis_id=one.hypothesis_id,
        under=_under(one, first, by_id, by_configuration),
        statement=one.statement,
        status=one.status,
        note=one.note,
        acceptance=one.acceptance,
        probability=one.prediction.probability,
        effect=one.prediction.effect,
        made_by=one.prediction.made_by,
        brier=one.brier,
        e_value=one.e_value,
        e_needed=1 / one.alpha,
        alpha=one.alpha,
        n_pairs=one.n_pairs,
        difference=compared(one, task, pairs).interval if len(pairs.pairs) > 1 else None,
        pairs=tuple(_pair(a, b) for a, b in pairs.pairs[:MOST_PAIRS]),
        trial_id=None if first is None else first.trial_id,
        params={} if first is None else first.params,
        suggested_by=None if first is None else first.suggested_by,
        why="" if first is None else first.why,
    )


def _under(
    one: Hypothesis, first: TrialView | None, by_id: Mapping[str, TrialView], by_configuration: Mapping[str, str]
) -> str | None:
    if one.hypothesis_id == FINAL:
        return None
    edited = None if first is None else first.facts.edited
    parent = None if edited is None else by_id.get(edited.parent or "")
    above = None if parent is None else by_configuration.get(parent.configuration)
    return FINAL if above in (None, one.hypothesis_id) else above


def _pairs(one: Hypothesis, by_id: Mapping[str, TrialView]) -> Paired:
    """Its evidence names both sides of each pair, one after the other."""
    sides = [by_id.get(trial_id) for trial_id in one.evidence]
    together = zip(sides[::2], sides[1::2], strict=False)
    known = [(a, b) for a, b in together if a is not None and b is not None]
    return Paired(
        pairs=tuple((a, b) for a, b in known if a.value is not None and b.value is not None), n_broken=0, left_out={}
    )


def _pair(first: TrialView, second: TrialView) -> Pair:
    assert first.value is not None
    assert second.value is not None
    return Pair(
        seed=first.seed,
        first=first.trial_id,
        first_value=first.value,
        second=second.trial_id,
        second_value=second.value,
    )
