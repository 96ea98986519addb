"""How one attempt could be started warm, or why it can not: read from its spec, its command and its script."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.node.command import Rendered
from runtime.node.entry_points import EntryPoint, NotWarm, entry_point
from runtime.node.imports import suggested
from runtime.node.launcher import VERSION
from runtime.node.warm import SUGGESTED
from runtime_client.models import JobSpec, LaunchMode


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPlan:
    entry: EntryPoint
    preload: tuple[str, ...]
    """Modules; one that was not declared but read from the script begins with `SUGGESTED`."""
    environment: Mapping[str, str]
    """Of the fork server."""
    mode: LaunchMode
    script_folder: Path
    """Its modules come before installed ones."""

    @property
    def is_eager(self) -> bool:
        """Somebody asked for it: a fork server is prepared at the first start, not at the second."""
        return self.mode is LaunchMode.WARM or any(not name.startswith(SUGGESTED) for name in self.preload)

    @property
    def key(self) -> str:
        """Attempts with the same key can be forks of the same server."""
        told = [VERSION, self.entry.program, self.preload, sorted(self.environment.items())]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]

    def as_record(self) -> dict[str, Any]:
        """The part that the leader needs."""
        return {
            "program": self.entry.program,
            "words": self.entry.words,
            "module": self.entry.module,
            "shell_env": dict(self.entry.shell_env),
        }


def warm_plan(
    spec: JobSpec, rendered: Rendered, folder: Path, lasting_environment: Mapping[str, str], *, own_folder: Path
) -> WarmPlan | str:
    """`folder` is the working directory, `own_folder` the attempt's. A text says why there is none."""
    if spec.launch is LaunchMode.COLD:
        return "asked for (launch: cold)"
    try:
        entry = entry_point(rendered, folder, lasting_environment)
        if Path(entry.program).is_relative_to(own_folder):
            raise NotWarm("the folder of environment.python has no program named `python`")
        script = entry.script(folder)
        preload = spec.environment.preload
        if preload is None:
            if script is None:
                raise NotWarm(f"the module {entry.module} is not in the working directory; declare environment.preload")
            preload = tuple(SUGGESTED + name for name in suggested(script, folder))
        elif not preload:
            raise NotWarm("nothing is to be preloaded (environment.preload is empty)")
    except NotWarm as reason:
        return str(reason)
    return WarmPlan(
        entry=entry,
        preload=preload,
        environment=lasting_environment,
        mode=spec.launch,
        script_folder=folder if script is None or entry.module is not None else script.resolve().parent,
    )
