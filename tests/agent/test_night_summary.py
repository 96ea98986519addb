"""What a night came to: from rows of the store, and from jobs where the runtime is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from agent_worlds import a_task

from agent.planner.configuration import configuration_id, default_params
from agent.planner.history import Proposal
from agent.store.book import TrialBook
from agent.store.fenced import FencedWriter
from agent.store.nights import NightStore
from agent.store.store import AgentStore
from agent.store.views import Purpose, TrialFacts, TrialState
from agent.sweeps.cells import Cell
from agent.sweeps.summary import summarize
from agent.sweeps.sweep import RandomMethod, Sweep
from agent.sweeps.views import Change, NightOutcome, NightView
from agent.task import Task


class Nights:
    """Nights of one sweep whose sessions have the trials that a test says."""

    def __init__(self, home: Path) -> None:
        self.now = 1000.0
        self.store = AgentStore.open(home, clock=lambda: self.now)
        self.nights = NightStore(self.store)

    def begin(self, *tasks: Task) -> NightView:
        sweep = Sweep(sweep="d", task="t.yaml", method=RandomMethod(kind="random", trials=3))
        cells = [Cell(name=f"c{place}", task=task) for place, task in enumerate(tasks)]
        night = self.nights.begin(sweep, file="f", cells=cells, finish_by=None).night
        assert night is not None
        fence = self.nights.claim(night.night_id)
        for place in range(len(tasks)):
            self.nights.start_cell(night.night_id, place, fence)
        return self.nights.night(night.night_id)

    def measure(self, session_id: str, values: list[float], *, cut: bool = False) -> None:
        """The default on one seed after the other, two device-seconds each."""
        book = TrialBook(FencedWriter(self.store, session_id, self.store.claim(session_id, 1)))
        params = default_params(a_task())
        made = book.propose(
            [
                Proposal(
                    params=params,
                    configuration=configuration_id(params),
                    seed=seed,
                    purpose=Purpose.SEARCH if seed == 0 else Purpose.REPLICATE,
                    suggested_by="points",
                    why="",
                )
                for seed in range(len(values))
            ]
        )
        left = TrialFacts(continues=("j1",))
        book.record(
            [
                replace(trial, device_seconds=2.0, facts=left)
                if cut
                else replace(
                    trial,
                    state=TrialState.MEASURED,
                    value=value,
                    device_seconds=2.0,
                    launched_at=self.now,
                    ended_at=self.now + 1,
                    facts=TrialFacts(run_seconds=10.0),
                )
                for trial, value in zip(made, values, strict=True)
            ]
        )

    def end(self, night: NightView) -> NightView:
        earlier = [one for one in self.nights.nights("d") if one.number < night.number]
        summary = summarize(self.store, None, night, earlier)
        fence = self.nights.claim(night.night_id)
        self.now += 100.0
        return self.nights.conclude(night.night_id, fence, outcome=NightOutcome.DONE, message="", summary=summary)


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path)


def priced(usd: float) -> Task:
    task = a_task()
    return task.model_copy(update={"budgets": task.budgets.model_copy(update={"usd_per_device_hour": usd})})


VALUES = [0.80 + 0.01 * (place % 5) for place in range(16)]


def test_without_the_runtime_device_time_is_what_the_sessions_booked(nights: Nights) -> None:
    night = nights.begin(priced(36.0))
    nights.measure("s1", VALUES)
    summary = nights.end(night).summary
    assert summary is not None
    assert (summary.device_seconds, summary.cost_usd) == (32.0, pytest.approx(0.32))
    (cell,) = summary.cells
    assert (cell.n_measured, cell.seconds, cell.default_value) == (16, 10.0, pytest.approx(sum(VALUES) / 16))


def test_trials_cut_for_the_first_time_are_left_and_not_resumed(nights: Nights) -> None:
    night = nights.begin(a_task())
    nights.measure("s1", [0.0, 0.0, 0.0], cut=True)
    summary = nights.end(night).summary
    assert summary is not None
    assert (summary.n_resumed, summary.n_left) == (0, 3)


def test_a_loss_is_seen_against_the_first_night_and_the_accepted_one_goes_before_it(nights: Nights) -> None:
    first = nights.begin(a_task())
    nights.measure("s1", VALUES)
    nights.end(first)
    second = nights.begin(a_task())
    nights.measure("s2", [value - 1.0 for value in VALUES])
    found = nights.end(second).summary
    assert found is not None
    metric = next(one for one in found.watched if one.what == "metric")
    assert (metric.reference, metric.change) == (first.night_id, Change.WORSE)
    nights.nights.accept(second.night_id)
    third = nights.begin(a_task())
    nights.measure("s3", [value - 1.0 for value in VALUES])
    again = nights.end(third).summary
    assert again is not None
    metric = next(one for one in again.watched if one.what == "metric")
    assert (metric.reference, metric.change) == (second.night_id, Change.UNCHANGED)


def test_a_cell_that_was_added_later_has_a_reference_of_its_own(nights: Nights) -> None:
    first = nights.begin(a_task())
    nights.measure("s1", VALUES)
    nights.end(first)
    second = nights.begin(a_task(), a_task())
    nights.measure("s2", VALUES)
    nights.measure("s3", VALUES)
    found = nights.end(second).summary
    assert found is not None
    added = next(one for one in found.watched if one.cell == "c1" and one.what == "metric")
    assert (added.reference, added.reason) == (None, "no earlier night has values of this cell to compare with")
    third = nights.begin(a_task(), a_task())
    nights.measure("s4", VALUES)
    nights.measure("s5", VALUES)
    later = nights.end(third).summary
    assert later is not None
    assert {one.cell: one.reference for one in later.watched} == {"c0": first.night_id, "c1": second.night_id}
