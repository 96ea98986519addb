"""The services and how each is started. Reads no file and starts nothing."""

from __future__ import annotations

import sys

from .processes import ServiceCommand
from .settings import ServiceFiles, ServiceSettings

SERVER = "server"
MLFLOW = "mlflow"
AGENT = "agent"


def service_commands(settings: ServiceSettings) -> tuple[ServiceCommand, ...]:
    """In the order in which they start; they stop in the reverse order of need: agent, server, MLflow."""
    commands = [_server(settings)]
    if settings.mlflow_port is not None and settings.mlflow_url is None:
        commands.append(_mlflow(settings, settings.mlflow_port))
    if settings.agent:
        commands.append(_agent(settings))
    return tuple(commands)


def _server(settings: ServiceSettings) -> ServiceCommand:
    return ServiceCommand(
        name=SERVER,
        argv=(sys.executable, "-m", "nightlab.services.run_server", str(settings.home)),
        environment={"NIGHTLAB_HOME": str(settings.home)},
        log=ServiceFiles(settings.home).log(SERVER),
        stop_grace_s=15.0,
        owns_group=False,
    )


def _agent(settings: ServiceSettings) -> ServiceCommand:
    return ServiceCommand(
        name=AGENT,
        argv=(sys.executable, "-m", "nightlab.services.run_agent", str(settings.home)),
        environment={"NIGHTLAB_HOME": str(settings.home), "LANGSMITH_TRACING": "false"},
        log=ServiceFiles(settings.home).log(AGENT),
        stop_grace_s=20.0,
        owns_group=True,
    )


def _mlflow(settings: ServiceSettings, port: int) -> ServiceCommand:
    folder = ServiceFiles(settings.home).mlflow
    store = ("--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}")
    artifacts = ("--artifacts-destination", str(folder / "artifacts"), "--serve-artifacts")
    door = ("--host", "127.0.0.1", "--port", str(port), "--workers", "1")
    return ServiceCommand(
        name=MLFLOW,
        argv=(sys.executable, "-m", "mlflow", "server", *store, *artifacts, *door),
        environment={
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
        },
        log=ServiceFiles(settings.home).log(MLFLOW),
        stop_grace_s=10.0,
        owns_group=True,
    )
