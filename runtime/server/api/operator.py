"""For the person who runs the machines: the stop button, node states, reservations."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from runtime.model.holds import HoldScope, NodeState, Reservation
from runtime.server import operator
from runtime.server.api.strict_json import StrictRoute
from runtime.server.envelope import answer
from runtime.server.services import Services, Svc
from runtime.server.views import holds_view, node_views
from runtime_client.models import (
    AgentsStopRequest,
    DevicesRequest,
    Envelope,
    HoldRequest,
    Holds,
    HoldSelector,
    NodeStateRequest,
    NodeView,
    ReservationRequest,
)

router = APIRouter(prefix="/v1", tags=["operator"], route_class=StrictRoute)


@router.get("/holds", response_model=Envelope[Holds])
async def list_holds(services: Svc) -> Response:
    return answer(holds_view(services.loop.state))


@router.post("/holds", response_model=Envelope[Holds])
async def pause(request: HoldRequest, services: Svc) -> Response:
    """Hold matching jobs; those that run are asked to checkpoint and leave. Stays until it is lifted."""
    of_jobs = (job.priority_class for job in services.loop.state.jobs.values())
    classes = sorted({*services.config.policy.classes, *of_jobs})
    return await _holds_after(
        services, operator.pause(HoldScope(request.scope.value), request.name, request.reason, classes)
    )


@router.post("/holds/lift", response_model=Envelope[Holds])
async def unpause(selector: HoldSelector, services: Svc) -> Response:
    """Lift the hold with this very selector."""
    return await _holds_after(services, operator.unpause(HoldScope(selector.scope.value), selector.name))


@router.post("/agents/stop", response_model=Envelope[Holds])
async def stop_agents(request: AgentsStopRequest, services: Svc) -> Response:
    """Refuse what sessions submit, from now on. Jobs that are there go on."""
    return await _holds_after(services, operator.stop_agents(request.reason))


@router.post("/agents/allow", response_model=Envelope[Holds])
async def allow_agents(services: Svc) -> Response:
    return await _holds_after(services, operator.allow_agents())


@router.post("/nodes/{node_id}/state", response_model=Envelope[NodeView])
async def set_state(node_id: str, request: NodeStateRequest, services: Svc) -> Response:
    """Say what a node is good for; stays through restarts and new registrations."""
    meaning = operator.set_node_state(node_id, NodeState(request.state.value), request.reason)
    return await _node_after(services, node_id, meaning)


@router.post("/nodes/{node_id}/reservations", response_model=Envelope[NodeView])
async def reserve(node_id: str, request: ReservationRequest, services: Svc) -> Response:
    """Keep devices for somebody outside; what runs on them is asked to checkpoint and leave."""
    devices = tuple(sorted(set(request.devices)))
    reservation = Reservation(devices=devices, holder=request.holder, until_s=request.until)
    return await _node_after(services, node_id, operator.reserve(node_id, reservation))


@router.post("/nodes/{node_id}/reservations/lift", response_model=Envelope[NodeView])
async def unreserve(node_id: str, request: DevicesRequest, services: Svc) -> Response:
    """Give reserved devices back; none named: all of the node."""
    return await _node_after(services, node_id, operator.unreserve(node_id, request.devices))


@router.post("/nodes/{node_id}/busy-external", response_model=Envelope[NodeView])
async def note_busy(node_id: str, request: DevicesRequest, services: Svc) -> Response:
    """The devices of a node that somebody else computes on, all of them; nothing is placed there."""
    return await _node_after(services, node_id, operator.note_busy(node_id, request.devices))


async def _holds_after(services: Services, meaning: operator.Meaning) -> Response:
    await services.loop.instruct(meaning)
    return answer(holds_view(services.loop.state))


async def _node_after(services: Services, node_id: str, meaning: operator.Meaning) -> Response:
    await services.loop.instruct(meaning)
    return answer(next(view for view in node_views(services.loop.state) if view.node_id == node_id))
