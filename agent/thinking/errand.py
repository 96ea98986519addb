"""What a model is asked for, and what becomes of its answer: the part in which the arms of one model differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agent.llm.chat import Trouble
from agent.llm.ladder import Asked, Asker
from agent.llm.rung import Rung
from agent.llm.shape import T
from agent.thinking.checking import Checked, Inquiry
from agent.thinking.context import Situation
from prompts import Rendered


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """How one question ended."""

    found: Checked | None
    """None: nothing that can be used; `why` says the reason."""
    why: str
    objections: tuple[str, ...]
    """To an answer of the right form that nothing could be made of; the next question says them."""
    rung: Rung
    model: str
    took_s: float
    n_calls: int
    trouble: Trouble | None


def answered(asked: Asked[T], found: Checked | None) -> Answered:
    return Answered(
        found=found,
        why=asked.why,
        objections=asked.objections,
        rung=asked.rung,
        model=asked.model,
        took_s=asked.took_s,
        n_calls=asked.n_calls,
        trouble=asked.trouble,
    )


class Errand(Protocol):
    @property
    def name(self) -> str:
        """Of the arm."""
        ...

    @property
    def batch(self) -> int:
        """The most that one call suggests."""
        ...

    @property
    def patience(self) -> int:
        """Answers in a row that nothing could be made of, after which it is asked again only with something new."""
        ...

    def known(self, situation: Situation) -> tuple[object, ...]:
        """What makes another question worth its tokens when it changes."""
        ...

    def prompt(self, situation: Situation, n: int) -> Rendered | None:
        """None: what has to be told does not fit into the model."""
        ...

    def no_room(self) -> str:
        """A sentence for people, where it does not fit."""
        ...

    def ask(self, asker: Asker, prompt: Rendered, situation: Situation, inquiry: Inquiry) -> Answered:
        """Put the question; blocks, and is called beside the session."""
        ...

    def told(self, answered: Answered) -> str:
        """What came of it, in a sentence for the activity."""
        ...
