"""What people complain about in other runtimes, as tests of ours; they share the server's lab and the simulator's."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent / name) for name in ("server", "simulator")]
