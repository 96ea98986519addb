"""The wheel brings the built page along, and none of its sources."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from agent.web.page_files import BUILT

ROOT = Path(__file__).parents[2]


def test_the_wheel_has_the_built_page_and_none_of_its_sources(tmp_path: Path) -> None:
    uv = Path(sys.executable).parent / "uv"
    subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", tmp_path, ROOT], check=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    built = {f"agent/web/static/{file.relative_to(BUILT)}" for file in BUILT.rglob("*") if file.is_file()}
    assert built
    assert built <= names
    assert not [name for name in names if name.startswith("agent/web/page/")]
