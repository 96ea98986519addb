"""The demo itself, short: real runtime, real MLflow, real training, a real preemption, and a report to read."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from demo_process import DemoProcess

from agent.store.store import AgentStore
from agent.store.views import Purpose, SessionState, TrialState
from agent.task import Seeds
from nightlab.demo.place import SHORT_SEEDS, SHORT_TRIALS
from nightlab.services.remains import processes_of

EPOCHS = 240
pytestmark = [pytest.mark.demo, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """One whole demo, ended."""
    process = DemoProcess(tmp_path_factory.mktemp("demo") / "home")
    try:
        code = process.wait()
        yield process, code
    finally:
        process.end()


@pytest.fixture(scope="module")
def trials(demo):
    with closing(AgentStore.open(demo[0].home)) as store:
        yield store.trials("s1")


FIRST_FRESH = Seeds().first_fresh


@pytest.fixture(scope="module")
def report(demo):
    return (demo[0].home / "reports" / "s1.html").read_text(encoding="utf-8")


def test_ends_complete(demo):
    process, code = demo
    assert code == 0, process.output
    assert "Not complete" not in process.output


def test_nothing_is_left_running(demo):
    assert processes_of(demo[0].home) == []


def test_every_trial_was_measured_once(trials):
    wanted = [t for t in trials if not t.is_idle_work]
    kinds = Counter(t.purpose for t in wanted if t.purpose is not Purpose.REPLICATE or t.seed >= FIRST_FRESH)
    assert kinds == {Purpose.SEARCH: SHORT_TRIALS, Purpose.REPLICATE: 2 * SHORT_SEEDS, Purpose.HELD_OUT: 1}
    assert all(t.state is TrialState.MEASURED for t in wanted)
    assert len({t.job_id for t in trials}) == len(trials)


def test_session_is_finished_with_a_verdict(demo):
    with closing(AgentStore.open(demo[0].home)) as store:
        session = store.session("s1")
    assert session.state is SessionState.FINISHED
    assert session.result is not None
    assert session.result.held_out_looks == 1
    assert session.result.held_out_value is not None
    assert session.result.sentence in " ".join(demo[0].output.split())


def test_preempted_trial_resumed_from_its_checkpoint_in_the_same_run(demo):
    process, _ = demo
    (told,) = re.findall(r"It went on from step (\d+) as attempt 2 and succeeded", " ".join(process.output.split()))
    assert 0 < int(told) < EPOCHS


def test_mlflow_has_one_ended_run_per_job_with_a_whole_curve(demo, trials):
    database = demo[0].home / "mlflow" / "mlflow.db"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        statuses = dict(connection.execute("select run_uuid, status from runs"))
        steps: dict[str, list[int]] = {}
        for run_id, step in connection.execute("select run_uuid, step from metrics where key = 'val_accuracy'"):
            steps.setdefault(run_id, []).append(step)
    trained = {run_id: sorted(found) for run_id, found in steps.items() if len(found) > 1}
    assert len(trained) == len(trials) + 1, "one per trial, and the urgent one"
    assert all(found == list(range(1, EPOCHS + 1)) for found in trained.values())
    assert {statuses[run_id] for run_id in trained} == {"FINISHED"}
    assert "RUNNING" not in statuses.values()


def test_report_tells_of_all_of_it(report, trials):
    for section in ("verdict", "best-so-far", "effects", "seeds", "slots", "preemptions", "held-out", "trials"):
        assert f'id="{section}"' in report
    rows = re.findall(r'<tr class="(?:best|bad)?"><td class="n">(\d+)</td>', report)
    assert [int(number) for number in rows] == [t.number for t in trials]
    assert "<script" not in report


def test_slots_were_busy(demo):
    (share,) = re.findall(r"Slots busy: (\d+) %", demo[0].output)
    assert int(share) >= 75, "short: few trials, and a tail of two"


def wait_for_training(process: DemoProcess) -> None:
    process.wait_for("assess: s1-t1")


def test_interrupted_once_stops_in_order_and_goes_on_later(tmp_path: Path):
    home = tmp_path / "home"
    first = DemoProcess(home)
    try:
        wait_for_training(first)
        first.interrupt()
        assert first.wait(120.0) == 130
        assert "Stopping in order" in first.output
        assert processes_of(home) == []
    finally:
        first.end()
    second = DemoProcess(home)
    try:
        assert second.wait() == 0, second.output
        assert "Going on with session s1" in second.output
    finally:
        second.end()
    with closing(AgentStore.open(home)) as store:
        assert [s.session_id for s in store.sessions()] == ["s1"]
        trials = store.trials("s1")
    assert [t.state for t in trials] == [TrialState.MEASURED] * len(trials)
    assert sum(t.purpose is Purpose.SEARCH for t in trials) == SHORT_TRIALS


def test_interrupted_twice_ends_at_once_without_orphans(tmp_path: Path):
    process = DemoProcess(tmp_path / "home")
    try:
        wait_for_training(process)
        process.interrupt()
        process.wait_for("Stopping in order")
        process.interrupt()
        assert process.wait(30.0) == 130
        assert processes_of(process.home) == []
    finally:
        process.end()


def test_killed_demo_takes_its_services_and_training_with_it(tmp_path: Path):
    process = DemoProcess(tmp_path / "home")
    try:
        wait_for_training(process)
        process.kill()
        process.wait_until(lambda: processes_of(process.home) == [])
    finally:
        process.end()
