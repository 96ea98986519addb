"""What the API says of a session: views that leave out what is nobody's business (idempotency keys, the task's
environment). Trials, gates, plans, hypotheses, budgets and model turns are told as the store knows them."""

from __future__ import annotations

from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from agent.gates.gate import Gate
from agent.llm.turns import Turns
from agent.planner.budget import Cap
from agent.planner.hypothesis import Hypothesis
from agent.steering.word import MOST_CHARACTERS, Kind
from agent.store.views import FinalResult, ParamValue, SessionState
from agent.web.keys import Role

T = TypeVar("T")


class View(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Page(View, Generic[T]):
    items: tuple[T, ...]
    next_after: int | None
    """Give it as `after` for the next page; None: this is the last one."""


class Health(View):
    service: str = "nightlab agent"
    is_ready: bool = True


class Me(View):
    role: Role


class Best(View):
    """The best measured value so far, which flatters; what was shown is in `result` and `hypotheses`."""

    trial_id: str
    value: float
    params: dict[str, ParamValue]


class SessionSummary(View):
    session_id: str
    task_name: str
    state: SessionState
    message: str
    created_at: float
    """Seconds since the epoch, as all times are."""
    ended_at: float | None
    finish_by: float | None
    """When nothing of it may run any more; None: no such hour."""
    night_id: str | None
    plan_revision: int
    n_trials: int
    """Search trials proposed so far."""
    result: FinalResult | None
    """What was found, by code; None: not yet."""


class Revision(View):
    revision: int
    at: float
    phase: str
    reason: str


class Arm(View):
    """One source of trials."""

    suggested_by: str
    n_trials: int
    n_measured: int
    best_value: float | None


class SessionDetail(SessionSummary):
    metric: str
    direction: str
    best: Best | None
    phase: str | None
    """None: the session has no plan yet."""
    hypotheses: tuple[Hypothesis, ...]
    revisions: tuple[Revision, ...]
    """Every revision of the plan, oldest first."""
    budgets: tuple[Cap, ...]
    arms: tuple[Arm, ...]
    model: Turns
    """How many calls of a language model there were, never what was said in them."""
    n_gates_waiting: int
    forbidden: tuple[str, ...]
    """Conditions on parameters: what one of them covers is not tried."""
    is_paused: bool
    is_taken_over: bool


class GateView(View):
    gate: Gate
    is_waiting: bool
    """A person can still answer."""


class GateDiff(View):
    """What the edited code that a question is about changes against the session's base. Nobody has vouched for it."""

    diff: str
    """A unified diff, to be read and not to be applied: what a reader would not see is left out."""
    is_cut: bool
    """It is longer than this."""


class Wish(View):
    """What a person wants of a session; `{}` is enough."""

    by: str | None = Field(default=None, min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")
    """Who, by the word of the client; None: the user that the service runs as."""


class GateAnswer(Wish):
    """What to answer with; `{}` is enough."""

    note: str | None = Field(default=None, max_length=2000)
    """Why; whoever suggested it reads it."""


class SteeringWord(View):
    """One thing to say to a session."""

    kind: Kind
    text: str = Field(default="", max_length=MOST_CHARACTERS)
    """The condition of `forbid` and `allow`, the sentence of `hypothesis`; of the others, why."""
    budget: str | None = None
    """With `budget`: trials, wall_minutes, device_seconds, tokens or cost_usd."""
    value: float | None = Field(default=None, allow_inf_nan=False)
    """With `budget`: its new limit; None: no limit."""
    params: dict[str, ParamValue] = Field(default_factory=dict)
    """With `hypothesis`: what to try, before all else."""


class Steer(Wish):
    """All of it counts, or nothing."""

    words: tuple[SteeringWord, ...] = Field(min_length=1, max_length=50)


class SteeringView(View):
    steering_id: int
    session_id: str
    at: float
    by: str
    word: SteeringWord
    words: str
    """As a sentence: `ann forbids lr > 0.1`."""
    taken_at: float | None
    """When the session went on by it, with a revision of its plan; None: not yet."""


class Event(View):
    """One line of what a session does and why, or what a person decided; also the data of the event stream."""

    seq: int
    """Grows over all sessions of the service's home; never used twice."""
    session_id: str
    at: float
    step: str
    """orient, assess, revise, propose, review, launch, think, report, session, gate, steer."""
    text: str
    trial_id: str | None
    job_id: str | None


class Notice(View):
    """A message to people about a session."""

    session_id: str
    event: str
    at: float
    told_at: float | None
    """None: it is not sent yet."""
    note: str | None
    """What became of it at each address."""
