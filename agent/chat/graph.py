"""One turn with a model as a LangGraph graph: it speaks, calls are carried out, it speaks again. Never built at import.

The graph remembers nothing: each step looks at the entries of the turn. Where a person has to agree, it is interrupted,
and the answer begins it anew at that place, in this process or, after a restart, in another one. So there is no second
truth beside the entries that could be older or newer than they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from agent.chat.answering import MOST_CALLS, MOST_ROUNDS, Answering
from agent.chat.calling import AFTER_READING, carry_out
from agent.chat.entry import ResultPart
from agent.chat.turn import Step, next_step, pending

_MOST_STEPS = 3 * (2 * MOST_ROUNDS + MOST_CALLS)


class TurnState(TypedDict):
    step: Step
    """What is due."""


@dataclass(frozen=True, slots=True)
class TurnGraph:
    """Its steps; `go` runs them until the turn is over or waits for a person."""

    answering: Answering

    def go(self) -> None:
        """
        Raises:
            TurnOver: somebody has stopped the turn.
        """
        graph = StateGraph(TurnState)
        graph.add_node("look", self._look)
        graph.add_node(Step.ASK_MODEL.value, self._ask_model)
        graph.add_node(Step.CALL.value, self._call)
        graph.add_node(Step.WAIT.value, self._wait)
        graph.add_edge(START, "look")
        graph.add_conditional_edges("look", _due, [Step.ASK_MODEL.value, Step.CALL.value, Step.WAIT.value, END])
        for step in (Step.ASK_MODEL, Step.CALL, Step.WAIT):
            graph.add_edge(step.value, "look")
        graph.compile().invoke(TurnState(step=Step.ASK_MODEL), {"recursion_limit": _MOST_STEPS})

    def _look(self, state: TurnState) -> TurnState:
        self.answering.hub.news(self.answering.desk.chat_id)
        return TurnState(step=next_step(self.answering.book.entries()))

    def _ask_model(self, state: TurnState) -> TurnState:
        self.answering.answer()
        return state

    def _call(self, state: TurnState) -> TurnState:
        work = self.answering
        carry_out(work.book, work.desk, work.tools, asks_always=AFTER_READING if self._has_read() else None)
        return state

    def _wait(self, state: TurnState) -> TurnState:
        """Goes on only where the answer has come meanwhile."""
        found = pending(self.answering.book.entries())
        if found is not None and found.ask is not None and found.answer is None:
            interrupt({"ask": found.ask.number})
        return state

    def _has_read(self) -> bool:
        """What is in the chat by tools that read may hold words of jobs, files and others."""
        reading = {one.name for one in self.answering.tools if not one.acts}
        entries = self.answering.book.entries_so_far()
        return any(isinstance(part := one.part, ResultPart) and part.tool in reading for one in entries)


def _due(state: TurnState) -> str:
    return END if state["step"] is Step.OVER else state["step"].value
