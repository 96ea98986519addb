"""Which checkpoints count: folders `step-<n>` that hold a file `COMPLETE`, which is written last."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

_STEP = re.compile(r"step-(\d{1,18})")
MARKER = "COMPLETE"


def newest_complete(checkpoint_dir: Path) -> tuple[int, Path] | None:
    """Step and folder of the newest complete checkpoint; None when there is none. Torn ones are skipped.

    A job may have put anything in the folder's place: what is no folder that we may look into holds none.
    """
    try:
        with os.scandir(checkpoint_dir) as entries:
            names = [entry.name for entry in entries]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise
    steps = sorted(((int(found[1]), name) for name in names if (found := _STEP.fullmatch(name))), reverse=True)
    for step, name in steps:
        if os.path.isfile(checkpoint_dir / name / MARKER):
            return step, checkpoint_dir / name
    return None
