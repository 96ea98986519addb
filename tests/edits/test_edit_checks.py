"""What is told of changed code before it runs, and which paths the rules name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agent.edits import EditRules, installed_modules, objections
from agent.edits.rules import matches

RULES = EditRules(editable=("*.py", "notes.txt"), private=("score.py",), max_changed_lines=10, max_bytes=200)
SOURCES = {"model.py": b"import os\nx = 1\n", "notes.txt": b"n\n"}


def told(path: str, content: bytes, sources: dict[str, bytes] = SOURCES, **more: object) -> list[str]:
    return objections({path: content}, sources, RULES, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "content", "why"),
    [
        ("model.py", b"def f(:\n    pass\n", "model.py, line 1: Python 3.* can not read it: invalid syntax"),
        ("model.py", b"return 1\n", "'return' outside function"),
        ("model.py", b"x = 1\0\n", "null bytes"),
        ("model.py", b"# coding: nonsense\nx = 1\n", "unknown encoding"),
        ("model.py", b"(" * 150, "can not read it"),
        ("model.py", b"-" * 199, "can not read it"),
        ("model.py", b"if x is 1: pass\n", '"is" with a literal'),
        ("model.py", b"x = '\\d'\n", "invalid escape sequence"),
        ("model.py", b" \n", "left without content"),
        ("model.py", b"x = 1\n" * 40, "240 bytes, and 200 are allowed"),
        ("model.py", b"y = 2\n" * 9, "at least 11 lines differ from the base, and 10 are allowed"),
        ("score.py", b"x = 1\n", "score.py may not be edited"),
        ("run.sh", b"x\n", "run.sh may not be edited"),
    ],
)
def test_objections(path: str, content: bytes, why: str) -> None:
    import re

    assert any(re.search(why, sentence) for sentence in told(path, content))


def test_what_is_right_or_was_so_before_is_no_objection() -> None:
    assert told("model.py", b"import os\nx = 2\n") == []
    assert told("notes.txt", b"def f(:\n") == []
    assert told("new.py", b"") == []
    before = {"model.py": b"x = '\\d'\nimport nowhere\ny = 1\n"}
    assert told("model.py", b"x = '\\d'\nimport nowhere\ny = 2\n", before, installed=frozenset()) == []
    large = {"notes.txt": b"n" * 300}
    assert told("notes.txt", b"n" * 299, large) == []


def test_code_is_never_executed(tmp_path: Path) -> None:
    content = f"open({str(tmp_path / 'ran')!r}, 'w')\n".encode()
    rules = EditRules(editable=("*.py",))
    assert objections({"model.py": content}, {}, rules, installed=frozenset()) == []
    assert not (tmp_path / "ran").exists()


def test_text_that_brings_a_compiler_down_harms_nobody_else() -> None:
    rules = EditRules(editable=("*.py",))
    bomb = b"[" + b"a for a in " * 90_000 + b"b]\n"
    (sentence,) = objections({"model.py": bomb, "other.py": b"x = 1\n"}, {}, rules)
    assert sentence.startswith("model.py, line 1: ")


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("kill -SEGV $$", ["model.py, line 1: reading it makes Python crash; write it in simpler statements"]),
        ("kill -XCPU $$", ["model.py, line 1: it takes Python too long to read it; write it in simpler statements"]),
        ("exit 1", []),
        (f"exec {sys.executable} $*", []),
    ],
)
def test_the_jobs_python_compiles(tmp_path: Path, does: str, told: list[str]) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n{does}\n")
    python.chmod(0o755)
    rules = EditRules(editable=("*.py",))
    assert objections({"model.py": b"x = 2\n"}, SOURCES, rules, python=str(python)) == told
    assert (tmp_path / "ran").exists()
    assert objections({"model.py": b"x = 2\n"}, SOURCES, rules, python=str(tmp_path / "none")) == []


def test_lines_are_counted_against_the_base() -> None:
    base = {"model.py": b"".join(b"a%d\n" % n for n in range(8))}
    parent = {"model.py": b"b\n"}
    assert told("model.py", b"c\n", parent) == []
    assert "at least 9 lines" not in str(told("model.py", b"c\n", parent, base=base))
    far = {**base, "other.py": b"z\nz\n"}
    assert "at least 11 lines" in str(told("model.py", b"c\n", {**parent, "other.py": b""}, base=far))


@pytest.mark.parametrize(
    "content",
    [
        b"import nowhere\n",
        b"def f():\n    from nowhere.deep import x\n",
        b"try:\n    import nowhere\nexcept ValueError:\n    pass\n",
    ],
)
def test_imports_of_what_is_nowhere_are_told(content: bytes) -> None:
    assert "no module nowhere in the jobs' Python" in str(told("model.py", content, installed=frozenset({"numpy"})))
    assert told("model.py", content) == []


@pytest.mark.parametrize(
    "content",
    [
        b"import numpy.linalg, json\n",
        b"from lib.deep import x\nimport other, notes\n",
        b"from . import nowhere\nfrom .nowhere import x\n",
        b"try:\n    import nowhere\nexcept ImportError:\n    nowhere = None\n",
        b"try:\n    import nowhere\nexcept (ValueError, ModuleNotFoundError):\n    pass\n",
        b"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import nowhere\n",
    ],
)
def test_imports_that_may_be_there_are_not(content: bytes) -> None:
    assert told("model.py", content, paths=["src/lib/deep.py", "other.py"], installed=frozenset({"numpy"})) == []


def test_modules_are_asked_of_the_jobs_python(tmp_path: Path) -> None:
    found = installed_modules(sys.executable)
    assert found is not None
    assert {"pytest", "numpy", "json", "sys", "agent"} <= found
    assert "nowhere" not in found
    assert installed_modules(str(tmp_path / "python")) is None
    assert installed_modules("/bin/false") is None


@pytest.mark.parametrize(
    ("pattern", "named", "others"),
    [
        ("model.py", ["model.py", "model.py/x"], ["xmodel.py", "a/model.py", "model.pyc"]),
        ("./model.py", ["model.py"], ["a/model.py"]),
        ("models/", ["models/a.py", "models/b/c.py"], ["models2/a.py"]),
        ("models/*.py", ["models/a.py"], ["models/b/c.py", "models/a.txt"]),
        ("models/**", ["models/a.py", "models/b/c.py"], ["a.py"]),
        ("**/net.py", ["net.py", "a/b/net.py"], ["a/subnet.py"]),
        ("v?.py", ["v1.py"], ["v10.py", "v/.py"]),
        ("v[0-9].py", ["v1.py"], ["va.py"]),
        ("v[!0-9].py", ["va.py"], ["v1.py", "v/.py"]),
        ("v[z-a].py", ["v[z-a].py"], ["vz.py"]),
        ("a+(b).py", ["a+(b).py"], ["aab.py"]),
    ],
)
def test_patterns(pattern: str, named: list[str], others: list[str]) -> None:
    assert [path for path in (*named, *others) if matches(path, pattern)] == named


@pytest.mark.parametrize(
    "path", [".git/config", ".gitmodules", "lib/.gitattributes", ".github/workflows/x.yml", "a/__pycache__/x.py"]
)
def test_what_steers_git_or_a_service_is_not_editable(path: str) -> None:
    assert not EditRules(editable=("**", ".github")).is_editable(path)
