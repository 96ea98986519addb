"""Whether the places that a job needs answer at all: a mount whose server is gone hangs whoever touches it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from runtime.model.states import ExitReason
from runtime.node.launch_errors import CannotLaunch
from runtime.node.patience import within
from runtime_client.models import JobSpec

PATIENCE_S = 3.0


def places_of(spec: JobSpec) -> tuple[str, ...]:
    """Paths that a job names itself and that are touched before it starts."""
    found = []
    if spec.code_source is not None and spec.code_source.snapshot_id is None:
        found.append(spec.code_source.root_path)
    if spec.environment.python is not None:
        found.append(spec.environment.python)
    return tuple(found)


async def check_answers(
    paths: Sequence[str], *, patience_s: float = PATIENCE_S, look: Callable[[str], object] = os.stat
) -> None:
    """Touch them, on a thread of its own, so that a dead mount holds up this one start and nothing else.

    What does not exist is not this check's business.

    Raises:
        CannotLaunch: (LAUNCHER_UNAVAILABLE) one does not answer.
    """
    for path in paths:

        def touch(path: str = path) -> None:
            try:
                look(path)
            except OSError:
                return

        try:
            await within(patience_s, touch)
        except TimeoutError:
            raise CannotLaunch(
                ExitReason.LAUNCHER_UNAVAILABLE,
                f"{path} does not answer within {patience_s:g} s: is it on a mount whose server is gone?",
            ) from None
