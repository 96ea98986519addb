"""Opening the arm of a session's model that edits code."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent.ahead import Ahead
from agent.coding.editor import Editor
from agent.coding.errand import Editing
from agent.deps import Memory
from agent.llm.ladder import Asker
from agent.store.lessons import LessonBook
from agent.store.shelf import Shelf
from agent.store.views import SuggestionView
from agent.task import Task
from agent.thinking.beside import Start, in_a_thread
from agent.thinking.opening import ahead_of, looking
from agent.thinking.thinker import ModelThinker


def open_coding(
    task: Task,
    asker: Asker,
    editor: Editor,
    *,
    memory: Memory,
    shelf: Shelf,
    lessons: LessonBook,
    ideas: Callable[[], Sequence[SuggestionView]],
    refusals: Sequence[str] = (),
    start: Start = in_a_thread,
) -> Ahead:
    """A session that is resumed asks at once: what a killed call would have given is nowhere."""
    errand = Editing(task, editor, session_id=memory.session.session_id)
    look = looking(task, memory, lessons, ideas)
    return ahead_of(ModelThinker(task, asker, look, errand, refusals=refusals, start=start), task, memory, shelf)
