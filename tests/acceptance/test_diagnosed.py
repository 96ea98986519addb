"""The failure doctor on real jobs: what really failed, and outputs that want to harm whoever reads them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

import pytest
from command import nightlab
from fault_lab import FaultLab

pytestmark = pytest.mark.acceptance

SCRIPTS = {
    "shapes": ("import numpy as np\nnp.zeros(3) + np.zeros(4)\n", "shape"),
    "wrapped": (
        "def load():\n    try:\n        open('/no/data.bin')\n    except OSError:\n"
        "        raise RuntimeError('the data could not be loaded')\nload()\n",
        "missing_file",
    ),
    "quiet": ("import sys\nprint('step 1')\nsys.exit(4)\n", "unknown"),
    "nothing": ("import os\nos._exit(1)\n", "unknown"),
    "killed": ("import os\nos.kill(os.getpid(), 9)\n", "killed"),
    "binary": ("import os, sys\nsys.stdout.buffer.write(os.urandom(300_000))\nsys.exit(1)\n", "unknown"),
    "colors": (
        "import sys\nsys.stdout.write('\\x1b[2J\\x1b]0;owned\\x07\\x9b31m\\u202eevil' * 50)\nsys.exit(1)\n",
        "unknown",
    ),
    "one_long_line": (
        "import sys\nfor n in range(1000):\n    sys.stdout.write('x' * 1_000_000)\nsys.stdout.flush()\n"
        "raise ValueError('after a gigabyte')\n",
        "code",
    ),
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultLab]:
    with FaultLab(tmp_path_factory.mktemp("diagnosed")) as lab:
        yield lab


@pytest.fixture(scope="module")
def job_ids(lab: FaultLab, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Each script as a job that has ended."""
    folder = tmp_path_factory.mktemp("scripts")
    found = {}
    for name, (code, _) in SCRIPTS.items():
        (folder / f"{name}.py").write_text(code)
        command = ("--python", sys.executable, "--cwd", str(folder), "--", "python", f"{name}.py")
        said = nightlab("job", "run", "--json", *command, home=lab.home)
        found[name] = str(json.loads(said.out)["data"]["job_id"])
    for job_id in found.values():
        nightlab("job", "logs", job_id, "-f", "--json", home=lab.home)
    return found


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_job_is_diagnosed_whatever_it_printed(name: str, lab: FaultLab, job_ids: dict[str, str]) -> None:
    started = time.monotonic()
    said = nightlab("job", "diagnose", job_ids[name], "--json", home=lab.home)
    assert said.exit_code == 0, said.out + said.err
    found = json.loads(said.out)["data"]
    assert found["failure"] == SCRIPTS[name][1], found
    assert time.monotonic() - started < 30
    page = nightlab("job", "diagnose", job_ids[name], home=lab.home)
    assert page.exit_code == 0
    assert len(page.out) < 10_000
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(page.out)


def test_a_job_that_has_not_failed_is_said_to_be_fine(lab: FaultLab) -> None:
    run = nightlab("job", "run", "--json", "--", "true", home=lab.home)
    job_id = str(json.loads(run.out)["data"]["job_id"])
    nightlab("job", "logs", job_id, "-f", "--json", home=lab.home)
    said = nightlab("job", "diagnose", job_id, home=lab.home)
    assert said.exit_code == 1
    assert "nothing has failed there" in said.err
    assert nightlab("job", "diagnose", "j999999", home=lab.home).exit_code == 2
    assert nightlab("job", "diagnose", job_id, "--attempt", "7", home=lab.home).exit_code == 2
