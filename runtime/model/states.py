"""The states of jobs and attempts, and the ways an attempt can end. Pure; anyone may import it."""

from __future__ import annotations

from enum import StrEnum


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


LEAVING = frozenset({StopCause.PREEMPT, StopCause.SHUTDOWN, StopCause.PAUSE, StopCause.DRAIN, StopCause.RENEW})
"""Causes for which an attempt gets a notice to checkpoint, and its job goes back to the queue."""


class OnTimeout(StrEnum):
    """What becomes of a job whose attempt reached its time limit."""

    END = "end"
    """It has failed."""
    RESUME = "resume"
    """It checkpoints and goes on as a new attempt; costs no retry."""


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
    MISSING_FILE = "missing_file"
    OUT_OF_MEMORY_DEVICE = "out_of_memory_device"
    OUT_OF_MEMORY_HOST = "out_of_memory_host"
    DISK_FULL = "disk_full"
    COLLECTIVE_FAILURE = "collective_failure"
    DEVICE_FAULT = "device_fault"
    KILLED_BY_SIGNAL = "killed_by_signal"
    """Killed by a signal that we did not send."""
    HUNG = "hung"
    RUN_TIMEOUT = "run_timeout"
    QUEUE_TIMEOUT = "queue_timeout"
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


EXIT_REQUEUE = 75
"""Exit code: checkpointed, requeue me (EX_TEMPFAIL of sysexits.h)."""
EXIT_DO_NOT_REQUEUE = 93
"""Exit code: do not requeue (as NVIDIA's resiliency extension uses it)."""
