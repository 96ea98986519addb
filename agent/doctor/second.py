"""Second opinions: a model is asked about failures that the rules can not tell, beside the session, once for each kind.

Bounded: so many questions a session, one at a time, and never about the same text again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from agent.doctor.answer import Answer
from agent.doctor.diagnosis import Diagnosis
from agent.doctor.evidence import Evidence
from agent.doctor.question import MAX_TOKENS, checked, question, signature
from agent.llm.ladder import Asked, Asker
from agent.store.views import ParamValue
from agent.task import Task
from agent.thinking.beside import Call, Start, in_a_thread

MOST_QUESTIONS = 6
"""Of one session."""
_MOST_WAITING = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A trial that the rules can not tell about."""

    trial_id: str
    params: Mapping[str, ParamValue]
    evidence: Evidence

    @property
    def kind(self) -> str:
        return signature(self.evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What became of a question."""

    failed: Failed
    diagnosis: Diagnosis | None
    """None: no answer that could be used."""
    lines: tuple[str, ...]
    """For the activity: what came, and what of it does not hold."""


class SecondOpinions:
    """Never blocks; `take` is called when `has_news`."""

    def __init__(
        self,
        task: Task,
        asker: Asker,
        *,
        known: Mapping[str, Diagnosis],
        n_asked: int,
        start: Start = in_a_thread,
    ) -> None:
        """
        Args:
            known: opinions of this session so far, by the kind of failure.
            n_asked: questions that earlier processes of this session put.
        """
        self._task = task
        self._asker = asker
        self._known = dict(known)
        self._asked: set[str] = set(known)
        self._n_asked = n_asked
        self._start = start
        self._kinds: dict[str, str] = {}
        """Of the trials that were considered."""
        self._waiting: deque[Failed] = deque(maxlen=_MOST_WAITING)
        self._call: Call[Asked[Answer]] | None = None
        self._about: Failed | None = None

    @property
    def has_news(self) -> bool:
        return self._call is not None and self._call.came is not None

    def is_new(self, trial_id: str) -> bool:
        """Whether a trial was never handed to `consider`."""
        return trial_id not in self._kinds

    def is_alike(self, trial_id: str, failed: Failed) -> bool:
        """Whether a trial that was considered failed in the same way."""
        return self._kinds.get(trial_id) == failed.kind

    def consider(self, failed: Failed) -> Diagnosis | None:
        """Keep it for a question, unless one was put about its kind: then what came of that, if anything did."""
        kind = self._kinds[failed.trial_id] = failed.kind
        if kind not in self._asked:
            self._asked.add(kind)
            self._waiting.append(failed)
        return self._known.get(kind)

    def begin(self) -> None:
        """Put the next question, where one may be put now."""
        if self._call is not None or not self._waiting or self._n_asked >= MOST_QUESTIONS:
            return
        if self._asker.asks_again_at() is not None:
            return
        self._n_asked += 1
        failed = self._about = self._waiting.popleft()
        prompt = question(failed.evidence, failed.params, self._task)
        self._call = Call(lambda: self._asker.ask(prompt, Answer, None, MAX_TOKENS), self._start)

    def take(self) -> Opinion:
        """What came of the question, once."""
        assert self._call is not None, "only what was asked can be taken"
        assert self._about is not None
        came, self._call, failed = self._call.came, None, self._about
        assert came is not None, "the call is not done"
        if came.value is None:
            text = f"the question why {failed.trial_id} failed broke off: {came.fault}"
            return Opinion(failed=failed, diagnosis=None, lines=(text,))
        asked = came.value
        if asked.value is None:
            text = f"{asked.model} does not say why {failed.trial_id} failed: {asked.why}"
            return Opinion(failed=failed, diagnosis=None, lines=(text,))
        found = checked(asked.value, failed.evidence, failed.params, self._task, by=asked.model)
        self._known[failed.kind] = found.diagnosis
        said = f"{asked.model} on why {failed.trial_id} failed: {found.diagnosis.failure.value.replace('_', ' ')}"
        refused = tuple(f"not taken: {one}" for one in found.refusals)
        return Opinion(failed=failed, diagnosis=found.diagnosis, lines=(f"{said}: {found.diagnosis.cause}", *refused))
