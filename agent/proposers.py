"""Who suggests in a session: the portfolio that its task asks for, and what of it needs the store or a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from agent.ahead import Ahead
from agent.code_trials import CODER
from agent.deps import Memory
from agent.earlier import earlier_losers
from agent.planner.history import History, Proposal
from agent.planner.proposers.chosen import chosen_proposers
from agent.planner.proposers.outside import OUTSIDE, Outside
from agent.planner.proposers.person import PrepareEdit
from agent.planner.proposers.protocol import Proposer
from agent.store.fenced import FencedWriter
from agent.store.lessons import LessonBook
from agent.store.record import SessionRecord
from agent.store.shelf import Shelf
from agent.task import Task
from agent.thinking.beside import Start, in_a_thread
from runtime_client.protocol import Runtime

if TYPE_CHECKING:
    from agent.doctor.second import SecondOpinions
    from agent.edits.workshop import Workshop
    from agent.llm.ladder import Asker

OpenAsker = Callable[[Task, FencedWriter], "Asker | None"]
"""None: the model can not be reached as the task says; the activity tells why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What is around the proposers of one session."""

    task: Task
    writer: FencedWriter
    record: SessionRecord
    memory: Memory
    lessons: LessonBook
    runtime: Runtime
    open_asker: OpenAsker
    start_thinking: Start = in_a_thread
    workshop: Workshop | None = None
    """None: the task changes no code."""
    edits: PrepareEdit | None = None
    """As in `agent.deps.Deps`."""


def open_proposers(around: Around) -> Proposer:
    """The portfolio; slow ones are in the session's memory too.

    Raises:
        ValueError: the sampler needs a package that is not installed.
    """
    task, memory = around.task, around.memory
    more: list[Proposer] = []
    slow: list[Ahead] = []
    asker = around.open_asker(task, around.writer) if task.model is not None else None
    if asker is not None:
        if "model" in task.search.use:
            slow.append(_open_model(around, asker))
        if CODER in task.search.use and around.workshop is not None:
            slow.append(_open_coder(around, asker, around.workshop))
        memory.opinions = _open_opinions(around, asker)
    more.extend(slow)
    if OUTSIDE in task.search.use:
        more.append(Outside(task, around.record.suggestions, around.edits))
    return chosen_proposers(
        task,
        more,
        memory=earlier_losers(around.writer.store, memory.session, task),
        wishes=_wishes(slow),
    )


def _wishes(slow: list[Ahead]) -> Callable[[History], list[Proposal]]:
    return lambda history: list(chain.from_iterable(one.wishes(history) for one in slow))


def _open_opinions(around: Around, asker: Asker) -> SecondOpinions:
    """Of failures that the rules can not tell; what this session was told already is known."""
    from agent.doctor.question import PROMPT
    from agent.doctor.second import SecondOpinions
    from agent.store.calls import model_calls_of

    store, session_id = around.writer.store, around.writer.session_id
    told = [trial.facts.diagnosis for trial in store.trials(session_id) if trial.facts.diagnosis is not None]
    return SecondOpinions(
        around.task,
        asker,
        known={one.signature: one for one in told if one.signature is not None},
        n_asked=sum(1 for call in model_calls_of(store, session_id) if call.purpose == PROMPT),
        start=around.start_thinking,
    )


def _open_model(around: Around, asker: Asker) -> Ahead:
    """Imported late: most sessions have no model."""
    from agent.steps.thinking import refused_before
    from agent.store.calls import model_calls_of
    from agent.thinking.context import PROMPT
    from agent.thinking.opening import open_thinking
    from agent.thinking.suggesting import MODEL

    calls = model_calls_of(around.writer.store, around.writer.session_id)

    return open_thinking(
        around.task,
        asker,
        around.runtime,
        memory=around.memory,
        shelf=Shelf(around.writer),
        lessons=around.lessons,
        ideas=around.record.suggestions,
        refusals=refused_before(around.writer, MODEL),
        asked_at=max((call.at for call in calls if call.purpose == PROMPT), default=None),
        start=around.start_thinking,
    )


def _open_coder(around: Around, asker: Asker, workshop: Workshop) -> Ahead:
    """Imported late too."""
    from agent.coding.editor import Editor
    from agent.coding.opening import open_coding
    from agent.steps.code_states import rules_of
    from agent.steps.thinking import refused_before

    return open_coding(
        around.task,
        asker,
        Editor(around.task, workshop, rules_of(around.task)),
        memory=around.memory,
        shelf=Shelf(around.writer),
        lessons=around.lessons,
        ideas=around.record.suggestions,
        refusals=refused_before(around.writer, CODER),
        start=around.start_thinking,
    )
