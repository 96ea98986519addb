"""How an attempt ended, and what becomes of its job: from what the server knows first, from evidence second. Pure.

`classify` names the ending, `disposition` decides what follows. The patterns that recognize an ending in a log are
data (`exit_patterns.toml`) and are passed in.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from .apply import has_progressed, stalls, worked_s
from .events import Then
from .evidence import ExitPattern, last_line
from .nouns import Job
from .root_cause import Cause, RankTail, find_cause
from .states import (
    EXIT_DO_NOT_REQUEUE,
    EXIT_REQUEUE,
    LEAVING,
    AttemptOutcome,
    ExitReason,
    FailureClass,
    JobState,
    StopCause,
    failure_class,
)

EXIT_COMMAND_NOT_FOUND = 127
"""Exit code of a shell whose command does not exist (POSIX, Shell Command Language, section 2.8.2)."""
EXIT_SIGNAL_BASE = 128
"""A shell reports a child killed by signal n as 128 + n."""
_SIGNALS = frozenset(signal.Signals)
SUPERVISOR_LOST = "its supervisor vanished without an exit record"
NODE_RESTARTED = "the machine was restarted while it ran"
NEVER_RETRIED = frozenset(
    {ExitReason.BAD_PYTHON, ExitReason.BAD_COMMAND, ExitReason.DO_NOT_REQUEUE, ExitReason.SANDBOX_UNAVAILABLE}
)
"""A new attempt would end in the same way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitFacts:
    """What is known about an attempt whose process tree is gone."""

    stop: StopCause | None
    """Why we asked it to stop; None: we did not."""
    exit_code: int | None
    """Negative: killed by that signal. None: unknown."""
    was_killed: bool = False
    """We had to kill it, or something it left behind."""
    stop_reason: str | None = None
    """In words, why we asked it to stop."""
    device_fault: str | None = None
    """What its device itself reported meanwhile, in words; None: nothing."""
    oom_killed: bool = False
    """The kernel says that it was killed for memory."""
    supervisor_lost: bool = False
    node_restarted: bool = False
    """The machine was restarted while it ran."""
    missing_metrics: tuple[str, ...] = ()
    """Required metrics that were never logged."""
    non_finite_metrics: tuple[str, ...] = ()
    """Required metrics whose last value is NaN or infinite."""
    log_tail: str = ""
    rank_tails: tuple[RankTail, ...] = ()
    """Of ranks whose output has files of its own."""
    n_ranks: int = 1
    patterns: tuple[ExitPattern, ...] = ()


class Ending(NamedTuple):
    outcome: AttemptOutcome
    reason: ExitReason
    evidence: str | None
    """The line that tells why; None when the ending needs no explanation."""


def classify(facts: ExitFacts) -> Ending:
    """Name the ending of an attempt that ran."""
    match facts.stop:
        case StopCause.CANCEL:
            return Ending(AttemptOutcome.CANCELLED, ExitReason.CANCELLED, None)
        case StopCause.TIMEOUT:
            return Ending(AttemptOutcome.TIMED_OUT, ExitReason.RUN_TIMEOUT, last_line(facts.log_tail))
        case StopCause.HANG:
            return Ending(AttemptOutcome.FAILED, ExitReason.HUNG, facts.stop_reason or last_line(facts.log_tail))
        case StopCause.PREEMPT | StopCause.SHUTDOWN | StopCause.PAUSE | StopCause.DRAIN:
            return _after_notice(facts)
        case StopCause.RENEW:
            return _renewed(_after_notice(facts))
        case StopCause.BUDGET:
            return _given_up(_after_notice(facts), ExitReason.OVER_BUDGET, facts.stop_reason)
        case StopCause.DEADLINE:
            return _given_up(_after_notice(facts), ExitReason.DEADLINE, facts.stop_reason)
        case None:
            return _unasked(facts)


def classify_unlaunched(stop: StopCause | None, reason: ExitReason, evidence: str) -> Ending:
    """Name the ending of an attempt whose command never ran."""
    return _asked(stop, evidence) or Ending(AttemptOutcome.LAUNCH_FAILED, reason, evidence)


def classify_lost(stop: StopCause | None, evidence: str) -> Ending:
    """Name the ending of an attempt whose node is gone."""
    return _asked(stop, evidence) or Ending(AttemptOutcome.NODE_LOST, ExitReason.NODE_LOST, evidence)


def _asked(stop: StopCause | None, evidence: str) -> Ending | None:
    """The ending that a stop order explains by itself."""
    if stop is StopCause.CANCEL:
        return Ending(AttemptOutcome.CANCELLED, ExitReason.CANCELLED, evidence)
    if stop is StopCause.BUDGET:
        return Ending(AttemptOutcome.CANCELLED, ExitReason.OVER_BUDGET, evidence)
    if stop is StopCause.DEADLINE:
        return Ending(AttemptOutcome.CANCELLED, ExitReason.DEADLINE, evidence)
    if stop in LEAVING:
        left = Ending(AttemptOutcome.PREEMPTED, ExitReason.PREEMPTED, evidence)
        return _renewed(left) if stop is StopCause.RENEW else left
    return None


def _renewed(ending: Ending) -> Ending:
    """An attempt that left at its time limit was not preempted."""
    if (ending.outcome, ending.reason) != (AttemptOutcome.PREEMPTED, ExitReason.PREEMPTED):
        return ending
    return Ending(AttemptOutcome.TIMED_OUT, ExitReason.RUN_TIMEOUT, ending.evidence)


def _given_up(ending: Ending, reason: ExitReason, why: str | None) -> Ending:
    """An attempt that was asked to end has ended, unless it was done."""
    if ending.outcome is AttemptOutcome.SUCCEEDED:
        return ending
    return Ending(AttemptOutcome.CANCELLED, reason, why or ending.evidence)


def _after_notice(facts: ExitFacts) -> Ending:
    if _meets_criteria(facts):
        return Ending(AttemptOutcome.SUCCEEDED, ExitReason.COMPLETED, None)
    if facts.exit_code in (0, EXIT_REQUEUE):
        return Ending(AttemptOutcome.PREEMPTED, ExitReason.PREEMPTED, None)
    if facts.exit_code == EXIT_DO_NOT_REQUEUE:
        return Ending(AttemptOutcome.PREEMPTED, ExitReason.DO_NOT_REQUEUE, last_line(facts.log_tail))
    return Ending(AttemptOutcome.PREEMPTED, ExitReason.PREEMPTED, _how_it_left(facts))


def _how_it_left(facts: ExitFacts) -> str | None:
    """The evidence of an attempt that did not leave as the contract says."""
    if facts.exit_code is None:
        return NODE_RESTARTED if facts.node_restarted else SUPERVISOR_LOST
    if facts.was_killed and facts.exit_code == -signal.SIGKILL:
        return "did not leave within its grace and was killed"
    return _failure(facts).evidence


def _unasked(facts: ExitFacts) -> Ending:
    if facts.node_restarted:
        return Ending(AttemptOutcome.NODE_LOST, ExitReason.NODE_LOST, NODE_RESTARTED)
    if facts.exit_code is None or facts.supervisor_lost:
        return Ending(AttemptOutcome.NODE_LOST, ExitReason.SUPERVISOR_LOST, SUPERVISOR_LOST)
    if _meets_criteria(facts):
        return Ending(AttemptOutcome.SUCCEEDED, ExitReason.COMPLETED, None)
    if facts.exit_code == EXIT_REQUEUE:
        return Ending(AttemptOutcome.PREEMPTED, ExitReason.REQUEUE_ASKED, None)
    if facts.exit_code == EXIT_DO_NOT_REQUEUE:
        return Ending(AttemptOutcome.FAILED, ExitReason.DO_NOT_REQUEUE, last_line(facts.log_tail))
    return _failure(facts)


def _meets_criteria(facts: ExitFacts) -> bool:
    return facts.exit_code == 0 and not facts.missing_metrics and not facts.non_finite_metrics


def _failure(facts: ExitFacts) -> Ending:
    """The reason and the line for an attempt that ended badly, whoever asked it to."""

    def failed(reason: ExitReason, evidence: str | None) -> Ending:
        return Ending(AttemptOutcome.FAILED, reason, evidence)

    cause = find_cause(facts.log_tail, facts.rank_tails, facts.patterns, n_ranks=facts.n_ranks)
    if facts.device_fault is not None and facts.exit_code != 0:
        return failed(ExitReason.DEVICE_LOST, facts.device_fault)
    if facts.oom_killed:
        return failed(ExitReason.OUT_OF_MEMORY_HOST, _of_rank(cause, "the kernel killed it for memory"))
    if facts.exit_code == 0:
        return _criteria_missed(facts)
    if cause is not None and cause.reason not in (None, ExitReason.CODE_ERROR):
        return failed(cause.reason, _told(cause))
    if facts.non_finite_metrics:
        return _criteria_missed(facts)
    number = _signal_number(facts.exit_code)
    if number is not None:
        said = f"killed by signal {number} ({signal.Signals(number).name})"
        return failed(ExitReason.KILLED_BY_SIGNAL, said)
    if facts.exit_code == EXIT_COMMAND_NOT_FOUND and cause is None:
        return failed(ExitReason.BAD_COMMAND, last_line(facts.log_tail))
    line = None if cause is None else cause.evidence
    return failed(ExitReason.CODE_ERROR, line or last_line(facts.log_tail) or f"exit code {facts.exit_code}, no output")


def _told(cause: Cause) -> str:
    number = cause.signal_number
    if number is None or number not in _SIGNALS:
        return cause.evidence
    return f"rank {cause.rank}: killed by signal {number} ({signal.Signals(number).name}), the first to go"


def _of_rank(cause: Cause | None, line: str) -> str:
    return line if cause is None or cause.signal_number is None else f"rank {cause.rank}: {line}"


def _criteria_missed(facts: ExitFacts) -> Ending:
    if facts.non_finite_metrics:
        names = ", ".join(facts.non_finite_metrics)
        evidence = f"last value of required metrics is not finite: {names}"
        return Ending(AttemptOutcome.FAILED, ExitReason.NON_FINITE_METRIC, evidence)
    names = ", ".join(facts.missing_metrics)
    return Ending(AttemptOutcome.FAILED, ExitReason.CRITERIA_NOT_MET, f"required metrics never logged: {names}")


def _signal_number(exit_code: int | None) -> int | None:
    """The signal that killed the command, directly or inside a shell; None: none did."""
    if exit_code is None or 0 <= exit_code <= EXIT_SIGNAL_BASE:
        return None
    number = -exit_code if exit_code < 0 else exit_code - EXIT_SIGNAL_BASE
    return number if number in _SIGNALS else None


class RetryRules(Protocol):
    """What `disposition` reads of the policy."""

    @property
    def max_stalled(self) -> int: ...
    @property
    def max_infrastructure_retries(self) -> int: ...
    @property
    def retry_backoff_s(self) -> float: ...
    @property
    def retry_backoff_max_s(self) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Disposition:
    """What becomes of a job after an attempt; the fields of `AttemptEnded` that follow from the ending."""

    then: Then
    end_state: JobState | None
    """Set exactly when `then` is END."""
    exit_reason: ExitReason
    """The attempt's own, or NO_CHECKPOINT_PROGRESS when that ends the job."""
    not_before_s: float


def disposition(
    job: Job, outcome: AttemptOutcome, reason: ExitReason, *, now_s: float, policy: RetryRules
) -> Disposition:
    """Decide what becomes of a job whose current attempt ended so.

    The job is as before `AttemptEnded`, with every checkpoint already applied.
    """
    follows = _disposition(job, outcome, reason, now_s=now_s, policy=policy)
    is_used_up = job.max_total_s is not None and job.ran_s + worked_s(job, now_s) >= job.max_total_s
    return _end(JobState.FAILED, ExitReason.RUN_TIMEOUT) if is_used_up and follows.then is not Then.END else follows


def _disposition(
    job: Job, outcome: AttemptOutcome, reason: ExitReason, *, now_s: float, policy: RetryRules
) -> Disposition:
    is_infrastructure = failure_class(outcome, reason) is FailureClass.INFRASTRUCTURE
    match outcome:
        case AttemptOutcome.SUCCEEDED:
            return _end(JobState.SUCCEEDED, reason)
        case AttemptOutcome.CANCELLED:
            return _end(JobState.CANCELLED, reason)
        case AttemptOutcome.PREEMPTED | AttemptOutcome.NODE_LOST:
            return _requeue(job, reason, now_s, policy)
        case AttemptOutcome.TIMED_OUT:
            stop = job.attempt.stop if job.attempt else None
            is_renewed = stop is not None and stop.cause is StopCause.RENEW
            return _requeue(job, reason, now_s, policy) if is_renewed else _end(JobState.FAILED, reason)
        case AttemptOutcome.FAILED | AttemptOutcome.LAUNCH_FAILED if is_infrastructure:
            return _retry_elsewhere(job, reason, now_s, policy)
        case AttemptOutcome.FAILED | AttemptOutcome.LAUNCH_FAILED:
            if job.n_retries >= job.max_retries or reason in NEVER_RETRIED:
                return _end(JobState.FAILED, reason)
            not_before_s = now_s + _backoff_s(job.n_retries, policy)
            return Disposition(then=Then.RETRY, end_state=None, exit_reason=reason, not_before_s=not_before_s)


def _requeue(job: Job, reason: ExitReason, now_s: float, policy: RetryRules) -> Disposition:
    if reason is ExitReason.DO_NOT_REQUEUE:
        return _end(JobState.FAILED, reason)
    if not stalls(job, reason):
        return Disposition(then=Then.REQUEUE, end_state=None, exit_reason=reason, not_before_s=0.0)
    if job.n_stalled + 1 >= policy.max_stalled:
        return _end(JobState.FAILED, ExitReason.NO_CHECKPOINT_PROGRESS)
    not_before_s = now_s + _backoff_s(job.n_stalled, policy)
    return Disposition(then=Then.REQUEUE, end_state=None, exit_reason=reason, not_before_s=not_before_s)


def _retry_elsewhere(job: Job, reason: ExitReason, now_s: float, policy: RetryRules) -> Disposition:
    """Free, but not for ever: what fails everywhere is not the machine's fault after all."""
    n_earlier = 0 if has_progressed(job) else job.n_infrastructure
    if n_earlier >= policy.max_infrastructure_retries:
        return _end(JobState.FAILED, reason)
    not_before_s = now_s + _backoff_s(n_earlier, policy)
    return Disposition(then=Then.REQUEUE, end_state=None, exit_reason=reason, not_before_s=not_before_s)


def _end(state: JobState, reason: ExitReason) -> Disposition:
    return Disposition(then=Then.END, end_state=state, exit_reason=reason, not_before_s=0.0)


def _backoff_s(n_earlier: int, policy: RetryRules) -> float:
    return float(min(policy.retry_backoff_s * 2.0 ** min(n_earlier, 60), policy.retry_backoff_max_s))
