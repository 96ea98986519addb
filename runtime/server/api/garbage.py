"""Disk space over HTTP."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from runtime.server.api.strict_json import StrictRoute
from runtime.server.envelope import answer
from runtime.server.services import Svc
from runtime_client.models import Envelope, Garbage, GarbageRequest

router = APIRouter(prefix="/v1", tags=["operator"], route_class=StrictRoute)


@router.post("/gc", response_model=Envelope[Garbage])
async def collect(request: GarbageRequest, services: Svc) -> Response:
    """Delete the weights that nobody needs any more; a dry run only tells which."""
    return answer(await services.garbage.collect(request))
