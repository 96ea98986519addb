"""When a waiting job is expected to start: rounds are played ahead on a copy, with the ends that are expected. Pure.

Supposed: nothing else arrives; attempts end when like jobs did, or at their time limit; who is asked to leave saves
all of its work and uses all of its grace; starting takes no time. An attempt of which nothing is known never ends, so
that a start that is told does not hang on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from runtime.model import outcome
from runtime.model.apply import apply
from runtime.model.copying import copy_of
from runtime.model.estimates import remaining_s
from runtime.model.events import AttemptEnded, AttemptStarted, CheckpointSeen, Event, JobEnded, JobSubmitted, Recorded
from runtime.model.nouns import Attempt, Job
from runtime.model.state import State
from runtime.model.states import LEAVING, StopCause

from .decision import Start
from .intent import event_of
from .lapses import events_from_lapse
from .policy import Policy
from .preempt import began_s
from .schedule import schedule

MAX_INSTANTS = 300
"""Points in time that are played; what lies behind them is not told."""
MAX_ROUNDS = 50
"""At one point in time."""
MAX_JOBS = 20_000
"""With more jobs than these nothing is told: copying and playing would take too long."""
MAX_NAMES = 4
LEARNED = "as long as like jobs ran"
LIMIT = "at its time limit"
GRACE = "its grace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """When a job is expected to start."""

    at_s: float | None
    """Seconds since the epoch; None: that can not be told."""
    basis: str
    """What it hangs on, or why it can not be told."""


class End(NamedTuple):
    """When an attempt is expected to give its devices back."""

    at_s: float
    how: str


Device = tuple[str, int]


@dataclass(slots=True, kw_only=True)
class Rehearsal:
    """One play. Made to be played once."""

    state: State
    now_s: float
    policy: Policy
    ends: dict[tuple[str, int, bool], End] = field(default_factory=dict)
    """By job, attempt, and whether it was asked to stop."""
    given_back: dict[Device, tuple[str, str]] = field(default_factory=dict)
    """Who held a device last, and how that was expected to end."""
    endings: dict[str, str] = field(default_factory=dict)
    """Why jobs ended that held nothing, by job."""

    def until_start(self, job_id: str) -> Expectation:
        for _ in range(MAX_INSTANTS):
            wake_s = self._rounds()
            job = self.state.jobs.get(job_id)
            if job is None:
                return Expectation(at_s=None, basis=f"it is expected to end before: {self.endings[job_id]}")
            if job.attempt is not None:
                return Expectation(at_s=self.now_s, basis=self._basis(job.attempt))
            expected = dict(self._expected())
            times = [end.at_s for end in expected.values()] + ([] if wake_s is None else [wake_s])
            if not times:
                return Expectation(at_s=None, basis=self._why_never())
            self.now_s = max(self.now_s, min(times))
            due = (self.state.jobs[holder] for holder, end in expected.items() if end.at_s <= self.now_s)
            for holder in sorted(due, key=lambda job: job.order):
                self._end(holder, expected[holder.job_id])
        return Expectation(at_s=None, basis="too much is expected to happen before it")

    def _rounds(self) -> float | None:
        """Play until nothing more is ordered; when the next round is due."""
        for _ in range(MAX_ROUNDS):
            while events := events_from_lapse(self.state, self.now_s):
                for event in events:
                    self._record(event)
            decision = schedule(self.state, now_s=self.now_s, policy=self.policy)
            if not decision.actions:
                return decision.next_wake_s
            for action in decision.actions:
                self._record(event_of(action))
                if isinstance(action, Start):
                    self._record(AttemptStarted(job_id=action.job_id, attempt=action.attempt, pid=None))
        return None

    def _expected(self) -> Iterator[tuple[str, End]]:
        """The ends of what holds devices; each is reckoned once, so that waiting does not put it off."""
        for job_id in self.state.index.holding:
            job = self.state.jobs[job_id]
            if job.attempt is None:
                continue
            key = (job_id, job.attempt.number, job.attempt.stop is not None)
            end = self.ends.get(key) or _end_of(self.state, job, job.attempt, self.now_s)
            if end is not None:
                self.ends[key] = end
                yield job_id, end

    def _end(self, job: Job, end: End) -> None:
        attempt = job.attempt
        assert attempt is not None, "it holds devices"
        cause = attempt.stop.cause if attempt.stop else None
        if cause in LEAVING and attempt.started_at_s is not None:
            self._record(CheckpointSeen(job_id=job.job_id, attempt=attempt.number, step=(job.checkpoint_step or 0) + 1))
        ending = outcome.classify(outcome.ExitFacts(stop=cause, exit_code=0 if cause is None else 75))
        left = self.state.jobs[job.job_id]
        follows = outcome.disposition(left, ending.outcome, ending.reason, now_s=self.now_s, policy=self.policy)
        for placement in attempt.placements:
            for device in placement.devices:
                self.given_back[placement.node_id, device] = (job.job_id, end.how)
        self._record(
            AttemptEnded(
                job_id=job.job_id,
                attempt=attempt.number,
                outcome=ending.outcome,
                exit_reason=follows.exit_reason,
                exit_code=None,
                evidence=None,
                then=follows.then,
                end_state=follows.end_state,
                not_before_s=follows.not_before_s,
            )
        )

    def _record(self, event: Event) -> None:
        if isinstance(event, JobEnded):
            self.endings[event.job_id] = event.reason
        apply(
            self.state,
            Recorded(
                seq=self.state.last_seq + 1,
                at_s=self.now_s,
                actor="rehearsal",
                on_behalf_of=None,
                project=None,
                event=event,
            ),
        )

    def _basis(self, attempt: Attempt) -> str:
        """Whose end it waits for: of the devices that it gets, those that had to be given back."""
        waits_for: dict[str, str] = {}
        for placement in attempt.placements:
            for device in placement.devices:
                if (found := self.given_back.get((placement.node_id, device))) is not None:
                    waits_for[found[0]] = found[1]
        if not waits_for:
            return "its devices are free by then"
        return f"when {_listed(waits_for)}"

    def _why_never(self) -> str:
        unknown = sorted(self.state.index.holding, key=lambda job_id: self.state.jobs[job_id].order)
        if not unknown:
            return "nothing that is expected to happen makes room for it"
        names = ", ".join(unknown[:MAX_NAMES]) + (f" and {len(unknown) - MAX_NAMES} more" * (len(unknown) > MAX_NAMES))
        verb = "runs" if len(unknown) == 1 else "run"
        return f"nobody knows how long {names} {verb}: too few like jobs have succeeded, and there is no time limit"


def expected_start(copy: State, job_id: str, *, now_s: float, policy: Policy) -> Expectation:
    """When a queued job is expected to start.

    Args:
        copy: a state that nobody else reads; it is played on, and is worth nothing afterwards.
    """
    if len(copy.jobs) > MAX_JOBS:
        return Expectation(at_s=None, basis=f"more than {MAX_JOBS} jobs are there")
    return Rehearsal(state=copy, now_s=now_s, policy=policy).until_start(job_id)


def stage(state: State, new: Job | None = None, *, now_s: float) -> State:
    """A copy to play on, with a job that is not there yet."""
    copy = copy_of(state)
    if new is not None:
        entry = Recorded(
            seq=copy.last_seq + 1,
            at_s=now_s,
            actor="rehearsal",
            on_behalf_of=None,
            project=None,
            event=JobSubmitted(job=new),
        )
        apply(copy, entry)
    return copy


def _end_of(state: State, job: Job, attempt: Attempt, now_s: float) -> End | None:
    """None: nothing is known. An end at the time limit is the scheduler's to order, so only one before it counts."""
    if attempt.stop is not None:
        how = LIMIT if attempt.stop.cause in (StopCause.TIMEOUT, StopCause.RENEW) else GRACE
        return End(max(now_s, attempt.stop.ordered_at_s + attempt.stop.grace_s), how)
    expected_s = attempt.expected_s
    if expected_s is None:
        expected_s = state.estimates.expected_s(job.project, job.experiment, job.shape)
    if expected_s is None:
        return None
    return End(now_s + remaining_s(expected_s, job.done_s + max(0.0, now_s - began_s(attempt))), LEARNED)


def _listed(waits_for: Mapping[str, str]) -> str:
    words = [
        f"{job_id} has left (within its grace)" if how == GRACE else f"{job_id} has ended ({how})"
        for job_id, how in waits_for.items()
    ]
    more = f", and {len(words) - MAX_NAMES} more" if len(words) > MAX_NAMES else ""
    return ", ".join(words[:MAX_NAMES]) + more
