"""The processes behind `nightlab up`: runtime server, MLflow server and agent service, under one supervisor.

`control` starts and stops them (the command line and the demo call it), `supervisor` is the process that watches
them, `settings` is what both agree on. Standard library and psutil alone, until a client is asked for.
"""

from .control import Services, start_services
from .settings import JobsAtStop, ServiceSettings

__all__ = ["JobsAtStop", "ServiceSettings", "Services", "start_services"]
