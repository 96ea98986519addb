"""What the rest of nightlab reads of a session: the rows of the agent's store as frozen values.

Times are seconds since the epoch. Writers are in `agent.store`; the live view, the report and the command line
read these and nothing else of the agent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from agent.doctor.diagnosis import Diagnosis

ParamValue = str | int | float | bool | None


class SessionState(StrEnum):
    RUNNING = "running"
    """A process works on it, or will as soon as the runtime is up."""
    STOPPING = "stopping"
    """Asked to stop in order; can be resumed."""
    STOPPED = "stopped"
    """Stopped in order; `research resume` goes on."""
    FINISHED = "finished"
    """The plan is done and reported."""
    FAILED = "failed"
    """It can not go on; `message` says why and what to do."""


class Purpose(StrEnum):
    SEARCH = "search"
    """A configuration tried for the first time."""
    REPLICATE = "replicate"
    """A known configuration with a fresh seed."""
    HELD_OUT = "held_out"
    """The counted look at the held-out metric."""
    RUNG = "rung"
    """A known configuration on a rung of the ladder, on a fresh seed."""


class TrialState(StrEnum):
    PROPOSED = "proposed"
    """Ready to launch; holds no device."""
    LAUNCHED = "launched"
    """Its job was submitted."""
    MEASURED = "measured"
    """`value` is set and valid."""
    INVALID = "invalid"
    """Ended without a usable value; `note` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What a trial is expected to bring; travels with its job, so that the least valuable one leaves first."""

    gain: float
    """Expected gain, in the metric's units, never negative."""
    uncertainty: float
    """Standard deviation of that gain."""
    cost_s: float
    """Expected device-seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What whoever suggested a trial predicted, before any evidence."""

    probability: float
    """0 to 1: that it beats the default configuration by the task's rule."""
    effect: float | None = None
    """Expected gain over the default, positive for better, in the metric's units; None: nothing was said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeState:
    """A state of the training code in a session's own repository: the base, or an edit of it."""

    tree: str
    """Id of the git tree: equal exactly for equal code."""
    commit: str
    branch: str
    parent: str | None = None
    """Id of the trial whose code it was made from; None: the base."""
    added: int = 0
    """Lines against the base."""
    removed: int = 0
    files: tuple[str, ...] = ()
    """Paths that differ from the base."""
    summary: str = ""
    """What the change is, in one line, by whoever made it: untrusted text."""

    @property
    def n_changed(self) -> int:
        """Lines added and removed against the base."""
        return self.added + self.removed

    @property
    def size(self) -> str:
        """`+12 -3 lines in model.py, optim.py`, against the base."""
        named = ", ".join(self.files[:3]) + (f" and {len(self.files) - 3} more" if len(self.files) > 3 else "")
        return f"+{self.added} -{self.removed} lines in {named}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFound:
    """What a short job before a trial's launch told of it; None: not known."""

    job_id: str
    is_ended: bool = False
    peak_memory_mb: float | None = None
    step_seconds: float | None = None
    run_seconds: float | None = None
    """Predicted, of the whole training."""
    exit_reason: str | None = None
    """None: it did not fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFacts:
    """Under which circumstances a trial was measured; None: not known. Trials that differ in them may not compare."""

    device_model: str | None = None
    """Accelerator model of the attempt that gave the value; `mixed` where attempts of several models did."""
    is_alone: bool | None = None
    """Whether it had its devices' node to itself (`exclusive`)."""
    data: str | None = None
    """Fingerprint of the task's data when it was launched; None: unpinned."""
    data_after: str | None = None
    """The same when its job had ended: another one means that the data changed under it."""
    code: str | None = None
    """Digest of the code snapshot that it ran."""
    scorer: str | None = None
    """Digest of the scorer's command and code; None: the script reported its own value."""
    score_job_id: str | None = None
    scorer_reach: str | None = None
    """How far a scorer that is kept apart was from the training that it measured: `sealed`, `sealed, other user`,
    `within reach`. None: it is not kept apart."""
    partial_value: float | None = None
    """Last finite value of a trial that ended before its end: evidence of how it went, never its value."""
    partial_step: int | None = None
    continues: tuple[str, ...] = ()
    """Earlier jobs of it, oldest first, that had to leave at the end of a night: its job goes on where they were."""
    run_seconds: float | None = None
    """From the start of the command to its end, attempts that it ended itself together; None: not known, or something
    else interrupted it."""
    cpu_seconds: float | None = None
    """Processor time of that training, in seconds of one core; None: not known, or interrupted."""
    peak_memory_mb: float | None = None
    """Most memory of this machine that the processes of its last attempt held at once; None: not known."""
    checkpoint_step: int | None = None
    """Newest checkpoint that its training left; None: it left none, or it is not known."""
    expected: Expected | None = None
    """Prediction of whoever suggested it; None: nothing was predicted."""
    prompt: str | None = None
    """Name and version hash of the prompt that it comes from, as `name@hash`; None: from no model."""
    model: str | None = None
    """The model that suggested it, as its endpoint names it."""
    brief: str | None = None
    """Version hash of the research brief at the time."""
    edited: CodeState | None = None
    """The code that it runs, where that is not the session's base; None: the base."""
    fixes: str | None = None
    """Id of the failed trial that it is a try to mend."""
    diagnosis: Diagnosis | None = None
    """Why it has no value, as the failure doctor found; None: it has one, or nobody looked."""
    stopped_early: str | None = None
    """Why its job was ended before its end, by whom; None: it was not. It has no value then."""
    rung: str | None = None
    """Name of the rung of the ladder that it runs on; None: the fidelity of the search."""
    priority_class: str | None = None
    """By a person's word; None: that of its rung, or of the task."""
    reached: tuple[tuple[int, float], ...] = ()
    """Milestones that its curve has passed, as step and value, kept when they were seen, whatever became of it."""
    others: dict[str, float] = field(default_factory=dict)
    """Values of the metrics of `also` and `constraints`, as far as they are known."""
    probe: ProbeFound | None = None
    """None: it was not probed."""
    left_for: float | None = None
    """Hour for which its last job had to leave: the `finish_by` of its session then, in seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestedEdit:
    """A change of the code as somebody wrote it: untrusted text until it was applied and checked."""

    text: str
    """Blocks, or a unified diff."""
    parent: str = "base"
    """Whose code it is of: `base`, or a trial's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """A person's wish to see a configuration on a rung of the ladder."""

    trial_id: str
    rung: str
    priority_class: str | None = None
    """None: the rung's."""
    seeds: int | None = None
    """None: as many as the rung has."""


AGAIN = "again"
"""`arm` of a replicate that a person asked for."""
PROMOTE = "promote"
"""`arm` of a configuration that a person wants on a rung of the ladder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionView:
    """An idea from outside of the session: a person's, which goes first, or an outside agent's."""

    suggestion_id: int
    session_id: str
    at: float
    params: dict[str, ParamValue]
    """Only what was given; the rest is filled in from the incumbent."""
    why: str
    suggested_by: str
    """`person`, or the name that was given."""
    trial_id: str | None
    """The trial made of it; None: it waits."""
    note: str | None
    """Why no trial was made of it; None: one was, or it waits."""
    arm: str | None = None
    """None: a person's idea; `AGAIN`, `PROMOTE`: what a person wants of a known configuration. Else the proposer of
    the portfolio whose idea it is: it waits for a slot of that one."""
    expected: Expected | None = None
    """What was predicted of it."""
    edit: SuggestedEdit | None = None
    """None: parameters alone, on the base code."""
    promotion: Promotion | None = None
    """With the arm `PROMOTE` alone."""

    @property
    def again_of(self) -> str | None:
        """The trial whose configuration a person wants to run again; None: it is an idea for a new one."""
        return self.edit.parent if self.arm == AGAIN and self.edit is not None else None

    @property
    def is_of_person(self) -> bool:
        """A person said it: it goes first."""
        return self.arm in (None, AGAIN, PROMOTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView:
    trial_id: str
    session_id: str
    number: int
    """1, 2, 3, ... within the session."""
    configuration: str
    """Canonical hash of the searched parameters: replicates of one configuration share it."""
    params: dict[str, ParamValue]
    seed: int
    purpose: Purpose
    suggested_by: str
    """`default`, `optuna`, `replicator`, ..."""
    why: str
    state: TrialState
    job_id: str | None
    value: float | None
    note: str | None
    exit_reason: str | None
    device_seconds: float
    proposed_at: float
    launched_at: float | None
    ended_at: float | None
    submission: int = 1
    """Which job carries it: a queued job recalled at a stop is followed by the next one."""
    is_submitting: bool = False
    """The intent to submit is recorded, the answer is not yet."""
    is_recalled: bool = False
    """Its queued job was asked back because the session stops."""
    hypothesis: str | None = None
    """Id of the hypothesis that it tests."""
    is_idle_work: bool = False
    """Made for a slot that had nothing else to do; its job is exploratory."""
    worth: Worth | None = None
    facts: TrialFacts = TrialFacts()

    @property
    def carried_by(self) -> str | None:
        """The job that it waits for: once its training has ended, the one that scores it."""
        return self.facts.score_job_id or self.job_id

    @property
    def has_begun(self) -> bool:
        """A job of it has run and had to leave: it is not withdrawn as if it were nothing."""
        return self.device_seconds > 0 or bool(self.facts.continues)

    @property
    def trained_by(self) -> tuple[str, ...]:
        """The jobs that its training is made of, oldest first."""
        return self.facts.continues if self.job_id is None else (*self.facts.continues, self.job_id)

    @property
    def is_new(self) -> bool:
        """Proposed, and no job of it was ever submitted."""
        return self.state is TrialState.PROPOSED and not self.is_submitting and not self.has_begun

    @property
    def is_at_search_fidelity(self) -> bool:
        """Whether its value is of the objective, with as much training as in the search."""
        return self.purpose in (Purpose.SEARCH, Purpose.REPLICATE)

    @property
    def is_ended(self) -> bool:
        return self.state in (TrialState.MEASURED, TrialState.INVALID)

    @property
    def is_in_flight(self) -> bool:
        return self.state is TrialState.LAUNCHED or self.is_submitting


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    estimate: float
    low: float
    high: float
    confidence: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFound:
    """The edited code that a session chose."""

    trial_id: str
    """The trial that tried it first."""
    state: CodeState
    parent: str | None
    """Id of the trial whose code it was made from; None: the base."""
    over_parent: Interval | None
    """Best minus the code that it was made from, with the same parameters and over paired fresh seeds, in the metric's
    own units: an interval and no claim. None: that is `difference`, or pairs are missing."""
    chosen_over: str = ""
    """Which leader was passed over for it, and by which rule, in words; empty: it led."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalResult:
    """What a session found, by code."""

    best: dict[str, ParamValue]
    default: dict[str, ParamValue]
    best_configuration: str
    default_configuration: str
    best_mean: Interval | None
    default_mean: Interval | None
    difference: Interval | None
    """Best minus default over paired fresh seeds, in the metric's own units; valid at every look."""
    comparison: str
    """better, worse, indistinguishable, invalid: the best against the default."""
    verdict: str
    """supported, refuted, inconclusive: the claim that the best beats the default."""
    held_out_value: float | None
    held_out_looks: int
    sentence: str
    """The same for a person."""
    n_pairs: int = 0
    """Pairs on fresh seeds that the verdict was made from; each was a look, and the looks are paid for."""
    evidence: float | None = None
    """For better, where it was decided by betting; None: by an earlier nightlab, or there was no second side."""
    evidence_needed: float | None = None
    """What decides: 1 over the claim's share of the error budget."""
    error_budget: float | None = None
    """Chance at most that the whole session makes any false claim of better."""
    n_claims: int = 0
    """Claims about challengers that were made on the way, from the same budget."""
    estimate: Interval | None = None
    """What the best configuration is worth, free of the luck by which it was chosen as far as `basis` says."""
    basis: str | None = None
    """fresh, shrunk or as_measured: what `estimate` rests on."""
    code: CodeFound | None = None
    """Of the best configuration, where it runs edited code; None: it runs the session's base."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    session_id: str
    task_name: str
    task_json: str
    """The task as it was when the session started, and as people have changed it since (`agent.steering`)."""
    state: SessionState
    message: str
    created_at: float
    ended_at: float | None
    fence: int
    pid: int | None
    """Process that works on it now."""
    run_id: str | None
    """Our id of the session's MLflow run."""
    plan_revision: int
    n_trials: int
    """Search trials proposed so far."""
    device_seconds: float
    wall_seconds: float
    """Time in which the session was running, over all its lives."""
    report_path: str | None
    result: FinalResult | None
    hypothesis_run_id: str | None = None
    """Our id of the MLflow run that is the trials' parent."""
    tokens: int = 0
    """Of language models, both ways."""
    cost_usd: float = 0.0
    """Of language models."""
    key: str = ""
    """Random part of every idempotency token, so that two homes never share one."""
    finish_by: float | None = None
    """When nothing of it may run any more; what is unfinished then goes on after a resume. None: no such hour."""
    night_id: str | None = None
    """The night of a sweep that it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityView:
    """One line of what the agent does and why."""

    at: float
    step: str
    text: str
    trial_id: str | None = None
    job_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallView:
    """One call of a language model."""

    call_id: int
    at: float
    purpose: str
    prompt_version: str | None
    model: str
    rung: str | None
    outcome: str
    """`used`, `unusable`, a `Trouble`; `open`: it was begun, and nothing tells how it ended; `cut_off`: its process
    ended before it."""
    prompt_tokens: int
    completion_tokens: int
    """Of a call that is open or gave no answer: what it may have used at most, for so much is booked."""
    cost_usd: float | None
    """None: the price is unknown."""
    took_s: float
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """One revision of a session's plan."""

    revision: int
    at: float
    phase: str
    """search, confirm, held_out, done."""
    reason: str
    """What changed, in words."""
    plan_json: str
    """The whole revision as data; also the artifact `plan/revision-<n>.json` of the session's MLflow run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookView:
    """One counted look at the held-out metric; written before its job is launched."""

    look: int
    """1, 2, ... within the session."""
    at: float
    metric: str
    configuration: str
    trial_id: str
    value: float | None
    """None: not known yet, or the job ended without it; the look counts all the same."""
