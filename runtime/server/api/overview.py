"""The server itself over HTTP: is it there, what has it, what should an operator know."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import sqlalchemy as sa
from fastapi import APIRouter
from starlette.responses import Response

from runtime.model.states import StopCause
from runtime.server.envelope import answer
from runtime.server.policy_file import spec_of
from runtime.server.services import Services, Svc
from runtime.server.steady_clock import SteadyClock
from runtime.server.views import agents_stop_view, holds_view, node_views, operator_notices, stranded_notices
from runtime.store.records import count_outbox
from runtime_client.models import Envelope, JobsAtShutdown, NodeView, PolicySpec, ServerInfo, Shutdown

router = APIRouter(prefix="/v1", tags=["server"])


@router.get("/health", response_model=Envelope[dict[str, str]])
async def health() -> Response:
    """Answers when the server is ready. Needs no token, says nothing else."""
    return answer({"status": "ok"})


@router.get("/info", response_model=Envelope[ServerInfo])
async def info(services: Svc) -> Response:
    state = services.loop.state
    return answer(
        ServerInfo(
            version=_version(),
            started_at=services.started_at,
            n_devices=state.n_devices,
            n_devices_free=state.n_devices_free,
            n_queued=state.n_queued,
            n_running=state.n_running,
            last_seq=services.loop.committed_seq,
            mlflow_url=services.config.mlflow_url,
            mlflow_state="off" if services.mirror is None else services.mirror.state,
            priority_classes={name: cls.priority for name, cls in services.config.policy.classes.items()},
            n_outbox=await _n_outbox(services),
            notices=await _notices(services),
            holds=holds_view(state).holds,
            agents_stop=agents_stop_view(state),
            sealed_by=tuple(sorted({node.sealed_by for node in state.nodes.values() if node.sealed_by is not None})),
        )
    )


@router.get("/policy", response_model=Envelope[PolicySpec])
async def policy(services: Svc) -> Response:
    """The scheduling policy in force, every field of it."""
    return answer(spec_of(services.config.policy))


@router.get("/nodes", response_model=Envelope[list[NodeView]])
async def nodes(services: Svc) -> Response:
    return answer(node_views(services.loop.state))


@router.post("/shutdown", response_model=Envelope[Shutdown], status_code=202)
async def shutdown(order: Shutdown, services: Svc) -> Response:
    """Part with the running jobs, then end the server. Answers at once; jobs have their grace."""
    cause = StopCause.CANCEL if order.jobs is JobsAtShutdown.CANCEL else StopCause.SHUTDOWN
    await services.loop.part(cause, reason="the runtime is going down")
    return answer(order, status=202)


async def _n_outbox(services: Services) -> int:
    def read(connection: sa.Connection) -> int:
        return count_outbox(connection)

    return await services.store.read(read)


async def _notices(services: Services) -> tuple[str, ...]:
    await services.disk.refresh()
    notices: list[str] = []
    if services.disk.low is not None:
        notices.append(services.disk.low)
    if services.loop.trouble is not None:
        notices.append(f"the store fails: {services.loop.trouble}")
    if isinstance(services.clock, SteadyClock) and services.clock.notice is not None:
        notices.append(services.clock.notice)
    notices.extend(operator_notices(services.loop.state))
    notices.extend(stranded_notices(services.loop.state, services.config.policy))
    if services.mirror is not None:
        notices.extend(await services.mirror.notices())
    return tuple(notices)


def _version() -> str:
    try:
        return version("nightlab")
    except PackageNotFoundError:
        return "unknown"
