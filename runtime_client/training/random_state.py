"""The state of the random generators that a script uses without naming them: Python's, numpy's, torch's."""

from __future__ import annotations

import random
import sys
from typing import Any


def random_state() -> dict[str, Any]:
    """The state of all global generators there are; for `restore_random_state`. Can be pickled."""
    found: dict[str, Any] = {"python": random.getstate()}
    if (numpy := sys.modules.get("numpy")) is not None:
        found["numpy"] = numpy.random.get_state()
    if (torch := sys.modules.get("torch")) is not None:
        found["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            found["cuda"] = torch.cuda.get_rng_state_all()
    return found


def restore_random_state(state: dict[str, Any]) -> None:
    """Put back what `random_state` gave; what is not there any more (a module, a device) is left out."""
    random.setstate(state["python"])
    if (numpy := sys.modules.get("numpy")) is not None and "numpy" in state:
        numpy.random.set_state(state["numpy"])
    if (torch := sys.modules.get("torch")) is not None and "torch" in state:
        torch.set_rng_state(state["torch"])
        for device, one in enumerate(state.get("cuda", ())[: torch.cuda.device_count()]):
            torch.cuda.set_rng_state(one, device)
