"""What the person's shell says about where they work: which Python, which folder. Reads the environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from .failure import wrong_use


def present_python() -> str | None:
    """The interpreter that `python` means in this shell: the active venv's, conda's, or the one on PATH."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = os.environ.get(variable)
        if prefix:
            for name in ("python", "python3"):
                candidate = Path(prefix) / "bin" / name
                if os.access(candidate, os.X_OK):
                    return str(candidate.absolute())
    found = shutil.which("python3") or shutil.which("python")
    return None if found is None else _behind_shim(Path(found).absolute())


def _behind_shim(python: Path) -> str:
    """The interpreter itself where a version manager put a script in its place, which depends on the folder."""
    with python.open("rb") as file:
        is_script = file.read(2) == b"#!"
    if not is_script:
        return str(python)
    asked = [str(python), "-c", "import sys; print(sys.executable)"]
    answer = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=False)
    return answer.stdout.strip() or str(python)


def named_python(text: str, *, named_by: str = "--python") -> str:
    """The absolute path of an interpreter: a file, the folder of an environment, or a name on PATH.

    `named_by` is the option or the place in a file that says so.

    Raises:
        Failure: there is no such interpreter.
    """
    given = Path(text).expanduser()
    inside = given / "bin" / "python"
    if given.is_dir() and os.access(inside, os.X_OK):
        return str(inside.absolute())
    if "/" not in text and (found := shutil.which(text)):
        return _behind_shim(Path(found).absolute())
    if given.is_file() and os.access(given, os.X_OK):
        return str(given.absolute())
    what = "does not exist" if not given.exists() else "is no Python interpreter that can be run"
    raise wrong_use(
        f"{named_by} {text}: {given.absolute()} {what}; give the path of an interpreter or of a virtual environment.",
        code="bad_python",
        path="environment.python",
    )


def experiment_for(folder: Path) -> str:
    """A legal experiment name from the name of a folder."""
    name = re.sub(r"[^A-Za-z0-9_.\-]+", "-", folder.name).lstrip("_.-")
    return name[:100] or "default"
