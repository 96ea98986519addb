"""Training scripts that go wrong in every way we know of, in one session: each trial ends in its own way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_lab import SCRIPTS, FaultLab, check_nothing_is_left, is_alive, with_this_python

from agent.store.views import Purpose, SessionState, TrialState, TrialView
from agent.task import Task
from agent.task_file import parse_task

pytestmark = pytest.mark.acceptance

INVALID = {
    "crash": ("code_error", "ValueError: the data are of another shape"),
    "segfault": ("killed_by_signal", "SIGSEGV"),
    "no_module": ("import_error", "a_module_that_nobody_has"),
    "no_file": ("missing_file", "a-file-that-nobody-has.csv"),
    "nan": ("non_finite_metric", "score"),
    "silent": ("criteria_not_met", "other"),
    "garbage": ("code_error", ""),
    "sleep": ("run_timeout", ""),
    "deaf": ("run_timeout", ""),
}
MEASURED = {"plain": 1.0, "noisy": 2.0, "litter": 1.5, "best": 3.0}

TASK = f"""
task: trouble
objective: {{metric: score, direction: maximize}}
job:
  command: python trouble.py
  args_style: argparse
  code_source: {{root_path: {SCRIPTS}}}
  metric_sources: [{{kind: json_lines}}]
  timeout_minutes: 0.05
  grace_seconds: 0.5
  env_variables: {{TROUBLE_LOG: WHERE, TROUBLE_PIDS: "PIDS"}}
space: {{how: {{type: categorical, choices: {[*MEASURED, *INVALID]}, default: plain}}}}
seeds: {{fresh: 2}}
budgets: {{trials: {len(MEASURED) + len(INVALID)}}}
"""


def task(where: str, pids: Path) -> Task:
    text = TASK.replace("WHERE", where).replace('PIDS"', f'{pids}"')
    return with_this_python(parse_task(text, source=SCRIPTS / "task.yaml"))


@pytest.fixture(scope="module", params=["stdout", "gateway"])
def ended(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultLab]:
    """A session that has met all of them."""
    folder = tmp_path_factory.mktemp("trouble")
    with FaultLab(folder) as lab:
        lab.start_session(task(request.param, folder / "pids"))
        lab.await_end()
        yield lab


def searched(lab: FaultLab) -> dict[str, TrialView]:
    return {str(t.params["how"]): t for t in lab.trials() if t.purpose is Purpose.SEARCH}


def test_the_session_goes_on_and_finds_the_best(ended: FaultLab) -> None:
    view = ended.session()
    assert view.state is SessionState.FINISHED, view.message
    assert view.result is not None
    assert view.result.best == {"how": "best"}
    assert view.result.verdict == "supported"
    assert sorted(searched(ended)) == sorted([*MEASURED, *INVALID])


@pytest.mark.parametrize("how", INVALID)
def test_an_ending_without_a_value_has_its_own_reason(how: str, ended: FaultLab) -> None:
    trial = searched(ended)[how]
    reason, words = INVALID[how]
    assert (trial.state, trial.value, trial.exit_reason) == (TrialState.INVALID, None, reason)
    assert trial.note is not None
    assert words in trial.note
    assert trial.note.isprintable()


@pytest.mark.parametrize("how", MEASURED)
def test_noise_and_litter_do_not_cost_a_value(how: str, ended: FaultLab) -> None:
    trial = searched(ended)[how]
    assert (trial.state, trial.value) == (TrialState.MEASURED, MEASURED[how])


def test_who_ignores_the_notice_is_killed_after_its_grace(ended: FaultLab) -> None:
    trial = searched(ended)["deaf"]
    assert 3.0 <= trial.device_seconds < 12.0


def test_children_die_with_their_attempt(ended: FaultLab) -> None:
    pids = [int(line.partition(":")[2]) for line in (ended.home.parent / "pids").read_text().split()]
    assert len(pids) == 6
    assert [pid for pid in pids if is_alive(pid)] == []


def test_each_was_executed_once(ended: FaultLab) -> None:
    jobs = ended.jobs()
    assert len(jobs) == len(ended.trials())
    assert all(len(job.attempts) == 1 for job in jobs)


def test_nothing_is_left(ended: FaultLab) -> None:
    ended.down()
    check_nothing_is_left(ended.home)
