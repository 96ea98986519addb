"""The supervisor on small stand-in services: what dies comes back, and nothing outlives it."""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from cli_process import eventually

from nightlab.services.leftovers import end_leftovers
from nightlab.services.settings import ServiceFiles, ServiceSettings
from nightlab.services.state import Phase, ServicePhase, SupervisorState, read_state

PROGRAM = """
import sys
from pathlib import Path
from nightlab.services.processes import ServiceCommand
from nightlab.services.settings import ServiceFiles, ServiceSettings
from nightlab.services.supervisor import Supervisor

home = Path(sys.argv[1])
scripts = dict(one.split("=", 1) for one in sys.argv[3:])
commands = [
    ServiceCommand(
        name=name, argv=("sh", "-c", script, name), environment={}, log=ServiceFiles(home).log(name), stop_grace_s=1.0,
        owns_group=name != "server",
    )
    for name, script in scripts.items()
]
Supervisor(ServiceSettings(home=home, port=9), commands, lifeline=int(sys.argv[2]), alone_s=0.0).run()
"""
LOOP = "; : > ready-$0; while :; do sleep 0.05; done"
STAYS = "trap 'echo $0 >> order; exit 0' TERM" + LOOP


@dataclass(frozen=True)
class Supervised:
    home: Path
    process: subprocess.Popen[bytes]
    write_end: int

    def state(self) -> SupervisorState | None:
        return read_state(ServiceFiles(self.home))

    def pid(self, name: str) -> int | None:
        state = self.state()
        return None if state is None or name not in state.services else state.services[name].pid

    def new_pid(self, name: str, old: int) -> int:
        return eventually(lambda: pid if (pid := self.pid(name)) not in (None, old) else None)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    ServiceFiles(tmp_path).make()
    return tmp_path


def supervise(home: Path, **scripts: str) -> Supervised:
    read_end, write_end = os.pipe()
    argv = [sys.executable, "-c", PROGRAM, str(home), str(read_end), *(f"{k}={v}" for k, v in scripts.items())]
    process = subprocess.Popen(argv, pass_fds=(read_end,))
    os.close(read_end)
    supervised = Supervised(home, process, write_end)
    lasting = [name for name, script in scripts.items() if script.endswith(LOOP)]
    eventually(lambda: all((home / f"ready-{name}").exists() and supervised.pid(name) for name in lasting))
    return supervised


@pytest.fixture
def three(home: Path) -> Iterator[Supervised]:
    supervised = supervise(home, server=STAYS, mlflow=STAYS, agent=STAYS)
    yield supervised
    if supervised.process.poll() is None:
        supervised.process.kill()
        supervised.process.wait()
    end_leftovers(ServiceFiles(home))


def is_gone(pid: int | None) -> bool:
    return pid is None or not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.kills
def test_a_killed_service_is_started_again(three: Supervised) -> None:
    for name in ("server", "mlflow", "agent"):
        old = three.pid(name)
        assert old is not None
        os.kill(old, signal.SIGKILL)
        new = three.new_pid(name, old)
        assert psutil.pid_exists(new)
        state = three.state()
        assert state is not None
        assert (state.services[name].n_restarts, state.services[name].last_exit) == (1, -signal.SIGKILL)


@pytest.mark.kills
def test_the_others_run_on_while_one_is_started_again(three: Supervised) -> None:
    before = three.pid("server"), three.pid("agent")
    old = three.pid("mlflow")
    assert old is not None
    os.kill(old, signal.SIGKILL)
    three.new_pid("mlflow", old)
    assert (three.pid("server"), three.pid("agent")) == before


def test_an_orderly_stop_leaves_nothing(three: Supervised) -> None:
    pids = [three.pid(name) for name in ("server", "mlflow", "agent")]
    three.process.terminate()
    assert three.process.wait(timeout=10) == 0
    assert all(is_gone(pid) for pid in pids)
    state = three.state()
    assert state is not None
    assert state.phase is Phase.STOPPED
    assert {service.phase for service in state.services.values()} == {ServicePhase.STOPPED}


@pytest.mark.kills
def test_services_end_with_a_killed_supervisor(three: Supervised) -> None:
    pids = [three.pid(name) for name in ("server", "mlflow", "agent")]
    three.process.kill()
    three.process.wait()
    eventually(lambda: all(is_gone(pid) for pid in pids))


def test_the_end_of_the_process_it_is_tied_to_stops_it(three: Supervised) -> None:
    os.close(three.write_end)
    assert three.process.wait(timeout=10) == 0


def test_agent_stops_before_server_and_server_before_mlflow(home: Path) -> None:
    supervised = supervise(home, mlflow=STAYS, server=STAYS, agent=STAYS)
    supervised.process.terminate()
    supervised.process.wait(timeout=10)
    assert (home / "order").read_text().split() == ["agent", "server", "mlflow"]


def test_a_service_that_ignores_the_request_is_killed_with_its_children(home: Path) -> None:
    stubborn = "trap '' TERM; sleep 600 & echo $! > child; wait; wait"
    supervised = supervise(home, mlflow=stubborn, server=STAYS, agent=STAYS)
    child = int(eventually(lambda: (home / "child").exists() and (home / "child").read_text().strip()))
    supervised.process.terminate()
    assert supervised.process.wait(timeout=10) == 0
    eventually(lambda: is_gone(child))


def test_children_of_the_server_are_let_live(home: Path) -> None:
    parent = "sleep 600 & echo $! > child; " + STAYS
    supervised = supervise(home, server=parent, mlflow=STAYS, agent=STAYS)
    child = int(eventually(lambda: (home / "child").exists() and (home / "child").read_text().strip()))
    supervised.process.terminate()
    supervised.process.wait(timeout=10)
    assert not is_gone(child)
    os.kill(child, signal.SIGKILL)


def test_a_service_that_dies_at_once_is_started_again_ever_later(home: Path) -> None:
    supervised = supervise(home, server="date +%s.%N >> starts; exit 1", mlflow=STAYS, agent=STAYS)
    starts = home / "starts"
    eventually(lambda: starts.exists() and len(starts.read_text().split()) >= 4)
    times = [float(text) for text in starts.read_text().split()[:4]]
    supervised.process.terminate()
    supervised.process.wait(timeout=10)
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert pauses == sorted(pauses)
    assert pauses[0] >= 0.2


@pytest.mark.kills
def test_what_a_killed_supervisor_left_is_found_and_ended(home: Path) -> None:
    deaf = "trap '' TERM" + LOOP
    supervised = supervise(home, mlflow=deaf, server=deaf, agent=STAYS)
    pids = [supervised.pid("mlflow"), supervised.pid("server")]
    supervised.process.kill()
    supervised.process.wait()
    assert end_leftovers(ServiceFiles(home), grace_s=0.5) >= 2
    assert all(is_gone(pid) for pid in pids)


def test_settings_survive_their_file(tmp_path: Path) -> None:
    settings = ServiceSettings(
        home=tmp_path, devices="cpu:2", port=1234, mlflow_port=None, database_url="postgresql://x"
    )
    assert ServiceSettings.from_json(settings.to_json()) == settings
