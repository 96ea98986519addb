"""What an attempt ran with, for whoever wants to run it again: `provenance.json` in its folder. No secrets."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from runtime.node import records

FILE = "provenance.json"
HIDDEN = "(hidden)"
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|APIKEY|_KEY$|^KEY$|_KEY_|_PAT$", re.IGNORECASE)
_DRIVER = Path("/proc/driver/nvidia/version")


def write(folder: Path, order: Mapping[str, Any], *, snapshot_id: str | None, device_kinds: Sequence[str]) -> None:
    """Beside the order of an attempt. Raises OSError."""
    environment: dict[str, str] = order["env"]
    python = shutil.which("python", path=environment["PATH"])
    record = {
        "command": order["argv"],
        "working_folder": order["cwd"],
        "code_snapshot": snapshot_id,
        "environment": {name: shown(name, value) for name, value in sorted(environment.items())},
        "python": python,
        "python_version": None if python is None else python_version(Path(python).parent.parent),
        "packages": [] if python is None else list(packages(Path(python).parent.parent)),
        "devices": list(device_kinds),
        "driver": _DRIVER.read_text().splitlines()[0] if _DRIVER.exists() else None,
        "machine": {"hostname": platform.node(), "kernel": platform.release(), "processors": os.cpu_count()},
    }
    records.write_text(str(folder / FILE), json.dumps(record, indent=1))


def python_version(prefix: Path) -> str | None:
    """`3.11`, by the name of an environment's library folder; None: it has none, or several."""
    found = [place.parent.name.removeprefix("python") for place in prefix.glob("lib/python3*/site-packages")]
    return found[0] if len(found) == 1 else None


def packages(prefix: Path) -> tuple[str, ...]:
    """`name==version` of what is installed in an environment, by the names of its folders."""
    places = sorted(prefix.glob("lib/python3*/site-packages"))
    return _listed(tuple((str(place), place.stat().st_mtime_ns) for place in places))


@lru_cache(maxsize=32)
def _listed(places: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    """By folder and time of its last change, so that it is listed once as long as nothing is installed."""
    found = set()
    for place, _ in places:
        for name in os.listdir(place):
            if name.endswith(".dist-info"):
                package, _, version = name.removesuffix(".dist-info").partition("-")
                found.add(f"{package}=={version}")
    return tuple(sorted(found, key=str.lower))


def shown(name: str, value: str) -> str:
    """The value of a variable, unless its name says that it is a secret."""
    return HIDDEN if _SECRET.search(name) else value
