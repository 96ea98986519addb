"""`LabCluster`: the scheduler's core with a heap of things to come, fed as the server feeds it.

Submissions are taken by the server's own functions (tokens, fences, budgets, refusals), reports of attempts become
events by its reactor, rows and views by its projection. Beside it are only the clock, and jobs that do what a `Course`
says: they log, checkpoint, leave when they are asked to, and go on from where they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from heapq import heapify, heappop, heappush
from importlib.resources import files

from runtime.engines.contract import Checkpointed, Exited, Started, StopAttempt
from runtime.model.events import NodeJoined, StartOrdered
from runtime.model.evidence import ExitPattern, parse_patterns
from runtime.model.nouns import Node
from runtime.model.state import State
from runtime.model.states import EXIT_REQUEUE, StopCause
from runtime.scheduling.decision import Decision, Preempt
from runtime.scheduling.intent import event_of
from runtime.scheduling.lapses import events_from_lapse
from runtime.scheduling.policy import Policy
from runtime.scheduling.schedule import schedule
from runtime.server.continuing import Earlier
from runtime.server.draft import OWNER, SCHEDULER, Actor, Draft
from runtime.server.reactor import Rules, StateReport, events_from_cancel, events_from_report
from runtime.server.references import Past
from runtime.server.submission import Fresh, Known, Submission, Taken, take
from runtime.server.views import event_view
from runtime.simulator.simulation import MAX_ROUNDS
from runtime.simulator.work import Execution, leaving
from runtime.simulator.workload import Costs
from runtime.store.history import AttemptRow, JobRow
from runtime_client.doors.refusal import Refused
from runtime_client.models import EventView, JobSpec

from .attempts import LabJob
from .world import Course, LabError

CourseOf = Callable[[JobSpec], Course]
MACHINE = Actor(name="node:lab")
_SIGTERM, _SIGKILL = -15, -9


def _run_id(number: int) -> str:
    """Of the job with that number."""
    return f"{number:032x}"


@cache
def _patterns() -> tuple[ExitPattern, ...]:
    return parse_patterns(files("runtime.model").joinpath("exit_patterns.toml").read_text())


class LabCluster:
    """One cluster in virtual time. Not thread-safe: one driver at a time."""

    def __init__(
        self,
        nodes: Sequence[Node],
        course_of: CourseOf,
        *,
        policy: Policy | None = None,
        costs: Costs | None = None,
        start_at: float = 1_000_000.0,
    ) -> None:
        self.policy = policy or Policy()
        self.costs = costs or Costs()
        self.state = State()
        self.now = start_at
        """Virtual seconds since the epoch."""
        self.started_at = start_at
        self.jobs: dict[str, LabJob] = {}
        self.rows: dict[str, JobRow] = {}
        self.attempts: dict[str, list[AttemptRow]] = {}
        self.run_status: dict[str, str] = {}
        """By job: MLflow's word for where it is."""
        self.feed: list[EventView] = []
        """All that was announced, also what has no number."""
        self._course_of = course_of
        self._jobs_by_run: dict[str, str] = {}
        self._running: dict[str, LabJob] = {}
        self._fresh = Fresh()
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._of_work: set[int] = set()
        """Numbers of what is planned that training does: it stands still with the machine."""
        self._n_planned = 0
        self._wake_s: float | None = None
        self._rules = Rules(retry=self.policy, patterns=_patterns())
        draft = self._draft()
        for node in nodes:
            draft.add(NodeJoined(node=node), MACHINE)
        self._commit(draft)

    # What is asked of it.

    def submit(self, specs: Sequence[JobSpec], known_runs: frozenset[str]) -> list[Taken | Refused]:
        """Take jobs in, one answer each, and let the scheduler act."""
        draft = self._draft()
        answers: list[Taken | Refused] = []
        self._fresh.by_position.clear()
        earlier = self.earlier(specs)
        known = Known(jobs_by_token={}, run_ids=known_runs, past=self._past(specs), earlier=earlier)
        for position, spec in enumerate(specs):
            number = len(self.jobs) + 1
            entry = Submission(
                spec=spec, spec_json=spec.model_dump(mode="json"), run_id=_run_id(number), position=position
            )
            try:
                taken = take(draft, entry, known, self._fresh, number=number, policy=self.policy)
            except Refused as refusal:
                answers.append(refusal)
                continue
            if not taken.is_existing:
                self._keep(taken)
            answers.append(taken)
        self._settle(draft)
        return answers

    def earlier(self, specs: Sequence[JobSpec]) -> dict[str, Earlier]:
        """The jobs that these go on from: those that there are."""
        named = {spec.continues for spec in specs if spec.continues is not None} & self.rows.keys()
        return {job_id: Earlier(row=self.rows[job_id], saved_s=self.jobs[job_id].saved_s) for job_id in named}

    def _past(self, specs: Sequence[JobSpec]) -> Past:
        """How the jobs stand that these depend on."""
        named = {one.job for spec in specs for one in spec.depends_on} & self.rows.keys()
        return Past(states={name: self.rows[name].state for name in named}, tasks={})

    def cancel(self, job_id: str, reason: str) -> None:
        """A queued job ends at once, a running one is asked to leave."""
        draft = self._draft()
        draft.add_all(events_from_cancel(self.state.jobs[job_id], reason), OWNER)
        self._settle(draft)

    def job_of_run(self, run_id: str) -> str | None:
        """The job whose own run it is; None: it is no job's."""
        return self._jobs_by_run.get(run_id)

    def plan(self, at_s: float, happen: Callable[[], None]) -> None:
        """Have something happen at a time to come."""
        self._n_planned += 1
        heappush(self._heap, (at_s, self._n_planned, happen))

    def suspend(self, until_s: float) -> None:
        """The machine sleeps from now on: no work is done, and what was to happen meanwhile happens when it wakes."""
        slept_s = until_s - self.now
        for job in self._running.values():
            job.sleep(slept_s)
        moved = [(at_s + slept_s if n in self._of_work else at_s, n, happen) for at_s, n, happen in self._heap]
        heapify(moved)
        self._heap = moved
        self.now = until_s

    def kill_all(self, until_s: float) -> None:
        """Everything is killed now, the server and all training, and is up again later.

        Work that was not saved is lost; what was to happen meanwhile happens then.
        """
        killed = list(self._running.values())
        for job in killed:
            assert job.execution is not None, "it runs"
            job.log_until(self.now)
            if job.execution.notice_s is None:
                job.execution.notice_s = self.now
        self.now = until_s
        for job in killed:
            assert job.execution is not None, "nobody was there to end it"
            self._exit(job, job.execution, None, is_saved=False)

    def next_s(self) -> float | None:
        """When something happens next; None: nothing is to come."""
        times = [self._wake_s, self._heap[0][0] if self._heap else None]
        return min((at_s for at_s in times if at_s is not None), default=None)

    def advance_to(self, at_s: float) -> None:
        """Move the clock; what happens on the way happens at its own time."""
        while (next_s := self.next_s()) is not None and next_s <= at_s:
            self.now = max(self.now, next_s)
            while self._heap and self._heap[0][0] <= self.now:
                _, n, happen = heappop(self._heap)
                self._of_work.discard(n)
                happen()
            self._settle(self._draft())
        self.now = max(self.now, at_s)

    # How it works inside.

    def _plan_work(self, at_s: float, happen: Callable[[], None]) -> None:
        self.plan(at_s, happen)
        self._of_work.add(self._n_planned)

    def _draft(self) -> Draft:
        return Draft(state=self.state, at_s=max(self.now, self.state.clock_s))

    def _keep(self, taken: Taken) -> None:
        spec = taken.spec
        self._jobs_by_run[_run_id(len(self.jobs) + 1)] = taken.job_id
        before = None if spec.continues is None else self.jobs[spec.continues]
        self.jobs[taken.job_id] = LabJob(
            job_id=taken.job_id,
            spec=spec,
            course=self._course_of(spec),
            costs=replace(self.costs, grace_s=spec.grace_seconds),
            submitted_at=self.now,
            saved_s=0.0 if before is None else before.saved_s,
            n_checkpoints=0 if before is None else before.n_checkpoints,
        )

    def _settle(self, draft: Draft) -> None:
        """Rounds until the scheduler orders nothing more, then carry out what it ordered."""
        for _ in range(MAX_ROUNDS):
            while events := events_from_lapse(self.state, draft.at_s):
                draft.add_all(events, SCHEDULER)
            self._carry_out(draft)
            decision = self._decide(draft)
            self._wake_s = decision.next_wake_s
            if not decision.actions:
                self._commit(draft)
                return
            draft.add_all((event_of(action) for action in decision.actions), SCHEDULER)
        raise LabError(f"{MAX_ROUNDS} rounds at {self.now:.0f} s did not come to rest: a fault of the policy")

    def _carry_out(self, draft: Draft) -> None:
        for order in draft.starts:
            self._start(draft, order)
        for stop in draft.stops:
            self._ask_to_leave(stop)
        draft.starts.clear()
        draft.stops.clear()

    def _decide(self, draft: Draft) -> Decision:
        """A round; where somebody has to leave, one that knows the newest checkpoints."""
        decision = schedule(self.state, now_s=draft.at_s, policy=self.policy)
        if any(isinstance(action, Preempt) for action in decision.actions) and self._report_checkpoints(draft):
            return schedule(self.state, now_s=draft.at_s, policy=self.policy)
        return decision

    def _report_checkpoints(self, draft: Draft) -> bool:
        return sum(self._report_checkpoint(draft, job) for job in self._running.values()) > 0

    def _report_checkpoint(self, draft: Draft, job: LabJob) -> bool:
        assert job.execution is not None
        n_made = job.execution.n_checkpoints(self.now)
        if n_made <= job.execution.n_reported:
            return False
        job.n_checkpoints += n_made - job.execution.n_reported
        job.execution.n_reported = n_made
        self._report(draft, Checkpointed(key=job.key(), generation=1, step=job.n_checkpoints), job)
        return True

    def _start(self, draft: Draft, order: StartOrdered) -> None:
        job = self.jobs[order.job_id]
        execution = job.begin(self.state.jobs[order.job_id], order.attempt, self.now)
        self._running[order.job_id] = job
        started = Started(key=job.key(), generation=1, pid=1, at_s=self.now)
        self._report(draft, started, job)
        self._plan_work(execution.finishes_at_s, lambda: self._finish(job, execution))
        first = job.first_point_at()
        if first is not None and first < execution.finishes_at_s:
            self._plan_work(first, lambda: self._announce(job, execution))

    def _announce(self, job: LabJob, execution: Execution) -> None:
        """Say that metrics have arrived: the first ones of an attempt, which is what sessions wait for."""
        if job.execution is execution and job.log_until(self.now):
            row = self.rows[job.job_id]
            data = {"job_id": job.job_id, "run_id": row.run_id, "keys": job.metric_names}
            told = EventView(seq=None, type="metrics_logged", at=self.now, actor="job", job_id=job.job_id, data=data)
            self.feed.append(told)

    def _ask_to_leave(self, stop: StopAttempt) -> None:
        job = self.jobs[stop.key.job_id]
        execution = job.execution
        if execution is None or execution.attempt != stop.key.attempt:
            return
        if stop.cause is StopCause.CANCEL:
            self._plan_work(self.now, lambda: self._leave(job, execution, _SIGTERM, is_saved=False))
            return
        execution.notice_s = self.now
        going = leaving(execution, self.now, stop.grace_s)
        code = _SIGKILL if going.is_killed else EXIT_REQUEUE
        self._plan_work(going.at_s, lambda: self._leave(job, execution, code, is_saved=going.is_saved))

    def _finish(self, job: LabJob, execution: Execution) -> None:
        if job.execution is execution and execution.notice_s is None:
            self._exit(job, execution, job.course.exit_code, is_saved=False)

    def _leave(self, job: LabJob, execution: Execution, exit_code: int, *, is_saved: bool) -> None:
        if job.execution is execution:
            self._exit(job, execution, exit_code, is_saved=is_saved)

    def _exit(self, job: LabJob, execution: Execution, exit_code: int | None, *, is_saved: bool) -> None:
        """
        Args:
            exit_code: None: nobody was there who could tell.
        """
        draft = self._draft()
        job.log_until(self.now)
        self._report_checkpoint(draft, job)
        if is_saved:
            job.n_checkpoints += 1
        done_s = execution.base_s + execution.worked_s(self.now)
        is_own_end = execution.notice_s is None and exit_code == job.course.exit_code
        exited = Exited(
            key=job.key(),
            generation=1,
            exit_code=exit_code,
            was_killed=exit_code == _SIGKILL,
            ended_at_s=self.now,
            peak_memory_mb=job.course.peak_memory_mb,
            log_tail=job.course.output if is_own_end else "",
            checkpoint_step=job.n_checkpoints or None,
            supervisor_lost=exit_code is None,
        )
        self._report(draft, exited, job)
        job.saved_s = done_s if is_saved else execution.saved_s(self.now)
        job.execution = None
        del self._running[job.job_id]
        self._commit(draft)

    def _report(self, draft: Draft, report: StateReport, job: LabJob) -> None:
        found = events_from_report(self.state, report, job.criteria(), now_s=draft.at_s, rules=self._rules)
        draft.add_all(found, MACHINE)

    def _commit(self, draft: Draft) -> None:
        """Make rows and announcements of what a draft has gathered."""
        changes = draft.rows
        self.rows |= changes.new_jobs
        for job_id, changed in changes.jobs.items():
            self.rows[job_id] = replace(self.rows[job_id], **changed)
        for (job_id, _), row in changes.new_attempts.items():
            self.attempts.setdefault(job_id, []).append(row)
        for (job_id, number), changed_attempt in changes.attempts.items():
            rows = self.attempts[job_id]
            rows[number - 1] = replace(rows[number - 1], **changed_attempt)
        self.run_status |= changes.run_status
        self.feed.extend(event_view(stored) for stored in draft.events)
