"""The SDK of the runtime: what programs, tools and training scripts import. Imports nothing else of ours.

Names are loaded when first used, so that `import runtime_client` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client import RuntimeClient
    from .errors import (
        Conflict,
        Forbidden,
        InvalidSpec,
        NotFound,
        OverBudget,
        Rejected,
        RuntimeClientError,
        ServerFault,
        TimedOut,
        Unreachable,
    )
    from .models import JobSpec, JobView
    from .protocol import Runtime

__all__ = [
    "Conflict",
    "Forbidden",
    "InvalidSpec",
    "JobSpec",
    "JobView",
    "NotFound",
    "OverBudget",
    "Rejected",
    "Runtime",
    "RuntimeClient",
    "RuntimeClientError",
    "ServerFault",
    "TimedOut",
    "Unreachable",
]

_MODULE_BY_NAME = {
    "RuntimeClient": ".client",
    "Runtime": ".protocol",
    "JobSpec": ".models",
    "JobView": ".models",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_BY_NAME.get(name, ".errors"), __name__), name)
