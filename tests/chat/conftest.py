"""Puts the builders of whole sessions, which the agent's own tests use, on the import path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
