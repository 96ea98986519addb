"""Opening a session's model: its asker, what it is shown, and the shelf that its ideas wait on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.ahead import Ahead
from agent.deps import Memory
from agent.llm.ladder import Asker
from agent.planner.budget import Spend
from agent.planner.curve import Point
from agent.planner.history import History
from agent.planner.ranking import ranking
from agent.store.lessons import LessonBook
from agent.store.shelf import Shelf
from agent.store.views import SuggestionView, TrialView
from agent.task import Task
from agent.thinking.beside import Start, in_a_thread
from agent.thinking.context import Situation
from agent.thinking.room import prompt_limit
from agent.thinking.suggesting import Suggesting
from agent.thinking.thinker import ModelThinker
from agent.tools.curves import read_points
from agent.tools.errors import FixAndRetry
from runtime_client.protocol import Runtime

_N_RUNNING = 6
"""Running trials whose curves are shown; the newest."""


def open_thinking(
    task: Task,
    asker: Asker,
    runtime: Runtime,
    *,
    memory: Memory,
    shelf: Shelf,
    lessons: LessonBook,
    ideas: Callable[[], Sequence[SuggestionView]],
    refusals: Sequence[str] = (),
    asked_at: float | None = None,
    start: Start = in_a_thread,
) -> Ahead:
    """The model as a proposer that is ahead; the session is told of it through its memory."""
    assert task.model is not None
    look = looking(task, memory, lessons, ideas, _Curves(task, runtime).shown)
    errand = Suggesting(task, prompt_limit(task, task.model))
    thinker = ModelThinker(task, asker, look, errand, refusals=refusals, asked_at=asked_at, start=start)
    return ahead_of(thinker, task, memory, shelf)


def looking(
    task: Task,
    memory: Memory,
    lessons: LessonBook,
    ideas: Callable[[], Sequence[SuggestionView]],
    curves: Callable[[History], dict[str, list[Point]]] = lambda _: {},
) -> Callable[[History], Situation]:
    """How a model looks at a session that goes on."""

    def look(history: History) -> Situation:
        return Situation(
            task=task,
            history=history,
            plan=memory.plan,
            spend=_spend(memory),
            lessons=lessons.lessons(),
            ideas=ideas(),
            curves=curves(history),
        )

    return look


def ahead_of(thinker: ModelThinker, task: Task, memory: Memory, shelf: Shelf) -> Ahead:
    """A thinker as a proposer; the session is told of both through its memory."""
    ahead = Ahead(task, thinker, shelf, lambda: memory.n_slots)
    memory.ahead.append(ahead)
    memory.minds.append(thinker)
    return ahead


def _spend(memory: Memory) -> Spend:
    """As it was at the beginning of this wake-up."""
    session = memory.session
    return replace(Spend.of(session), n_slots=memory.n_slots)


class _Curves:
    """Reads few curves; those of trials that have ended, once."""

    def __init__(self, task: Task, runtime: Runtime) -> None:
        self._task = task
        self._runtime = runtime
        self._ended: dict[str, list[Point]] = {}

    def shown(self, history: History) -> dict[str, list[Point]]:
        """Of the newest running trials of the search, and of the leader."""
        running = [t for t in history.search if t.is_in_flight and t.job_id is not None][-_N_RUNNING:]
        found = {trial.trial_id: self._read(trial) for trial in reversed(running)}
        best = self._leader(history)
        if best is not None:
            if best.trial_id not in self._ended:
                self._ended[best.trial_id] = self._read(best)
            found[best.trial_id] = self._ended[best.trial_id]
        return {trial_id: points for trial_id, points in found.items() if points}

    def _leader(self, history: History) -> TrialView | None:
        leader = ranking(self._task, history).leader
        if leader is None:
            return None
        return next((t for t in history.search if t.configuration == leader.configuration and t.is_ended), None)

    def _read(self, trial: TrialView) -> list[Point]:
        try:
            return read_points(self._runtime, trial.trained_by, self._task.objective.metric)
        except FixAndRetry:
            return []
