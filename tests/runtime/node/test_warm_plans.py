"""Which commands can start warm, and what a script is seen to import."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from runtime.node.command import Rendered
from runtime.node.entry_points import EntryPoint, NotWarm, entry_point
from runtime.node.imports import suggested

PATH = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t.py").write_text("import numpy\n")
    return tmp_path


def found(folder: Path, command: str | tuple[str, ...], **variables: str) -> EntryPoint:
    is_shell = isinstance(command, str)
    argv = ("/bin/bash", "-c", command) if isinstance(command, str) else command
    return entry_point(Rendered(argv=argv, is_shell=is_shell), folder, {**PATH, **variables})


@pytest.mark.parametrize(
    ("command", "words", "module"),
    [
        ("python t.py", ("t.py",), None),
        ("python3 t.py --lr 1e-3 'a b'", ("t.py", "--lr", "1e-3", "a b"), None),
        (("python", "t.py", "$HOME"), ("t.py", "$HOME"), None),
        ((sys.executable, "t.py"), ("t.py",), None),
        ("python -m pkg.train -x", ("-m", "pkg.train", "-x"), "pkg.train"),
    ],
)
def test_a_plain_python_command_can_start_warm(
    folder: Path, command: str | tuple[str, ...], words: tuple[str, ...], module: str | None
) -> None:
    entry = found(folder, command)
    assert (entry.words, entry.module) == (words, module)
    assert Path(entry.program).parent == Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [
        "python t.py | tee log", "python t.py && echo", "X=1 python t.py", "python t.py $HOME", "python t.py > o",
        "cd sub; python t.py", 'python t.py "a"', "python t.py *.txt", "python t.py ~", "python t.py # no",
        "python t.py {a,b}",
        "bash t.sh", "torchrun t.py", ("env", "python", "t.py"),
        "python -u t.py", "python -c 'print(1)'", "python", "python missing.py", "python .", "no-python/python t.py",
    ],
)  # fmt: skip
def test_everything_else_starts_cold(folder: Path, command: str | tuple[str, ...]) -> None:
    with pytest.raises(NotWarm):
        found(folder, command)


def test_a_relative_search_path_starts_cold(folder: Path) -> None:
    with pytest.raises(NotWarm, match="relative"):
        found(folder, "python t.py", PYTHONPATH="src")
    found(folder, "python t.py", PYTHONPATH="/opt/lib")


def test_a_version_managers_script_starts_cold(folder: Path) -> None:
    shim = folder / "bin" / "python"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\n")
    shim.chmod(0o755)
    with pytest.raises(NotWarm, match="looks for the interpreter"):
        found(folder, "python t.py", PATH=str(shim.parent))


def suggestion(folder: Path, source: str, **beside: str) -> tuple[str, ...]:
    (folder / "t.py").write_text(source)
    for name, text in beside.items():
        (folder / f"{name}.py").write_text(text)
    return suggested(folder / "t.py", folder)


def test_installed_packages_are_suggested_in_order(folder: Path) -> None:
    source = "import os, numpy as np\nfrom sklearn.linear_model import Ridge\nimport mlflow.data\nfrom . import x\n"
    assert suggestion(folder, source) == ("numpy", "sklearn.linear_model", "mlflow.data")


def test_modules_beside_the_script_are_followed_and_never_suggested(folder: Path) -> None:
    assert suggestion(folder, "import near\n", near="import far\nimport torch\n", far="import numpy\n") == (
        "numpy",
        "torch",
    )


def test_what_may_not_be_imported_is_not_suggested(folder: Path) -> None:
    tried = "try:\n    import wandb\nexcept ImportError: pass\n"
    source = f"import numpy\n{tried}if X:\n    import jax\ndef f():\n    import torch\n"
    assert suggestion(folder, source) == ("numpy",)


@pytest.mark.parametrize(
    "change",
    [
        "os.environ['OMP_NUM_THREADS'] = '4'", "os.environ.setdefault('A', 'b')", "os.environ.update(A='b')",
        "environ['A'] = 'b'", "del os.environ['A']", "os.putenv('A', 'b')", "sys.path.insert(0, 'src')",
        "sys.path = []",
        "os.chdir('/')", "def f(): os.environ['A'] = 'b'\nf()", "if True: os.environ['A'] = 'b'",
        "mp.set_start_method('spawn')", "from settings import x",
    ],
)  # fmt: skip
def test_a_script_that_changes_what_imports_read_before_them_starts_cold(folder: Path, change: str) -> None:
    settings = "import os\nos.environ['A'] = 'b'\nx = 1\n"
    with pytest.raises(NotWarm, match="changes the environment"):
        suggestion(folder, f"{change}\nimport numpy\n", settings=settings)


def test_reading_the_environment_or_changing_it_afterwards_does_no_harm(folder: Path) -> None:
    source = "import os\nseed = os.environ['S']\nx = os.environ.get('A')\nimport numpy\nos.environ['B'] = 'c'\n"
    assert suggestion(folder, source) == ("numpy",)


@pytest.mark.parametrize("source", ["import os, json\n", "x = (\n", "\0", ""])
def test_without_imports_of_packages_there_is_nothing_to_keep_warm(folder: Path, source: str) -> None:
    with pytest.raises(NotWarm, match="no installed package"):
        suggestion(folder, source)
