"""How a night's process ends a night, and when it leaves that to the next one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agent_worlds import a_task

from agent.store.nights import NightStore
from agent.store.store import AgentStore
from agent.sweeps.cells import Cell
from agent.sweeps.running import NightDeps, run_night
from agent.sweeps.sweep import RandomMethod, Sweep
from agent.sweeps.views import NightOutcome, NightState, NightSummary, NightView
from runtime_client.errors import Unreachable
from runtime_client.fake import FakeOutcome, FakeRuntime
from runtime_client.protocol import Runtime

SWEEP = Sweep(sweep="digits", task="t.yaml", method=RandomMethod(kind="random", trials=3))


def a_night_past_its_hour(nights: NightStore) -> NightView:
    begun = nights.begin(SWEEP, file="/d/sweep.yaml", cells=[Cell(name="a", task=a_task())], finish_by=1.0).night
    assert begun is not None
    nights.start_cell(begun.night_id, 0, nights.claim(begun.night_id))
    return begun


def test_a_process_that_has_to_leave_before_it_saw_the_jobs_leaves_the_night_to_the_next(tmp_path: Path) -> None:
    now = [1_000_000.0]
    nights = NightStore(AgentStore.open(tmp_path, clock=lambda: now[0]))
    night = a_night_past_its_hour(nights)
    told: list[NightOutcome | None] = []
    leaving: list[bool] = []

    def away() -> Runtime:
        leaving.append(True)
        raise Unreachable("down", code="unreachable")

    def tell(ended: NightView, _summary: NightSummary, _page: Path | None) -> tuple[str, ...]:
        told.append(ended.outcome)
        return ()

    def pause(seconds: float) -> None:
        now[0] += seconds

    def deps(connect: Callable[[], Runtime], *, leaves: bool) -> NightDeps:
        return NightDeps(
            store=nights.store,
            connect=connect,
            summarize=lambda _store, _runtime, _night, _earlier: NightSummary(),
            write_reports=lambda _night_id: None,
            tell=tell,
            say=lambda _text: None,
            should_leave=(lambda: bool(leaving)) if leaves else (lambda: False),
            pause=pause,
        )

    left = run_night(night.night_id, deps(away, leaves=True))
    assert (left.state, left.outcome, told) == (NightState.RUNNING, None, [])
    assert nights.runnable() == [night.night_id]
    ended = run_night(night.night_id, deps(lambda: FakeRuntime(lambda _spec: FakeOutcome()), leaves=False))
    assert (ended.state, ended.outcome, told) == (NightState.ENDED, NightOutcome.DEADLINE, [NightOutcome.DEADLINE])
