"""`python -m runtime.server --home DIR --port N --devices cpu:2 [--mlflow URL]`: one server in this process.

Its scheduling policy is the file `policy.yaml` in the home folder, or else the default.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from runtime_client.home import default_home

from .app import serve
from .config import ServerConfig
from .policy_file import policy_to_serve


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m runtime.server", description="The runtime's server.")
    parser.add_argument("--home", type=Path, default=default_home(), help="where everything is kept")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at")
    parser.add_argument("--port", type=int, default=7070)
    parser.add_argument("--devices", default="auto", help="auto, cpu:4, fake:8xH100")
    parser.add_argument("--database", default=None, metavar="URL", help="PostgreSQL instead of SQLite in the home")
    parser.add_argument("--mlflow", default=None, metavar="URL", help="tracking server to mirror to")
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="Host header to accept")
    given = parser.parse_args()
    serve(
        ServerConfig(
            home=given.home.absolute(),
            host=given.host,
            port=given.port,
            devices=given.devices,
            database_url=given.database,
            mlflow_url=given.mlflow,
            allowed_hosts=tuple(given.allow_host),
            policy=policy_to_serve(given.home.absolute()),
        )
    )


if __name__ == "__main__":
    main()
