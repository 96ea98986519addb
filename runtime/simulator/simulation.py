"""A cluster in virtual time: the same `apply` and `schedule` as the server's, with a heap of things to come.

Facts of one instant are applied together, then rounds follow until the scheduler orders nothing more. The core knows
nothing of it. The same scenario gives the same outcome, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from heapq import heappop, heappush

from runtime.model import outcome
from runtime.model.apply import apply
from runtime.model.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSeen,
    Event,
    JobSubmitted,
    NodeJoined,
    NodeLeft,
    Recorded,
    Then,
)
from runtime.model.indexes import Indexes
from runtime.model.nouns import Job
from runtime.model.state import State, holders
from runtime.model.states import JobState, StopCause
from runtime.scheduling.asking import impossible
from runtime.scheduling.decision import Decision, Expire, Preempt, Start, TimeOut
from runtime.scheduling.intent import event_of
from runtime.scheduling.quotas import describe_quota, too_small
from runtime.scheduling.schedule import schedule

from .errors import SimulationError
from .faults import NodeFault
from .ledger import Ledger
from .scenario import Scenario, verify
from .work import Execution, leaving
from .workload import TraceJob, node_size, shaped

MAX_ATTEMPTS = 1000
"""Of one job; more means that it can never end under these faults and costs."""
MAX_ROUNDS = 1000
"""At one instant; more means that the policy chases its tail."""

Watch = Callable[[State, Recorded], None]


def simulate(scenario: Scenario, *, watch: Watch | None = None) -> Ledger:
    """Run a scenario until every job has ended.

    Args:
        watch: Is shown the state after each event.

    Raises:
        BadScenario: no devices, a class that the policy does not know, an id used twice, or jobs out of order.
        SimulationError: a job that can never end.
    """
    verify(scenario)
    simulation = Simulation(scenario, watch)
    simulation.run()
    return simulation.ledger


class Simulation:
    """One run of a scenario. Made to be run once."""

    def __init__(self, scenario: Scenario, watch: Watch | None) -> None:
        self._scenario = scenario
        self._policy = scenario.policy
        self._watch = watch
        self._state = State()
        self._now_s = scenario.jobs[0].submitted_at_s if scenario.jobs else 0.0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._n_planned = 0
        self._wake_s: float | None = None
        self._running: dict[str, Execution] = {}
        self._saved: dict[str, tuple[float, int]] = {}
        """Work saved (s) and checkpoints made so far, of jobs that have any."""
        self._by_id = {job.job_id: job for job in scenario.jobs}
        self._node_size = node_size(scenario.nodes)
        self._nodes = {node.node_id: node for node in scenario.nodes}
        self._faults_by_node: dict[str, Iterator[NodeFault]] = {}
        self.ledger = Ledger(scenario.jobs, n_devices=sum(len(node.devices) for node in scenario.nodes))

    def run(self) -> None:
        whole = Indexes()
        for node in self._scenario.nodes:
            whole.set_node(node, held=0)
            self._record(NodeJoined(node=node))
            self._faults_by_node[node.node_id] = self._scenario.faults.of_node(node.node_id, self._now_s)
            self._plan_fault(node.node_id)
        jobs = self._scenario.jobs
        n_arrived = 0
        while n_arrived < len(jobs) or self._state.jobs:
            next_s = self._next_s(jobs[n_arrived].submitted_at_s if n_arrived < len(jobs) else None)
            if next_s is None:
                break
            self._now_s = next_s
            while n_arrived < len(jobs) and jobs[n_arrived].submitted_at_s <= next_s:
                self._submit(jobs[n_arrived], n_arrived, whole)
                n_arrived += 1
            while self._heap and self._heap[0][0] <= next_s:
                heappop(self._heap)[2]()
            self._schedule()
        self.ledger.close(self._now_s)

    def _next_s(self, arrival_s: float | None) -> float | None:
        times = [arrival_s, self._wake_s, self._heap[0][0] if self._heap else None]
        return min((at_s for at_s in times if at_s is not None), default=None)

    def _plan(self, at_s: float, happen: Callable[[], None]) -> None:
        self._n_planned += 1
        heappush(self._heap, (at_s, self._n_planned, happen))

    def _record(self, event: Event, at_s: float | None = None) -> None:
        recorded = Recorded(
            seq=self._state.last_seq + 1,
            at_s=self._now_s if at_s is None else at_s,
            actor="simulator",
            on_behalf_of=None,
            project=None,
            event=event,
        )
        apply(self._state, recorded)
        if self._watch is not None:
            self._watch(self._state, recorded)

    def _submit(self, job: TraceJob, order: int, whole: Indexes) -> None:
        shape = shaped(job, self._node_size)
        why = impossible(shape, whole.kinds, whole)
        if why is not None:
            self.ledger.refused(job.job_id, why)
            return
        level = self._policy.classes[job.priority_class]
        quota = too_small(self._policy.quotas, job.project, level.name, shape.n_devices)
        if quota is not None:
            self.ledger.refused(job.job_id, f"asks for {shape.n_devices} devices, but {describe_quota(quota)}")
            return
        new = Job(
            job_id=job.job_id,
            order=order,
            project=job.project,
            experiment=job.experiment or "trace",
            session_id=None,
            priority_class=level.name,
            priority=level.priority,
            is_preemptible=level.is_preemptible,
            shape=shape,
            submitted_at_s=job.submitted_at_s,
            grace_s=job.costs.grace_s,
            max_retries=0,
        )
        self._record(JobSubmitted(job=new))
        self.ledger.submitted(job.job_id, self._now_s)

    def _schedule(self) -> None:
        for _ in range(MAX_ROUNDS):
            decision = self._decide()
            self._wake_s = decision.next_wake_s
            if not decision.actions:
                return
            for action in decision.actions:
                self._record(event_of(action))
            for action in decision.actions:
                match action:
                    case Start():
                        self._start(action)
                    case Preempt() | TimeOut():
                        self._notify(action)
                    case Expire():
                        self.ledger.ended(action.job_id, self._now_s, JobState.FAILED)
        raise SimulationError(f"{MAX_ROUNDS} rounds at {self._now_s:.0f} s did not come to rest: a fault of the policy")

    def _decide(self) -> Decision:
        """A round; where somebody has to leave, one that knows the newest checkpoints.

        Who leaves depends on them, whether somebody has to leave does not.
        """
        decision = schedule(self._state, now_s=self._now_s, policy=self._policy)
        if any(isinstance(action, Preempt) for action in decision.actions) and self._report_checkpoints():
            return schedule(self._state, now_s=self._now_s, policy=self._policy)
        return decision

    def _report_checkpoints(self) -> bool:
        n_told = sum(self._report_checkpoint(execution) for execution in self._running.values())
        return n_told > 0

    def _report_checkpoint(self, execution: Execution) -> bool:
        """Tell the scheduler of the newest periodic checkpoint; whether there was anything to tell."""
        n_made = execution.n_checkpoints(self._now_s)
        if n_made <= execution.n_reported:
            return False
        self._saw_checkpoint(execution, n_made - execution.n_reported, execution.checkpoint_at_s(n_made))
        execution.n_reported = n_made
        return True

    def _saw_checkpoint(self, execution: Execution, n_new: int, at_s: float) -> None:
        job_id = execution.job.job_id
        saved_s, n_before = self._saved.get(job_id, (0.0, 0))
        self._saved[job_id] = (saved_s, n_before + n_new)
        self._record(CheckpointSeen(job_id=job_id, attempt=execution.attempt, step=n_before + n_new), at_s)

    def _start(self, action: Start) -> None:
        if action.attempt > MAX_ATTEMPTS:
            raise SimulationError(
                f"job {action.job_id} was started {MAX_ATTEMPTS} times and never ended; "
                "save more often, or let nodes and attempts fail less often"
            )
        job = self._by_id[action.job_id]
        base_s = self._saved.get(job.job_id, (0.0, 0))[0]
        execution = Execution(job=job, attempt=action.attempt, began_s=self._now_s, base_s=base_s)
        self._running[job.job_id] = execution
        self._record(AttemptStarted(job_id=job.job_id, attempt=action.attempt, pid=None))
        self.ledger.started(job.job_id, self._now_s)
        self._plan(execution.finishes_at_s, lambda: self._finish(execution))
        dies_after_s = self._scenario.faults.of_attempt(job.job_id, action.attempt, job.n_devices)
        if dies_after_s is not None and self._now_s + dies_after_s < execution.finishes_at_s:
            self._plan(self._now_s + dies_after_s, lambda: self._die(execution))
        if self._scenario.reports_every_checkpoint and job.costs.checkpoint_every_s is not None:
            self._plan(execution.checkpoint_at_s(1), lambda: self._make_checkpoint(execution))

    def _notify(self, action: Preempt | TimeOut) -> None:
        execution = self._running[action.job_id]
        execution.notice_s = self._now_s
        if isinstance(action, Preempt):
            self.ledger.preempted(action.job_id, self._now_s)
        plan = leaving(execution, self._now_s, action.grace_s)
        facts = outcome.ExitFacts(
            stop=_cause(action),
            exit_code=-9 if plan.is_killed else 75,
            was_killed=plan.is_killed,
        )
        self._plan(plan.at_s, lambda: self._leave(execution, outcome.classify(facts), plan.is_saved))

    def _is_over(self, execution: Execution) -> bool:
        return self._running.get(execution.job.job_id) is not execution

    def _make_checkpoint(self, execution: Execution) -> None:
        if self._is_over(execution) or execution.notice_s is not None:
            return
        self._report_checkpoint(execution)
        self._plan(execution.checkpoint_at_s(execution.n_reported + 1), lambda: self._make_checkpoint(execution))

    def _finish(self, execution: Execution) -> None:
        if not self._is_over(execution) and execution.notice_s is None:
            self._end(execution, outcome.classify(outcome.ExitFacts(stop=None, exit_code=0)))

    def _leave(self, execution: Execution, ending: outcome.Ending, is_saved: bool) -> None:
        if self._is_over(execution):
            return
        if is_saved:
            done_s = execution.base_s + execution.worked_s(self._now_s)
            self._saw_checkpoint(execution, 1, self._now_s)
            self._saved[execution.job.job_id] = (done_s, self._saved[execution.job.job_id][1])
        self._end(execution, ending, is_saved=is_saved)

    def _die(self, execution: Execution) -> None:
        """Something under the attempt broke; nobody knows more than that it is gone."""
        if not self._is_over(execution) and execution.notice_s is None:
            self._report_checkpoint(execution)
            self.ledger.n_attempt_faults += 1
            self._end(execution, outcome.classify(outcome.ExitFacts(stop=None, exit_code=None)))

    def _end(self, execution: Execution, ending: outcome.Ending, *, is_saved: bool = False) -> None:
        job_id = execution.job.job_id
        job = self._state.jobs[job_id]
        what = outcome.disposition(job, ending.outcome, ending.reason, now_s=self._now_s, policy=self._policy)
        if not is_saved and what.then is not Then.END:
            self._saved[job_id] = (execution.saved_s(self._now_s), self._saved.get(job_id, (0.0, 0))[1])
        self._record(
            AttemptEnded(
                job_id=job_id,
                attempt=execution.attempt,
                outcome=ending.outcome,
                exit_reason=what.exit_reason,
                exit_code=None,
                evidence=ending.evidence,
                then=what.then,
                end_state=what.end_state,
                not_before_s=what.not_before_s,
            )
        )
        del self._running[job_id]
        is_again = what.then is not Then.END
        saved_s = self._saved[job_id][0] if is_again else execution.base_s + execution.worked_s(self._now_s)
        self.ledger.left(execution, self._now_s, saved_s, is_again=is_again)
        if what.end_state is not None:
            self._saved.pop(job_id, None)
            self.ledger.ended(job_id, self._now_s, what.end_state)

    def _plan_fault(self, node_id: str) -> None:
        fault = next(self._faults_by_node[node_id], None)
        if fault is not None:
            self._plan(max(fault.at_s, self._now_s), lambda: self._break(fault))

    def _break(self, fault: NodeFault) -> None:
        node = self._nodes[fault.node_id]
        self.ledger.n_node_faults += 1
        for job in holders(self._state, fault.node_id):
            execution = self._running[job.job_id]
            self._report_checkpoint(execution)
            stop = job.attempt.stop.cause if job.attempt and job.attempt.stop else None
            self._end(execution, outcome.classify_lost(stop, f"{fault.node_id} failed"))
        self._record(NodeLeft(node_id=fault.node_id, generation=node.generation, reason="failed"))
        self._plan(max(fault.back_at_s, self._now_s), lambda: self._repair(fault.node_id))

    def _repair(self, node_id: str) -> None:
        node = replace(self._nodes[node_id], generation=self._nodes[node_id].generation + 1)
        self._nodes[node_id] = node
        self._record(NodeJoined(node=node))
        self._plan_fault(node_id)


def _cause(action: Preempt | TimeOut) -> StopCause:
    if isinstance(action, Preempt):
        return StopCause.PREEMPT
    return StopCause.RENEW if action.is_renewed else StopCause.TIMEOUT
