"""The local engine with real processes: ends, stubborn trees, lost supervisors, lost launchers."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_engine_lab import alive, eventually, job, local_engine, local_lab, pids_in, run_to_end

from runtime.engines.conformance import Lab, opened, stop
from runtime.engines.contract import Exited, LaunchOrder, LogPiece, NotLaunched, Started
from runtime.engines.launcher_link import plain_launcher
from runtime.model.states import EXIT_REQUEUE, ExitReason, StopCause
from runtime.node import cgroups, processes, records
from runtime.node.launcher import PROCESS_NAME, VERSION

STUBBORN = """
import os, signal, sys, time
path, n = sys.argv[1], int(sys.argv[2])
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def note():
    with open(path, "a") as file: file.write(f"{os.getpid()}\\n")
for i in range(n):
    if os.fork() == 0:
        if i % 3 == 1: os.setsid()
        if i % 3 == 2:
            if os.fork(): os._exit(0)
            os.setsid()
        note()
        while True: time.sleep(60)
if len(sys.argv) > 3: sys.exit(int(sys.argv[3]))
note()
while True: time.sleep(60)
"""

CHECKPOINTS_ON_TERM = """
import os, signal, sys, time
def leave(*_):
    assert os.path.exists(os.environ["NIGHTLAB_PREEMPT_FILE"])
    time.sleep(0.3)  # a checkpoint that takes its time
    folder = os.path.join(os.environ["NIGHTLAB_CHECKPOINT_DIR"], "step-3")
    os.makedirs(folder)
    open(os.path.join(folder, "COMPLETE"), "w").close()
    sys.exit(int(sys.argv[1]))
signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
while True: time.sleep(60)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "stubborn.py"
    path.write_text(STUBBORN)
    return path


@pytest.fixture
def training(tmp_path: Path) -> Path:
    path = tmp_path / "training.py"
    path.write_text(CHECKPOINTS_ON_TERM)
    return path


def supervisor_of(home: Path, launch: LaunchOrder) -> int:
    record = records.read(str(home / "attempts" / launch.key.job_id / str(launch.key.attempt) / records.SUPERVISOR))
    assert record is not None
    return int(record["pid"])


def launcher_of(home: Path) -> int | None:
    for pid in processes.table():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            name = Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            continue
        if str(home / "run" / f"launcher{VERSION}.sock").encode() in words and name == PROCESS_NAME:
            return pid
    return None


def test_kills_fifty_stubborn_children_that_hide(tmp_path: Path, script: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job((sys.executable, "-S", str(script), str(tmp_path / "pids"), "50"))
            await lab.engine.start(launch, 1)
            pids = await pids_in(tmp_path / "pids", 51)
            assert alive(pids) == pids
            await lab.engine.stop(stop(launch, grace_s=0.1), 1)
            ended = await lab.next(Exited, launch.key)
            assert (ended.exit_code, ended.was_killed) == (-9, True)
            assert alive(pids) == set()

    asyncio.run(run())


def test_children_that_outlive_a_finished_command_are_killed(tmp_path: Path, script: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job((sys.executable, "-S", str(script), str(tmp_path / "pids"), "6", "0"))
            ended = await run_to_end(lab, launch)
            assert (ended.exit_code, ended.was_killed) == (0, True)
            assert alive(await pids_in(tmp_path / "pids", 6)) == set()

    asyncio.run(run())


def test_helpers_that_end_right_after_the_command_are_not_killed(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            ended = await run_to_end(lab, job("(sleep 0.03; echo late) & echo early"))
            assert (ended.exit_code, ended.was_killed, ended.log_tail) == (0, False, "early\nlate\n")

    asyncio.run(run())


@pytest.mark.parametrize("wrapper", ["{} {} {}", "cd / && {} {} {}", "sh -c 'true; {} {} {}; exit $?'; exit $?"])
def test_training_below_shells_keeps_its_grace_and_its_exit_code(tmp_path: Path, training: Path, wrapper: str) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job(wrapper.format(sys.executable, training, EXIT_REQUEUE))
            await lab.engine.start(launch, 1)
            await lab.until_log(launch.key, b"ready")
            await lab.engine.stop(stop(launch, grace_s=20), 1)
            ended = await lab.next(Exited, launch.key)
            assert (ended.exit_code, ended.was_killed, ended.checkpoint_step) == (EXIT_REQUEUE, False, 3)

    asyncio.run(run())


def test_exit_0_after_notice_is_reported_as_it_is(tmp_path: Path, training: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job((sys.executable, str(training), "0"))
            await lab.engine.start(launch, 1)
            await lab.until_log(launch.key, b"ready")
            await lab.engine.stop(stop(launch, grace_s=20), 1)
            assert (await lab.next(Exited, launch.key)).exit_code == 0

    asyncio.run(run())


def test_sleeper_is_cancelled_by_sigterm(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job(("sleep", "1000000"))
            await lab.engine.start(launch, 1)
            await lab.next(Started, launch.key)
            await lab.engine.stop(stop(launch, grace_s=20, cause=StopCause.CANCEL), 1)
            ended = await lab.next(Exited, launch.key)
            assert (ended.exit_code, ended.was_killed) == (-15, False)

    asyncio.run(run())


def test_stop_right_behind_start_still_ends_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job(("sleep", "1000000"))
            starting = asyncio.create_task(lab.engine.start(launch, 1))
            await asyncio.sleep(0)
            await lab.engine.stop(stop(launch, grace_s=0), 1)
            await starting
            assert (await lab.next(Exited, launch.key)).was_killed

    asyncio.run(run())


def test_leader_and_hidden_children_die_with_their_supervisor(tmp_path: Path, script: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job((sys.executable, "-S", str(script), str(tmp_path / "pids"), "6"))
            await lab.engine.start(launch, 1)
            pids = await pids_in(tmp_path / "pids", 7)
            os.kill(supervisor_of(tmp_path, launch), signal.SIGKILL)
            ended = await lab.next(Exited, launch.key)
            assert (ended.supervisor_lost, ended.exit_code, ended.was_killed) == (True, None, True)
            assert alive(pids) == set()

    asyncio.run(run())


def test_lost_supervisor_is_told_once_and_again_to_a_successor(tmp_path: Path) -> None:
    async def run() -> None:
        launch = job(("sleep", "1000000"))
        async with opened(local_engine(tmp_path)) as first:
            await first.engine.start(launch, 1)
            pid = (await first.next(Started, launch.key)).pid
        os.kill(supervisor_of(tmp_path, launch), signal.SIGKILL)
        for generation in (2, 3):
            async with opened(local_engine(tmp_path)) as later:
                await later.engine.adopt([launch], generation)
                ended = await later.next(Exited, launch.key)
                assert (ended.supervisor_lost, ended.generation) == (True, generation)
        assert alive([pid]) == set()

    asyncio.run(run())


def test_attempt_of_an_earlier_boot_is_over(tmp_path: Path) -> None:
    async def run() -> None:
        launch = job(("sleep", "1000000"))
        folder = tmp_path / "attempts" / "j1" / "1"
        folder.mkdir(parents=True)
        own = processes.look_up(os.getpid())
        assert own is not None
        # The very pid and start time of a living process, but on another boot.
        record = {"pid": own.pid, "start_ticks": own.start_ticks, "boot_id": "another", "marker": "m"}
        records.write(str(folder / records.SUPERVISOR), record)
        async with opened(local_engine(tmp_path)) as lab:
            await lab.engine.adopt([launch], 1)
            ended = await lab.next(Exited, launch.key)
            assert (ended.supervisor_lost, ended.node_restarted) == (True, True)
            assert not lab.all(Started)

    asyncio.run(run())


HIDES_WITHOUT_A_TRACE = """
import os, sys, time
# Another session, another parent, and an environment that says nothing: only the control group knows it.
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    os.execve(sys.executable, [sys.executable, "-S", "-c", sys.argv[2], sys.argv[1]], {})
time.sleep(600)
"""
NOTES_ITSELF = "import os, sys, time; open(sys.argv[1], 'w').write(f'{os.getpid()}\\n'); time.sleep(600)"


def test_a_child_without_a_trace_dies_with_a_lost_supervisor(tmp_path: Path) -> None:
    if cgroups.root() is None:
        pytest.skip("this user may make no control group here")

    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            program = (sys.executable, "-S", "-c", HIDES_WITHOUT_A_TRACE, str(tmp_path / "pids"), NOTES_ITSELF)
            launch = job(program)
            await lab.engine.start(launch, 1)
            pids = await pids_in(tmp_path / "pids", 1)
            record = records.read(str(tmp_path / "attempts" / "j1" / "1" / records.SUPERVISOR))
            assert record is not None
            # What was started in the first moments is moved there with the leader.
            await eventually(lambda: pids <= cgroups.members(record["cgroup"]), "the child is in the group")
            os.kill(record["pid"], signal.SIGKILL)
            await lab.next(Exited, launch.key)
            assert alive(pids) == set()
            assert not os.path.exists(record["cgroup"])

    asyncio.run(run())


def test_a_forged_record_of_a_control_group_kills_nobody_else(tmp_path: Path) -> None:
    group = cgroups.make(f"other{os.getpid()}")
    if group is None:
        pytest.skip("this user may make no control group here")
    bystander = subprocess.Popen(["/bin/sh", "-c", f"echo 0 > {group}/cgroup.procs; exec sleep 600"])

    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job(("sleep", "1000000"))
            await lab.engine.start(launch, 1)
            await lab.next(Started, launch.key)
            path = tmp_path / "attempts" / "j1" / "1" / records.SUPERVISOR
            record = json.loads(path.read_text())
            path.write_text(json.dumps({**record, "cgroup": group}))
            os.kill(record["pid"], signal.SIGKILL)
            await lab.next(Exited, launch.key)

    asyncio.run(run())
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()
    cgroups.remove(group)


def test_each_attempt_has_a_rendezvous_port_of_its_own(tmp_path: Path) -> None:
    """Also where the attempts are of two servers. Each listens there at once, as torchrun does."""
    listens = (
        "import os, socket, time; s = socket.socket(); s.bind(('', int(os.environ['MASTER_PORT']))); s.listen();"
        "print(os.environ['MASTER_ADDR'], os.environ['MASTER_PORT'], os.environ['PET_MASTER_PORT'], flush=True);"
        "time.sleep(600)"
    )

    async def said(lab: Lab, launch: LaunchOrder) -> list[str]:
        await lab.engine.start(launch, 1)
        await lab.until_log(launch.key, b"\n")
        return (await lab.log(launch.key)).decode().split()

    async def run() -> None:
        async with local_lab(tmp_path / "a") as one, local_lab(tmp_path / "b") as two:
            program = (sys.executable, "-S", "-c", listens)
            found = [await said(lab, job(program, job_id=f"j{n}")) for lab in (one, two) for n in range(3)]
        assert all(address == "127.0.0.1" and port == torchrun for address, port, torchrun in found)
        assert len({port for _, port, _ in found}) == 6

    asyncio.run(run())


def test_a_port_that_the_user_names_is_left_to_the_user(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job("echo $MASTER_PORT", env_variables={"MASTER_PORT": "4711"})
            assert (await run_to_end(lab, launch)).log_tail == "4711\n"

    asyncio.run(run())


def test_supervisor_that_does_not_obey_is_overruled(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path, overdue_s=0.2) as lab:
            launch = job(("sleep", "1000000"))
            await lab.engine.start(launch, 1)
            pid = (await lab.next(Started, launch.key)).pid
            os.kill(supervisor_of(tmp_path, launch), signal.SIGSTOP)
            await lab.engine.stop(stop(launch, grace_s=0.1), 1)
            ended = await lab.next(Exited, launch.key)
            assert ended.was_killed or ended.supervisor_lost
            assert alive([pid]) == set()

    asyncio.run(run())


def test_dead_launcher_harms_no_attempt_and_is_replaced(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            running, later = job("echo up; read x < /dev/null; sleep 0.5"), job("echo later", job_id="j2")
            await lab.engine.start(running, 1)
            await lab.until_log(running.key, b"up")
            launcher = launcher_of(tmp_path)
            assert launcher is not None
            os.kill(launcher, signal.SIGKILL)
            assert (await run_to_end(lab, later)).log_tail == "later\n"
            assert (await lab.next(Exited, running.key)).exit_code == 0
            assert launcher_of(tmp_path) not in (None, launcher)

    asyncio.run(run())


def test_a_dying_launcher_that_still_takes_connections_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / f"launcher{VERSION}.sock"
    hung_up: list[asyncio.StreamWriter] = []

    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hung_up.append(writer)
        writer.transport.abort()
        if len(hung_up) == 3:
            path.unlink()  # Now it is dead.

    async def run() -> None:
        async with await asyncio.start_unix_server(hang_up, path):
            link = plain_launcher(sockets=tmp_path, log=tmp_path / "log", environ=os.environ)
            await link.open()
            await link.close()

    asyncio.run(run())
    assert len(hung_up) == 3


def test_launcher_ends_when_engine_and_attempts_have(tmp_path: Path) -> None:
    async def run() -> None:
        launch = job("while ! test -e go; do sleep 0.02; done")
        async with opened(local_engine(tmp_path)) as lab:
            await lab.engine.start(launch, 1)
            await lab.next(Started, launch.key)
        assert launcher_of(tmp_path) is not None
        (tmp_path / "attempts" / "j1" / "work" / "go").touch()
        await eventually(lambda: launcher_of(tmp_path) is None, "launcher gone")
        assert (tmp_path / "attempts" / "j1" / "1" / records.EXIT).exists()

    asyncio.run(run())


def test_many_attempts_at_once_each_end_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launches = [job(f"exit {n}", job_id=f"j{n}") for n in range(30)]
            await asyncio.gather(*(lab.engine.start(launch, 1) for launch in launches))
            for n, launch in enumerate(launches):
                assert (await lab.next(Exited, launch.key)).exit_code == n
            assert len(lab.all(Exited)) == len(lab.all(Started)) == 30

    asyncio.run(run())


def test_garbage_in_the_output_does_no_harm(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job("head -c 300000 /dev/urandom; printf 'the end'; exit 4")
            ended = await run_to_end(lab, launch)
            assert ended.exit_code == 4
            assert ended.log_tail.endswith("the end")
            assert len(ended.log_tail) <= 64 * 1024
            tail = await lab.engine.read_log(launch.key, 300000, 100)
            assert tail == LogPiece(start=300000, content=b"the end", size=300007)

    asyncio.run(run())


def test_home_with_a_path_too_long_for_sockets_works(tmp_path: Path) -> None:
    async def run() -> None:
        home = tmp_path / ("long-" * 25)
        async with local_lab(home) as lab:
            assert (await run_to_end(lab, job("echo fine"))).log_tail == "fine\n"
        elsewhere = Path((home / "run" / "sockets-are-in").read_text())
        assert elsewhere.stat().st_mode & 0o777 == 0o700
        shutil.rmtree(elsewhere)

    asyncio.run(run())


def fill(disk: Path) -> None:
    """Until not a byte more fits."""
    descriptor = os.open(disk / "filler", os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(descriptor, b"x" * 4096)
    except OSError:
        return
    finally:
        os.close(descriptor)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount = tmp_path / "small"
    mount.mkdir()
    if os.system(f"mount -t tmpfs -o size=256k none {mount} 2>/dev/null") != 0:
        pytest.skip("needs the right to mount a small tmpfs")
    yield mount
    os.system(f"umount -l {mount}")


def test_full_disk_prevents_a_start_with_its_own_reason(tmp_path: Path, small_disk: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path, attempts_dir=small_disk) as lab:
            fill(small_disk)
            launch = job("echo never")
            await lab.engine.start(launch, 1)
            refused = await lab.next(NotLaunched, launch.key)
            assert refused.exit_reason is ExitReason.DISK_FULL
            assert "free some space" in refused.evidence
            assert await lab.engine.free_bytes() == 0

    asyncio.run(run())


def test_stop_and_end_are_carried_out_on_a_full_disk(tmp_path: Path, small_disk: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path, attempts_dir=small_disk) as lab:
            launch = job("trap 'exit 75' TERM; echo ready; while :; do sleep 0.02; done")
            await lab.engine.start(launch, 1)
            await lab.until_log(launch.key, b"ready")
            fill(small_disk)
            await lab.engine.stop(stop(launch, grace_s=20), 1)
            ended = await lab.next(Exited, launch.key)
            assert (ended.exit_code, ended.supervisor_lost) == (75, False)

    asyncio.run(run())
