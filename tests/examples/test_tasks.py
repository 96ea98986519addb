"""The task files of the examples, and the script that knows no tracking library."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent.task_file import load_task

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FOLDERS = sorted(path.parent for path in EXAMPLES.glob("*/task.yaml"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_task_file_is_valid_and_points_at_its_folder(folder):
    task = load_task(folder / "task.yaml")
    assert task.task == folder.name
    assert task.job.code_source is not None
    assert Path(task.job.code_source.root_path) == folder


SCRIPTS = [*EXAMPLES.glob("*/*.py"), *EXAMPLES.glob("code/*/*.py")]
ASK = {EXAMPLES / "code" / "candidates.py"}  # of the scorers: how they ask what was trained


@pytest.mark.parametrize("script", sorted({*SCRIPTS} - ASK), ids=lambda script: f"{script.parent.name}-{script.stem}")
def test_training_scripts_import_nothing_of_ours(script):
    names = set()
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    assert names.isdisjoint({"nightlab", "runtime", "runtime_client", "agent", "prompts"})


def test_every_searched_parameter_is_an_option_of_the_digits_script():
    task = load_task(EXAMPLES / "digits" / "task.yaml")
    script = (EXAMPLES / "digits" / "train.py").read_text()
    options = set(re.findall(r'add_argument\("--(\w+)"', script))
    assert task.fidelity is not None
    assert task.held_out is not None
    wanted = {*task.space, task.fidelity.parameter, *task.held_out.parameters, "seed"}
    assert wanted <= options


def test_plain_script_prints_what_its_pattern_reads():
    task = load_task(EXAMPLES / "plain" / "task.yaml")
    (source,) = task.job.metric_sources
    assert source.kind == "stdout_pattern"
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "plain" / "fit.py"), "--steps", "40"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found = [match.groupdict() for match in map(re.compile(source.pattern).search, done.stdout.splitlines()) if match]
    assert [int(m["step"]) for m in found] == [20, 40]
    assert {m["name"] for m in found} == {task.objective.metric}
    assert float(found[1]["value"]) < float(found[0]["value"])
