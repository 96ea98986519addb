"""Replicates that people asked for, as proposals: a known configuration on racing seeds that it has not run on. Pure.

They are trials as those of the race: where the default has run on the same seeds they form pairs with it, and they
count in the verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.planner.history import History, Proposal
from agent.planner.proposers.person import Answer, is_waiting
from agent.planner.proposers.race import next_seed
from agent.store.views import Purpose, SuggestionView
from agent.task import Task


def asked_again(ideas: Sequence[SuggestionView], task: Task, history: History) -> list[Answer]:
    """Answers to those that wait, in their order: each is one replicate on a seed of its own."""
    known = {trial.trial_id: trial for trial in history.search}
    known |= {trial.trial_id: trial for trial in history.replicates.values()}
    found: list[Answer] = []
    made: list[Proposal] = []
    for idea in ideas:
        if idea.again_of is None or not is_waiting(idea):
            continue
        trial = known.get(idea.again_of)
        if trial is None:
            note = f"{idea.again_of} is no trial of this session that can run again"
            found.append(Answer(suggestion_id=idea.suggestion_id, note=note))
            continue
        seed = next_seed(task, history, trial.configuration, skip=made)
        made.append(
            Proposal(
                params=dict(trial.params),
                configuration=trial.configuration,
                seed=seed,
                purpose=Purpose.REPLICATE,
                suggested_by=idea.suggested_by,
                why=f"{idea.why} ({idea.again_of} again, racing seed {seed})",
            )
        )
        found.append(Answer(suggestion_id=idea.suggestion_id, proposal=made[-1]))
    return found
