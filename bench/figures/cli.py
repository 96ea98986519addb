"""Figures of the command line."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from bench.figure import Figure, Unavailable, median_of, quartiles


def help_ms(quick: bool) -> Figure:
    """`nightlab --help` as a whole process; the floor beside it is a Python that does nothing."""
    command = shutil.which("nightlab", path=str(Path(sys.executable).parent))
    if command is None:
        raise Unavailable("the command `nightlab` is not installed beside this Python")
    n = 11 if quick else 41
    samples, floors = [], []
    for _ in range(n + 1):
        samples.append(_wall_ms([command, "--help"]))
        floors.append(_wall_ms([sys.executable, "-c", "pass"]))
    samples, floors = samples[1:], floors[1:]
    return Figure(
        id="cli.help_ms",
        value=median_of(samples),
        unit="ms",
        control=median_of(floors),
        n=n,
        spread=quartiles(samples),
        note="whole process; control: python -c pass, interleaved; spread: quartiles",
    )


def _wall_ms(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - began) * 1000
