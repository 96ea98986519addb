"""Inside a scorer: ask code that nobody has read, in a process that can reach neither the scorer nor its files.

Names are loaded when first used. Of ours it imports what the kernel is asked with, and the metrics gateway, alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .candidate import Candidate
    from .errors import CandidateFailed, NotConfined, NotUsable
    from .left import read_left, training_folder

__all__ = ["Candidate", "CandidateFailed", "NotConfined", "NotUsable", "read_left", "training_folder"]

_MODULE_BY_NAME = {"Candidate": ".candidate", "read_left": ".left", "training_folder": ".left"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_BY_NAME.get(name, ".errors"), __name__), name)
