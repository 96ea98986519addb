"""Request bodies as strict JSON: no NaN, no halves of characters, no bottomless nesting.

The standard library's parser takes all of these, and what was taken could not be shown again.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response

from runtime_client.doors.refusal import refused
from runtime_client.models import ErrorKind


class StrictRequest(Request):
    async def json(self) -> Any:
        try:
            return from_json(await self.body(), allow_inf_nan=False)
        except ValueError as error:
            message = f"the request body is not JSON: {error}"
            raise refused(ErrorKind.INVALID, "invalid_json", message) from error


class StrictRoute(APIRoute):
    """Use as `APIRouter(route_class=StrictRoute)`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strictly
