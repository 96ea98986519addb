"""The errand of the arm `coder`: one edit of the code at a time, each applied and looked at before it is a proposal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.code_trials import CODER
from agent.coding.answer import BESIDE, Edit, edit_of
from agent.coding.checking import Made, made_of
from agent.coding.context import edit_prompt
from agent.coding.editor import Editor
from agent.coding.parents import Parent, drawn
from agent.coding.room import answer_tokens, edit_prompt_limit
from agent.llm.ladder import Asker
from agent.planner.ranking import ranking
from agent.task import Task
from agent.thinking.checking import Checked, Inquiry
from agent.thinking.context import Situation
from agent.thinking.errand import Answered, answered
from prompts import Rendered
from runtime_client.snapshot.git import GitFailed

_NO_ROOM = (
    "the model is not asked for edits: the editable files do not fit into {limit} tokens beside its answer, not even "
    "their definitions; raise model.context_tokens, lower model.max_tokens, or name fewer files in code.editable"
)


class Editing:
    """Implements `Errand`."""

    name = CODER
    batch = 1
    patience = 3

    def __init__(self, task: Task, editor: Editor, *, session_id: str) -> None:
        assert task.model is not None
        self._task = task
        self._editor = editor
        self._session_id = session_id
        self._limit = edit_prompt_limit(task, task.model)
        self._max_tokens = answer_tokens(task.model)
        self._n_lost = 0
        """Questions that nothing came of: the next one may be about another code."""
        self._unreadable: str | None = None
        """Why the code could not be read for a prompt; None: it could."""

    def known(self, situation: Situation) -> tuple[object, ...]:
        """The leader, ends of trials, words of people, and what was proposed: each answer has one edit alone."""
        leader = ranking(situation.task, situation.history).leader
        return (
            None if leader is None else leader.configuration,
            sum(1 for trial in situation.history.trials if trial.is_ended),
            len(situation.ideas),
            len(situation.history.search),
        )

    def prompt(self, situation: Situation, n: int) -> Rendered | None:
        parent, turn = self._shown(situation)
        try:
            sources = self._editor.sources(parent.code)
        except (GitFailed, OSError) as error:
            self._unreadable = str(error)
            return None
        return edit_prompt(situation, parent, sources, limit=self._limit, turn=turn)

    def no_room(self) -> str:
        if self._unreadable is not None:
            return f"the model is not asked for edits: the session's code can not be read: {self._unreadable}"
        return _NO_ROOM.format(limit=self._limit)

    def ask(self, asker: Asker, prompt: Rendered, situation: Situation, inquiry: Inquiry) -> Answered:
        shown, last = self._shown(situation)[0], Made()

        def review(answer: Edit) -> Sequence[str]:
            nonlocal last
            last = made_of(answer, shown, inquiry, self._editor, session_id=self._session_id)
            return last.objections

        asked = asker.ask(prompt, edit_of(self._task), None, self._max_tokens, beside=BESIDE, review=review)
        if asked.value is None or last.proposal is None:
            self._n_lost += 1
            return answered(asked, None)
        facts = replace(last.proposal.facts, model=asked.model, prompt=asked.prompt)
        return answered(asked, Checked(proposals=(replace(last.proposal, facts=facts),), refusals=last.asides))

    def _shown(self, situation: Situation) -> tuple[Parent, int]:
        """Whose code is shown, and the turn."""
        turn = len(situation.history.search) + self._n_lost
        return drawn(self._task, situation.history, turn), turn

    def told(self, answered: Answered) -> str:
        if answered.found is None:
            return f"the model gives no edit that can be tried: {answered.why}"
        [proposal] = answered.found.proposals
        code = proposal.facts.edited
        what = "other parameters"
        if code is not None:
            what = f"an edit of {code.parent or 'the base'}, +{code.added} -{code.removed} lines against the base"
        return f"{answered.model} answers after {answered.took_s:.1f} s by {answered.rung}: {what}"
