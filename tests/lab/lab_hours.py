"""Sessions that have to be over by an hour, night after night, in virtual time; their process may die at any write."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab_kills import KillWorld, Points
from lab_worlds import a_course, a_task

from agent.store.views import SessionState, TrialView
from nightlab.lab.cluster import LabCluster
from nightlab.lab.runtime import SimulatedRuntime
from nightlab.lab.world import Course
from runtime.simulator.cluster import parse_nodes
from runtime.simulator.workload import Costs
from runtime_client.models import JobSpec, JobView

RUN_S = 100.0
"""What a trial takes undisturbed."""
SCORE_S = 15.0
DAY_S = 10_000.0


def course(spec: JobSpec) -> Course:
    """A curve of ten steps to a value that parameters and seed fix."""
    final = float(spec.parameters["x"]) + (spec.seed or 0) / 1e4
    if spec.tags.get("nightlab.score_of"):
        return a_course(SCORE_S, curves={"score": (final,)})
    return a_course(RUN_S, curves={"score": tuple(final * step / 10 for step in range(1, 11))})


@dataclass(slots=True)
class Nights:
    """One session over nights of `night_s`, at the start of each day."""

    world: KillWorld
    night_s: float

    @property
    def now(self) -> float:
        return self.world.runtime.cluster.now

    def finish_by(self) -> float:
        found = self.world.left()[0].finish_by
        assert found is not None
        return found

    def live(self, points: Points | None = None) -> SessionState | None:
        return self.world.life(points or Points())

    def next_night(self) -> None:
        """The next day has begun, and the session goes on."""
        begins = 1_000_000.0 + DAY_S * math.ceil((self.now - 1_000_000.0 + 1.0) / DAY_S)
        self.world.runtime.cluster.advance_to(begins)
        store = self.world._store()
        store.request_resume("s1", finish_by=begins + self.night_s, night_id="toy-n2")
        store.close()

    def jobs(self) -> list[JobView]:
        """Oldest first."""
        return self.world.runtime.jobs(session_id="s1", limit=100_000)[::-1]

    def trials(self) -> list[TrialView]:
        return self.world.left()[1]

    def nights(self, points: Callable[[], Points] = Points, *, at_most: int = 60) -> int:
        """Live to the end of the session; how many nights it took. Whatever was killed is started again."""
        for night in range(1, at_most):
            while (state := self.live(points())) is None:
                pass
            if state is SessionState.FINISHED:
                return night
            assert state is SessionState.STOPPED, state
            self.is_over()
            self.next_night()
        raise AssertionError(f"not finished after {at_most} nights: {self.world.left()[0].message}")

    def is_over(self) -> None:
        """By the hour nothing runs and nothing waits."""
        hour = self.finish_by()
        late = [job.job_id for job in self.jobs() if job.ended_at is None or job.ended_at > hour]
        assert late == [], late


def nights(home: Path, *, night_s: float, saves: bool = True, n_devices: int = 2, **changes: Any) -> Nights:
    """A session that lists six configurations, the default among them, each on two seeds, and confirms nothing."""
    task = a_task(
        **{
            "search": {
                "use": ["points"],
                "points": [{"x": round(0.1 * i, 1)} for i in range(1, 7)],
                "replicates": 2,
                "confirm": False,
            },
            "idle": {"replicate": False, "explore": False},
            **changes,
        }
    )
    costs = Costs(notice_checkpoint_s=5.0 if saves else None, checkpoint_every_s=20.0 if saves else None, restart_s=2.0)
    runtime = SimulatedRuntime(LabCluster(parse_nodes(f"1x{n_devices}"), course, costs=costs), is_automatic=True)
    world = KillWorld(home=home, runtime=runtime)
    store = world._store()
    store.create_session(task, finish_by=runtime.cluster.now + night_s, night_id="toy-n1")
    store.close()
    return Nights(world=world, night_s=night_s)
