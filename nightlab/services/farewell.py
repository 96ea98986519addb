"""The one request that the supervisor makes of the server: part with the jobs, then end. Standard library alone."""

from __future__ import annotations

import http.client
import json

from .settings import JobsAtStop, ServiceSettings

TIMEOUT_S = 10.0


def ask_to_stop_jobs(settings: ServiceSettings, jobs: JobsAtStop) -> bool:
    """POST /v1/shutdown; the server answers at once, and its process ends when the jobs are gone.

    False: it refused or did not answer, and is to be stopped by signal, which leaves the jobs running.
    """
    try:
        token = (settings.home / "token").read_text().strip()
        connection = http.client.HTTPConnection("127.0.0.1", settings.port, timeout=TIMEOUT_S)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", "/v1/shutdown", body=json.dumps({"jobs": jobs.value}), headers=headers)
        status = connection.getresponse().status
        connection.close()
    except (OSError, http.client.HTTPException):
        return False
    return status < 300
