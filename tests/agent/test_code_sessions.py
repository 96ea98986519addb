"""Whole sessions over edited code in memory: what wins, what does not count, what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_worlds import World, a_task, a_world

from agent.planner.configuration import configuration_id, default_params
from agent.planner.history import History, Proposal
from agent.store.views import CodeState, Purpose, SessionState, TrialFacts, TrialState, TrialView
from agent.task import Task
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.models import JobSpec

pytestmark = pytest.mark.code

GAINS = {"1": 0.1, "2": 0.2, "3": 0.9, "4": 0.0, "5": 0.9, "6": 0.0}
"""What the code of each tree brings: 1 and 2 truly, 3 by training ten times as long, 4 nothing, 5 by a fixed seed."""
NAN = "7"


def a_code(digit: str, parent: str | None = None) -> CodeState:
    return CodeState(tree=digit * 40, commit=digit * 40, branch=f"trial/{digit}", parent=parent, added=int(digit))


class Edits:
    """Suggests these codes, one after the other; the second is made from the first."""

    name = "coder"

    def __init__(self, task: Task, codes: str) -> None:
        self._params = default_params(task)
        self._codes = [a_code(c, "s1-t2" if c == "2" else None) for c in codes]

    def tell(self, history: History) -> None: ...

    def ask(self, history: History, n: int) -> list[Proposal]:
        tried = {t.facts.edited.tree for t in history.search if t.facts.edited is not None}
        new = [code for code in self._codes if code.tree not in tried]
        return [self._proposal(code) for code in new[:n]]

    def _proposal(self, code: CodeState) -> Proposal:
        return Proposal(
            params=dict(self._params),
            configuration=configuration_id(self._params, code),
            seed=0,
            purpose=Purpose.SEARCH,
            suggested_by=self.name,
            why="",
            facts=TrialFacts(edited=code),
        )


def script(spec: JobSpec) -> FakeOutcome:
    digit = spec.tags.get("nightlab.code.tree", "0")[0]
    if spec.command == "train":
        return FakeOutcome(curves={"score": [99.0]}, duration_s=100.0 if digit == "3" else 10.0)
    noise = 0.0 if digit == "5" else ((spec.seed or 0) * 2654435761 % 1000) / 1e4
    value = None if digit == NAN else 0.5 + GAINS.get(digit, 0.0) + noise
    return FakeOutcome(curves={"score": [value]}, duration_s=1.0)


def a_session(home: Path, codes: str, *, runtime: FakeRuntime | None = None) -> World:
    task = a_task(
        code={"editable": ["model.py"]},
        score={"command": "score"},
        space={},
        held_out=None,
        budgets={"trials": 1 + len(codes)},
        search={"use": ["coder", "replicator"]},
        idle={"replicate": False, "explore": False},
        seeds={"fresh": 8, "max_pairs": 8},
    )
    world = a_world(home, task=task, script=script)
    world.runtime = runtime or world.runtime
    assert world.live(open_search=lambda task, shelf, memory: Edits(task, codes)) is SessionState.FINISHED
    return world


def of_code(world: World, digit: str) -> list[TrialView]:
    return [t for t in world.store.trials("s1") if t.facts.edited is not None and t.facts.edited.tree[0] == digit]


def test_a_true_improvement_wins_and_stands_beside_its_parent(tmp_path: Path) -> None:
    world = a_session(tmp_path, "12")
    result = world.store.session("s1").result
    assert result is not None
    assert result.code is not None
    assert result.verdict == "supported"
    assert result.code.state.tree == "2" * 40
    assert result.code.parent == "s1-t2"
    assert result.code.over_parent is not None
    assert round(result.code.over_parent.estimate, 6) == 0.1
    run = world.runtime.run(world.store.session("s1").run_id or "")
    assert (run.tags["nightlab.best_code"], run.tags["nightlab.best_code_parent"]) == ("2" * 40, "s1-t2")
    seeds = {t.seed for t in of_code(world, "1") if t.seed >= 1000}
    assert seeds == {t.seed for t in of_code(world, "2") if t.seed >= 1000} == set(range(1000, 1008))


def test_an_edit_that_trains_longer_does_not_win_whenever_the_base_is_known(tmp_path: Path) -> None:
    world = a_session(tmp_path, "31")
    (slow,) = of_code(world, "3")
    assert slow.state is TrialState.INVALID
    assert slow.value is None
    assert "it trained 100 s, the base 10 s" in (slow.note or "")
    result = world.store.session("s1").result
    assert result is not None
    assert result.code is not None
    assert result.code.state.tree == "1" * 40


def test_an_edit_with_a_seed_of_its_own_is_found_out_by_the_fresh_seeds(tmp_path: Path) -> None:
    world = a_session(tmp_path, "5")
    trials = of_code(world, "5")
    assert {t.state for t in trials} == {TrialState.INVALID}
    assert {t.exit_reason for t in trials} == {"seed_unused"}
    assert any("does not use its seed" in (t.note or "") for t in trials)
    assert any("does not count any more" in line.text for line in world.store.activity("s1", 500))
    result = world.store.session("s1").result
    assert result is not None
    assert (result.comparison, result.verdict) == ("invalid", "inconclusive")
    assert "Its values do not count: it gave the same value" in result.sentence


def test_what_the_training_says_is_not_looked_at_and_nan_is_no_value(tmp_path: Path) -> None:
    world = a_session(tmp_path, f"4{NAN}")
    assert all((t.value or 0) < 1 for t in world.store.trials("s1"))
    (nan,) = of_code(world, NAN)
    assert nan.state is TrialState.INVALID
    result = world.store.session("s1").result
    assert result is not None
    assert result.verdict != "supported"


def test_a_training_that_was_preempted_says_that_its_time_was_not_judged(tmp_path: Path) -> None:
    class Preempting(FakeRuntime):
        is_done = False

        def step(self) -> bool:
            running = [j for j in self.jobs() if j.state == "running" and "nightlab.code.tree" in j.spec.tags]
            if running and not self.is_done:
                self.is_done = True
                self.preempt(running[0].job_id)
                self.reschedule()
            return super().step()

    world = a_session(tmp_path, "1", runtime=Preempting(script, is_automatic=True, n_devices=2))
    told = [t for t in of_code(world, "1") if t.facts.run_seconds is None]
    assert [t.state for t in told] == [TrialState.MEASURED]
    assert "its training was interrupted" in (told[0].note or "")
