"""Which modules a Python installation has: asked of it once, by names of files alone; nothing is imported there."""

from __future__ import annotations

import os
import subprocess
from functools import lru_cache
from pathlib import Path

_WITHIN_S = 30.0
_QUESTION = """
import os, sys
names = set(sys.builtin_module_names) | set(getattr(sys, "stdlib_module_names", ()))
for place in sys.path:
    if place and os.path.isdir(place):
        names |= {name.partition(".")[0] for name in os.listdir(place) if not name.endswith("-info")}
for finder in sys.meta_path:
    module = sys.modules.get(getattr(finder, "__module__", ""))
    for attribute in ("MAPPING", "NAMESPACES"):
        names |= {name.partition(".")[0] for name in getattr(module, attribute, ())}
print("\\n".join(sorted(name for name in names if name.isidentifier())))
"""


def installed_modules(python: str) -> frozenset[str] | None:
    """Top names of all modules that a Python can import; None: it does not answer."""
    try:
        return _asked(python, os.stat(_site(python)).st_mtime_ns)
    except OSError:
        return _asked(python, 0)


def _site(python: str) -> Path:
    """The folder that changes when something is installed, as far as it can be told by its name."""
    prefix = Path(python).parent.parent
    return next(iter(sorted(prefix.glob("lib/python3*/site-packages"))), prefix)


@lru_cache(maxsize=8)
def _asked(python: str, changed_ns: int) -> frozenset[str] | None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    try:
        answer = subprocess.run(
            [python, "-c", _QUESTION],
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return frozenset(answer.stdout.decode().split()) if answer.returncode == 0 else None
