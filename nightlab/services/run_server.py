"""The runtime server's process: `python -m nightlab.services.run_server HOME`. Started by the supervisor."""

from __future__ import annotations

import sys
from pathlib import Path

from runtime.server.app import serve
from runtime.server.config import ServerConfig
from runtime.server.policy_file import policy_to_serve

from .settings import ServiceFiles, ServiceSettings


def main(home: Path) -> None:
    settings = ServiceSettings.from_json(ServiceFiles(home).settings.read_text())
    serve(
        ServerConfig(
            home=settings.home,
            port=settings.port,
            devices=settings.devices,
            database_url=settings.database_url,
            mlflow_url=settings.tracking_url,
            device_prices=settings.device_prices,
            policy=policy_to_serve(settings.home),
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
