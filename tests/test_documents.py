"""The documents are true: links lead somewhere, and the commands shown exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("bench/*.md"),
        *ROOT.glob("examples/**/*.md"),
        ROOT / "nightlab/outside/SKILL.md",
    ]
)
COMMAND = re.compile(r"^(?:\$ )?nightlab ([a-z]+)(?: ([a-z]+))?", re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_relative_links_lead_somewhere(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    broken = [link for link in links if "://" not in link and not (document.parent / link).exists()]
    assert not broken


def test_readme_shows_both_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme


def test_commands_shown_in_documents_exist() -> None:
    blocks = [b for d in DOCUMENTS for b in re.findall(r"```.*?```", d.read_text(), flags=re.DOTALL)]
    shown = {tuple(w for w in match if w) for block in blocks for match in COMMAND.findall(block)}
    assert shown
    groups = {words[0] for words in shown}
    help_by_group = {g: _help(g) for g in groups}
    missing = [w for w in shown if len(w) == 2 and _is_group(help_by_group[w[0]]) and w[1] not in help_by_group[w[0]]]
    assert not missing


def _help(*words: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-m", "nightlab", *words, "--help"], capture_output=True, text=True, check=False, timeout=60
    )
    assert answer.returncode == 0, f"nightlab {' '.join(words)}: {answer.stderr}"
    return answer.stdout


def _is_group(help_text: str) -> bool:
    return "Commands" in help_text


def test_constraints_pin_every_dependency_and_name_no_host() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all("==" in pin for pin in pins)
    assert not [pin for pin in pins if "://" in pin]
    pinned = {re.split(r"[=\[ ]", pin)[0].lower().replace("_", "-") for pin in pins}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(d for extra in project["optional-dependencies"].values() for d in extra)]
    names = {re.split(r"[><=\[ ]", d)[0].lower().replace("_", "-") for d in wanted} - {"nightlab"}
    assert names <= pinned
