"""How an attempt turns time into work, and what of it survives. Pure arithmetic; all times in virtual seconds.

An attempt after the first spends `restart_s` before it works. It saves at no cost after every `checkpoint_every_s` of
work. Asked to leave, it stops working at once and saves all of it, if that takes no longer than its grace.
"""

from __future__ import annotations

from dataclasses import dataclass

from .workload import TraceJob

EPSILON_S = 1e-6
"""Times closer than this are the same: sums of floats."""


@dataclass(slots=True, kw_only=True)
class Execution:
    """One attempt that runs."""

    job: TraceJob
    attempt: int
    began_s: float
    base_s: float
    """Work that was saved before it began."""
    n_reported: int = 0
    """Checkpoints of this attempt that the scheduler knows of."""
    notice_s: float | None = None
    """When it was asked to leave."""

    @property
    def restart_s(self) -> float:
        return self.job.costs.restart_s if self.attempt > 1 or self.base_s > 0.0 else 0.0

    @property
    def works_from_s(self) -> float:
        return self.began_s + self.restart_s

    @property
    def finishes_at_s(self) -> float:
        """When all its work is done, if nobody asks it to leave."""
        return self.works_from_s + max(0.0, self.job.run_s - self.base_s)

    def worked_s(self, now_s: float) -> float:
        """What this attempt has done so far."""
        until_s = now_s if self.notice_s is None else min(now_s, self.notice_s)
        return min(max(0.0, until_s - self.works_from_s), max(0.0, self.job.run_s - self.base_s))

    def n_checkpoints(self, now_s: float) -> int:
        """Periodic checkpoints made by now; the end of the work is none."""
        every_s = self.job.costs.checkpoint_every_s
        if every_s is None:
            return 0
        made = int((self.worked_s(now_s) + EPSILON_S) / every_s)
        if made and self.base_s + made * every_s >= self.job.run_s - EPSILON_S:
            made -= 1
        return made

    def checkpoint_at_s(self, n: int) -> float:
        """When its n-th periodic checkpoint is made (1 is the first)."""
        every_s = self.job.costs.checkpoint_every_s
        assert every_s is not None, "a job without periodic checkpoints makes none"
        return self.works_from_s + n * every_s

    def saved_s(self, now_s: float) -> float:
        """Work that would survive if it vanished now."""
        made = self.n_checkpoints(now_s)
        return self.base_s + (made * (self.job.costs.checkpoint_every_s or 0.0) if made else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """What an attempt does about a notice."""

    at_s: float
    is_saved: bool
    """All its work is saved by then."""
    is_killed: bool


def leaving(execution: Execution, notice_s: float, grace_s: float) -> Leaving:
    """When it is gone after a notice, and whether its work is saved.

    One that has not begun to work, or can not save on notice, leaves at once.
    """
    takes_s = execution.job.costs.notice_checkpoint_s
    if takes_s is None or notice_s <= execution.works_from_s + EPSILON_S:
        return Leaving(at_s=notice_s, is_saved=False, is_killed=False)
    if takes_s > grace_s:
        return Leaving(at_s=notice_s + grace_s, is_saved=False, is_killed=True)
    return Leaving(at_s=notice_s + takes_s, is_saved=True, is_killed=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Seconds that were held and are not part of any result; times devices where it says so."""

    recomputed_s: float = 0.0
    """Done, not saved, done again."""
    notice_s: float = 0.0
    """Between the notice and the leaving."""
    restart_s: float = 0.0
    """Before an attempt goes on where the last one was saved."""

    @property
    def total_s(self) -> float:
        return self.recomputed_s + self.notice_s + self.restart_s

    def plus(self, other: Lost, times: float = 1.0) -> Lost:
        return Lost(
            recomputed_s=self.recomputed_s + other.recomputed_s * times,
            notice_s=self.notice_s + other.notice_s * times,
            restart_s=self.restart_s + other.restart_s * times,
        )


def lost_by(execution: Execution, now_s: float, saved_s: float) -> Lost:
    """What an attempt that ends now has lost, when `saved_s` of the job's work survives it."""
    done_s = execution.base_s + execution.worked_s(now_s)
    asked_s = now_s if execution.notice_s is None else execution.notice_s
    return Lost(
        recomputed_s=max(0.0, done_s - saved_s),
        notice_s=now_s - asked_s,
        restart_s=min(execution.restart_s, asked_s - execution.began_s),
    )
