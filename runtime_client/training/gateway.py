"""The few calls of the metrics gateway that logging needs, in MLflow's REST form. Standard library only.

No httpx here: importing it draws from Python's global random generator (by way of rich, where that is installed), and
this runs in a thread beside a training whose curve must not depend on when that happens.
"""

from __future__ import annotations

import http.client
import json
import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Any
from urllib.parse import SplitResult, urlsplit

API = "/api/2.0/mlflow/"
OWN_RUN_TAG = "nightlab.own_run"
"""On `runs/create`: answered with the job's own run, also where the script has opened it with mlflow."""
_WILL_PASS = frozenset({408, 425, 429})

Point = tuple[str, float, int, int]
"""(name, value, step, milliseconds since the epoch)"""


class Outcome(StrEnum):
    """What became of a batch."""

    SENT = "sent"
    AWAY = "away"
    """Nobody answered, or not now: the same may be sent again."""
    REFUSED = "refused"
    """This batch is not wanted, and never will be."""
    OVER = "over"
    """The attempt may not log any more."""


class Gateway:
    """Sends points for one attempt. Belongs to one thread."""

    def __init__(self, url: str, token: str | None, *, timeout_s: float = 10.0) -> None:
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        place = urlsplit(url)
        self._path = place.path.rstrip("/") + API
        self._http = _connection(place, timeout_s)
        self._run_id: str | None = None
        self.problem = ""
        """Why the last batch was not sent."""

    def send(self, points: Sequence[Point]) -> Outcome:
        """At most a thousand points."""
        metrics = [
            {"key": name, "value": _number(value), "step": step, "timestamp": at_ms}
            for name, value, step, at_ms in points
        ]
        return self._log({"metrics": metrics})

    def tag(self, name: str, value: str) -> Outcome:
        """Write a tag of the job's run."""
        return self._log({"tags": [{"key": name, "value": value}]})

    def _log(self, batch: dict[str, Any]) -> Outcome:
        if self._run_id is None:
            outcome, answer = self._post("runs/create", {"tags": [{"key": OWN_RUN_TAG, "value": "true"}]})
            if outcome is not Outcome.SENT:
                return outcome
            self._run_id = str(answer["run"]["info"]["run_id"])
        return self._post("runs/log-batch", {"run_id": self._run_id, **batch})[0]

    def _post(self, path: str, body: dict[str, Any]) -> tuple[Outcome, Any]:
        try:
            self._http.request("POST", self._path + path, body=json.dumps(body), headers=self._headers)
            response = self._http.getresponse()
            status, text = response.status, response.read()
            if status < 400:
                return Outcome.SENT, json.loads(text)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._http.close()  # the next request connects again
            self.problem = f"{type(error).__name__}: {error}"
            return Outcome.AWAY, None
        self.problem = f"status {status}: {text[:300].decode(errors='replace')}"
        if status >= 500 or status in _WILL_PASS:
            return Outcome.AWAY, None
        return (Outcome.OVER if status in (401, 403, 409) else Outcome.REFUSED), None


def _connection(place: SplitResult, timeout_s: float) -> http.client.HTTPConnection:
    """Connects with the first request."""
    if place.scheme == "https":
        return http.client.HTTPSConnection(place.hostname or "", place.port, timeout=timeout_s)
    return http.client.HTTPConnection(place.hostname or "", place.port, timeout=timeout_s)


def _number(value: float) -> float | str:
    """As protobuf's JSON form writes it: NaN and infinities are text."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value
