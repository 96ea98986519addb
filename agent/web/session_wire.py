"""What the page of a session draws, as data: bounded however long the session is."""

from __future__ import annotations

from agent.llm.turns import Turns
from agent.planner.budget import Cap
from agent.planner.calibration import Bin
from agent.planner.effects import Part
from agent.planner.hypothesis import Status
from agent.store.views import Interval, ParamValue, Purpose, TrialState
from agent.task import Parameter
from agent.web.wire import Arm, Event, SessionSummary, SteeringView, View


class Pair(View):
    """One seed, both sides."""

    seed: int
    first: str
    """Trial of the configuration that is claimed to be better."""
    first_value: float
    second: str
    second_value: float


class Claim(View):
    hypothesis_id: str
    under: str | None
    """The claim that it hangs on in the tree: whose code its own was made from, else the session's own; None: that is
    this one."""
    statement: str
    status: Status
    note: str
    acceptance: str
    probability: float
    """Predicted, before any evidence."""
    effect: float | None
    """Predicted gain over the default; None: nothing was said."""
    made_by: str
    """Who predicted."""
    brier: float | None
    e_value: float
    e_needed: float
    """Evidence at which it is accepted."""
    alpha: float
    n_pairs: int
    difference: Interval | None
    """Best minus default over its pairs, in the metric's units; None: too few of them."""
    pairs: tuple[Pair, ...]
    """The first of them, in the order of their seeds."""
    trial_id: str | None
    """The trial that tried its configuration first; None: nothing is chosen yet."""
    params: dict[str, ParamValue]
    suggested_by: str | None
    why: str
    """Why it was tried, by whoever suggested it: untrusted text."""


class Idea(View):
    """What a person expects, said to the session."""

    steering_id: int
    at: float
    by: str
    text: str
    params: dict[str, ParamValue]
    taken_at: float | None
    trial_id: str | None
    """The trial made of it; None: none, or not yet."""
    hypothesis_id: str | None
    """The claim about that trial's configuration."""
    note: str | None
    """Why no trial was made of it."""


class RevisionLine(View):
    revision: int
    at: float
    phase: str
    reason: str
    said_by: tuple[str, ...]
    """The people whose words it tells of; none: the session came to it by itself."""


class Point(View):
    """One search trial that has ended."""

    trial_id: str
    number: int
    place: int
    """How many measured trials had ended by then, itself included."""
    device_seconds: float
    """What the session had used by then, all trials together."""
    value: float | None
    """None: it gave none that counts."""
    suggested_by: str
    is_edited: bool
    """It runs edited code: its value is not its parameters' alone."""
    params: dict[str, ParamValue]


class Record(View):
    """A trial that was better than all before it."""

    trial_id: str
    number: int
    place: int
    device_seconds: float
    value: float
    low: float | None
    high: float | None
    """What is believed of its configuration by now, 95 %; None: the noise is not known yet."""
    mean: float | None
    """In the middle of it: free of part of the luck by which it came to lead."""


class Progress(View):
    best: tuple[Record, ...]
    control: tuple[Record, ...]
    """The same over the trials of the control arm alone."""
    default: Record | None
    n_measured: int
    n_failed: int
    device_seconds: float


class EffectLine(View):
    name: str
    share: float | None
    """Of the variance of the ranked values that it explains; None: too few values."""
    p_value: float | None
    trend: float | None
    words: str
    parts: tuple[Part, ...]


class Calibrated(View):
    n: int
    brier: float
    base_rate: float
    brier_of_base_rate: float
    words: str
    bins: tuple[Bin, ...]


class SessionPicture(View):
    session: SessionSummary
    description: str
    metric: str
    direction: str
    min_effect: float
    target: float | None
    held_out_metric: str | None
    parameters: dict[str, Parameter]
    at: float
    """When it was read."""
    is_held: bool
    """A living process works on it."""
    activity: tuple[Event, ...]
    """The newest lines, in order."""
    n_by_state: dict[TrialState, int]
    n_by_purpose: dict[Purpose, int]
    phase: str | None
    """None: there is no plan yet, or a newer nightlab wrote it."""
    search_closed: str | None
    """Why no more search trials are proposed; None: they are."""
    spent: str | None
    """The budget that is used up."""
    claims: tuple[Claim, ...]
    """The session's own first."""
    n_claims: int
    ideas: tuple[Idea, ...]
    revisions: tuple[RevisionLine, ...]
    """The newest first."""
    waiting_words: tuple[SteeringView, ...]
    """What people said and no revision tells of yet."""
    forbidden: tuple[str, ...]
    is_paused: bool
    is_taken_over: bool
    progress: Progress
    points: tuple[Point, ...]
    """Search trials in the order in which they ended: all of them, or every so many and all records."""
    n_points: int
    """Of how many these are."""
    effects: tuple[EffectLine, ...]
    arms: tuple[Arm, ...]
    control_arm: tuple[str, ...]
    """Names in `arms` that are the control arm's."""
    budgets: tuple[Cap, ...]
    error_budget: float | None
    error_spent: float
    calibration: Calibrated
    looks: str
    model: Turns
    n_gates_waiting: int


class TrialLine(View):
    """A row of the table of trials."""

    trial_id: str
    number: int
    purpose: Purpose
    state: TrialState
    value: float | None
    params: dict[str, ParamValue]
    seed: int
    suggested_by: str
    why: str
    code: str | None
    """Size of its edit; None: the session's base."""
    hypothesis: str | None
    is_idle_work: bool
    device_seconds: float
    exit_reason: str | None
    note: str | None
    ended_at: float | None


class TrialTable(View):
    items: tuple[TrialLine, ...]
    n_found: int
    n_all: int
