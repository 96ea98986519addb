"""Run the scripts of `scripts.toml` and keep what each of them printed under `cases/`. For people; no test runs it.

Use: python record.py PYTHON [NAME ...], with a Python that has torch, jax, xgboost, scikit-learn, pandas, transformers,
hydra-core and click.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_LIMIT_S = 120


def record(name: str, how: dict[str, Any], python: str) -> str:
    """The case as text: what is expected, how it ended, what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / how.get("file", "train.py")
        if "code" in how:
            script.write_text(how["code"].lstrip(), encoding="utf-8")
        command = _command(how, python, str(script))
        ended = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_LIMIT_S, check=False
        )
        text = _placeless(ended.stdout.decode("utf-8", "replace"), folder, python)
    head = f"failure: {how['failure']}\nexit_code: {ended.returncode}\nsource: recorded from scripts.toml\n"
    return f"{head}{'n_ranks: ' + str(how['torchrun']) + chr(10) if 'torchrun' in how else ''}---\n{text}"


def _command(how: dict[str, Any], python: str, script: str) -> list[str]:
    if "shell" in how:
        return ["sh", "-c", how["shell"]]
    start = [python]
    if "torchrun" in how:
        start += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={how['torchrun']}"]
    if "memory_mb" in how:
        start = ["prlimit", f"--as={how['memory_mb'] * 2**20}", *start]
    if how.get("as_user"):
        start = ["setpriv", "--reuid=65534", "--clear-groups", *start]
    return [*start, script, *how.get("arguments", [])]


def _placeless(text: str, folder: str, python: str) -> str:
    """Without the paths of the machine that it was recorded on."""
    text = text.replace(folder, "/home/user/project")
    text = text.replace(str(Path(python).parent.parent), "/home/user/env")
    base = subprocess.run(
        [python, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True, check=True
    )
    text = text.replace(f"{base.stdout.strip()}/lib/", "/usr/lib/")
    return re.sub(r"host +: \S+", "host      : node-1", text)


def main(python: str, *names: str) -> None:
    python = str(Path(python).absolute())
    scripts = tomllib.loads((HERE / "scripts.toml").read_text(encoding="utf-8"))
    for name, how in scripts.items():
        if not names or name in names:
            (HERE / "cases" / f"{name}.txt").write_text(record(name, how, python), encoding="utf-8", newline="")
            print(name, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
