"""What the steps of one session work with, made once by `agent.session`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.ahead import Ahead
from agent.data import DataFingerprints
from agent.gates.gate import Gate
from agent.planner.plan import Plan
from agent.planner.proposers.person import PrepareEdit
from agent.planner.proposers.protocol import Proposer
from agent.store.book import TrialBook
from agent.store.gates import GateBook
from agent.store.lessons import LessonBook
from agent.store.record import SessionRecord
from agent.store.steering import SteeringBook
from agent.store.views import SessionView
from agent.task import Task
from runtime_client.models import JobView
from runtime_client.protocol import Runtime

if TYPE_CHECKING:
    from agent.doctor.second import SecondOpinions
    from agent.edits.workshop import Workshop
    from agent.pinned_scorer import PinnedScorer
    from agent.thinking.thinker import ModelThinker


@dataclass(slots=True, kw_only=True)
class Memory:
    """What this process has seen already. A cache: a new process starts with an empty one and does the same."""

    plan: Plan
    session: SessionView
    jobs: dict[str, JobView] = field(default_factory=dict)
    """Last view of each job that was live when it was last looked at, and of those that ended in this wake-up."""
    n_slots: int = 0
    refusal: str | None = None
    """Why the runtime takes no submission now, as said last; None: it takes them."""
    data_problems: tuple[str, ...] = ()
    """What of the task's data could not be read, as said last."""
    over_budget: str | None = None
    """What the runtime said when a budget of device time had no room for a trial; None: it has not."""
    ahead: list[Ahead] = field(default_factory=list)
    """Slow proposers: told of the history while the search goes on; the session is woken when one is done."""
    minds: list[ModelThinker] = field(default_factory=list)
    """Language models among them: what they say beside proposals is taken up by `agent.steps.thinking`."""
    opinions: SecondOpinions | None = None
    """A model's second opinions about failures; None: there is no model."""
    exhausted: str | None = None
    """Why no proposer has anything new, as found at the last question; None: some have."""
    escalated: set[tuple[str, str]] = field(default_factory=set)
    """What was said already about searches that bring nothing new: step and surface."""
    suggested: frozenset[str] = frozenset()
    """Trials made of people's ideas: they are launched first."""
    newest_suggestion: int = 0
    """Number of the newest idea from outside of the session that was looked at."""
    waiting: frozenset[str] = frozenset()
    """Proposed trials that wait for a person's answer: they hold no slot, and others are made ready beside them."""
    gates: tuple[Gate, ...] = ()
    """The session's questions to people, as last read."""
    open_gates: frozenset[int] = frozenset()
    """Questions to people that were open when last looked at: an answer to one is worth a wake-up."""
    has_unpublished_plans: bool = True
    has_seen_metric: bool = False

    @property
    def has_thoughts(self) -> bool:
        """A slow proposer is done thinking, or a second opinion came."""
        has_opinion = self.opinions is not None and self.opinions.has_news
        return has_opinion or any(proposer.has_news for proposer in self.ahead)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps:
    task: Task
    book: TrialBook
    record: SessionRecord
    gates: GateBook
    runtime: Runtime
    search: Proposer
    explorer: Proposer
    """Gives new configurations at once: for idle slots while the search's own proposers think."""
    clock: Callable[[], float]
    """Seconds since the epoch."""
    memory: Memory
    steering: SteeringBook
    is_paused: bool = False
    """By a person: nothing new starts."""
    is_taken_over: bool = False
    """By a person: only people and outside agents suggest."""
    lessons: LessonBook
    data: DataFingerprints = field(default_factory=DataFingerprints)
    scorer: PinnedScorer | None = None
    """What measures, kept apart from the training; None: the training's own code does, or there is no scorer."""
    workshop: Workshop | None = None
    """The states of the code that trials run; None: the task changes no code."""
    edits: PrepareEdit | None = None
    """Makes the code of suggestions that edit it; None: the task changes no code."""
    write_report: Callable[[SessionView], str | None] | None = None
    """Given the session as it will be, writes the report file and returns its path; None: no report is written."""
