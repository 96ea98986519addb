"""`nightlab research diff` and `take`: what a trial changed is shown, and brought to the user's repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from ended_session import TASK, ended_session

from agent.edits import EditRules, Workshop, workshop_folder
from agent.store.store import AgentStore
from agent.store.tables import sessions, trials
from agent.store.views import CodeState, TrialFacts
from nightlab.commands.research_code import diff, take
from nightlab.failure import Failure

pytestmark = pytest.mark.code

RULES = EditRules(editable=("*.py",))


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=u", "-c", "user.email=u@localhost")
    return subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "my code"
    root.mkdir()
    (root / "model.py").write_text("a = 1\nb = 2\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "as it is")
    return root


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("ended") / "home"
    ended_session(home)
    return home


@pytest.fixture
def home(tmp_path: Path, root: Path, ended: Path) -> Path:
    """An ended session: its winner has edited code, made from the edit of another trial."""
    home = shutil.copytree(ended, tmp_path / "home")
    shop = Workshop.open(workshop_folder(home, "s1"), root, RULES)
    with closing(AgentStore.open(home)) as store:
        result = store.session("s1").result
        assert result is not None
        found = store.trials("s1")
        winner = next(one for one in found if one.configuration == result.best_configuration)
        parent = next(one for one in found if one.configuration != result.best_configuration)
    first = commit(shop, shop.base, {"model.py": b"a = 1\nb = 3\n"}, parent.trial_id, None)
    more = {"nets.py": b"n = '\x1b[2J'\n"}
    second = commit(shop, first, more, winner.trial_id, parent.trial_id)
    code = {"editable": ["*.py"]}
    set_rows(home, {parent.trial_id: first, winner.trial_id: second}, {**TASK, "code": code})
    return home


def commit(shop: Workshop, before: CodeState, changed: dict[str, bytes], trial: str, parent: str | None) -> CodeState:
    return shop.commit(before, changed, trial=trial, message=f"better by {trial}", parent_trial=parent)


def set_rows(home: Path, states: dict[str, CodeState], task: dict[str, Any]) -> None:
    engine = sa.create_engine(f"sqlite:///{home / 'agent.db'}")
    with engine.begin() as connection:
        for trial_id, state in states.items():
            facts = asdict(TrialFacts(edited=state))
            connection.execute(sa.update(trials).where(trials.c.trial_id == trial_id).values(facts=facts))
        connection.execute(sa.update(sessions).values(task_json=json.dumps(task)))
    engine.dispose()


def asked(capsys: pytest.CaptureFixture[str], **options: Any) -> dict[str, Any]:
    """`research diff s1 --json`."""
    diff("s1", **{"trial_id": None, "stat": False, "parent": False, **options}, as_json=True)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)["data"]
    return found


def test_the_winners_change_is_shown(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = asked(capsys, home=home)
    assert [(one["path"], one["added"], one["removed"]) for one in whole["files"]] == [
        ("model.py", 1, 1),
        ("nets.py", 1, 0),
    ]
    assert (whole["against"], whole["summary"]) == ("base", f"better by {whole['trial_id']}")
    alone = asked(capsys, home=home, parent=True)
    assert alone["against"] == whole["parent"]
    assert [one["path"] for one in alone["files"]] == ["nets.py"]
    assert asked(capsys, home=home, trial_id=whole["parent"])["files"] == whole["files"][:1]
    diff("s1", None, stat=True, parent=False, home=home, as_json=False)
    assert capsys.readouterr().out.endswith(
        " model.py |    2 +-\n nets.py  |    1 +\n 2 files, 2 lines added, 1 removed\n"
    )


def test_piped_it_is_the_patch_and_a_terminal_is_not_steered(
    home: Path, root: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    diff("s1", None, stat=False, parent=False, home=home, as_json=False)
    patch = capfdbinary.readouterr().out
    subprocess.run(["git", "apply", "--check"], cwd=root, input=patch, check=True)
    assert b"\x1b" in patch
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    diff("s1", None, stat=False, parent=False, home=home, as_json=False)
    shown = capfdbinary.readouterr().out
    assert shown.count(b"\n") == patch.count(b"\n")
    assert b"\x1b" not in shown


def test_it_is_taken_as_a_branch(home: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial_id = asked(capsys, home=home)["trial_id"]
    take("s1", None, None, None, home, as_json=True)
    made = json.loads(capsys.readouterr().out)["data"]
    assert (made["branch"], made["trial_id"]) == (f"nightlab/{trial_id}", trial_id)
    said = git(root, "log", "-1", "--format=%B", made["branch"])
    assert said.startswith(f"better by {trial_id}\n\nTrial {trial_id} of toy, suggested by ")
    assert "Measured: " in said
    assert git(root, "status", "--porcelain") == ""
    with pytest.raises(Failure, match=f"there is a branch nightlab/{trial_id}"):
        take("s1", None, None, None, home, as_json=True)
    take("s1", None, "mine", None, home, as_json=False)
    told = capsys.readouterr()
    assert told.out == "mine\n"
    assert f"git -C '{root}' merge mine" in told.err


def test_it_is_taken_as_a_patch(
    home: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = tmp_path / "better.patch"
    take("s1", None, None, patch, home, as_json=False)
    assert f"cd '{root}' && git apply {patch}" in capsys.readouterr().err
    subprocess.run(["patch", "-s", "-p1", "-i", str(patch)], cwd=root, check=True)
    assert (root / "model.py").read_text() == "a = 1\nb = 3\n"
    with pytest.raises(Failure, match="is there already"):
        take("s1", None, None, patch, home, as_json=False)
    with pytest.raises(Failure, match="can not be written"):
        take("s1", None, None, tmp_path / "nowhere/x", home, as_json=False)


def test_code_of_no_repository_is_taken_as_a_patch(
    home: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = workshop_folder(home, "s1") / "code.git/nightlab.json"
    known = json.loads(record.read_text())
    record.write_text(json.dumps({**known, "origin": {**known["origin"], "commit": None, "is_repository": False}}))
    monkeypatch.chdir(tmp_path)
    take("s1", None, None, None, home, as_json=True)
    made = json.loads(capsys.readouterr().out)["data"]
    assert made["patch"] == str(tmp_path / f"{made['trial_id']}.patch")
    assert (tmp_path / f"{made['trial_id']}.patch").read_bytes().startswith(b"diff --git a/model.py b/model.py\n")
    with pytest.raises(Failure, match="in no git repository; take the change as a patch"):
        take("s1", None, "name", None, home, as_json=True)


def test_what_can_not_be_shown_or_taken_says_why(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = asked(capsys, home=home)
    both = f"edited code: .*{found['trial_id']}"
    with pytest.raises(Failure, match="give --branch or --patch"):
        take("s1", None, "x", tmp_path / "y", home, as_json=True)
    with pytest.raises(Failure, match=f"s1 has no trial s1-t99; {both}"):
        asked(capsys, home=home, trial_id="s1-t99")
    with closing(AgentStore.open(home)) as store:
        plain = next(one.trial_id for one in store.trials("s1") if one.facts.edited is None)
    with pytest.raises(Failure, match=f"{plain} ran the code as it was; {both}"):
        asked(capsys, home=home, trial_id=plain)
    os.rename(workshop_folder(home, "s1"), tmp_path / "away")
    with pytest.raises(Failure, match="no edited code in"):
        asked(capsys, home=home)
    state = CodeState(tree="1" * 40, commit="2" * 40, branch="trial/x")
    set_rows(home, {found["trial_id"]: state}, TASK)
    with pytest.raises(Failure, match="s1 edits no code"):
        asked(capsys, home=home)
