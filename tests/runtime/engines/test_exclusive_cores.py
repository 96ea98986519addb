"""An exclusive attempt has the cores of its devices for itself; with real processes."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest
from local_engine_lab import eventually, job, local_lab, pids_in

from runtime.engines.conformance import stop
from runtime.engines.contract import AttemptKey, Exited, LaunchOrder
from runtime.engines.core_shares import core_shares
from runtime.model.nouns import Placement
from runtime.node.devices import usable_cores

needs_two_cores = pytest.mark.skipif(usable_cores() < 2, reason="one core: nobody can keep off it")
SHELL_AND_CHILD = "sh -c 'sleep 60' & echo $$ >> {out}; echo $! >> {out}; wait"


def on_slot(slot: int, out: Path, *, is_exclusive: bool = False, kept: tuple[int, ...] = ()) -> LaunchOrder:
    order = job(SHELL_AND_CHILD.replace("{out}", str(out)), job_id=f"j{slot + 1}", compute={"exclusive": is_exclusive})
    place = Placement(node_id="local", devices=(slot,), first_rank=0, kept=kept)
    return replace(order, placements=(place,))


def cores_of(pids: set[int]) -> set[frozenset[int]]:
    return {frozenset(os.sched_getaffinity(pid)) for pid in pids}


@needs_two_cores
def test_others_leave_the_cores_of_an_exclusive_attempt_and_come_back_after_it(tmp_path: Path) -> None:
    async def run() -> None:
        every = frozenset(os.sched_getaffinity(0))
        async with local_lab(tmp_path / "home", devices="cpu:2") as lab:
            other, exclusive = on_slot(0, tmp_path / "a"), on_slot(1, tmp_path / "b", is_exclusive=True)
            await lab.engine.start(other, 1)
            others = await pids_in(tmp_path / "a", 2)
            assert cores_of(others) == {every}
            await lab.engine.start(exclusive, 1)
            (own,) = cores_of(await pids_in(tmp_path / "b", 2))
            assert own < every
            assert cores_of(others) == {every - own}
            await lab.engine.stop(stop(exclusive, grace_s=0), 1)
            await lab.next(Exited, exclusive.key)
            await eventually(lambda: cores_of(others) == {every}, "the cores are everybody's again")

    asyncio.run(run())


@needs_two_cores
def test_who_was_not_heard_of_yet_leaves_the_cores_of_an_exclusive_attempt_too(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path / "home", devices="cpu:2", sweep_s=3600) as lab:
            Path(lab.engine._facts.poke).unlink()  # Nothing that a supervisor says arrives.
            await lab.engine.start(on_slot(0, tmp_path / "a"), 1)
            others = await pids_in(tmp_path / "a", 2)
            await lab.engine.start(on_slot(1, tmp_path / "b", is_exclusive=True), 1)
            (own,) = cores_of(await pids_in(tmp_path / "b", 2))
            assert all(not own & cores for cores in cores_of(others))

    asyncio.run(run())


@needs_two_cores
def test_who_starts_beside_an_exclusive_attempt_keeps_off_its_cores(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path / "home", devices="cpu:2") as lab:
            await lab.engine.start(on_slot(1, tmp_path / "b", is_exclusive=True), 1)
            (own,) = cores_of(await pids_in(tmp_path / "b", 2))
            await lab.engine.start(on_slot(0, tmp_path / "a"), 1)
            assert all(not own & cores for cores in cores_of(await pids_in(tmp_path / "a", 2)))

    asyncio.run(run())


def test_an_exclusive_attempt_has_the_cores_of_devices_that_it_keeps_idle_too() -> None:
    shares = core_shares(range(4), [8, 9], 2)
    order = on_slot(0, Path("out"), kept=(1,))
    shares.add(order, "local", is_exclusive=True)
    assert shares.of(order.key) == {8}
    assert shares.of(AttemptKey(job_id="j9", attempt=1)) == {9}
    shares.drop(order.key)
    assert shares.of(order.key) == {8, 9}


@pytest.mark.parametrize(
    ("n_devices", "n_cores", "expected"),
    [
        (2, 4, [{0, 1}, {2, 3}]),
        (3, 8, [{0, 1}, {2, 3, 4}, {5, 6, 7}]),
        (4, 2, [{0}, {0}, {1}, {1}]),
    ],
)
def test_every_core_belongs_to_a_device_and_is_shared_only_where_there_are_too_few(
    n_devices: int, n_cores: int, expected: list[set[int]]
) -> None:
    shares = core_shares(range(n_devices), range(n_cores), n_cores)
    assert [set(shares.owned[device]) for device in range(n_devices)] == expected
