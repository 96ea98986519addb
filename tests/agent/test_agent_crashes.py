"""The session process dies at every step, every request and every commit: no trial lost, none launched twice."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from agent_worlds import World, a_task, a_world

import agent.graph
from agent.store.views import Purpose, SessionState, TrialState
from runtime_client.fake import FakeRuntime
from runtime_client.protocol import Runtime

CALLS = ("info", "submit_many", "job", "jobs", "metrics", "create_run", "update_run", "log_artifact")


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it, nothing runs after it."""


class Countdown:
    """Dies at the n-th event that it counts."""

    def __init__(self, n: int) -> None:
        self.left = n

    def count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed


class DyingClient:
    """A client whose process dies around a request: before it was sent, or after it was answered."""

    def __init__(self, runtime: FakeRuntime, countdown: Countdown, *, is_after: bool) -> None:
        self._runtime = runtime
        self._countdown = countdown
        self._is_after = is_after

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._runtime, name)
        if name not in CALLS:
            return method

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not self._is_after:
                self._countdown.count()
            answer = method(*args, **kwargs)
            if self._is_after:
                self._countdown.count()
            return answer

        return call


def dies(world: World, **changes: Any) -> bool:
    """One life; True when it was killed. The lock stays with the dead process, as after a real kill."""
    try:
        world.live(**changes)
    except Killed:
        return True
    return False


def finishes_as_if_undisturbed(world: World) -> None:
    """The rest of the session, and what must hold after any crash."""
    if world.store.session("s1").state is not SessionState.FINISHED:
        assert world.live() is SessionState.FINISHED
    trials = world.store.trials("s1")
    jobs = world.runtime.jobs(limit=1000)
    carried = [job.spec.tags["nightlab.trial"] for job in jobs]
    assert len(carried) == len(set(carried)), "a trial was launched twice"
    assert set(carried) == {trial.trial_id for trial in trials}, "a job without a trial or a trial without a job"
    assert all(trial.state is TrialState.MEASURED for trial in trials)
    count = Counter(trial.purpose for trial in trials)
    assert count == {Purpose.SEARCH: 4, Purpose.REPLICATE: 4, Purpose.HELD_OUT: 1}
    searched = [trial.configuration for trial in trials if trial.purpose is Purpose.SEARCH]
    assert len(set(searched)) == 4
    assert len(world.store.looks("s1")) == 1
    session = world.store.session("s1")
    assert session.device_seconds == pytest.approx(sum(trial.device_seconds for trial in trials))
    assert session.n_trials == 4


def small(home: Path) -> World:
    return a_world(home, task=a_task(budgets={"trials": 4}, seeds={"fresh": 2, "max_pairs": 2}))


def at_points(home: Path, kill: Callable[[World, int], bool], points: range) -> int:
    """Worlds killed at the given points, until one lives through; returns the last point at which one was killed."""
    last = 0
    for n in points:
        world = small(home / str(n))
        is_killed = kill(world, n)
        if is_killed:
            finishes_as_if_undisturbed(world)
        world.store.close()
        if not is_killed:
            return last
        last = n
    return last


EVERY = pytest.param(range(1, 1000), id="every", marks=pytest.mark.kills)
SOME = pytest.param(range(3, 1000, 23), id="some")
POINTS = pytest.mark.parametrize("points", [SOME, EVERY])
SIDES = pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])


@POINTS
@SIDES
def test_killed_around_a_request(points: range, is_after: bool, tmp_path: Path) -> None:
    def kill(world: World, n: int) -> bool:
        client: Runtime = DyingClient(world.runtime, Countdown(n), is_after=is_after)  # type: ignore[assignment]
        return dies(world, client=client)

    assert at_points(tmp_path, kill, points) > 20


@contextmanager
def listening(engine: sa.Engine, moment: str, countdown: Countdown) -> Iterator[None]:
    def act(_connection: sa.Connection) -> None:
        countdown.count()

    sa.event.listen(engine, moment, act)
    try:
        yield
    finally:
        sa.event.remove(engine, moment, act)


@POINTS
def test_killed_before_a_commit(points: range, tmp_path: Path) -> None:
    def kill(world: World, n: int) -> bool:
        with listening(world.store.engine, "commit", Countdown(n)):
            return dies(world)

    assert at_points(tmp_path, kill, points) > 20


@POINTS
@SIDES
def test_killed_at_a_step_boundary(
    points: range, is_after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(world: World, n: int) -> bool:
        countdown = Countdown(n)
        run = agent.graph._run

        def dying(*args: Any, **kwargs: Any) -> Any:
            if not is_after:
                countdown.count()
            update = run(*args, **kwargs)
            if is_after:
                countdown.count()
            return update

        with monkeypatch.context() as patch:
            patch.setattr(agent.graph, "_run", dying)
            return dies(world)

    assert at_points(tmp_path, kill, points) > 20


def test_killed_again_and_again(tmp_path: Path) -> None:
    world = small(tmp_path)
    for n in (3, 9, 5, 14, 7, 21, 2, 11):
        client: Runtime = DyingClient(world.runtime, Countdown(n), is_after=n % 2 == 0)  # type: ignore[assignment]
        if not dies(world, client=client):
            break
    if world.store.session("s1").state is SessionState.RUNNING:
        finishes_as_if_undisturbed(world)


def test_a_killed_session_proposes_what_it_would_have_proposed(tmp_path: Path) -> None:
    undisturbed, killed = small(tmp_path / "a"), small(tmp_path / "b")
    undisturbed.live()
    client: Runtime = DyingClient(killed.runtime, Countdown(12), is_after=True)  # type: ignore[assignment]
    assert dies(killed, client=client)
    killed.live()
    first, second = (
        [t.configuration for t in w.store.trials("s1") if t.purpose is Purpose.SEARCH] for w in (undisturbed, killed)
    )
    assert first == second


def test_a_process_with_an_older_fence_is_refused_by_the_server_and_leaves(tmp_path: Path) -> None:
    world = small(tmp_path)

    class Overtaken(FakeRuntime):
        """While this process works, another one claims the session and submits."""

        is_done = False

        def submit_many(self, specs: Any) -> Any:
            if not self.is_done:
                self.is_done = True
                self._fences["s1"] = 99
            return super().submit_many(specs)

    runtime = Overtaken(world.runtime._script, is_automatic=True)
    assert world.live(client=runtime) is SessionState.RUNNING
    assert runtime.jobs() == []
    assert world.store.trials("s1")[0].is_submitting


def test_a_process_that_was_overtaken_writes_nothing_more(tmp_path: Path) -> None:
    world = small(tmp_path)

    class Overtaken(FakeRuntime):
        def submit_many(self, specs: Any) -> Any:
            with world.store.engine.begin() as connection:
                connection.execute(sa.text("UPDATE sessions SET fence = fence + 1"))
            return super().submit_many(specs)

    assert world.live(client=Overtaken(world.runtime._script, is_automatic=True)) is SessionState.RUNNING
    assert all(trial.state is TrialState.PROPOSED for trial in world.store.trials("s1"))


def test_a_checkpoint_of_another_graph_version_is_not_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = small(tmp_path)
    client: Runtime = DyingClient(world.runtime, Countdown(20), is_after=True)  # type: ignore[assignment]
    assert dies(world, client=client)
    monkeypatch.setattr("agent.session.GRAPH_VERSION", 2)
    finishes_as_if_undisturbed(world)
