"""Warm starts: the same as cold ones in all that a script can tell, and cold where that can not be had."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from local_engine_lab import alive, eventually, job, local_engine, local_lab, pids_in
from warm_scripts import SCRIPTS, Script

from runtime.engines import warm_starts
from runtime.engines.conformance import Lab, opened, stop
from runtime.engines.contract import Exited, LaunchOrder, MetricsRead, Started
from runtime.engines.preparation import marker_of
from runtime.node import processes, records, warm_launcher
from runtime_client.models import CodeSource, Environment, JsonLines


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    launch: str
    why: str
    exit_code: int | None
    output: str
    files: Mapping[str, str]


def python_job(folder: Path, job_id: str, launch: str, *, words: str = "t.py", **fields: Any) -> LaunchOrder:
    preload = fields.pop("preload", ("numpy",))
    return job(
        f"python {words}",
        job_id=job_id,
        launch=launch,
        code_source=CodeSource(root_path=str(folder)),
        environment=Environment(python=sys.executable, preload=preload),
        **fields,
    )


async def outcome(lab: Lab, launch: LaunchOrder) -> Outcome:
    await lab.engine.start(launch, 1)
    started = await lab.next(Started, launch.key)
    ended = await lab.next(Exited, launch.key)
    output = ended.log_tail.replace(launch.key.job_id, "JOB")
    # Addresses, the attempt's marker, token and port differ from one start to the next, whatever starts it.
    output = re.sub(r"0x[0-9a-f]{8,}|\b[0-9a-f]{32}\b|JOB\.1\.\S+|(?<=PORT) \d+", "N", output)
    return Outcome(launch=started.launch, why=started.launch_why, exit_code=ended.exit_code, output=output, files={})


def written(folder: Path) -> dict[str, str]:
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text() for path in found}


def laid_out(folder: Path, script: Script) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, text in {"t.py": script.source, **script.files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Outcome, Outcome]]:
    """Every script's cold and warm outcome; one fork server serves all."""
    home = tmp_path_factory.mktemp("both")
    found: dict[str, tuple[Outcome, Outcome]] = {}

    async def run() -> None:
        async with local_lab(home) as lab:
            for name, script in SCRIPTS.items():
                ends = []
                for launch in ("cold", "warm"):
                    folder = laid_out(home / "project", script)
                    end = await outcome(lab, python_job(folder, f"{launch}{name}", launch, words=script.words))
                    ends.append(Outcome(**{**_fields(end), "files": written(folder)}))
                found[name] = (ends[0], ends[1])

    asyncio.run(run())
    return found


def _fields(end: Outcome) -> dict[str, Any]:
    return {name: getattr(end, name) for name in Outcome.__dataclass_fields__}


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_a_warm_start_equals_a_cold_one(both: dict[str, tuple[Outcome, Outcome]], name: str) -> None:
    cold, warm = both[name]
    assert cold.launch == "cold"
    assert (warm.launch, bool(warm.why)) == (SCRIPTS[name].launch, True), warm.why
    assert warm.output == cold.output
    assert warm.exit_code == cold.exit_code
    assert warm.files == cold.files


PRELOADS = {
    "raises": ("raise RuntimeError('not today')", "RuntimeError: not today"),
    "is_missing": (None, "ModuleNotFoundError"),
    "prints": ("print('hello from the import')", "prints: 'hello from the import'"),
    "prints_below_python": ("import os; os.write(2, b'raw')", "prints: 'raw'"),
    "starts_threads": (
        "import threading; threading.Thread(target=threading.Event().wait, name='w', daemon=True).start()",
        "start threads (w)",
    ),
    "leaves_files_open": ("f = open(__file__)", "leaves files open"),
    "changes_directory": ("import os; os.chdir('/tmp')", "changes the working directory"),
    "ends_the_process": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "dies": ("import os; os._exit(9)", "no fork server"),
    "breaks_forks": ("import os; os.register_at_fork(after_in_child=lambda: os._exit(4))", "ended with 4"),
}


def package_path(tmp_path: Path, source: str | None) -> dict[str, str]:
    """An installed package, as far as Python can tell: the environment of jobs that find it."""
    folder = tmp_path / "installed"
    folder.mkdir(exist_ok=True)
    if source is not None:
        (folder / "heavy.py").write_text(source)
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize("name", list(PRELOADS))
def test_imports_that_can_not_be_kept_warm_start_cold_and_the_record_says_why(tmp_path: Path, name: str) -> None:
    source, words = PRELOADS[name]
    folder = laid_out(tmp_path / "project", Script(source="print('ran')"))
    variables = package_path(tmp_path, source)

    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = python_job(folder, "j1", "warm", preload=("heavy",), env_variables=variables)
            end = await outcome(lab, launch)
            assert (end.launch, end.exit_code, end.output) == ("cold", 0, "ran\n")
            assert words in end.why

    asyncio.run(run())


def test_an_import_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_starts, "PREPARE_S", 0.5)
    folder = laid_out(tmp_path / "project", Script(source="print('ran')"))
    variables = package_path(tmp_path, "import threading; threading.Event().wait(60)")

    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = python_job(folder, "j1", "warm", preload=("heavy",), env_variables=variables)
            end = await outcome(lab, launch)
            assert (end.launch, end.output) == ("cold", "ran\n")
            assert "not ready after 0.5 s" in end.why

    asyncio.run(run())


def test_a_changed_package_is_seen_by_the_next_start(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "project", Script(source="import heavy; print(heavy.version)"))
    variables = package_path(tmp_path, "version = 1")

    async def run() -> None:
        async with local_lab(tmp_path) as lab:

            def launch(number: int, mode: str = "warm") -> LaunchOrder:
                return python_job(folder, f"j{number}", mode, preload=("heavy",), env_variables=variables)

            first = await outcome(lab, launch(1))
            assert (first.launch, first.output) == ("warm", "1\n")
            package_path(tmp_path, "version = 22")
            second = await outcome(lab, launch(2))
            assert (second.launch, second.output) == ("cold", "22\n")
            assert "has changed" in second.why
            third = await outcome(lab, launch(3))
            assert (third.launch, third.output) == ("warm", "22\n")

    asyncio.run(run())


def test_one_start_alone_prepares_nothing_and_the_second_does(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "project", Script(source="import numpy; print('ran')"))

    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            ends = [await outcome(lab, python_job(folder, f"j{n}", "auto", preload=None)) for n in (1, 2)]
            assert [end.launch for end in ends] == ["cold", "cold"]
            assert "first start" in ends[0].why
            assert "being prepared" in ends[1].why
            end = await outcome(lab, python_job(folder, "j3", "warm", preload=None))
            assert (end.launch, end.output) == ("warm", "ran\n")

    asyncio.run(run())


def servers(home: Path) -> set[int]:
    """The fork servers of this home."""
    found = set()
    for pid in processes.table():
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if name == warm_launcher.PROCESS_NAME and os.fsencode(home / "run") in command:
            found.add(pid)
    return found


WAITS = """
import pathlib, time
pathlib.Path('started').touch()
while not pathlib.Path('go').exists():
    time.sleep(0.01)
print('done')
"""


def test_a_fork_server_that_is_killed_takes_no_attempt_with_it(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "project", Script(source=WAITS))

    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            running = python_job(folder, "j1", "warm")
            await lab.engine.start(running, 1)
            assert (await lab.next(Started, running.key)).launch == "warm"
            await eventually((folder / "started").exists, "the script runs")
            (server,) = servers(tmp_path)
            os.kill(server, signal.SIGKILL)
            await eventually(lambda: not alive([server]), "the fork server is dead")
            (folder / "go").touch()
            ended = await lab.next(Exited, running.key)
            assert (ended.exit_code, ended.log_tail) == (0, "done\n")
            again = await outcome(lab, python_job(folder, "j2", "warm"))
            assert (again.launch, again.output) == ("warm", "done\n")

    asyncio.run(run())


def test_a_warm_attempt_is_asked_to_stop_and_killed_like_any_other(tmp_path: Path) -> None:
    source = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(600)\n    os._exit(0)\n"
        "open('pids', 'w').write(f'{os.getpid()}\\n{child.pid}\\n')\ntime.sleep(600)\n"
    )
    folder = laid_out(tmp_path / "project", Script(source=source))

    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            running = python_job(folder, "j1", "warm")
            await lab.engine.start(running, 1)
            assert (await lab.next(Started, running.key)).launch == "warm"
            pids = await pids_in(folder / "pids", 2)
            marker = marker_of(running.attempt_token)
            # Its tree can be found by its marker, should its supervisor be lost.
            await eventually(lambda: len(processes.carriers(marker, processes.table())) >= 3, "three marked processes")
            marked = processes.carriers(marker, processes.table())
            assert pids <= marked
            await lab.engine.stop(stop(running, grace_s=0.2), 1)
            ended = await lab.next(Exited, running.key)
            assert ended.was_killed
            assert not alive(marked)
            assert (tmp_path / "attempts" / "j1" / "1" / records.NOTICE).exists()

    asyncio.run(run())


def test_a_warm_attempt_dies_with_its_supervisor(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "project", Script(source=WAITS))

    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            running = python_job(folder, "j1", "warm")
            await lab.engine.start(running, 1)
            pid = (await lab.next(Started, running.key)).pid
            supervisor = records.read(str(tmp_path / "attempts" / "j1" / "1" / records.SUPERVISOR))
            assert supervisor is not None
            os.kill(supervisor["pid"], signal.SIGKILL)
            assert (await lab.next(Exited, running.key)).supervisor_lost
            assert not alive([pid])

    asyncio.run(run())


def test_a_new_engine_finds_the_fork_server_of_the_one_before(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "project", Script(source="print('ran')"))

    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            assert (await outcome(lab, python_job(folder, "j1", "warm"))).launch == "warm"
            one = servers(tmp_path)
            async with opened(local_engine(tmp_path)) as successor:
                end = await outcome(successor, python_job(folder, "j2", "auto"))
                assert end.launch == "warm"
                assert len(one) == 1
                assert servers(tmp_path) == one

    asyncio.run(run())


async def at_once(home: Path, n: int) -> None:
    folder = laid_out(home / "project", Script(source="import numpy, os; print(numpy.random.rand(), os.getpid())"))
    async with local_lab(home) as lab:
        assert (await outcome(lab, python_job(folder, "first", "warm"))).launch == "warm"
        launches = [python_job(folder, f"j{number}", "auto") for number in range(n)]
        await asyncio.gather(*(lab.engine.start(launch, 1) for launch in launches))
        seen = []
        for launch in launches:
            assert (await lab.next(Started, launch.key)).launch == "warm"
            ended = await lab.next(Exited, launch.key)
            assert ended.exit_code == 0
            seen.append(ended.log_tail.split()[0])
        assert len(set(seen)) == n, "unseeded generators must not say the same in two attempts"


def test_many_starts_at_once_are_all_warm_and_none_draws_the_same_numbers(tmp_path: Path) -> None:
    asyncio.run(at_once(tmp_path, 16))


@pytest.mark.kills
def test_two_hundred_starts_at_once(tmp_path: Path) -> None:
    asyncio.run(at_once(tmp_path, 200))


def test_metrics_of_a_warm_attempt_are_read(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "project", Script(source='print(\'{"step": 1, "loss": 0.5}\')'))

    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = python_job(folder, "j1", "warm", metric_sources=(JsonLines(),))
            await lab.engine.start(launch, 1)
            assert (await lab.next(Started, launch.key)).launch == "warm"
            assert [point[:3] for point in (await lab.next(MetricsRead, launch.key)).points] == [("loss", 0.5, 1)]

    asyncio.run(run())


@pytest.mark.gpu
def test_a_fork_computes_on_the_device(tmp_path: Path) -> None:
    source = "import torch; x = torch.ones(64, 64, device='cuda'); print(float((x @ x)[0, 0]))"
    folder = laid_out(tmp_path / "project", Script(source=source))

    async def run() -> None:
        async with local_lab(tmp_path, devices="auto") as lab:
            for number in (1, 2):
                end = await outcome(lab, python_job(folder, f"j{number}", "warm", preload=("torch",)))
                assert (end.launch, end.exit_code, end.output) == ("warm", 0, "64.0\n")

    asyncio.run(run())
