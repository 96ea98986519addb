"""The command as a person types it: exit code, output, and that no traceback is ever shown."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    exit_code: int
    out: str
    err: str


def nightlab(*arguments: str, home: Path, timeout_s: float = 120.0) -> Said:
    """Run it to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "nightlab", *arguments],
        env=clean_environment(home),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    assert done.returncode != 4, done.stderr
    return Said(exit_code=done.returncode, out=done.stdout, err=done.stderr)


def clean_environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NIGHTLAB_", "MLFLOW_"))}
    return {**kept, "NIGHTLAB_HOME": str(home)}
