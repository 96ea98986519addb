"""`log_metrics` of the training SDK against the gateway: everything arrives, in order, and training never waits."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from gateway_world import GatewayWorld, Script
from loopback import Forwarder, wait_for

from runtime_client.training.metrics import Sender


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayWorld]:
    with GatewayWorld(tmp_path_factory.mktemp("home")) as world:
        yield world
        world.close()


@pytest.fixture
def script(world: GatewayWorld) -> Script:
    world.clear()
    return world.job()


def points(world: GatewayWorld, script: Script) -> list[tuple[str, float, int]]:
    rows = world.points(script.run_id)
    return [(row.key, row.value, row.step) for row in rows]


def test_points_arrive_in_the_jobs_own_run_in_order(world: GatewayWorld, script: Script) -> None:
    sender = Sender(world.url, script.token)
    expected = [("loss", 1.0 / step, step) for step in range(1, 2501)]
    for name, value, step in expected:
        sender.put([(name, value, step, 1000 * step)])
    assert sender.flush(20.0)
    assert points(world, script) == expected
    assert sender.n_dropped == 0


def test_the_own_run_is_the_same_one_that_mlflow_opened(world: GatewayWorld, script: Script) -> None:
    opened = script.create_run()
    sender = Sender(world.url, script.token)
    sender.put([("loss", 1.0, 1, 1)])
    assert sender.flush(10.0)
    assert opened == script.run_id
    assert points(world, script) == [("loss", 1.0, 1)]
    assert world.children() == []


def test_what_the_sdk_opened_first_is_still_mlflows_own_run(world: GatewayWorld, script: Script) -> None:
    sender = Sender(world.url, script.token)
    sender.put([("loss", 1.0, 1, 1)])
    assert sender.flush(10.0)
    assert script.create_run() == script.run_id


def test_values_that_are_no_numbers_of_json_arrive(world: GatewayWorld, script: Script) -> None:
    sender = Sender(world.url, script.token)
    sender.put([("loss", value, step, 1) for step, value in enumerate((math.nan, math.inf, -math.inf))])
    assert sender.flush(10.0)
    assert [repr(row.value) for row in world.points(script.run_id)] == ["nan", "inf", "-inf"]


def test_while_the_gateway_is_away_points_wait_and_nobody_waits_for_them(world: GatewayWorld, script: Script) -> None:
    forwarder = Forwarder(world.url)
    sender = Sender(forwarder.url, script.token)
    began = time.monotonic()
    for step in range(3000):
        sender.put([("loss", 0.5, step, 1)])
    assert time.monotonic() - began < 1.0
    assert not sender.flush(0.3)
    assert len(sender.unsent()) == 3000
    forwarder.open()
    try:
        assert sender.flush(20.0)
    finally:
        forwarder.close()
    assert [step for _, _, step in points(world, script)] == list(range(3000))


def test_when_too_many_wait_the_oldest_go_and_it_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    sender = Sender("http://127.0.0.1:9", "t", most_waiting=10)
    sender.put([("loss", 0.5, step, 1) for step in range(25)])
    assert [point[2] for point in sender.unsent()] == list(range(15, 25))
    assert sender.n_dropped == 15
    assert "some points are lost" in capfd.readouterr().err


def test_an_attempt_that_is_over_sends_nothing_more(world: GatewayWorld, script: Script) -> None:
    world.attempt("j1", 2)
    sender = Sender(world.url, script.token)
    sender.put([("loss", 0.5, 1, 1)])
    wait_for(lambda: sender.n_dropped == 1, "the refusal was not heard")
    assert points(world, script) == []
    assert sender.flush(1.0), "nothing is left to wait for"


def run_script(world: GatewayWorld, script: Script, code: str, folder: Path, **more: str) -> tuple[int, str]:
    environment = {
        "NIGHTLAB_JOB_ID": script.job_id,
        "NIGHTLAB_ATTEMPT": str(script.attempt),
        "NIGHTLAB_CHECKPOINT_DIR": str(folder),
        "MLFLOW_TRACKING_URI": world.url,
        "MLFLOW_TRACKING_TOKEN": script.token,
        **more,
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stderr


LOGS_AND_ENDS = """
from runtime_client import training
for step in range(1, 51):
    training.log_metrics({"loss": 1 / step, "lr": 0.1}, step=step)
"""


def test_the_end_of_the_process_sends_what_is_left(world: GatewayWorld, script: Script, tmp_path: Path) -> None:
    code, errors = run_script(world, script, LOGS_AND_ENDS, tmp_path)
    assert (code, errors) == (0, "")
    assert len(points(world, script)) == 100


SAVES_AND_IS_KILLED = """
import os, signal
from runtime_client import training
for step in range(1, 6):
    training.log_metrics({"loss": 1 / step}, step=step)
training.checkpoint(5, "state")
training.log_metrics({"loss": 0.0}, step=6)
os.kill(os.getpid(), signal.SIGKILL)
"""

RESUMES = """
from runtime_client import training
saved = training.restore()
assert (saved.step, saved.value) == (5, "state")
training.log_metrics({"loss": 1 / 6}, step=6)
"""


def test_points_that_were_never_sent_come_with_the_checkpoint(
    world: GatewayWorld, script: Script, tmp_path: Path
) -> None:
    code, _ = run_script(world, script, SAVES_AND_IS_KILLED, tmp_path, MLFLOW_TRACKING_URI="http://127.0.0.1:9")
    assert code == -9
    again = world.attempt("j1", 2)
    code, errors = run_script(world, again, RESUMES, tmp_path, NIGHTLAB_RESUME_FROM=str(tmp_path / "step-5"))
    assert (code, errors) == (0, "")
    assert points(world, script) == [("loss", 1 / step, step) for step in range(1, 7)]


DRAWS = """
import random, sys
import numpy
from runtime_client import training
random.seed(1)
numpy.random.seed(1)
before = random.getstate(), numpy.random.get_state()[1].tolist()
training.restore()
training.log_metrics({"loss": 1.0}, step=1)
assert training.flush_metrics(20.0)
training.end_step(1, "state", every=1)
assert (random.getstate(), numpy.random.get_state()[1].tolist()) == before
"""


def test_nothing_of_it_draws_from_the_generators_of_the_script(
    world: GatewayWorld, script: Script, tmp_path: Path
) -> None:
    code, errors = run_script(world, script, DRAWS, tmp_path)
    assert (code, errors) == (0, "")
    assert points(world, script) == [("loss", 1.0, 1)]


def test_a_name_that_mlflow_would_refuse_is_refused_at_once(
    world: GatewayWorld, script: Script, tmp_path: Path
) -> None:
    code, errors = run_script(
        world, script, "from runtime_client import training; training.log_metrics({'a..//b': 1.0})", tmp_path
    )
    assert code == 1
    assert "can not be the name of a metric" in errors
