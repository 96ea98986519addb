"""The nights of a sweep by command, without a runtime."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from cli_process import Ended
from ended_session import TASK, ended_session
from loopback_servers import webhook
from night_rows import put_nights

from agent.gates.freedom import Action, Course, Ruling
from agent.gates.gate import Answer, GateKind
from agent.report.night.sample import sample_night
from agent.store.fenced import FencedWriter
from agent.store.gates import GateBook
from agent.store.nights import NightStore
from agent.store.store import AgentStore
from agent.sweeps.cells import Cell
from agent.sweeps.sweep import Sweep
from agent.task import Task
from nightlab.__main__ import main
from nightlab.moments import moment

REPORT = sample_night(n_nights=3)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, home: Path) -> Callable[..., Ended]:
    """`nightlab ARGUMENTS` in this process, which has imported everything already."""
    monkeypatch.setenv("NIGHTLAB_HOME", str(home))

    def command(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as left:
            main(list(arguments))
        told = capsys.readouterr()
        return Ended(exit_code=int(left.value.code or 0), out=told.out, err=told.err)

    return command


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With three nights; the session of the last one has run to its end, and the runtime is gone."""
    folder = tmp_path_factory.mktemp("sweeps") / "home"
    ended_session(folder)
    night = REPORT.nights[-1]
    cell = replace(night.cells[0], task_json=Task.model_validate(TASK).model_dump_json())
    with closing(AgentStore.open(folder)) as store:
        put_nights(store, (*REPORT.history, replace(night, created_at=1.0, cells=(cell,))))
    return folder


def test_a_report_is_written_without_the_runtime_and_says_so(run: Callable[..., Ended], home: Path) -> None:
    ended = run("sweep", "report", "digits-nightly", "--json")
    page = Path(ended.data["path"])
    assert page == home / "reports" / "nights" / "digits-nightly-n3.html"
    assert ended.data["sentence"].startswith("Regression: val_accuracy in digits@main")
    assert "runtime did not answer" in ended.data["notes"][0]
    html = page.read_text()
    assert "s1-t1" in html
    assert (page.parent / "digits-nightly-latest.md").is_file()


def test_a_report_goes_where_it_is_asked_for(run: Callable[..., Ended], tmp_path: Path) -> None:
    ended = run("sweep", "report", "digits-nightly-n1", "--markdown", "-o", str(tmp_path / "n.md"))
    assert ended.out == f"{tmp_path / 'n.md'}\n"
    assert (tmp_path / "n.md").read_text().startswith("# digits-nightly-n1\n")


def test_a_report_that_can_not_be_written_says_where(run: Callable[..., Ended], tmp_path: Path) -> None:
    ended = run("sweep", "report", "digits-nightly", "-o", str(tmp_path / "no" / "n.html"))
    assert ended.exit_code == 1
    assert "can not be written" in ended.err
    assert str(tmp_path / "no") in ended.err


def test_history_is_a_table_newest_first_and_data_with_json(run: Callable[..., Ended]) -> None:
    ended = run("sweep", "history", "digits-nightly")
    nights = [line.split()[0] for line in ended.out.splitlines()[1:] if line.startswith("digits")]
    assert nights == ["digits-nightly-n3", "digits-nightly-n2", "digits-nightly-n1"]
    rows = run("sweep", "history", "digits-nightly", "--json", "--limit", "2").data
    assert [(row["night_id"], row["outcome"]) for row in rows] == [
        ("digits-nightly-n3", "deadline"),
        ("digits-nightly-n2", "skipped"),
    ]
    assert rows[0]["summary"]["cells"][0]["metric"] == "val_accuracy"


def test_an_unknown_sweep_is_wrong_use_with_a_suggestion(run: Callable[..., Ended]) -> None:
    ended = run("sweep", "history", "digits-nigthly", "--json")
    assert ended.exit_code == 2
    assert "did you mean 'digits-nightly'?" in ended.error["message"]


def test_a_running_night_is_shown_by_status_and_by_the_list_of_sessions(
    run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTLAB_HOME", str(tmp_path))
    sweep = Sweep.model_validate({"sweep": "tiny", "task": "t.yaml", "method": {"kind": "random", "trials": 2}})
    cells = [Cell(name=name, task=Task.model_validate(TASK)) for name in ("toy", "toy/v2")]
    with closing(AgentStore.open(tmp_path)) as store:
        nights = NightStore(store)
        nights.begin(sweep, file="s.yaml", cells=cells, finish_by=4e9)
        nights.start_cell("tiny-n1", 0, nights.claim("tiny-n1"))
    assert f"night tiny-n1 running, 1 of 2 cells begun, until {moment(4e9)}" in run("status").out
    told = run("status", "--json").data
    assert told["nights"][0]["cells"] == [
        {"cell": "toy", "session_id": "s1"},
        {"cell": "toy/v2", "session_id": None},
    ]
    assert told["sessions"][0]["night_id"] == "tiny-n1"
    assert run("research", "list").out.splitlines()[1].split()[:4] == ["s1", "running", "toy", "tiny-n1"]


SWEEP = """
sweep: tiny
task: task.yaml
method: {kind: grid, values: {lr: [0.1]}}
"""


@pytest.mark.acceptance
def test_a_test_message_is_sent_to_everybody_and_says_what_became_of_it(
    run: Callable[..., Ended], tmp_path: Path
) -> None:
    file = tmp_path / "tiny.yaml"
    with webhook() as (port, came):
        file.write_text(f"{SWEEP}notify:\n  - url: json://127.0.0.1:{port}/\n  - url: nothing\n")
        ended = run("sweep", "notify", str(file), "--test")
    assert ended.exit_code == 1
    assert f"json://127.0.0.1:{port}: told\n" in ended.out
    assert "1 of 2 addresses could not be told" in ended.err
    assert len(came) == 1


def test_without_test_nothing_is_sent_and_no_address_is_shown(run: Callable[..., Ended], tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(f"{SWEEP}notify: [{{url: 'json://secret', on: [failure]}}]\n")
    ended = run("sweep", "notify", str(file))
    assert ended.out == "address 1: failure\n"


def test_a_question_is_listed_shown_and_answered_once(run: Callable[..., Ended], home: Path) -> None:
    assert run("gate", "list", "--session", "s1").out == "nothing waits for an answer\n"
    with closing(AgentStore.open(home)) as store:
        session = store.create_session(Task.model_validate_json(store.sessions()[0].task_json))
        book = GateBook(FencedWriter(store, session.session_id, store.claim(session.session_id, 1)))
        action = Action(subject="c", kinds=(GateKind.TRIAL,), what="run it", cost_device_s=None)
        asks = Ruling(action=action, course=Course.ASKS, kind=GateKind.TRIAL, why="autonomy.trials: propose")
        (gate,) = book.ask([asks], answer_within_s=600.0, unanswered=Answer.DENY)
    which, session_id = str(gate.gate_id), session.session_id
    listed = run("gate", "list", "--session", session_id, "--json").data
    assert [(one["gate_id"], one["is_waiting"]) for one in listed] == [(gate.gate_id, True)]
    assert f"gate {which} waits for an answer: run it" in run("research", "show", session_id).out
    assert run("gate", "approve", which, "--note", "fine").exit_code == 0
    again = run("gate", "deny", which, "--json")
    assert again.exit_code == 1
    assert "was answered before, and that counts: approved by" in again.error["message"]
    assert run("gate", "deny", "999", "--json").exit_code == 2
    with closing(AgentStore.open(home)) as store:
        store.fail(session_id, "over")


def test_whom_a_task_tells_is_listed_without_addresses_and_nobody_is_wrong_use(
    run: Callable[..., Ended], tmp_path: Path
) -> None:
    file = tmp_path / "task.yaml"
    task = "task: t\nobjective: {metric: m, direction: minimize}\njob: {command: 'x {lr}'}\nbudgets: {trials: 2}\n"
    task += "space: {lr: {type: float, low: 0.0, high: 1.0, default: 0.5}}\n"
    file.write_text(task + "notify: [{url: 'json://secret', on: [approval, ended]}]\n")
    assert run("research", "notify", str(file)).out == "address 1: approval, ended\n"
    file.write_text(task)
    ended = run("research", "notify", str(file), "--json")
    assert ended.exit_code == 2
    assert "nobody is told of its sessions" in ended.error["message"]


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        (SWEEP, "notify", "nobody is told"),
        (SWEEP.replace("grid", "gird"), "method.kind", "'gird'"),
        (SWEEP + "notifi: []\n", "notifi", "did you mean 'notify'?"),
        (SWEEP + "notify: [{on: [finish]}]\n", "notify.0", "give url or url_file"),
    ],
)
def test_a_sweep_file_with_problems_is_wrong_use_with_its_path(
    run: Callable[..., Ended], tmp_path: Path, text: str, path: str, said: str
) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(text)
    ended = run("sweep", "notify", str(file), "--json")
    assert ended.exit_code == 2
    assert ended.error["path"] == path
    assert said in ended.error["message"]


def test_check_tells_all_by_place_in_the_sweep_and_exits_as_wrong_use(
    run: Callable[..., Ended], tmp_path: Path
) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(SWEEP.replace("[0.1]", "[0.1, 0.10]") + "finish_by: '7'\n")
    broken = run("sweep", "check", str(file), "--json")
    assert broken.exit_code == 2
    assert [one["path"] for one in broken.data["problems"]] == ["finish_by", "task"]
    assert "task.yaml: can not be read" in broken.data["problems"][1]["message"]
    task = "task: t\nobjective: {metric: m, direction: minimize}\njob: {command: run, args_style: argparse}\n"
    task += "budgets: {trials: 2}\nspace: {lr: {type: float, low: 0.0, high: 1.0, default: 0.5}}\n"
    (tmp_path / "task.yaml").write_text(task)
    file.write_text(SWEEP.replace("[0.1]", "[0.1, 0.10]"))
    good = run("sweep", "check", str(file))
    assert good.exit_code == 0
    assert good.out.splitlines() == [
        "note: method.values.lr.1: 0.1 is there already (method.values.lr.0)",
        "tiny can run: 1 cell",
    ]
    file.write_text("sweep: [1]\n")
    assert {one["path"] for one in run("sweep", "check", str(file), "--json").data["problems"]} == {"sweep", "method"}


def test_a_dry_run_without_a_runtime_says_what_it_can_not_tell_and_writes_nothing(
    run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("NIGHTLAB_HOME", str(home))
    task = "task: t\nobjective: {metric: m, direction: minimize}\njob: {command: run, args_style: argparse}\n"
    task += "budgets: {trials: 2}\nspace: {lr: {type: float, low: 0.0, high: 1.0, default: 0.5}}\n"
    (tmp_path / "task.yaml").write_text(task + "seeds: {fresh: 6, max_pairs: 9}\n")
    (tmp_path / "s.yaml").write_text(SWEEP + "replicates: 3\nfinish_by: '07:00'\n")
    told = run("sweep", "run", str(tmp_path / "s.yaml"), "--dry-run", "--json")
    assert told.exit_code == 0
    (cell,) = told.data["cells"]
    assert (cell["n_search"], cell["n_jobs"], cell["n_jobs_most"]) == (6, 18, 24)
    assert (told.data["ends_at"], told.data["is_in_time"], told.data["forecast"]) == (None, None, None)
    assert ["t takes" in told.data["unknown"][0], "nightlab up" in told.data["unknown"][1]] == [True, True]
    assert "18-24 jobs" in run("sweep", "run", str(tmp_path / "s.yaml"), "--dry-run").out
    assert not home.exists()
