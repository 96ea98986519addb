"""What is known so far: the trials of a session, frozen, with the questions that planning asks of them. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agent.planner.objective import gain
from agent.store.views import CodeState, ParamValue, Purpose, TrialFacts, TrialState, TrialView, Worth
from agent.task import Direction

SLOT_NEEDED = "slot_needed"
"""Exit reason of idle work that was cut short for wanted work."""
_NOTHING_KNOWN = TrialFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A trial that should be run, and why."""

    params: dict[str, ParamValue]
    configuration: str
    seed: int
    purpose: Purpose
    suggested_by: str
    why: str
    hypothesis: str | None = None
    """Id of the hypothesis that it tests."""
    is_idle_work: bool = False
    """Made for a slot that had nothing else to do: launched as exploratory, whatever the task's class."""
    worth: Worth | None = None
    facts: TrialFacts = _NOTHING_KNOWN
    """What is known of the trial before it runs: prediction, prompt, model, brief, what it mends."""

    def as_trial(self, number: int, *, trial_id: str, session_id: str = "", proposed_at: float = 0.0) -> TrialView:
        """The trial that it becomes when it is numbered: proposed, and nothing known yet."""
        return TrialView(
            trial_id=trial_id,
            session_id=session_id,
            number=number,
            configuration=self.configuration,
            params=dict(self.params),
            seed=self.seed,
            purpose=self.purpose,
            suggested_by=self.suggested_by,
            why=self.why,
            state=TrialState.PROPOSED,
            job_id=None,
            value=None,
            note=None,
            exit_reason=None,
            device_seconds=0.0,
            proposed_at=proposed_at,
            launched_at=None,
            ended_at=None,
            hypothesis=self.hypothesis,
            is_idle_work=self.is_idle_work,
            worth=self.worth,
            facts=self.facts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Trials in the order of their numbers. Idle work that was cut short says nothing: it is among `trials` alone."""

    trials: tuple[TrialView, ...]
    search: tuple[TrialView, ...]
    held_out: tuple[TrialView, ...]
    replicates: dict[tuple[str, int], TrialView]
    """By configuration and seed."""
    rungs: dict[tuple[str, str, int], TrialView] = field(default_factory=dict)
    """By rung of the ladder, configuration and seed: values of another fidelity, in no other part but `trials`."""

    @classmethod
    def of(cls, trials: Iterable[TrialView]) -> History:
        ordered = tuple(sorted(trials, key=lambda trial: trial.number))
        told = tuple(t for t in ordered if t.exit_reason != SLOT_NEEDED)
        return cls(
            trials=ordered,
            search=tuple(t for t in told if t.purpose is Purpose.SEARCH),
            held_out=tuple(t for t in told if t.purpose is Purpose.HELD_OUT),
            replicates={(t.configuration, t.seed): t for t in told if t.purpose is Purpose.REPLICATE},
            rungs=_on_rungs(told),
        )

    def after(self, changed: Sequence[TrialView]) -> History:
        """The history with trials added or replaced (never another purpose): copies, but does not sort anew."""
        return History(
            trials=_merged(self.trials, changed),
            search=_merged(self.search, [t for t in changed if t.purpose is Purpose.SEARCH]),
            held_out=_merged(self.held_out, [t for t in changed if t.purpose is Purpose.HELD_OUT]),
            replicates=self.replicates
            | {(t.configuration, t.seed): t for t in changed if t.purpose is Purpose.REPLICATE},
            rungs=self.rungs | _on_rungs(changed),
        )

    def of_base(self) -> History:
        """What was measured with the session's base code alone."""
        if all(trial.facts.edited is None for trial in self.trials):
            return self
        return History.of(trial for trial in self.trials if trial.facts.edited is None)

    def code_of(self, configuration: str) -> CodeState | None:
        """The code that a known configuration runs; None: the session's base."""
        for trial in self.search:
            if trial.configuration == configuration:
                return trial.facts.edited
        return None

    @property
    def in_flight(self) -> tuple[TrialView, ...]:
        return tuple(t for t in self.trials if t.is_in_flight)

    @property
    def wanted_in_flight(self) -> tuple[TrialView, ...]:
        """Those that the session waits for: all but idle replicates, which are cut short at its end."""
        return tuple(t for t in self.in_flight if not (t.is_idle_work and t.purpose is Purpose.REPLICATE))

    @property
    def ready(self) -> tuple[TrialView, ...]:
        """Prepared and not yet submitted."""
        return tuple(t for t in self.trials if t.state is TrialState.PROPOSED and not t.is_submitting)

    def best(self, direction: Direction) -> TrialView | None:
        """The best measured search trial; of equals the earliest. None: nothing valid yet."""
        found: TrialView | None = None
        for trial in self.search:
            if trial.state is not TrialState.MEASURED or trial.value is None:
                continue
            if found is None or found.value is None or gain(trial.value, found.value, direction) > 0:
                found = trial
        return found


def _on_rungs(trials: Iterable[TrialView]) -> dict[tuple[str, str, int], TrialView]:
    return {
        (t.facts.rung, t.configuration, t.seed): t
        for t in trials
        if t.purpose is Purpose.RUNG and t.facts.rung is not None
    }


def _merged(known: tuple[TrialView, ...], changed: Sequence[TrialView]) -> tuple[TrialView, ...]:
    if not changed:
        return known
    trials = list(known)
    for trial in changed:
        at = len(trials)
        if trials and trial.number <= trials[-1].number:
            at = bisect_left(trials, trial.number, key=lambda t: t.number)
        if at < len(trials) and trials[at].number == trial.number:
            trials[at] = trial
        else:
            trials.insert(at, trial)
    return tuple(trials)
