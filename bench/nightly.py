"""Days and nights that figures and tests live through: a sweep file, people, and a machine that does not always run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

from agent.sweeps.calendar import finish_instant
from agent.task_file import load_task
from nightlab.lab.nights import Days, Nightly, Span
from nightlab.lab.people import Habits, PersonsJob, jobs_of_days
from nightlab.lab.synthetic import SyntheticWorld
from nightlab.lab.world import Course
from runtime.simulator.cluster import parse_nodes
from runtime_client.models import JobSpec

ZONE = ZoneInfo("Europe/Berlin")
CRON = "30 22 * * *"
MORNING = "07:00"
N_DEVICES = 8
Overlap = Literal["skip", "queue", "replace"]

TASK = """\
task: nightly
objective: {metric: score, direction: maximize}
job: {command: train, args_style: argparse}
space:
  lr: {type: float, low: 1.0e-5, high: 1.0e-1, log: true, default: 1.0e-3}
  width: {type: int, low: 16, high: 512, default: 64}
budgets: {trials: 10}
"""
SWEEP = """\
sweep: nightly
task: task.yaml
method: {{kind: random, trials: {n_configurations}}}
matrix:
  data: [{{name: spring, env_variables: {{DATA: spring}}}}, {{name: autumn, env_variables: {{DATA: autumn}}}}]
replicates: 2
confirm: false
finish_by: {finish_by}
time_zone: Europe/Berlin
overlap: {overlap}
resume: true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What befalls the machine, or the sweep, in the night after a day: local times, the next day's before noon."""

    night: int
    """0: the night after the first day."""
    begin: str
    end: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """Consecutive days with their nights."""

    first: date
    n_days: int
    overlap: Overlap = "skip"
    n_configurations: int = 8
    """In each of the two cells of a night, each on two seeds."""
    stretch: float = 36.0
    """Of the times of the synthetic world: a trial takes that many minutes to five times as many."""
    finish_by: str = MORNING
    sleeps: Sequence[Trouble] = ()
    kills: Sequence[Trouble] = ()
    by_hand: Sequence[Trouble] = ()
    """Starts at `begin`, beside those of cron."""
    habits: Habits = field(default_factory=lambda: Habits(day_hours=(7.0, 19.0), most_devices=4))

    def days(self) -> Days:
        noon = datetime(self.first.year, self.first.month, self.first.day, 12, tzinfo=ZONE)
        end = (noon.replace(tzinfo=None) + timedelta(days=self.n_days)).replace(tzinfo=ZONE)
        dates = [self.first + timedelta(days=k) for k in range(self.n_days + 1)]
        begin_s, end_s = noon.timestamp(), end.timestamp()
        people = [job for job in jobs_of_days(dates, ZONE, self.habits) if begin_s <= job.at < end_s]
        return Days(
            span=Span(begin=begin_s, end=end_s),
            nodes=parse_nodes(f"1x{N_DEVICES}"),
            people=sorted([*people, *self._at_the_hour(dates[1:])], key=lambda job: (job.at, job.name)),
            sleeps=self._spans(self.sleeps),
            kills=self._spans(self.kills),
        )

    def hours(self) -> list[float]:
        """Each morning's instant at which people want all devices."""
        return [finish_instant(MORNING, ZONE, self._instant(night, "22:00")) for night in range(self.n_days)]

    def nightly(self, folder: Path) -> Nightly:
        """The sweep, its files written into the folder."""
        (folder / "task.yaml").write_text(TASK)
        file = folder / "sweep.yaml"
        file.write_text(
            SWEEP.format(
                n_configurations=self.n_configurations, finish_by=json.dumps(self.finish_by), overlap=self.overlap
            )
        )
        world = SyntheticWorld("sphere", load_task(folder / "task.yaml"))

        def course(spec: JobSpec) -> Course:
            assert spec.session is not None, "a trial's"
            found = world.course(spec, int(spec.session.session_id.removeprefix("s")))
            return replace(found, run_s=found.run_s * self.stretch)

        by_hand = [self._instant(one.night, one.begin) for one in self.by_hand if one.night < self.n_days]
        return Nightly(file=file, cron=CRON, zone=ZONE, course=course, by_hand=by_hand)

    def _at_the_hour(self, dates: Sequence[date]) -> list[PersonsJob]:
        """Somebody who wants every device at seven sharp."""
        return [
            PersonsJob(
                name=f"{day.isoformat()}-at-the-hour",
                at=datetime.fromisoformat(f"{day.isoformat()} {MORNING}").replace(tzinfo=ZONE).timestamp(),
                run_s=300.0,
                n_devices=N_DEVICES,
                priority_class="critical",
                is_by_day=True,
            )
            for day in dates
        ]

    def _spans(self, troubles: Sequence[Trouble]) -> list[Span]:
        return [
            Span(begin=self._instant(one.night, one.begin), end=self._instant(one.night, one.end))
            for one in troubles
            if one.night < self.n_days
        ]

    def _instant(self, night: int, clock: str) -> float:
        day = self.first + timedelta(days=night + (clock < "12:00"))
        return datetime.fromisoformat(f"{day.isoformat()} {clock}").replace(tzinfo=ZONE).astimezone(UTC).timestamp()
