"""The API's own description, without a service: `python -m agent.web.openapi` prints it as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent.store.store import AgentStore
from agent.web.app import create_app
from agent.web.keys import Keys


def document() -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        store = AgentStore.open(Path(folder))
        try:
            return create_app(store, Keys(owner_token="", reader_token="")).openapi()
        finally:
            store.close()


if __name__ == "__main__":
    json.dump(document(), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
