"""What the scorers of these tasks share: how they reach what a training left, and what they take as an answer."""

import importlib
import os
import sys
from pathlib import Path

import numpy as np


def left() -> Path:
    """The working directory of the training; this folder where a scorer is run by hand."""
    after = os.environ.get("NIGHTLAB_AFTER_FOLDERS")
    return Path(after) / "work" if after else Path.cwd()


class _Imported:
    """Runs the module in this very process."""

    def __init__(self, folder, module):
        sys.path.insert(0, str(folder))
        self._module = importlib.import_module(module)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def call(self, function, *arrays):
        return getattr(self._module, function)(*arrays)


def opened(module: str):
    """The functions of a module that training left."""
    return _Imported(left(), module)


def finite(answer, shape: tuple[int, ...]) -> np.ndarray:
    """The answer, if it is an array of that shape with finite numbers alone."""
    if not isinstance(answer, np.ndarray) or answer.shape != shape:
        raise SystemExit(f"not scored: asked for an array {shape}, got {getattr(answer, 'shape', type(answer))}")
    if not np.isfinite(answer).all():
        raise SystemExit(f"not scored: {int((~np.isfinite(answer)).sum())} of {answer.size} numbers are not finite")
    return answer
