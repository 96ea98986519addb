"""Inside a training process: who am I, must I stop, save, restore, log. Works the same without nightlab.

Names are loaded when first used. Frameworks have adapters of their own, which are the only ones to import them:
`for_torch`, `for_trainer` (Hugging Face), `for_lightning`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .checkpoints import Checkpoints, Saved
    from .metrics import flush_metrics, log_metrics
    from .process_context import Context, context
    from .script import checkpoint, end_step, finish_as_preempted, restore
    from .stopping import ignore_stop_signal, should_stop

__all__ = [
    "Checkpoints",
    "Context",
    "Saved",
    "checkpoint",
    "context",
    "end_step",
    "finish_as_preempted",
    "flush_metrics",
    "ignore_stop_signal",
    "log_metrics",
    "restore",
    "should_stop",
]

_MODULE_BY_NAME = {
    "Checkpoints": ".checkpoints",
    "Context": ".process_context",
    "Saved": ".checkpoints",
    "context": ".process_context",
    "flush_metrics": ".metrics",
    "ignore_stop_signal": ".stopping",
    "log_metrics": ".metrics",
    "should_stop": ".stopping",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_BY_NAME.get(name, ".script"), __name__), name)
