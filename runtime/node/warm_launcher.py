"""Start a warm launcher: `python -c BOOT root socket log facts padding`, in the Python of the jobs that it is for.

Standard library only, for any Python from 3.9 on.
"""

from __future__ import annotations

import os
import sys

from runtime.node import launcher, warm
from runtime.node.supervisor import ScriptLeader

PROCESS_NAME = "nl warm"
BOOT = (
    "import sys; root = sys.argv[1]; del sys.path[:1]; sys.path.insert(0, root); "
    "from runtime.node.warm_launcher import run; run()"
)


def run() -> None:
    """Load what `sys.argv` names, and serve. Returns in each leader, when its script has."""
    root, socket_path, log_path, facts_path, names = sys.argv[1:6]
    sys.path.remove(root)
    for name in [name for name in sys.modules if name.partition(".")[0] == "runtime_client"]:
        del sys.modules[name]  # What a job imports by that name is of its own environment.
    original_path = list(sys.path)
    # The interpreter sets this one itself where no locale is named (PEP 538); a cold start would, too.
    kept = {name: os.environ[name] for name in ("LC_CTYPE",) if name in os.environ}
    for name in warm.THREADS:
        os.environ[name] = "1"
    before = dict(os.environ)
    try:
        warm.load(names.split(",") if names else [], facts_path)
    except warm.Unfit as problem:
        sys.exit(str(problem))
    # What the imports have set (scikit-learn does) they set in a cold start too.
    kept |= {name: value for name, value in os.environ.items() if before.get(name) != value}
    try:
        launcher.main(socket_path, log_path, name=PROCESS_NAME, is_warm=True)
        return
    except ScriptLeader as leader:
        order = leader.order
    warm.become(order, original_path, kept)
