"""Checking what a model answered: what may be done becomes data, everything else a sentence. Pure.

Nothing here trusts the answer. It can suggest points of the task's space, wish for a replicate that the race would be
allowed to make, name a running trial to look at, and say what it learned; it has no words for anything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agent.llm.untrusted import clean
from agent.planner import seeds
from agent.planner.configuration import canonical, configuration_id, is_finite_number
from agent.planner.forbidden import forbidden
from agent.planner.history import History, Proposal
from agent.planner.proposers.race import MOST as MOST_RACING
from agent.planner.proposers.race import next_seed
from agent.planner.ranking import best_params
from agent.planner.repetition import Tried, repeat_in_words
from agent.planner.standings import standings
from agent.planner.suggested import read_suggestion
from agent.store.views import Expected, ParamValue, Purpose, TrialFacts, TrialState, TrialView
from agent.task import Task
from agent.thinking.ideas import Again, Idea, Ideas, Scalar, Stop
from agent.thinking.lessons import Learned

MOST_WISHES = 2
"""Replicates that one answer may wish for."""
N_RACING = 8
"""Best configurations of which it may wish for one: a replicate opens a claim, and claims share the error budget."""
MOST_STOPS = 3
MOST_LESSONS = 4
MOST_REFUSALS = 8
"""Sentences that are kept of one answer; the rest is counted."""
_REFUSAL_CHARACTERS = 300
WHY_CHARACTERS = 300
_VALUE_CHARACTERS = 500
_QUOTED = 40
"""Characters of a name or value that a refusal repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopWish:
    """A running trial that a model takes for lost; whether it is, its curve says."""

    trial_id: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    proposals: tuple[Proposal, ...] = ()
    """New configurations, and wishes for replicates (purpose `replicate`)."""
    stops: tuple[StopWish, ...] = ()
    lessons: tuple[Learned, ...] = ()
    """Their evidence is not checked yet: see `agent.thinking.lessons`."""
    refusals: tuple[str, ...] = ()

    @property
    def is_useful(self) -> bool:
        """Something of the answer can be used."""
        return bool(self.proposals or self.stops or self.lessons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """The question that was asked."""

    task: Task
    history: History
    n: int
    """Trials that were asked for at most."""
    name: str
    """Of the arm."""
    origin: TrialFacts
    """Prompt, model and brief, for the trials that come of it."""


def checked(ideas: Ideas, inquiry: Inquiry) -> Checked:
    """What of an answer may be done, given what was known when it was asked."""
    refused = [f"{quoted(name)} is not yours to set" for name in ideas.superfluous]
    new, about_new = _new(ideas.trials, inquiry)
    wishes, about_wishes = _wishes(ideas.again, inquiry)
    stops, about_stops = _stops(ideas.stop, inquiry.history)
    lessons = tuple(
        Learned(text=said(one.text, WHY_CHARACTERS), evidence=tuple(trial_id(t) for t in one.trials))
        for one in ideas.lessons[:MOST_LESSONS]
    )
    if len(ideas.lessons) > MOST_LESSONS:
        refused.append(f"{len(ideas.lessons)} lessons at once: the first {MOST_LESSONS} are read")
    return Checked(
        proposals=(*new, *wishes),
        stops=tuple(stops),
        lessons=lessons,
        refusals=bounded([*refused, *about_new, *about_wishes, *about_stops]),
    )


def bounded(sentences: Sequence[str]) -> tuple[str, ...]:
    """Each sentence once, few of them, each of bounded length; the last says how many are left out."""
    unique = list(dict.fromkeys(said(one, _REFUSAL_CHARACTERS) for one in sentences))
    n_left = len(sentences) - min(len(unique), MOST_REFUSALS)
    kept = unique[:MOST_REFUSALS]
    return tuple([*kept, f"and {n_left} more like these"] if n_left > 0 else kept)


def said(text: str, limit: int) -> str:
    """Text of a model as it may be written into a record: one line, without control characters, cut."""
    flat = " ".join(clean(text[: 4 * limit]).split())
    return flat if len(flat) <= limit else f"{flat[: limit - 3]}..."


def trial_id(text: str) -> str:
    """The id that was meant, as it was written but for blanks around it."""
    return text.strip()[:120]


def _new(given: Sequence[Idea], inquiry: Inquiry) -> tuple[list[Proposal], list[str]]:
    task, history = inquiry.task, inquiry.history
    rest = best_params(task, history.of_base())
    tried = Tried(task)
    tried.follow(history.search)
    trials = {trial.trial_id: trial for trial in history.search}
    found: list[Proposal] = []
    refused: list[str] = []
    for idea in given:
        wrong = [f"{quoted(name)} is not yours to set" for name in idea.superfluous]
        refused.extend(wrong)
        params, problems = read_params(idea.parameters, rest, task)
        if problems:
            refused.append(f"no trial: {'; '.join(problems)}")
            continue
        condition = forbidden(params, task)
        if condition is not None:
            refused.append(f"no trial: forbidden: {condition}")
            continue
        repeat = repeat_in_words(params, task, tried, trials)
        if repeat is not None:
            refused.append(f"no trial: it repeats what is there: {repeat}")
            continue
        if len(found) == inquiry.n:
            refused.append(f"more than {inquiry.n} trials: only the first {inquiry.n} new ones are taken")
            continue
        expected, problem = expectation(idea.gain, idea.chance)
        refused.extend([problem] if problem else [])
        proposal = _proposal(idea, params, expected, inquiry)
        tried.add("another one of this answer", proposal.configuration, params)
        found.append(proposal)
    return found, refused


def read_params(
    given: Mapping[str, Scalar], rest: Mapping[str, ParamValue], task: Task
) -> tuple[dict[str, ParamValue], list[str]]:
    """The configuration that was meant, and what is wrong with it."""
    texts = {name: value if isinstance(value, str) else _as_json(value) for name, value in given.items()}
    known = {name if name in task.space else name[:_QUOTED]: text[:_VALUE_CHARACTERS] for name, text in texts.items()}
    read = read_suggestion(known, task)
    return canonical({**rest, **read.params}, task), list(read.problems)


def _as_json(value: Scalar) -> str:
    """As it would stand in the task file; a number beyond all bounds as a word that is no number."""
    if isinstance(value, int) and not isinstance(value, bool) and not is_finite_number(value):
        return "a number beyond all bounds"
    return json.dumps(value)


def expectation(gain: float | None, chance: float | None) -> tuple[Expected | None, str | None]:
    """The prediction, and what is wrong with it."""
    if chance is None:
        return None, None
    if not 0.0 <= chance <= 1.0:
        return None, f"chance {chance:g} is no probability from 0 to 1; the trial has no prediction"
    effect = gain if is_finite_number(gain) else None
    return Expected(probability=chance, effect=effect), None


def _proposal(idea: Idea, params: dict[str, ParamValue], expected: Expected | None, inquiry: Inquiry) -> Proposal:
    return Proposal(
        params=params,
        configuration=configuration_id(params),
        seed=inquiry.task.seeds.search,
        purpose=Purpose.SEARCH,
        suggested_by=inquiry.name,
        why=said(idea.why, WHY_CHARACTERS) or "it gave no reason",
        facts=replace(inquiry.origin, expected=expected),
    )


def _wishes(given: Sequence[Again], inquiry: Inquiry) -> tuple[list[Proposal], list[str]]:
    """Wishes that the race can grant: known configurations on the next racing seed."""
    found: list[Proposal] = []
    refused: list[str] = []
    trials = {trial.trial_id: trial for trial in inquiry.history.trials}
    for wish in given:
        trial = trials.get(trial_id(wish.trial))
        problem = _no_replicate(trial, wish.trial, found, inquiry)
        if problem is not None:
            refused.append(f"no replicate of {quoted(wish.trial)}: {problem}")
            continue
        assert trial is not None
        found.append(
            Proposal(
                params=dict(trial.params),
                configuration=trial.configuration,
                seed=next_seed(inquiry.task, inquiry.history, trial.configuration, skip=[]),
                purpose=Purpose.REPLICATE,
                suggested_by=inquiry.name,
                why=said(wish.why, WHY_CHARACTERS) or "it gave no reason",
                facts=inquiry.origin,
            )
        )
    return found, refused


def _no_replicate(trial: TrialView | None, named: str, found: Sequence[Proposal], inquiry: Inquiry) -> str | None:
    task, history = inquiry.task, inquiry.history
    if "replicator" not in task.search.use:
        return "this task makes none during the search (search.use)"
    if task.search.replicates > 1:
        return f"every configuration is measured on {task.search.replicates} seeds as it is (search.replicates)"
    if trial is None:
        return "there is no such trial"
    if trial.state is not TrialState.MEASURED or not trial.is_at_search_fidelity:
        return "it has no value to be compared with"
    best = {s.configuration for s in standings(task, history)[:N_RACING]} | {history.search[0].configuration}
    if trial.configuration not in best:
        return f"only the default and the best {N_RACING} are measured again"
    if len(found) == MOST_WISHES or any(p.configuration == trial.configuration for p in found):
        return f"at most {MOST_WISHES} at once, each of another configuration"
    own = [t for (name, seed), t in history.replicates.items() if name == trial.configuration and _races(task, seed)]
    if len(own) >= MOST_RACING:
        return f"it has run on {len(own)} seeds already; what is left is found out at the end"
    if any(not t.is_ended for t in own):
        return "one of it is under way"
    return None


def _races(task: Task, seed: int) -> bool:
    return seeds.is_racing(task, seed)


def _stops(given: Sequence[Stop], history: History) -> tuple[list[StopWish], list[str]]:
    trials = {trial.trial_id: trial for trial in history.trials}
    found: dict[str, StopWish] = {}
    refused: list[str] = []
    for wish in given:
        trial = trials.get(trial_id(wish.trial))
        problem = _not_stoppable(trial, history)
        if problem is None and len(found) == MOST_STOPS:
            problem = f"at most {MOST_STOPS} at once"
        if problem is not None or trial is None:
            refused.append(f"{quoted(wish.trial)} is not ended early: {problem}")
            continue
        found[trial.trial_id] = StopWish(trial_id=trial.trial_id, why=said(wish.why, WHY_CHARACTERS))
    return list(found.values()), refused


def _not_stoppable(trial: TrialView | None, history: History) -> str | None:
    if trial is None:
        return "there is no such trial"
    if not trial.is_in_flight:
        return "it does not run"
    if trial.purpose is not Purpose.SEARCH:
        return "it is needed for a comparison"
    if history.search and trial.configuration == history.search[0].configuration:
        return "it is the default, which everything is compared with"
    return None


def quoted(text: str) -> str:
    return repr(re.sub(r"\s+", " ", text)[:_QUOTED])
