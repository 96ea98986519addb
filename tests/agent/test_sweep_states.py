"""States of the code: resolved anew, put beside the checkout without touching it, kept while they are used."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.sweeps.prepare import examine, prepare_night
from agent.sweeps.states import KEPT_S, N_KEPT, forget_unused, states_folder
from agent.sweeps.sweep_file import SweepError
from agent.task import Task
from agent.task_file import load_task
from runtime_client.snapshot import CodeStore

TASK = """
task: t
objective: {metric: m, direction: minimize}
job: {command: python train.py, args_style: argparse}
space: {lr: {type: float, low: 0.0, high: 1.0, default: 0.5}}
budgets: {trials: 2}
data: [{path: ../rows.csv}, {path: ../big}]
"""
SWEEP = "sweep: s\ntask: task.yaml\nmethod: {kind: random, trials: 2}\nmatrix: {code: [main, v1]}\n"


@dataclass(frozen=True, slots=True)
class Checkout:
    """A repository whose task is in the folder `exp`; `v1` is its first commit."""

    top: Path
    home: Path

    def git(self, *words: str) -> str:
        names = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
        done = subprocess.run(["git", *names, *words], cwd=self.top, capture_output=True, check=True, text=True)
        return done.stdout.strip()

    def write(self, path: str, text: str) -> None:
        (self.top / path).parent.mkdir(parents=True, exist_ok=True)
        (self.top / path).write_text(text)

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-qm", message)
        return self.git("rev-parse", "HEAD")

    @property
    def file(self) -> Path:
        return self.top / "exp/sweep.yaml"

    def cells(self) -> dict[str, Task]:
        night = prepare_night(self.file, read_task=load_task, now=0.0, home=self.home)
        return {cell.name: cell.task for cell in night.cells}

    def problem(self) -> str:
        with pytest.raises(SweepError) as caught:
            self.cells()
        return str(caught.value)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    found = Checkout(tmp_path / "repo", tmp_path / "home")
    found.write(".gitignore", "big\n")
    found.write("exp/train.py", "one\n")
    found.write("exp/task.yaml", TASK)
    found.write("exp/sweep.yaml", SWEEP)
    found.write("rows.csv", "1\n")
    found.write("big/rows", "many\n")
    found.git("init", "-q", "-b", "main")
    found.commit("one")
    found.git("tag", "v1")
    found.write("exp/train.py", "two\n")
    found.commit("two")
    return found


def root_of(task: Task) -> Path:
    assert task.job.code_source is not None
    return Path(task.job.code_source.root_path)


def test_each_state_is_a_folder_of_its_own_and_the_checkout_is_not_touched(checkout: Checkout) -> None:
    checkout.write("exp/train.py", "not committed\n")
    cells = checkout.cells()
    assert {name: (root_of(task) / "train.py").read_text() for name, task in cells.items()} == {
        "t@main": "two\n",
        "t@v1": "one\n",
    }
    assert (checkout.top / "exp/train.py").read_text() == "not committed\n"
    assert checkout.git("status", "--porcelain") == "M exp/train.py"
    assert checkout.git("worktree", "list").count("\n") == 0
    first = {name: root_of(task).stat().st_ino for name, task in cells.items()}
    assert {name: root_of(task).stat().st_ino for name, task in checkout.cells().items()} == first


def test_a_branch_is_resolved_anew_every_night(checkout: Checkout) -> None:
    before = checkout.cells()
    checkout.write("exp/train.py", "three\n")
    commit = checkout.commit("three")
    after = checkout.cells()
    assert commit in str(root_of(after["t@main"]))
    assert root_of(after["t@v1"]) == root_of(before["t@v1"])


def test_a_snapshot_of_a_state_carries_its_commit_and_finds_what_git_ignores(checkout: Checkout) -> None:
    task = checkout.cells()["t@v1"]
    top = root_of(task).parent
    taken = CodeStore(checkout.home / "code").take(top)
    assert taken.commit is not None
    assert (taken.commit.commit, taken.commit.is_dirty) == (checkout.git("rev-parse", "v1"), False)
    assert (top / "big" / "rows").read_text() == "many\n"


def test_data_of_the_repository_is_the_states_and_all_other_stays_where_it_is(checkout: Checkout) -> None:
    task = checkout.cells()["t@v1"]
    rows, big = task.data
    assert (Path(rows.path), rows.fingerprint) == (root_of(task).parent / "rows.csv", "sha256")
    assert (Path(big.path).resolve(), big.fingerprint) == (checkout.top / "big", "manifest")


def test_what_can_not_be_run_is_told_by_its_place_and_nothing_is_written(checkout: Checkout) -> None:
    checkout.file.write_text(SWEEP.replace("[main, v1]", "[v2, main]"))
    assert "matrix.code.0: there is no branch, tag or commit 'v2'" in checkout.problem()
    checkout.file.write_text(SWEEP)
    checkout.git("mv", "exp/train.py", "exp/other.py")
    checkout.commit("moved")
    checkout.write("exp/train.py", "new\n")
    assert "has no train.py, which job.command of task t names" in checkout.problem()
    checkout.commit("back")
    checkout.write(".gitattributes", "*.bin filter=lfs\n")
    checkout.commit("lfs")
    assert "keeps files in git LFS (.gitattributes)" in checkout.problem()
    inner = checkout.git("rev-parse", "v1")
    checkout.git("rm", "-q", ".gitattributes")
    checkout.git("update-index", "--add", "--cacheinfo", f"160000,{inner},vendor/lib")
    checkout.git("commit", "-qm", "module")
    assert "has submodules (vendor/lib)" in checkout.problem()


def test_a_check_and_code_in_no_repository_write_nothing(checkout: Checkout, tmp_path: Path) -> None:
    found = examine(checkout.file, read_task=load_task, now=0.0)
    assert [one.message for one in found.night.notes] == [
        f"{name} is commit {checkout.git('rev-parse', name)} now" for name in ("main", "v1")
    ]
    assert not checkout.home.exists()
    (checkout.top / ".git/HEAD").rename(tmp_path / "HEAD")
    assert "git does not answer in" in checkout.problem()
    (checkout.top / ".git").rename(tmp_path / "moved")
    assert "is in no git repository; leave matrix.code out" in checkout.problem()


def test_states_are_bounded_and_those_in_use_stay(tmp_path: Path) -> None:
    folders = [states_folder(tmp_path) / f"s{n}" for n in range(N_KEPT + 3)]
    for at, folder in enumerate(folders):
        folder.mkdir(parents=True)
        os.utime(folder, (at, at))
    assert forget_unused(tmp_path, [folders[0] / "exp"], now=KEPT_S) == []
    assert sorted(forget_unused(tmp_path, [folders[0] / "exp"], now=KEPT_S + 2.5)) == sorted(folders[1:3])
    assert folders[0].is_dir()
