"""What is asked of people first: who is asked, that nothing waits for the answer, and that the first answer counts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from agent_stores import postgres_url, store  # noqa: F401
from agent_worlds import World, a_task, a_world, honest
from test_agent_crashes import Countdown, Killed, listening

from agent.gates.freedom import Action, Course, Ruling, ruling
from agent.gates.gate import DEADLINE, Answer, Gate, GateKind
from agent.planner.configuration import configuration_id
from agent.planner.history import History, Proposal
from agent.planner.proposers.chosen import chosen_proposers
from agent.store.fenced import FencedWriter
from agent.store.gates import GateBook, GateNotFound, GateStore
from agent.store.store import AgentStore
from agent.store.views import Purpose, SessionState, TrialFacts, TrialState
from agent.task import Autonomy, Task
from agent.waiting import DirectWaiter, Interest, Wake
from runtime_client.fake import FakeRuntime
from runtime_client.models import JobSpec

TRIAL, OUTSIDE = GateKind.TRIAL, GateKind.OUTSIDE_SPACE
XS = (0.61, 0.72, 0.83)


@dataclass(frozen=True, slots=True)
class Guest:
    """A proposer that stands for a model: it wants these, in this order, until they are tried."""

    xs: tuple[float, ...] = XS
    name: str = "guest"

    def ask(self, history: History, n: int) -> list[Proposal]:
        tried = {trial.configuration for trial in history.search}
        made = [_proposal(x, self.name) for x in self.xs]
        return [one for one in made if one.configuration not in tried][:n]

    def tell(self, history: History) -> None:
        """It finds all in the history."""


def _proposal(x: float, name: str) -> Proposal:
    params = {"x": x, "kind": "b"}
    return Proposal(
        params=params,
        configuration=configuration_id(params),
        seed=0,
        purpose=Purpose.SEARCH,
        suggested_by=name,
        why="a hunch",
        facts=TrialFacts(model="m"),
    )


def asking(**autonomy: Any) -> Task:
    return a_task(
        budgets={"trials": 6},
        seeds={"fresh": 2, "max_pairs": 2},
        search={"use": ["random"]},
        idle={"replicate": False, "explore": False},
        autonomy={"trials": "propose"} | autonomy,
    )


@dataclass(frozen=True, slots=True)
class Passing:
    """Waits as a real waiter does: where nothing happens, the time passes."""

    runtime: FakeRuntime
    inner: DirectWaiter

    def wait(self, interest: Interest) -> Wake:
        wake = self.inner.wait(interest)
        if not wake.is_event:
            self.runtime.advance(interest.timeout_s)
        return wake

    def close(self) -> None:
        """Nothing to close."""


def live(world: World, **changes: Any) -> SessionState:
    return world.live(
        open_search=lambda task, shelf, memory: chosen_proposers(task, [Guest()]),
        open_waiter=lambda runtime, since: Passing(world.runtime, DirectWaiter(runtime, since=since)),
        **changes,
    )


def a_gate(kind: GateKind = TRIAL, **changes: Any) -> Gate:
    gate = Gate(
        gate_id=1,
        session_id="s1",
        subject="c",
        kind=kind,
        text="run it?",
        trial=None,
        cost_device_s=None,
        asked_at=0.0,
        answer_by=100.0,
        unanswered=Answer.DENY,
        answer=None,
        answered_by=None,
        answered_at=None,
        note=None,
    )
    return replace(gate, **changes)


def course(autonomy: dict[str, Any], *gates: Gate, cost_s: float | None = 60.0, now: float = 10.0) -> Course:
    return ruled(autonomy, *gates, cost_s=cost_s, now=now).course


def ruled(autonomy: dict[str, Any], *gates: Gate, cost_s: float | None = 60.0, now: float = 10.0) -> Ruling:
    action = Action(subject="c", kinds=(OUTSIDE, TRIAL), what="run it", cost_device_s=cost_s)
    known = {(gate.kind, gate.subject): gate for gate in gates}
    return ruling(action, Autonomy.model_validate({"outside_space": "run"} | autonomy), known, now)


@pytest.mark.parametrize(
    ("autonomy", "cost_s", "expected"),
    [
        ({}, None, Course.GOES),
        ({"trials": "propose"}, 0.0, Course.ASKS),
        ({"trials": "ask", "ask_above_device_minutes": 2}, 120.0, Course.GOES),
        ({"trials": "ask", "ask_above_device_minutes": 2}, 121.0, Course.ASKS),
        ({"trials": "ask"}, None, Course.ASKS),
        ({"outside_space": "propose"}, 0.0, Course.ASKS),
    ],
)
def test_who_is_asked_follows_from_the_kind_and_the_cost(
    autonomy: dict[str, Any], cost_s: float | None, expected: Course
) -> None:
    assert course(autonomy, cost_s=cost_s) is expected


def test_a_cost_that_is_not_known_counts_as_above_the_threshold_and_is_said() -> None:
    assert "not known yet, which counts as more than 60 device-minutes" in ruled({"trials": "ask"}, cost_s=None).why


@pytest.mark.parametrize(
    ("gate", "now", "expected"),
    [
        (a_gate(), 99.9, Course.WAITS),
        (a_gate(), 100.0, Course.REFUSED),
        (a_gate(unanswered=Answer.APPROVE), 100.0, Course.GOES),
        (a_gate(answer=Answer.APPROVE), 500.0, Course.GOES),
        (a_gate(answer=Answer.DENY), 10.0, Course.REFUSED),
        (a_gate(answer=Answer.WITHDRAWN), 10.0, Course.ASKS),
    ],
)
def test_the_answer_counts_and_after_the_deadline_the_declared_one(gate: Gate, now: float, expected: Course) -> None:
    assert course({"trials": "propose"}, gate, now=now) is expected


def test_what_is_of_two_kinds_needs_both_and_one_denial_is_enough() -> None:
    both = {"trials": "propose", "outside_space": "propose"}
    outside = a_gate(OUTSIDE, answer=Answer.APPROVE)
    assert (ruled(both).kind, ruled(both, outside).kind) == (OUTSIDE, TRIAL)
    assert course(both, outside, a_gate(answer=Answer.APPROVE)) is Course.GOES
    assert course(both, outside, a_gate(answer=Answer.DENY)) is Course.REFUSED


def test_a_denial_counts_although_the_trial_became_cheap() -> None:
    assert course({"trials": "ask"}, a_gate(answer=Answer.DENY), cost_s=1.0) is Course.REFUSED


@pytest.mark.acceptance
def test_a_session_runs_to_its_end_beside_questions_and_nothing_that_waits_is_launched(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=asking(answer_within_minutes=5))
    assert live(world) is SessionState.FINISHED
    gates = GateStore(world.store).gates()
    assert {(gate.answer, gate.answered_by) for gate in gates} == {(Answer.DENY, DEADLINE)}
    assert {gate.answered_at for gate in gates} == {gate.answer_by for gate in gates}
    trials = world.store.trials("s1")
    assert not [trial for trial in trials if trial.suggested_by == "guest"]
    assert sum(1 for trial in trials if trial.purpose is Purpose.SEARCH) == 6
    first = min(gate.asked_at for gate in gates)
    while_waiting = [t for t in trials if t.launched_at is not None and first < t.launched_at < first + 300]
    assert while_waiting


@pytest.mark.acceptance
def test_what_was_denied_is_not_asked_about_again(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=asking(answer_within_minutes=0.2))
    live(world)
    gates = GateStore(world.store).gates()
    assert len({gate.subject for gate in gates}) == len(gates) > 0
    asked = [line.text for line in world.store.activity("s1", 1000) if " asks: " in line.text]
    assert len(asked) == len(gates)


def _answering(world: World, answer: Answer) -> Callable[[], bool]:
    """Somebody who answers whatever is asked, at once, and lets the process go on."""

    def should_leave() -> bool:
        people = GateStore(world.store)
        for gate in people.waiting():
            people.answer(gate.gate_id, answer, by="ada", note="as I said")
        return False

    return should_leave


@pytest.mark.acceptance
def test_an_approved_trial_is_run_before_what_was_ready_beside_it(tmp_path: Path) -> None:
    launched: list[float] = []

    def script(spec: JobSpec) -> Any:
        launched.append(float(str(spec.parameters["x"])))
        return honest(spec)

    world = a_world(tmp_path, task=asking(answer_within_minutes=500), n_devices=1, script=script)
    live(world, should_leave=_answering(world, Answer.APPROVE))
    trials = [trial for trial in world.store.trials("s1") if trial.suggested_by == "guest"]
    assert trials
    assert all(trial.state is TrialState.MEASURED for trial in trials)
    (gate, *_) = GateStore(world.store).gates()
    assert gate.words == "approved by ada: as I said"
    asked_about = next(t for t in trials if t.configuration == gate.subject)
    others = [t for t in world.store.trials("s1") if t.number < asked_about.number and t.launched_at is not None]
    assert all(other.launched_at <= asked_about.launched_at for other in others)


@pytest.mark.acceptance
def test_a_denied_trial_is_withdrawn_and_its_budget_goes_to_others(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=asking(answer_within_minutes=500))
    assert live(world, should_leave=_answering(world, Answer.DENY)) is SessionState.FINISHED
    trials = world.store.trials("s1")
    assert not [trial for trial in trials if trial.suggested_by == "guest"]
    assert world.store.session("s1").n_trials == 6
    assert any("is not run: denied by ada: as I said" in line.text for line in world.store.activity("s1", 1000))


@pytest.mark.acceptance
@pytest.mark.parametrize("unanswered", ["approve", "deny"])
def test_a_deadline_that_passes_while_the_session_is_down_counts_as_if_it_had_been_there(
    tmp_path: Path, unanswered: str
) -> None:
    world = a_world(tmp_path, task=asking(answer_within_minutes=30, unanswered=unanswered))
    people = GateStore(world.store)
    assert live(world, should_leave=lambda: bool(people.gates())) is SessionState.RUNNING
    (gate, *_) = people.waiting()
    world.runtime.advance(3600.0)
    late = people.answer(gate.gate_id, Answer.APPROVE if unanswered == "deny" else Answer.DENY, by="ada")
    assert (late.is_first, late.gate.answer, late.gate.answered_by) == (False, Answer(unanswered), DEADLINE)
    live(world)
    n_run = sum(1 for trial in world.store.trials("s1") if trial.configuration == gate.subject)
    assert n_run == (1 if unanswered == "approve" else 0)


@pytest.mark.acceptance
def test_a_cheap_trial_goes_ahead_once_its_cost_is_known(tmp_path: Path) -> None:
    task = asking(trials="ask", ask_above_device_minutes=5, answer_within_minutes=500)
    world = a_world(tmp_path, task=task)
    assert live(world) is SessionState.FINISHED
    assert [trial for trial in world.store.trials("s1") if trial.suggested_by == "guest"]
    assert {gate.answer for gate in GateStore(world.store).gates()} <= {Answer.WITHDRAWN}


@pytest.mark.acceptance
def test_questions_of_a_session_that_ended_need_no_answer(tmp_path: Path) -> None:
    task = asking(answer_within_minutes=500).model_copy(
        update={"objective": a_task(objective={"metric": "score", "direction": "maximize", "target": 0.5}).objective}
    )
    world = a_world(tmp_path, task=task)
    live(world)
    gates = GateStore(world.store).gates()
    assert gates
    assert {gate.answer for gate in gates} == {Answer.WITHDRAWN}


@pytest.mark.kills
@pytest.mark.parametrize("n", [9, 12, 15, 18, 21, 24])
def test_a_session_killed_between_question_and_answer_finds_both(tmp_path: Path, n: int) -> None:
    world = a_world(tmp_path, task=asking(answer_within_minutes=5))
    with listening(world.store.engine, "commit", Countdown(n)), pytest.raises(Killed):
        live(world)
    answer_all = _answering(world, Answer.APPROVE)
    answer_all()
    approved = {gate.subject for gate in GateStore(world.store).gates() if gate.answer is Answer.APPROVE}
    assert live(world) is SessionState.FINISHED
    gates = GateStore(world.store).gates()
    assert len({gate.subject for gate in gates}) == len(gates) > 0
    carried = [job.spec.tags["nightlab.trial"] for job in world.runtime.jobs(limit=1000)]
    assert len(carried) == len(set(carried))
    run = {trial.configuration for trial in world.store.trials("s1") if trial.suggested_by == "guest"}
    assert run == approved


def a_question(x: str = "c") -> Ruling:
    action = Action(subject=x, kinds=(TRIAL,), what="run it", cost_device_s=None)
    return Ruling(action=action, course=Course.ASKS, kind=TRIAL, why="autonomy.trials: propose")


def ask(store: AgentStore, *questions: Ruling, within_s: float = 600.0) -> list[Gate]:  # noqa: F811
    session = store.create_session(a_task())
    book = GateBook(FencedWriter(store, session.session_id, store.claim(session.session_id, 1)))
    return book.ask(questions, answer_within_s=within_s, unanswered=Answer.DENY)


def test_of_people_who_answer_at_once_exactly_one_counts(store: AgentStore) -> None:  # noqa: F811
    gates = ask(store, *(a_question(str(n)) for n in range(5)))
    barrier = threading.Barrier(2)
    firsts: list[tuple[int, Answer]] = []

    def answer_all(by: str, answer: Answer) -> None:
        for gate in gates:
            barrier.wait()
            found = GateStore(store).answer(gate.gate_id, answer, by=by)
            if found.is_first:
                firsts.append((gate.gate_id, answer))

    people = [
        threading.Thread(target=answer_all, args=("ada", Answer.APPROVE)),
        threading.Thread(target=answer_all, args=("bob", Answer.DENY)),
    ]
    for person in people:
        person.start()
    for person in people:
        person.join()
    kept = {gate.gate_id: gate.answer for gate in GateStore(store).gates()}
    assert sorted(firsts) == sorted(kept.items())


def test_the_same_question_is_one_row_and_asked_anew_only_after_it_was_withdrawn(store: AgentStore) -> None:  # noqa: F811
    session = store.create_session(a_task())
    book = GateBook(FencedWriter(store, session.session_id, store.claim(session.session_id, 1)))
    (gate,) = book.ask([a_question()], answer_within_s=60.0, unanswered=Answer.DENY)
    book.withdraw([gate], "not wanted any more")
    assert GateStore(store).waiting() == []
    (again,) = book.ask([a_question()], answer_within_s=60.0, unanswered=Answer.DENY)
    assert (again.gate_id, again.answer, again.note) == (gate.gate_id, None, None)
    assert [one.gate_id for one in GateStore(store).waiting(session.session_id)] == [gate.gate_id]


def test_a_number_that_is_no_gate_is_said(store: AgentStore) -> None:  # noqa: F811
    with pytest.raises(GateNotFound, match="no gate 7; find its number with: nightlab gate list"):
        GateStore(store).answer(7, Answer.DENY, by="ada")
