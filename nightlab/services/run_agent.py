"""The agent service's process: `python -m nightlab.services.run_agent HOME`. Started by the supervisor."""

from __future__ import annotations

import sys
from pathlib import Path

from agent.service import run_service


def main(home: Path) -> None:
    run_service(home)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
