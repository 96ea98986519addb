"""Watches running attempts for signs of life, and stops those that hang, after their stacks were written down.

What it has heard is not kept through a restart of the server: then it learns anew, which can only make it later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from runtime.engines.contract import AttemptKey, Engine
from runtime.model.events import Event
from runtime.model.nouns import Job
from runtime.model.silence import Rhythm, hang_limit_s, hang_reason
from runtime.model.state import State
from runtime.model.states import JobState, StopCause
from runtime_client.doors.refusal import Refused
from runtime_client.models import EventView

from .draft import Actor
from .loop import Loop
from .reactor import stop_order

log = logging.getLogger(__name__)

WATCH = Actor(name="hang_watch")
MOST_EXPERIMENTS = 1024


@dataclass(slots=True, kw_only=True)
class HangWatch:
    loop: Loop
    engine: Engine
    period_s: float
    keep: Callable[[AttemptKey, str], object]
    """Takes the stacks of an attempt that hangs."""
    clock: Callable[[], float] = time.monotonic
    """Never goes back; jumps of the wall clock are no silence."""
    rhythms: dict[AttemptKey, Rhythm] = field(default_factory=dict)
    _signs: dict[AttemptKey, tuple[int, int | None, int]] = field(default_factory=dict)
    """Output, checkpoint and metrics as last seen."""
    _kinds: dict[AttemptKey, tuple[str, str]] = field(default_factory=dict)
    """Project and experiment of those that are watched."""
    _n_metrics: dict[str, int] = field(default_factory=dict)
    """By job: how often metrics came in."""
    _usual_s: dict[tuple[str, str], float] = field(default_factory=dict)
    """By project and experiment: the longest silence of an attempt that has ended."""

    def note(self, event: EventView) -> None:
        """Told of every event that goes out."""
        if event.type == "metrics_logged" and event.job_id is not None:
            self._n_metrics[event.job_id] = self._n_metrics.get(event.job_id, 0) + 1

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self.period_s)
            await self.look()

    async def look(self) -> None:
        """Hear what is new, and stop what hangs."""
        running = self._running()
        signs = await self.engine.signs_of_life(list(running))
        now_s = self.clock()
        self._forget(set(running))
        for key, job in running.items():
            self._listen(key, job, signs.get(key, 0), now_s)
            rhythm = self.rhythms[key]
            usual_s = self._usual_s.get((job.project, job.experiment), 0.0)
            rules = self.loop.config.policy
            limit_s = hang_limit_s(rhythm, own_s=job.hang_after_s, usual_s=usual_s, rules=rules)
            if limit_s is not None and rhythm.silent_s(now_s) > limit_s:
                await self._stop(key, hang_reason(rhythm, now_s))

    def _running(self) -> dict[AttemptKey, Job]:
        state = self.loop.state
        jobs = (state.jobs[job_id] for job_id in state.index.holding)
        return {
            AttemptKey(job_id=job.job_id, attempt=job.attempt.number): job
            for job in jobs
            if job.state is JobState.RUNNING and job.attempt is not None
        }

    def _listen(self, key: AttemptKey, job: Job, output: int, now_s: float) -> None:
        known = self.rhythms.get(key)
        signs = (output, job.checkpoint_step, self._n_metrics.get(job.job_id, 0))
        if known is None:
            self.rhythms[key] = Rhythm(began_s=now_s, last_s=now_s)
            self._kinds[key] = (job.project, job.experiment)
        elif signs != self._signs[key]:
            self.rhythms[key] = known.heard(now_s)
        self._signs[key] = signs

    def _forget(self, running: set[AttemptKey]) -> None:
        for key in set(self.rhythms) - running:
            rhythm = self.rhythms.pop(key)
            self._signs.pop(key)
            kind = self._kinds.pop(key, None)
            if kind is not None and rhythm.n_signs:
                self._usual_s[kind] = max(self._usual_s.pop(kind, 0.0), rhythm.longest_s)
        for job_id in set(self._n_metrics) - {key.job_id for key in running}:
            del self._n_metrics[job_id]
        while len(self._usual_s) > MOST_EXPERIMENTS:
            del self._usual_s[next(iter(self._usual_s))]

    async def _stop(self, key: AttemptKey, reason: str) -> None:
        stacks = await self.engine.dump_stacks(key)
        if stacks:
            self.keep(key, stacks)
            reason += "; where it was is in stacks.txt"

        def meaning(state: State, _now_s: float) -> Sequence[Event]:
            job = state.jobs.get(key.job_id)
            if job is None or job.state is not JobState.RUNNING or job.n_attempts != key.attempt:
                return ()
            return (stop_order(job, StopCause.HANG, reason),)

        try:
            await self.loop.instruct(meaning, actor=WATCH)
        except Refused as refusal:
            log.warning("%s hangs, and could not be stopped now: %s", key, refusal.body.message)
