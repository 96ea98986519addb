"""The agent service's process: `python -m nightlab.services.run_agent HOME`. Started by the supervisor."""

from __future__ import annotations

import sys

from agent.service import main

if __name__ == "__main__":
    sys.exit(main(["--home", sys.argv[1]]))
