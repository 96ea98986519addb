"""The research loop as a LangGraph graph: eight steps, one invocation a wake-up. Never built at import."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agent.deps import Deps
from agent.state import AgentState, Outcome
from agent.steps.assess import assess
from agent.steps.launch import launch
from agent.steps.orient import orient
from agent.steps.propose import propose
from agent.steps.report import report
from agent.steps.review import review
from agent.steps.revise import revise
from agent.steps.watch import watch

Step = Callable[[AgentState, Deps], AgentState]
Graph = CompiledStateGraph[AgentState, None, AgentState, AgentState]

STEPS: dict[str, Step] = {
    "orient": orient,
    "assess": assess,
    "revise": revise,
    "propose": propose,
    "review": review,
    "launch": launch,
    "watch": watch,
    "report": report,
}


def build_graph(deps: Deps, checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """orient, assess, revise, propose, review, launch, watch; report instead of the last four at the end."""
    graph = StateGraph(AgentState)
    for name, step in STEPS.items():
        graph.add_node(name, partial(_run, step=step, deps=deps))
    graph.add_edge(START, "orient")
    graph.add_conditional_edges("orient", _after_orient, ["assess", "watch"])
    graph.add_conditional_edges("assess", _after_assess, ["revise", "launch"])
    graph.add_conditional_edges("revise", _after_revise, ["propose", "report"])
    graph.add_edge("propose", "review")
    graph.add_edge("review", "launch")
    graph.add_edge("launch", "watch")
    graph.add_edge("watch", END)
    graph.add_edge("report", END)
    return graph.compile(checkpointer=checkpointer)


def _run(state: AgentState, *, step: Step, deps: Deps) -> AgentState:
    return step(state, deps)


def _after_orient(state: AgentState) -> str:
    return "watch" if state["outcome"] == Outcome.QUIET else "assess"


def _after_assess(state: AgentState) -> str:
    return "launch" if state["outcome"] == Outcome.STOP else "revise"


def _after_revise(state: AgentState) -> str:
    return "report" if state["outcome"] in (Outcome.DONE, Outcome.FAILED) else "propose"
