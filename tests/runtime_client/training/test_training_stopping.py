"""Asked to leave: by the file, by the signal; together on several ranks."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from training_process import Attempt, eventually

from runtime.node.stacks import dump
from runtime_client.training.process_context import context_from
from runtime_client.training.stopping import StopNotice

LOOP = """
import sys, time
from pathlib import Path
from runtime_client import training
saved = training.restore()
done = saved.step if saved else 0
for step in range(done + 1, 100_000):
    time.sleep(0.002)
    Path("begun").touch()
    training.end_step(step, {"step": step})
"""

RANKS = """
import os, time
from pathlib import Path
from runtime_client import training
rank = training.context().rank
training.restore()  # listens from here on
for step in range(1, 100_000):
    time.sleep(0.001 * (1 + 3 * rank))  # they are not in step
    Path(f"begun-{rank}").touch()
    if training.should_stop(step):
        print(step)
        break
"""


def test_without_notice_nobody_is_asked(tmp_path: Path) -> None:
    found = context_from({"NIGHTLAB_PREEMPT_FILE": str(tmp_path / "notice")}, default_dir=tmp_path)
    assert not StopNotice(found).is_agreed(None)
    (tmp_path / "notice").touch()
    assert StopNotice(found).is_agreed(None)


def test_asking_costs_little(tmp_path: Path) -> None:
    found = StopNotice(context_from({"NIGHTLAB_PREEMPT_FILE": str(tmp_path / "notice")}, default_dir=tmp_path))
    began = time.perf_counter()
    for step in range(2000):
        found.is_agreed(step)
    assert (time.perf_counter() - began) / 2000 < 100e-6, "a step of a tenth of a millisecond would feel it"


@pytest.mark.parametrize("way", ["file", "signal"])
def test_either_way_it_saves_and_leaves_with_75(way: str, tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    attempt.start(LOOP)
    eventually((attempt.folder / "begun").exists)
    if way == "file":
        attempt.notice.touch()
    else:
        attempt.ask_to_leave()
    assert attempt.wait() == [75]
    assert len(list(attempt.checkpoint_dir.glob("step-*/COMPLETE"))) == 1


def test_the_scripts_own_handler_hears_the_signal_too(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    attempt.start("import signal; signal.signal(signal.SIGTERM, lambda *_: print('heard', flush=True))\n" + LOOP)
    eventually((attempt.folder / "begun").exists)
    attempt.ask_to_leave()
    ((code, output, _),) = attempt.results()
    assert (code, output) == (75, "heard\n")


def test_a_process_that_hangs_can_be_asked_for_its_stacks(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    prefix = attempt.folder / "stacks"
    attempt.start(LOOP, NIGHTLAB_STACK_FILE=str(prefix))
    eventually((attempt.folder / "begun").exists)
    (pid,) = attempt.pids()
    assert dump([pid], attempt.folder).count("most recent call first") >= 1
    assert "<string>" in Path(f"{prefix}.{pid}").read_text()
    attempt.ask_to_leave()
    assert attempt.wait() == [75], "the question does it no harm"


def test_a_script_with_a_handler_of_its_own_for_that_signal_keeps_it(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    attempt.start(
        "import os, signal\nfrom runtime_client import training\n"
        "signal.signal(signal.SIGUSR2, lambda *_: print('own'))\n"
        "training.should_stop()\nos.kill(os.getpid(), signal.SIGUSR2)\n",
        NIGHTLAB_STACK_FILE=str(attempt.folder / "stacks"),
    )
    assert attempt.results() == [(0, "own\n", "")]


def test_ranks_without_collectives_stop_at_the_same_step(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, ranks=3)
    attempt.start(RANKS)
    eventually(lambda: len(list(attempt.folder.glob("begun-*"))) == 3)
    attempt.ask_to_leave()
    results = attempt.results()
    assert [code for code, _, _ in results] == [0, 0, 0], results
    assert len({output for _, output, _ in results}) == 1, results


def test_outside_nightlab_it_tells_how_to_go_on(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    attempt.start(LOOP, NIGHTLAB_JOB_ID="", NIGHTLAB_PREEMPT_FILE="")
    eventually((attempt.folder / "begun").exists)
    attempt.ask_to_leave()
    ((code, _, errors),) = attempt.results()
    assert code == 75
    assert f"NIGHTLAB_RESUME_FROM={attempt.checkpoint_dir}/step-" in errors
