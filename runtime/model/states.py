"""The states of jobs and attempts, and the ways an attempt can end. Pure; anyone may import it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class JobState(StrEnum):
    """Where a job is. Ended states never change again."""

    QUEUED = "queued"
    """Waits for devices; holds none."""
    STARTING = "starting"
    """Its attempt holds devices and was ordered to start; no proof yet that it did."""
    RUNNING = "running"
    """The user's command was started."""
    STOPPING = "stopping"
    """Asked to stop; still holds its devices until it is proven gone."""
    SUCCEEDED = "succeeded"
    """Exit 0 and the success criteria met."""
    FAILED = "failed"
    """Ended by its own failure, out of retries."""
    CANCELLED = "cancelled"
    """Ended because somebody asked."""

    @property
    def is_ended(self) -> bool:
        return self in ENDED


ENDED = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})
HOLDING = frozenset({JobState.STARTING, JobState.RUNNING, JobState.STOPPING})


class AttemptOutcome(StrEnum):
    """How one attempt ended: exactly one of these, exactly once."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """By itself: a bad exit, or success criteria not met."""
    PREEMPTED = "preempted"
    """It left for another job, or asked to be requeued (exit 75)."""
    NODE_LOST = "node_lost"
    """Its machine or its supervisor vanished."""
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LAUNCH_FAILED = "launch_failed"
    """The command never ran."""


class StopCause(StrEnum):
    """Why an attempt was asked to stop."""

    PREEMPT = "preempt"
    CANCEL = "cancel"
    TIMEOUT = "timeout"
    HANG = "hang"
    SHUTDOWN = "shutdown"
    """The runtime goes down in order; the attempt checkpoints and is requeued."""
    PAUSE = "pause"
    """Somebody put a hold on its job; it checkpoints and waits until the hold is lifted."""
    DRAIN = "drain"
    """Its node is being drained, or its devices were reserved; it checkpoints and is requeued."""
    RENEW = "renew"
    """It reached its time limit, and its job goes on as a new attempt; it checkpoints and is requeued."""
    BUDGET = "budget"
    """A budget of its session or project is used up; it may checkpoint, and its job ends."""
    DEADLINE = "deadline"
    """The hour comes by which its job is to be over; it may checkpoint, and its job ends."""


LEAVING = frozenset({StopCause.PREEMPT, StopCause.SHUTDOWN, StopCause.PAUSE, StopCause.DRAIN, StopCause.RENEW})
"""Causes for which an attempt gets a notice to checkpoint, and its job goes back to the queue."""


class OnTimeout(StrEnum):
    """What becomes of a job whose attempt reached its time limit."""

    END = "end"
    """It has failed."""
    RESUME = "resume"
    """It checkpoints and goes on as a new attempt; costs no retry."""


class Condition(StrEnum):
    """How another job has to end before a dependent one may start."""

    OK = "ok"
    """It succeeded; an array: all of its tasks did."""
    ANY = "any"
    """It ended, in whatever way."""
    NOT_OK = "not_ok"
    """It ended, and has not succeeded; an array: at least one of its tasks has not."""


class ExitReason(StrEnum):
    """The class of an ending, from what the server knows first and from evidence second."""

    COMPLETED = "completed"
    CRITERIA_NOT_MET = "criteria_not_met"
    """Exit 0, but a required metric is missing."""
    NON_FINITE_METRIC = "non_finite_metric"
    """Exit 0 or not, but a required metric is NaN or infinite."""
    CODE_ERROR = "code_error"
    """The command failed by itself (non-zero exit)."""
    IMPORT_ERROR = "import_error"
    BAD_ARGUMENTS = "bad_arguments"
    """The script does not take the arguments it was given."""
    MISSING_FILE = "missing_file"
    PERMISSION_DENIED = "permission_denied"
    BAD_CHECKPOINT = "bad_checkpoint"
    """What it resumed from can not be read, or does not fit the model."""
    OUT_OF_MEMORY_DEVICE = "out_of_memory_device"
    OUT_OF_MEMORY_HOST = "out_of_memory_host"
    DISK_FULL = "disk_full"
    COLLECTIVE_FAILURE = "collective_failure"
    NETWORK_ERROR = "network_error"
    """Something outside could not be reached: a model hub, a data server."""
    ADDRESS_IN_USE = "address_in_use"
    DEVICE_UNAVAILABLE = "device_unavailable"
    """It found no device, a busy one, or a driver that does not fit."""
    DEVICE_FAULT = "device_fault"
    """Its output names a device error. Often its own indexing; the machine is not blamed for it."""
    DEVICE_LOST = "device_lost"
    """The device itself reported a fault, whatever the output says."""
    KILLED_BY_SIGNAL = "killed_by_signal"
    """Killed by a signal that we did not send."""
    HUNG = "hung"
    RUN_TIMEOUT = "run_timeout"
    QUEUE_TIMEOUT = "queue_timeout"
    DEPENDENCY_UNMET = "dependency_unmet"
    """What it waited for ended otherwise than it had to; it never started."""
    OVER_BUDGET = "over_budget"
    """The device time that its session or project may use was used up."""
    DEADLINE = "deadline"
    """The hour came by which it was to be over (`finish_by`), and it was not done."""
    NO_CHECKPOINT_PROGRESS = "no_checkpoint_progress"
    """Restarted three times without a newer checkpoint, by itself or at its time limit."""
    PREEMPTED = "preempted"
    REQUEUE_ASKED = "requeue_asked"
    """Exit 75 without a notice: checkpointed, run me again."""
    DO_NOT_REQUEUE = "do_not_requeue"
    """Exit 93."""
    CANCELLED = "cancelled"
    NODE_LOST = "node_lost"
    SUPERVISOR_LOST = "supervisor_lost"
    BAD_PYTHON = "bad_python"
    """The interpreter named does not exist or can not be run."""
    BAD_COMMAND = "bad_command"
    """The command or working directory does not exist, or a placeholder has no value."""
    LAUNCHER_UNAVAILABLE = "launcher_unavailable"
    SANDBOX_UNAVAILABLE = "sandbox_unavailable"
    """The machine can not shut it off as it has to be; it never started."""


class FailureClass(StrEnum):
    """Who an ending is charged to, and so what a new attempt costs."""

    NONE = "none"
    """No failure: it completed, was asked to leave, or asked to be run again."""
    OWN = "own"
    """The job's; a new attempt costs one of `max_retries`."""
    INFRASTRUCTURE = "infrastructure"
    """The machine's; a new attempt is free, goes elsewhere first, and is bounded."""


FAILURE_CLASSES: Mapping[ExitReason, FailureClass] = MappingProxyType(
    dict.fromkeys(ExitReason, FailureClass.OWN)
    | dict.fromkeys(
        (
            ExitReason.COMPLETED,
            ExitReason.PREEMPTED,
            ExitReason.REQUEUE_ASKED,
            ExitReason.CANCELLED,
            ExitReason.QUEUE_TIMEOUT,
            ExitReason.OVER_BUDGET,
            ExitReason.DEADLINE,
        ),
        FailureClass.NONE,
    )
    | dict.fromkeys(
        (
            ExitReason.DEVICE_LOST,
            ExitReason.NODE_LOST,
            ExitReason.SUPERVISOR_LOST,
            ExitReason.LAUNCHER_UNAVAILABLE,
            ExitReason.SANDBOX_UNAVAILABLE,
        ),
        FailureClass.INFRASTRUCTURE,
    )
)
"""What is not listed is the job's own: a line in a log never makes it the machine's fault."""


def failure_class(outcome: AttemptOutcome, reason: ExitReason) -> FailureClass:
    """Who an ending is charged to. When the command never ran, a full disk or a device in use is the machine's."""
    if outcome is AttemptOutcome.LAUNCH_FAILED and reason in (ExitReason.DISK_FULL, ExitReason.DEVICE_UNAVAILABLE):
        return FailureClass.INFRASTRUCTURE
    return FAILURE_CLASSES[reason]


EXIT_REQUEUE = 75
"""Exit code: checkpointed, requeue me (EX_TEMPFAIL of sysexits.h)."""
EXIT_DO_NOT_REQUEUE = 93
"""Exit code: do not requeue (as NVIDIA's resiliency extension uses it)."""
