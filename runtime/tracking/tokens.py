"""Attempt tokens: what a training process shows to the metrics gateway, and to nothing else.

A token is derived from the installation's secret, so none is stored; whether its attempt still runs is asked of
the fence at every call.
"""

from __future__ import annotations

import hashlib
import hmac
import re

from runtime.engines.contract import AttemptKey

_FORM = re.compile(r"(?P<job>[A-Za-z0-9][A-Za-z0-9_\-]*)\.(?P<attempt>[1-9][0-9]{0,8})\.(?P<mac>[0-9a-f]{64})")


def attempt_token(secret: bytes, job_id: str, attempt: int) -> str:
    """The bearer token of one attempt of one job."""
    subject = f"{job_id}.{attempt}"
    return f"{subject}.{_mac(secret, subject)}"


def verify(secret: bytes, token: str) -> AttemptKey | None:
    """Whose token it is; None when it is no attempt token of this installation."""
    form = _FORM.fullmatch(token)
    if form is None:
        return None
    subject = f"{form['job']}.{form['attempt']}"
    if not hmac.compare_digest(form["mac"], _mac(secret, subject)):
        return None
    return AttemptKey(job_id=form["job"], attempt=int(form["attempt"]))


def _mac(secret: bytes, subject: str) -> str:
    return hmac.new(secret, subject.encode(), hashlib.sha256).hexdigest()
