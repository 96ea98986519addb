"""The loop: the single writer of the state.

It drains what has arrived, turns it into events, applies them, schedules, makes the decided actions events too,
commits all of them in one transaction, and only then answers, publishes and carries out. If the commit fails, memory
is thrown away and rebuilt from the journal: requests are refused as retryable, reports are kept and tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from runtime.engines.contract import AttemptKey, DevicesSeen, MetricsRead, NodeReport
from runtime.model.events import Event
from runtime.model.state import State
from runtime.model.states import StopCause
from runtime.scheduling.decision import Action, Expire, Preempt, Start
from runtime.scheduling.intent import event_of
from runtime.scheduling.lapses import events_from_lapse
from runtime.scheduling.schedule import schedule
from runtime.store.writer import StoreFailed, StoreFull, StoreRefused
from runtime.tracking.ports import Store
from runtime_client.doors.refusal import Refused, refused
from runtime_client.models import ErrorKind, JobSpec

from .answers import Answers, bug, refuse, stopping
from .arrays import ArraySubmission, TakenArray, take_array
from .catalog import JobCatalog
from .commit import SnapshotOrder, unit_of
from .config import ServerConfig
from .disk import DiskWatch
from .draft import OWNER, SCHEDULER, Actor, Draft
from .failed_starts import FailedStarts
from .hub import EventHub
from .inbox import (
    Accepted,
    CancelJob,
    Inbox,
    Instruct,
    Item,
    PartWithJobs,
    Request,
    SubmitArray,
    SubmitJobs,
    is_request,
)
from .lookup import Found, look_up
from .metrics_intake import MetricsIntake
from .orders import Orders
from .reactor import (
    CriteriaFacts,
    Rules,
    events_from_cancel,
    events_from_devices,
    events_from_parting,
    events_from_report,
)
from .recovery import recover
from .references import taking_order
from .refusal import no_such_job
from .steady_clock import seconds_since_boot
from .submission import Fresh, Submission, Taken, take
from .views import event_view

log = logging.getLogger(__name__)

MAX_FAULTS = 3
"""Bugs in a row after which the server gives up; it is started again and recovers from the journal."""
AWAKE_S = 5.0
"""How long at most the loop sleeps without a look at its clock: timers stand still while the machine sleeps."""
BACKOFF_S = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses after failed commits."""


class LoopBroken(Exception):
    """The loop met a bug several times in a row and stopped."""


def _nothing() -> None:
    return


def _nobody_waits(_ended: Sequence[AttemptKey]) -> None:
    return


@dataclass(slots=True, kw_only=True)
class Loop:
    config: ServerConfig
    store: Store
    catalog: JobCatalog
    orders: Orders
    metrics: MetricsIntake
    hub: EventHub
    disk: DiskWatch
    rules: Rules
    clock: Callable[[], float]
    state: State
    next_number: int
    snapshot_seq: int
    inbox: Inbox
    failed_starts: FailedStarts = field(default_factory=FailedStarts)
    ticks: Callable[[], float] = seconds_since_boot
    """Seconds that go on while the machine sleeps, from wherever."""
    awake_s: float = AWAKE_S
    wake_s: float | None = 0.0
    """When a round is due though nothing has arrived; seconds since the epoch."""
    trouble: str | None = None
    """Why nothing can be committed now; None: it can."""
    n_failures: int = 0
    """Failed commits in a row."""
    n_faults: int = 0
    """Bugs in a row."""
    is_closing: bool = False
    is_parting: bool = False
    """Nothing is started any more; the server ends when nothing holds devices."""
    committed_seq: int = 0
    """The last event that is durable."""
    after_commit: Callable[[], None] = _nothing
    """Told after each commit: the outbox may have grown."""
    on_ended: Callable[[Sequence[AttemptKey]], None] = _nobody_waits
    """Told which attempts have ended, after their commit."""
    on_parted: Callable[[], None] = _nothing
    """Told when the last attempt has ended after `part`."""

    async def submit(self, submissions: Sequence[Submission]) -> list[Accepted | Refused]:
        """Take jobs in; durable when it returns.

        Raises:
            Refused: nothing could be written; all may be sent again.
        """
        answer: asyncio.Future[list[Accepted | Refused]] = asyncio.get_running_loop().create_future()
        self._put(SubmitJobs(submissions=submissions, answer=answer))
        return await answer

    async def submit_array(self, submission: ArraySubmission) -> TakenArray:
        """Take an array in; durable when it returns.

        Raises:
            Refused: it can not be taken in, or nothing could be written.
        """
        answer: asyncio.Future[TakenArray] = asyncio.get_running_loop().create_future()
        self._put(SubmitArray(submission=submission, answer=answer))
        return await answer

    async def cancel(self, job_id: str, *, reason: str, actor: Actor = OWNER) -> None:
        """
        Raises:
            Refused: no such live job, or nothing could be written.
        """
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._put(CancelJob(job_id=job_id, reason=reason, actor=actor, answer=answer))
        await answer

    async def part(self, cause: StopCause, *, reason: str, actor: Actor = OWNER) -> None:
        """Ask all running attempts to stop and start nothing more; `on_parted` is called when none is left.

        Raises:
            Refused: nothing could be written.
        """
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._put(PartWithJobs(cause=cause, reason=reason, actor=actor, answer=answer))
        await answer

    async def instruct(self, meaning: Callable[[State, float], Sequence[Event]], *, actor: Actor = OWNER) -> None:
        """Record what a person wants, as the events that `meaning` says; durable when it returns.

        Raises:
            Refused: what `meaning` raises, or nothing could be written.
        """
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._put(Instruct(meaning=meaning, actor=actor, answer=answer))
        await answer

    def is_current(self, key: AttemptKey) -> bool:
        """Whether the gateway takes words of this attempt: it holds devices, or ended a moment ago."""
        return self.is_held(key) or self.orders.ended_just_now(key)

    def is_held(self, key: AttemptKey) -> bool:
        """Whether this attempt holds devices."""
        job = self.state.jobs.get(key.job_id)
        return job is not None and job.attempt is not None and job.attempt.number == key.attempt

    def _put(self, request: Request) -> None:
        if self.is_closing:
            refuse(request, stopping())
        else:
            self.inbox.put(request)

    def report(self, report: NodeReport) -> None:
        """Take a report; called on the event loop's thread."""
        self.inbox.put(report)

    def close(self) -> None:
        self.is_closing = True
        self.inbox.poke()

    async def run(self) -> None:
        """Go round until closed.

        Raises:
            LoopBroken: bugs in a row.
        """
        while not self.is_closing:
            await self._wait()
            await self.turn()
        for item in self.inbox.drain():
            refuse(item, stopping())

    async def _wait(self) -> None:
        """Until something has arrived, or a round is due; a machine that slept meanwhile is noticed soon."""
        patience_s = self._patience_s()
        since_s = self.ticks()
        left_s = patience_s
        while not await self.inbox.wait(self.awake_s if left_s is None else min(self.awake_s, left_s)):
            left_s = None if patience_s is None else patience_s - (self.ticks() - since_s)
            if left_s is not None and left_s <= 0:
                return

    async def turn(self) -> None:
        """One round, with the firewall around it.

        Raises:
            LoopBroken: bugs in a row.
        """
        items = self.inbox.drain()
        try:
            items = await self.metrics.record(self.state, items)
            await self._round(items)
        except StoreRefused as error:
            await self._after_bug(items, error)
        except StoreFailed as error:
            await self._after_failure(items, error)
        except Exception as error:
            log.error("bug in a round", exc_info=error)
            await self._after_bug(items, error)
        else:
            self.trouble, self.n_failures, self.n_faults = None, 0, 0
            if self.is_parting and not self.state.index.holding:
                self.on_parted()

    async def _round(self, items: Sequence[Item]) -> None:
        """Decide, commit, and carry out. Raises what the store raises; then the state must be rebuilt."""
        found = await look_up(self.store, self.catalog, items)
        await self.disk.refresh()
        draft = Draft(state=self.state, at_s=max(self.clock(), self.state.clock_s))
        _settle(draft)
        answers = Answers()
        fresh = Fresh()
        for item in items:
            self._handle(draft, item, found, fresh, answers)
        is_parting = self.is_parting or any(isinstance(item, PartWithJobs) for item in items)
        _settle(draft)
        decision = schedule(self.state, now_s=draft.at_s, policy=self.config.policy)
        for action in self._allowed(decision.actions, is_parting=is_parting):
            draft.add(event_of(action), SCHEDULER)
        has_expired = any(isinstance(action, Expire) for action in decision.actions)
        self.wake_s = draft.at_s if has_expired else decision.next_wake_s  # others may have waited for its end
        if draft.events:
            await self._commit(draft, answers.specs)
        self.is_parting = is_parting
        answers.give(draft.rows)

    async def _commit(self, draft: Draft, specs: dict[str, JobSpec]) -> None:
        for row in draft.rows.new_jobs.values():
            self.catalog.remember(row)
        launches = await self.orders.launches(self.state, draft.starts)
        facts = await self.catalog.of(draft.rows.run_status)
        run_ids = {job_id: fact.run_id for job_id, fact in facts.items()}
        snapshot = self._snapshot(draft.at_s)
        await self.store.write(unit_of(draft, specs=specs, run_ids=run_ids, user=self.orders.user, snapshot=snapshot))
        self.committed_seq = self.state.last_seq
        if snapshot is not None:
            self.snapshot_seq = self.committed_seq
        self.orders.send(self.state, launches, draft.stops)
        self.orders.note_ended(draft.ended)
        self.on_ended(draft.ended)
        self.catalog.forget(draft.rows.ended_at)
        self.hub.publish(event_view(stored) for stored in draft.events)
        self.after_commit()

    def _handle(self, draft: Draft, item: Item, found: Found, fresh: Fresh, answers: Answers) -> None:
        match item:
            case SubmitJobs():
                answers.jobs.append((item, self._take_all(draft, item.submissions, found, fresh, answers)))
            case SubmitArray():
                answers.arrays.append((item, self._take_array(draft, item.submission, found, fresh, answers)))
            case CancelJob():
                answers.others.append((item, _cancel(draft, item)))
            case PartWithJobs():
                draft.add_all(events_from_parting(self.state, item.cause, item.reason), item.actor)
                answers.others.append((item, None))
            case Instruct():
                answers.others.append((item, _instruct(draft, item)))
            case MetricsRead():
                return
            case DevicesSeen():
                draft.add_all(events_from_devices(self.state, item), Actor(name=f"node:{item.node_id}"))
            case report:
                facts = found.criteria.get(report.key, CriteriaFacts())
                events = events_from_report(self.state, report, facts, now_s=draft.at_s, rules=self.rules)
                suspected = self.failed_starts.note(self.state, events, draft.at_s)
                draft.add_all([*events, *suspected], Actor(name=self._node_of(report.key)))

    def _take_all(
        self, draft: Draft, submissions: Sequence[Submission], found: Found, fresh: Fresh, answers: Answers
    ) -> list[Taken | Refused]:
        """Those that others of the submission name come first; the answers are in the order of the submission."""
        fresh.by_position.clear()
        if not any(submission.spec.depends_on for submission in submissions):
            return [self._take(draft, submission, found, fresh, answers) for submission in submissions]
        order, refusals = taking_order([(submission.position, submission.spec) for submission in submissions])
        results: dict[int, Taken | Refused] = {**refusals}
        for at in order:
            if at not in results:
                results[at] = self._take(draft, submissions[at], found, fresh, answers)
        return [results[at] for at in range(len(submissions))]

    def _take_array(
        self, draft: Draft, submission: ArraySubmission, found: Found, fresh: Fresh, answers: Answers
    ) -> TakenArray | Refused:
        fresh.by_position.clear()
        number, policy = self.next_number, self.config.policy
        try:
            taken = take_array(draft, submission, found.known, fresh, number=number, policy=policy)
        except Refused as refusal:
            return refusal
        self.next_number += len(taken.specs)
        answers.specs.update(taken.specs)
        return taken

    def _take(
        self, draft: Draft, submission: Submission, found: Found, fresh: Fresh, answers: Answers
    ) -> Taken | Refused:
        try:
            taken = take(draft, submission, found.known, fresh, number=self.next_number, policy=self.config.policy)
        except Refused as refusal:
            return refusal
        if not taken.is_existing:
            self.next_number += 1
            answers.specs[taken.job_id] = taken.spec
        return taken

    def _node_of(self, key: AttemptKey) -> str:
        job = self.state.jobs.get(key.job_id)
        placed = job.attempt.placements if job is not None and job.attempt is not None else ()
        return f"node:{placed[0].node_id}" if placed else "node:unknown"

    def _allowed(self, actions: Sequence[Action], *, is_parting: bool) -> Sequence[Action]:
        """Before the end, and with little space left, nothing is started; so nothing has to make room either."""
        if self.disk.low is None and not is_parting:
            return actions
        return [action for action in actions if not isinstance(action, Start | Preempt)]

    def _snapshot(self, at_s: float) -> SnapshotOrder | None:
        """Due after so many events, and never more often than it is large: its cost stays a part of theirs."""
        if self.state.last_seq - self.snapshot_seq < max(self.config.snapshot_every, len(self.state.jobs)):
            return None
        return SnapshotOrder(state=self.state, prune_before_s=at_s - self.config.journal_keep_s)

    def _patience_s(self) -> float | None:
        """How long the loop may sleep; None: until something arrives."""
        waits = [] if self.wake_s is None else [self.wake_s - self.clock()]
        if self.n_failures:
            waits.append(BACKOFF_S[min(self.n_failures, len(BACKOFF_S)) - 1])
        if self.disk.low is not None:
            waits.append(self.disk.recheck_s)
        return max(0.0, min(waits)) if waits else None

    async def _after_failure(self, items: Sequence[Item], error: StoreFailed) -> None:
        """The store could not take it. Nothing is lost: requests are told, reports come again."""
        self.n_failures += 1
        self.trouble = str(error)
        log.error("the round was not committed: %s", error)
        code = "store_full" if isinstance(error, StoreFull) else "store_failed"
        for item in items:
            if is_request(item):
                refuse(item, refused(ErrorKind.UNAVAILABLE, code, f"nothing was changed: {error}"))
        self.inbox.put_back(item for item in items if not is_request(item))
        await self._rebuild()

    async def _after_bug(self, items: Sequence[Item], error: Exception) -> None:
        """The named firewall of the server: log, rebuild, go on; but not for ever."""
        self.n_faults += 1
        log.error("bug number %d in a row: %s: %s", self.n_faults, type(error).__name__, error)
        if self.n_faults >= MAX_FAULTS:
            for item in items:
                refuse(item, bug(error))
            raise LoopBroken(f"{self.n_faults} bugs in a row, the last one: {type(error).__name__}: {error}") from error
        await self._rebuild()
        if len(items) > 1:
            for item in items:  # one by one, so that only the one that can not be handled is given up
                await self._alone(item)
        else:
            for item in items:
                refuse(item, bug(error))

    async def _alone(self, item: Item) -> None:
        self.inbox.put_back([item])
        later = self.inbox.drain()
        self.inbox.put_back(later[:1])
        try:
            await self.turn()
        finally:
            for waiting in later[1:]:
                self.inbox.put(waiting)

    async def _rebuild(self) -> None:
        """Memory from the journal; waits as long as it can not be read."""
        while not self.is_closing:
            try:
                found = await self.store.read(recover)
            except StoreFailed as error:
                self.n_failures += 1
                self.trouble = str(error)
                log.error("the journal can not be read: %s", error)
                await asyncio.sleep(BACKOFF_S[min(self.n_failures, len(BACKOFF_S)) - 1])
                continue
            self.state, self.next_number = found.state, found.next_number
            self.committed_seq = found.state.last_seq
            self.snapshot_seq, self.wake_s = found.snapshot_seq, 0.0 if not self.n_failures else None
            await self.orders.resend(self.state)
            return


def _settle(draft: Draft) -> None:
    """Record what has become true by itself."""
    while events := events_from_lapse(draft.state, draft.at_s):
        draft.add_all(events, SCHEDULER)


def _instruct(draft: Draft, item: Instruct) -> Refused | None:
    try:
        draft.add_all(item.meaning(draft.state, draft.at_s), item.actor)
    except Refused as refusal:
        return refusal
    return None


def _cancel(draft: Draft, item: CancelJob) -> Refused | None:
    job = draft.state.jobs.get(item.job_id)
    if job is None:
        return no_such_job(item.job_id)
    draft.add_all(events_from_cancel(job, item.reason), item.actor)
    return None
