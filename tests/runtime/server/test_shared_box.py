"""One machine, two servers and a stranger: real processes on devices that a folder plays."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import until
from server_process import Process, end_leftovers

from runtime.node.device_probe import PRETENDED_VARIABLE
from runtime_client.client import RuntimeClient
from runtime_client.models import JobSpec

pytestmark = pytest.mark.kills


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    folder = tmp_path / "machine"
    for uuid in ("fake-0", "fake-1"):
        (folder / uuid).mkdir(parents=True)
    return folder


@pytest.fixture
def servers(tmp_path: Path, machine: Path) -> Iterator[tuple[Process, Process]]:
    made = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        made.append(Process(tmp_path / name, devices="fake:2xH100", environ={PRETENDED_VARIABLE: str(machine)}))
    yield made[0], made[1]
    for process in made:
        if process.popen is not None and process.popen.poll() is None:
            process.stop()
        end_leftovers(process.home)


def reasons(client: RuntimeClient) -> list[str | None]:
    return [device.busy_reason for node in client.nodes() for device in node.devices]


def test_a_second_server_is_told_who_has_the_devices_and_gets_them_later(servers: tuple[Process, Process]) -> None:
    first, second = servers
    first.start()
    client = second.start()
    assert first.popen is not None
    held = f"(pid {first.popen.pid}, user "
    assert all(reason is not None and held in reason for reason in reasons(client))
    client.submit(JobSpec(experiment_name="x", command="true"))
    assert client.job("j1").state == "queued"
    assert held in " ".join(client.explain("j1").details)
    first.kill()
    assert client.await_end("j1", timeout_s=60).state == "succeeded"


def test_a_stranger_on_a_device_is_shown_and_never_touched(
    servers: tuple[Process, Process], machine: Path, tmp_path: Path
) -> None:
    stranger = subprocess.Popen(["sleep", "600"])
    for uuid in ("fake-0", "fake-1"):
        (machine / uuid / str(stranger.pid)).touch()
    client = servers[0].start()
    assert all(f"in use by sleep (pid {stranger.pid}, user " in str(reason) for reason in reasons(client))
    command = [sys.executable, "-m", "nightlab", "node", "list", "--home", str(tmp_path / "a")]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "200"})
    assert f"pid {stranger.pid}" in listed.stdout
    client.submit(JobSpec(experiment_name="x", command="true"))
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()
    assert client.await_end("j1", timeout_s=60).state == "succeeded"
    until(lambda: reasons(client) == [None, None], timeout_s=20)
