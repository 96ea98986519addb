"""What a start becomes while the night before still runs, and when its hour has come before it could begin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from agent_worlds import a_task

from agent.store.nights import NightStore
from agent.store.store import AgentStore
from agent.sweeps.beginning import LONGEST_WAIT_S, begin_night
from agent.sweeps.cells import Cell
from agent.sweeps.prepare import PreparedNight
from agent.sweeps.sweep import RandomMethod, Sweep
from agent.sweeps.views import NightOutcome, NightState, NightView

Overlap = Literal["skip", "queue", "replace"]
HOUR = 1_030_000.0


@dataclass(slots=True)
class Starts:
    """A store of nights whose clock moves while a start waits."""

    home: Path
    now: float = 1_000_000.0
    passes_s: float = 1.0
    """How far the clock moves in one wait: a machine that sleeps moves it by hours."""
    meanwhile: Callable[[], None] = lambda: None
    said: list[str] = field(default_factory=list)
    nights: NightStore = field(init=False)

    def __post_init__(self) -> None:
        self.nights = NightStore(AgentStore.open(self.home, clock=lambda: self.now))

    def start(self, overlap: Overlap, *, finish_by: float | None = HOUR, outside: str | None = None) -> NightView:
        sweep = Sweep(sweep="digits", task="t.yaml", method=RandomMethod(kind="random", trials=3), overlap=overlap)
        cells = (Cell(name="a", task=a_task()),)
        prepared = PreparedNight(sweep=sweep, file=Path("/d/s.yaml"), cells=cells, finish_by=finish_by, outside=outside)
        return begin_night(self.nights, prepared, pause=self._pause, say=self.said.append)

    def end_first(self) -> None:
        fence = self.nights.claim("digits-n1")
        self.nights.conclude("digits-n1", fence, outcome=NightOutcome.DONE, message="", summary=None)

    def _pause(self, _seconds: float) -> None:
        self.now += self.passes_s
        self.meanwhile()


def kind(night: NightView) -> tuple[str, str | None, str]:
    return night.state.value, night.outcome, night.message


def test_a_start_beside_a_running_night_is_skipped_and_one_row_tells_of_it(tmp_path: Path) -> None:
    made = Starts(tmp_path)
    first, second = made.start("skip"), made.start("skip")
    assert (first.state, made.said) == (NightState.RUNNING, [])
    assert kind(second) == ("ended", NightOutcome.SKIPPED, "digits-n1 still runs")
    assert [one.night_id for one in made.nights.nights("digits")] == ["digits-n1", "digits-n2"]


@pytest.mark.parametrize("overlap", ["queue", "replace"])
def test_a_start_that_waits_begins_when_the_night_before_has_ended(overlap: Overlap, tmp_path: Path) -> None:
    made = Starts(tmp_path)
    made.start("skip")
    made.meanwhile = made.end_first
    second = made.start(overlap)
    assert (second.night_id, second.state, second.finish_by) == ("digits-n2", NightState.RUNNING, HOUR)
    assert made.said == [f"waiting for digits-n1, which still runs (overlap: {overlap})"]
    asked = made.nights.stop_outcome("digits-n1")
    assert asked == (NightOutcome.REPLACED if overlap == "replace" else None)


@pytest.mark.parametrize(
    ("finish_by", "waits_s"), [(HOUR, 30_000.0), (None, LONGEST_WAIT_S)], ids=["its hour", "a day"]
)
def test_a_start_that_waited_in_vain_is_skipped(finish_by: float | None, waits_s: float, tmp_path: Path) -> None:
    made = Starts(tmp_path, passes_s=600.0)
    made.start("skip", finish_by=finish_by)
    second = made.start("queue", finish_by=finish_by)
    assert kind(second) == ("ended", NightOutcome.SKIPPED, "digits-n1 still ran when its hour came")
    assert made.now == 1_000_000.0 + waits_s


def test_a_machine_that_slept_through_the_wait_and_the_hour_begins_nothing(tmp_path: Path) -> None:
    made = Starts(tmp_path, passes_s=50_000.0)
    made.start("skip")
    made.meanwhile = made.end_first
    second = made.start("queue")
    assert kind(second) == ("ended", NightOutcome.SKIPPED, "digits-n1 still ran when its hour came")
    assert second.cells == ()


def test_a_machine_that_slept_between_the_reading_of_the_file_and_the_start_begins_nothing(tmp_path: Path) -> None:
    made = Starts(tmp_path, now=HOUR + 5.0)
    assert kind(made.start("skip")) == ("ended", NightOutcome.SKIPPED, "its hour came before it could begin")


def test_a_start_outside_of_the_window_is_skipped_also_where_it_would_wait(tmp_path: Path) -> None:
    made = Starts(tmp_path)
    made.start("skip")
    assert kind(made.start("queue", outside="it is 12:00")) == ("ended", NightOutcome.SKIPPED, "it is 12:00")
    assert made.now == 1_000_000.0
