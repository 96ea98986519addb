"""Nights of a sweep over days: over by their hour, one at a time, no trial lost, nobody delayed by day."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from lab_worlds import a_course, a_runtime, a_spec, a_task

from agent.store.nights import NightStore
from agent.store.store import AgentStore
from agent.store.views import TrialState
from agent.sweeps.cells import Cell
from agent.sweeps.running import NightDeps, run_night
from agent.sweeps.sweep import RandomMethod, Sweep
from agent.sweeps.views import NightOutcome, NightSummary
from bench.figures.nights import AUTUMN, LEAP, N_NIGHTS, SPRING
from bench.nightly import Calendar, Overlap, Trouble
from nightlab.lab.nights import Days, LivedNights, live_nights, live_without_nights
from nightlab.lab.nights_account import Delay, NightsAccount, account, delay
from nightlab.lab.runtime import SimulatedRuntime
from runtime.simulator.workload import Costs
from runtime_client.models import JobSpec, SessionFence, SubmitResult

HOUR_S = 3600.0


def lived(calendar: Calendar, folder: Path, *, strips_hours: bool = False) -> tuple[LivedNights, Days]:
    days, home = calendar.days(), folder / "home"
    home.mkdir()
    nightly = calendar.nightly(folder)
    return live_nights(days, replace(nightly, change=_WithoutHours) if strips_hours else nightly, home), days


def judged(calendar: Calendar, made: LivedNights, days: Days) -> tuple[NightsAccount, Delay]:
    hours = calendar.hours()
    return account(made, days, hours=hours), delay(days, hours, made.waits, live_without_nights(days))


class _WithoutHours(SimulatedRuntime):
    """A runtime that no job tells its hour: what a night would be without it."""

    def __init__(self, runtime: SimulatedRuntime) -> None:
        super().__init__(runtime.cluster)
        self.runs = runtime.runs

    def submit_many(self, specs: list[JobSpec]) -> list[SubmitResult]:  # type: ignore[override]
        return super().submit_many([spec.model_copy(update={"finish_by": None}) for spec in specs])


def is_faultless(found: NightsAccount, late: Delay) -> None:
    assert (found.late, found.overlaps, found.lost, found.doubled) == ((), (), (), ())
    assert (late.worst_by_day_s, late.not_started) == (0.0, ())
    assert late.n_by_day > 10


def a_short(first: date, overlap: Overlap = "skip", **changes: object) -> Calendar:
    """Three nights of few long trials; the clock is changed in the second, if it is."""
    return replace(Calendar(first=first, n_days=3, overlap=overlap, n_configurations=4, stretch=60.0), **changes)  # type: ignore[arg-type]


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("first", "overlap", "length_s"),
    [
        (date(2026, 10, 23), "skip", 9.5 * HOUR_S),
        (date(2027, 3, 26), "replace", 7.5 * HOUR_S),
        (date(2028, 2, 27), "queue", 8.5 * HOUR_S),
    ],
    ids=["autumn", "spring", "leap day"],
)
def test_three_nights_amid_sleep_and_kills_are_over_by_seven(
    first: date, overlap: Overlap, length_s: float, tmp_path: Path
) -> None:
    calendar = a_short(
        first,
        overlap,
        kills=[Trouble(night=0, begin="02:00", end="02:10"), Trouble(night=1, begin="06:58", end="07:05")],
        sleeps=[Trouble(night=2, begin="05:00", end="09:00")],
        by_hand=[Trouble(night=1, begin="01:15", end="07:00")],
    )
    made, days = lived(calendar, tmp_path)
    is_faultless(*judged(calendar, made, days))
    begun = [night for night in made.nights if night.outcome is not NightOutcome.SKIPPED]
    outcomes = {"skip": (3, 1), "replace": (4, 0), "queue": (3, 0)}  # a start that waits is killed with the rest
    assert (len(begun), len(made.nights) - len(begun)) == outcomes[overlap]
    assert made.missed == ()
    second = begun[1]
    assert second.finish_by is not None
    assert second.finish_by - second.created_at == length_s
    assert all(night.ended_at is not None for night in begun)
    assert {trial.state for trial in made.trials if trial.facts.continues} >= {TrialState.MEASURED}


@pytest.mark.acceptance
def test_a_machine_that_sleeps_through_a_whole_night_misses_its_start_and_the_next_night_goes_on(
    tmp_path: Path,
) -> None:
    calendar = a_short(date(2026, 10, 23), sleeps=[Trouble(night=1, begin="21:00", end="11:00")])
    made, days = lived(calendar, tmp_path)
    found, late = judged(calendar, made, days)
    is_faultless(found, late)
    assert (found.n_nights, len(made.missed)) == (2, 1)
    left = {cell.session_id for cell in made.nights[1].cells if cell.is_resumed}
    assert left, "what the first night left goes on in the third"


@pytest.mark.acceptance
def test_nights_that_do_not_know_the_hour_of_people_are_seen_to_be_late_and_to_delay_them(tmp_path: Path) -> None:
    calendar = a_short(date(2026, 10, 23), n_days=2, finish_by="12:00", n_configurations=8)
    found, late = judged(calendar, *lived(calendar, tmp_path))
    assert (found.n_kept, len(found.late)) == (0, 2)
    assert late.worst_by_day_s > 0.0


@pytest.mark.acceptance
def test_jobs_without_their_hour_are_seen_to_be_late(tmp_path: Path) -> None:
    calendar = a_short(date(2026, 10, 23), n_days=1, n_configurations=8)
    found, late = judged(calendar, *lived(calendar, tmp_path, strips_hours=True))
    assert len(found.late) == 1
    assert late.worst_by_day_s > 0.0


@pytest.mark.acceptance
def test_each_fault_in_what_nights_left_is_seen(tmp_path: Path) -> None:
    calendar = a_short(date(2026, 10, 23), n_days=2)
    made, days = lived(calendar, tmp_path)
    is_faultless(*judged(calendar, made, days))
    first, second = made.nights
    trial = next(one for one in made.trials if one.state is TrialState.MEASURED)
    job = next(one for one in made.jobs if one.job_id == trial.job_id)
    early = replace(second, created_at=(first.ended_at or 0.0) - 1.0)
    unread = replace(trial, state=TrialState.PROPOSED, job_id=None)

    def seen(**changes: object) -> NightsAccount:
        return account(replace(made, **changes), days, hours=calendar.hours())  # type: ignore[arg-type]

    assert len(seen(nights=(first, early)).overlaps) == 1
    assert len(seen(nights=(replace(first, ended_at=(job.ended_at or 0.0) - 1.0), second)).overlaps) >= 1
    assert len(seen(jobs=(*made.jobs, job)).doubled) == 1
    assert len(seen(trials=(*made.trials, replace(trial, trial_id="s1-t99"))).doubled) == 2
    assert len(seen(trials=tuple(unread if one is trial else one for one in made.trials)).lost) == 1
    invalid = replace(trial, state=TrialState.INVALID)
    assert len(seen(trials=tuple(invalid if one is trial else one for one in made.trials)).lost) == 1


@pytest.mark.kills
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("calendar", [AUTUMN, SPRING, LEAP], ids=["autumn", "spring", "leap year"])
def test_thirty_nights_are_over_by_seven(calendar: Calendar, tmp_path: Path) -> None:
    made, days = lived(calendar, tmp_path)
    found, late = judged(calendar, made, days)
    is_faultless(found, late)
    assert found.n_kept >= N_NIGHTS
    assert len(made.missed) == 2


def test_a_night_that_sees_its_hour_late_lets_its_jobs_checkpoint(tmp_path: Path) -> None:
    runtime = a_runtime({"long": a_course(10_000.0)}, nodes="1x1", costs=Costs(notice_checkpoint_s=20.0))
    cluster = runtime.cluster
    hour = cluster.now + 1000.0
    nights = NightStore(AgentStore.open(tmp_path, clock=lambda: cluster.now))
    sweep = Sweep(sweep="digits", task="t.yaml", method=RandomMethod(kind="random", trials=3))
    begun = nights.begin(sweep, file="/d/s.yaml", cells=[Cell(name="a", task=a_task())], finish_by=hour).night
    assert begun is not None
    session = nights.start_cell(begun.night_id, 0, nights.claim(begun.night_id))
    job = runtime.submit(a_spec("long", session=SessionFence(session_id=session, fence=1), finish_by=hour))
    cluster.plan(hour - 100.0, lambda: cluster.suspend(hour + 7000.0))
    cluster.advance_to(hour - 50.0)
    deps = NightDeps(
        store=nights.store,
        connect=lambda: runtime,
        summarize=lambda _store, _runtime, _night, _earlier: NightSummary(),
        write_reports=lambda _night_id: None,
        write_plain_reports=lambda _night_id: None,
        tell=lambda _ended, _summary, _page: (),
        say=lambda _text: None,
        pause=lambda seconds: cluster.advance_to(cluster.now + seconds),
    )
    ended = run_night(begun.night_id, deps)
    left = runtime.job(job.job_id)
    assert (left.exit_reason, left.checkpoint_step, left.ended_at) == ("deadline", 2, hour + 7020.0)
    assert ended.outcome is NightOutcome.DEADLINE
    assert ended.ended_at == hour + 7060.0, "its session had a minute"
