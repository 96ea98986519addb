"""Folders of code and workshops on them, for tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from agent.edits import EditRules, Workshop, workshop_folder

RULES = EditRules(editable=("model.py",))
FILES = {"train.py": "import model\n", "model.py": "a = 1\nb = 2\n", "run.sh": "#!/bin/sh\n"}


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def code(tmp_path: Path, files: Mapping[str, str | bytes] = FILES) -> Path:
    """A folder without git."""
    root = tmp_path / "code"
    write(root, files)
    if (root / "run.sh").exists():
        (root / "run.sh").chmod(0o755)
    return root


def git(folder: Path, *words: str, check: bool = True) -> str:
    identity = ("-c", "user.name=u", "-c", "user.email=u@localhost", "-c", "protocol.file.allow=always")
    answer = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=False)
    if check and answer.returncode != 0:
        raise AssertionError(answer.stderr)
    return answer.stdout


def committed(root: Path) -> Path:
    if not (root / ".git").exists():
        git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "as it is")
    return root


def workshop(root: Path, rules: EditRules = RULES, *, limit_mb: int = 64) -> Workshop:
    return Workshop.open(workshop_folder(root.parent / "home", "s1"), root, rules, limit_mb=limit_mb)


def seen(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Kind and content of everything in a folder but folders, without `.git` and what checkouts say of themselves."""
    found = {}
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in (*names, *folders):
            path = Path(top, name)
            if path.is_symlink():
                found[str(path.relative_to(folder))] = ("link", os.fsencode(os.readlink(path)))
            elif path.is_file() and name != ".nightlab-all-is-code":
                kind = "program" if path.stat().st_mode & 0o100 else "file"
                found[str(path.relative_to(folder))] = (kind, path.read_bytes())
    return found
