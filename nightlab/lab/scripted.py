"""A scripted thinker: stands for a model that takes its time, one call at a time, a few proposals a call."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent.ahead import Ahead, Thinking
from agent.deps import Memory
from agent.planner.history import History, Proposal
from agent.planner.proposers.optuna_sampler import OptunaSampler
from agent.planner.proposers.protocol import Proposer
from agent.session import SessionDeps
from agent.store.shelf import Shelf
from agent.task import Task

from .stage import Actor


@dataclass(slots=True, kw_only=True)
class ScriptedThinker:
    """Implements `agent.ahead.Thinker` in virtual time: what another proposer says, so many seconds later."""

    voice: Proposer
    actor: Actor
    call_s: float = 30.0
    batch: int = 4
    n_calls: int = 0
    said: tuple[Proposal, ...] | None = None
    """What the call that runs will have said; None: none runs."""
    done_at: float = 0.0

    @property
    def name(self) -> str:
        return "scripted"

    @property
    def is_thinking(self) -> bool:
        return self.said is not None

    @property
    def is_done(self) -> bool:
        return self.said is not None and self.actor.stage.cluster.now >= self.done_at

    @property
    def is_pending(self) -> bool:
        return self.is_thinking

    def begin(self, history: History, n: int) -> None:
        self.n_calls += 1
        found = self.voice.ask(history, min(n, self.batch))
        self.said = tuple(replace(proposal, suggested_by=self.name) for proposal in found)
        self.done_at = self.actor.stage.cluster.now + self.call_s
        self.actor.wake_at(self.done_at)

    def take(self) -> Thinking:
        assert self.said is not None, "only what was thought can be taken"
        said, self.said = self.said, None
        return Thinking(proposals=said, took_s=self.call_s)


def with_thinker(deps: SessionDeps, actor: Actor, *, call_s: float = 30.0, batch: int = 4) -> SessionDeps:
    """The same session with a scripted thinker as its only proposer; the default still comes first."""

    def open_search(task: Task, shelf: Shelf, memory: Memory) -> Proposer:
        thinker = ScriptedThinker(voice=OptunaSampler(task), actor=actor, call_s=call_s, batch=batch)
        ahead = Ahead(task, thinker, shelf, lambda: memory.n_slots)
        memory.ahead.append(ahead)
        return ahead

    return replace(deps, open_search=open_search)
