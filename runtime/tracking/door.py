"""Who calls the gateway, and what he may touch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from runtime.engines.contract import AttemptKey
from runtime.store import records
from runtime.store.records import RunRow
from runtime.store.writer import StoreFailed, StoreRefused

from . import tokens
from .answers import MlflowRefusal, refusal_response
from .ports import Fence


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of the installation, or a program with his token."""


Caller = AttemptKey | Owner


class MlflowRoute(APIRoute):
    """A route whose errors have MLflow's form."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except MlflowRefusal as refusal:
                return refusal_response(refusal)
            except StoreRefused as refused:
                return refusal_response(MlflowRefusal("INVALID_PARAMETER_VALUE", str(refused)))
            except StoreFailed as failed:
                return refusal_response(MlflowRefusal("TEMPORARILY_UNAVAILABLE", str(failed), retry_after_s=5))
            except ClientDisconnect:
                return Response(status_code=400)

        return handle


class Door:
    """Authentication and fencing."""

    def __init__(self, *, secret: bytes, is_owner: Callable[[str], bool], fence: Fence) -> None:
        self._secret = secret
        self._is_owner = is_owner
        self._fence = fence

    def caller(self, request: Request) -> Caller:
        """Who sends this request.

        Raises:
            MlflowRefusal: no valid token; or that of an attempt that is over, which may change nothing any more.
        """
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise MlflowRefusal(
                "UNAUTHENTICATED", "A bearer token is needed: set MLFLOW_TRACKING_TOKEN (jobs have it set for them)."
            )
        key = tokens.verify(self._secret, token.strip())
        if key is not None:
            self.check_fence(key)
            return key
        if self._is_owner(token.strip()):
            return Owner()
        raise MlflowRefusal("UNAUTHENTICATED", "This token is not known here.")

    def check_fence(self, key: AttemptKey) -> None:
        if not self._fence.is_current(key):
            raise MlflowRefusal(
                "RESOURCE_CONFLICT",
                f"Attempt {key.attempt} of job {key.job_id} is over: nothing more is recorded for it.",
            )


def own_run(connection: sa.Connection, caller: Caller, run_id: str) -> RunRow:
    """A run that the caller may change.

    Raises:
        MlflowRefusal: unknown here, or of another job.
    """
    row = records.get_run(connection, run_id)
    if row is None:
        raise MlflowRefusal("RESOURCE_DOES_NOT_EXIST", f"Run with id={run_id} not found")
    check_own(caller, row)
    return row


def check_own(caller: Caller, row: RunRow) -> None:
    if isinstance(caller, AttemptKey) and row.job_id != caller.job_id:
        raise MlflowRefusal("PERMISSION_DENIED", f"Run {row.run_id} does not belong to job {caller.job_id}.")
