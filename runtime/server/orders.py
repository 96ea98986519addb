"""From events to orders: what an engine is told after a commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from runtime.engines.contract import AttemptKey, LaunchOrder, StopAttempt
from runtime.model.events import StartOrdered
from runtime.model.nouns import Placement
from runtime.model.state import State
from runtime.model.states import JobState

from .catalog import JobCatalog
from .dispatch import Dispatcher
from .keys import Keys

LAST_WORDS_S = 10.0
"""How long the token of an attempt is still good after its end is recorded: its last request may be on the way."""


@dataclass(slots=True, kw_only=True)
class Orders:
    catalog: JobCatalog
    dispatcher: Dispatcher
    keys: Keys
    tracking_url: str
    clock: Callable[[], float]
    user: str | None
    """Who runs the server; MLflow shows it."""
    _ended_at: dict[AttemptKey, float] = field(default_factory=dict)

    async def launches(self, state: State, starts: Sequence[StartOrdered]) -> list[LaunchOrder]:
        """Launch orders for starts that were just recorded.

        Raises:
            StoreFailed: a spec can not be read.
        """
        live = [start for start in starts if start.job_id in state.jobs]
        facts = await self.catalog.of(start.job_id for start in live)
        return [
            self._launch(
                state,
                AttemptKey(job_id=start.job_id, attempt=start.attempt),
                start.placements,
                facts[start.job_id].spec_json,
            )
            for start in live
        ]

    async def held(self, state: State) -> list[LaunchOrder]:
        """The launch orders of all attempts that hold devices, made again.

        Raises:
            StoreFailed: a spec can not be read.
        """
        jobs = [state.jobs[job_id] for job_id in sorted(state.index.holding)]
        facts = await self.catalog.of(job.job_id for job in jobs)
        return [
            self._launch(
                state,
                AttemptKey(job_id=job.job_id, attempt=job.attempt.number),
                job.attempt.placements,
                facts[job.job_id].spec_json,
            )
            for job in jobs
            if job.attempt is not None
        ]

    def send(self, state: State, launches: Sequence[LaunchOrder], stops: Sequence[StopAttempt]) -> None:
        for order in launches:
            self.dispatcher.start(order, _generation(state, order.placements))
        for stop in stops:
            job = state.jobs.get(stop.key.job_id)
            attempt = None if job is None else job.attempt
            if attempt is not None and attempt.number == stop.key.attempt:  # else it has ended in the same round
                self.dispatcher.stop(stop, _generation(state, attempt.placements))

    async def resend(self, state: State) -> None:
        """Send again what may not have been sent; an engine starts an attempt once, however often it is told.

        Raises:
            StoreFailed: a spec can not be read.
        """
        starting = [
            order for order in await self.held(state) if state.jobs[order.key.job_id].state is JobState.STARTING
        ]
        self.send(state, starting, stops_of(state, self.clock()))

    def note_ended(self, ended: Sequence[AttemptKey]) -> None:
        now_s = self.clock()
        for key in ended:
            self._ended_at[key] = now_s
        for key in [key for key, at_s in self._ended_at.items() if now_s - at_s > LAST_WORDS_S]:
            del self._ended_at[key]

    def ended_just_now(self, key: AttemptKey) -> bool:
        return self.clock() - self._ended_at.get(key, float("-inf")) <= LAST_WORDS_S

    def _launch(self, state: State, key: AttemptKey, placements: tuple[Placement, ...], spec_json: str) -> LaunchOrder:
        return LaunchOrder(
            key=key,
            placements=placements,
            spec_json=spec_json,
            attempt_token=self.keys.attempt_token(key),
            tracking_url=self.tracking_url,
            resume_step=state.jobs[key.job_id].attempt_start_checkpoint,
            device_kinds=tuple(_kinds(state, placements)),
        )


def stops_of(state: State, now_s: float) -> list[StopAttempt]:
    """The stop orders of attempts that were asked to stop, with what is left of their grace."""
    found: list[StopAttempt] = []
    for job_id in sorted(state.index.holding):
        attempt = state.jobs[job_id].attempt
        if attempt is None or attempt.stop is None:
            continue
        left_s = attempt.stop.ordered_at_s + attempt.stop.grace_s - now_s
        found.append(
            StopAttempt(
                key=AttemptKey(job_id=job_id, attempt=attempt.number),
                cause=attempt.stop.cause,
                reason=attempt.stop.reason,
                grace_s=max(0.0, min(attempt.stop.grace_s, left_s)),
            )
        )
    return found


def _kinds(state: State, placements: Sequence[Placement]) -> list[str]:
    """Device kinds in rank order."""
    kinds: list[str] = []
    for placement in placements:
        by_index = {device.index: device.kind for device in state.nodes[placement.node_id].devices}
        kinds.extend(by_index[index] for index in placement.devices)
    return kinds


def _generation(state: State, placements: Sequence[Placement]) -> int:
    return state.nodes[placements[0].node_id].generation
