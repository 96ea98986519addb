"""A sealed job works as any other: output, exit codes, notices, the metrics gateway, bounds; real processes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime" / "engines"))
from local_engine_lab import eventually, job, local_lab

from runtime.engines.box_plan import FIRST_UID, uid_of
from runtime.engines.conformance import stop
from runtime.engines.contract import Exited, NotLaunched, Started
from runtime.engines.sealing import why_no_way, why_none
from runtime_client.models import LaunchMode, Limits, Sandbox

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="sealed jobs need root")


async def run_sealed(home: Path, command: str | tuple[str, ...], **fields: Any) -> tuple[Started, Exited]:
    async with local_lab(home) as lab:
        launch = job(command, sandbox=Sandbox.SEALED, **fields)
        await lab.engine.start(launch, 1)
        return await lab.next(Started, launch.key), await lab.next(Exited, launch.key)


@needs_root
def test_output_and_exit_code_of_a_sealed_job_are_its_commands(tmp_path: Path) -> None:
    started, ended = asyncio.run(run_sealed(tmp_path, "id -u; pwd; echo x > made; cat made >> /dev/stdout; exit 7"))
    assert ended.log_tail.split() == [str(FIRST_UID + 1), str(tmp_path / "attempts/j1/work"), "x"]
    assert (ended.exit_code, ended.was_killed) == (7, False)
    assert started.sandbox is not None
    assert started.sandbox.uid == FIRST_UID + 1
    assert not list((tmp_path / "attempts/j1/1/box").iterdir())


@needs_root
@pytest.mark.parametrize(("mode", "told"), [(0o700, "chmod -R o\\+rX"), (None, "No such file")])
def test_what_a_sealed_job_could_not_read_is_refused_before_it_starts(
    tmp_path: Path, mode: int | None, told: str
) -> None:
    data = tmp_path / "data"
    if mode is not None:
        data.mkdir(mode=mode)

    async def run() -> str:
        async with local_lab(tmp_path / "home") as lab:
            launch = job("true", sandbox=Sandbox.SEALED, readable=(str(data),))
            await lab.engine.start(launch, 1)
            return (await lab.next(NotLaunched, launch.key)).evidence

    assert re.search(told, asyncio.run(run()))


@needs_root
def test_a_signal_that_ends_a_sealed_command_is_told(tmp_path: Path) -> None:
    _, ended = asyncio.run(run_sealed(tmp_path, ("/bin/sh", "-c", "kill -SEGV $$")))
    assert ended.exit_code == -signal.SIGSEGV


@needs_root
def test_a_sealed_job_that_is_asked_to_leave_saves_first(tmp_path: Path) -> None:
    """The shell dies of the signal at once; what it waited for goes on, and its exit code counts."""
    code = (
        "import os,signal,sys,time; signal.signal(signal.SIGTERM, lambda *_: (print('notice', "
        "float(open(os.environ['NIGHTLAB_PREEMPT_FILE']).read()) > 1e9, flush=True), "
        "open(os.environ['NIGHTLAB_CHECKPOINT_DIR']+'/saved','w').close(), sys.exit(75))); "
        "print('ready', flush=True); signal.pause()"
    )

    async def run() -> Exited:
        async with local_lab(tmp_path) as lab:
            launch = job(f'{sys.executable} -c "{code}"; true', sandbox=Sandbox.SEALED)
            await lab.engine.start(launch, 1)
            log = tmp_path / "attempts/j1/1/out.log"
            await eventually(lambda: log.exists() and "ready" in log.read_text(), "the job runs")
            await lab.engine.stop(stop(launch, grace_s=20.0), 1)
            return await lab.next(Exited, launch.key)

    ended = asyncio.run(run())
    assert "notice True" in ended.log_tail
    assert (ended.exit_code, ended.was_killed) == (75, False)
    assert (tmp_path / "attempts/j1/checkpoints/saved").exists()


@pytest.mark.kills
@needs_root
def test_a_sealed_job_past_its_disk_bound_is_ended(tmp_path: Path) -> None:
    fill = "for i in 1 2 3; do head -c 900000 /dev/urandom > f$i; done; sleep 30"
    _, ended = asyncio.run(run_sealed(tmp_path, fill, limits=Limits(disk_bytes=2**20)))
    assert ended.was_killed
    assert "limits.disk_bytes" in ended.log_tail


@pytest.mark.kills
@needs_root
def test_a_memory_bomb_and_a_fork_bomb_stay_in_the_box(tmp_path: Path) -> None:
    limits = Limits(memory_bytes=2**27, processes=40)
    _, ended = asyncio.run(
        run_sealed(tmp_path / "m", (sys.executable, "-c", "b = bytearray(2**29); print('held')"), limits=limits)
    )
    assert "held" not in ended.log_tail
    assert ended.exit_code != 0
    forks = "[os.fork() or (time.sleep(9), os._exit(0)) for _ in range(400)]"
    bomb = f"import os,time\ntry: {forks}\nexcept OSError: print('no more')"
    _, ended = asyncio.run(run_sealed(tmp_path / "f", (sys.executable, "-c", bomb), limits=limits))
    assert "no more" in ended.log_tail


@needs_root
def test_the_gateway_answers_at_its_own_address_inside(tmp_path: Path) -> None:
    """The tracking address of the tests is port 9 of loopback: nobody listens outside, so the connection is closed."""
    ask = "import socket; s = socket.create_connection(('127.0.0.1', 9), 5); print('joined', s.recv(1))"
    _, ended = asyncio.run(run_sealed(tmp_path, (sys.executable, "-c", ask)))
    assert ended.log_tail.split() == ["joined", "b''"]


@pytest.mark.kills
@needs_root
def test_a_warm_child_is_sealed_after_the_fork(tmp_path: Path) -> None:
    script = tmp_path / "code" / "train.py"
    script.parent.mkdir()
    script.write_text(
        "import json, os\nprint(os.getuid(), os.path.exists('/etc/shadow'), open('/proc/self/comm').read())\n"
    )
    started, ended = asyncio.run(
        run_sealed(
            tmp_path / "home",
            (sys.executable, str(script)),
            launch=LaunchMode.WARM,
            environment={"preload": ["json"]},
            readable=(str(script.parent),),
        )
    )
    assert started.launch == "warm", started.launch_why
    assert ended.log_tail.split()[:2] == [str(FIRST_UID + 1), "False"]


@pytest.mark.parametrize(
    ("machine", "release", "missing"),
    [
        ("x86_64", "6.1.0-18-amd64", None),
        ("aarch64", "5.12.1", None),
        ("s390x", "6.1.0", "s390x"),
        ("x86_64", "4.18.0-513.el8", "5.12"),
    ],
)
def test_a_machine_that_can_not_seal_says_what_is_missing(machine: str, release: str, missing: str | None) -> None:
    told = why_no_way(machine=machine, release=release)
    assert told is None if missing is None else missing in str(told)


@pytest.mark.parametrize(("way", "advice"), [("root", "SYS_ADMIN"), ("user namespace", "user.max_user_namespaces")])
def test_where_each_way_is_refused_it_is_told_what_was_and_what_to_do(way: str, advice: str) -> None:
    told = why_none({way: "no space", "landlock": "it is switched off"})
    assert all(word in told for word in (f"by {way}: no space", "by landlock: it is switched off", advice))


def test_jobs_of_a_server_have_users_of_their_own() -> None:
    assert len({uid_of(f"j{number}") for number in range(1, 1000)}) == 999


@needs_root
def test_a_later_attempt_of_a_sealed_job_goes_on_from_what_an_earlier_one_saved(tmp_path: Path) -> None:
    count = "echo x >> $NIGHTLAB_CHECKPOINT_DIR/n; echo y >> here; cat $NIGHTLAB_CHECKPOINT_DIR/n here | wc -l"

    async def run() -> list[str]:
        async with local_lab(tmp_path) as lab:
            told = []
            for attempt in (1, 2):
                launch = job(count, attempt=attempt, sandbox=Sandbox.SEALED)
                await lab.engine.start(launch, 1)
                told.append((await lab.next(Exited, launch.key)).log_tail.strip())
            return told

    assert asyncio.run(run()) == ["2", "4"]
