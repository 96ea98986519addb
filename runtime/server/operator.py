"""What a person who runs the machines wants, as events. Pure: nothing here changes the state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from runtime.model.budgets import Budget, BudgetScope, budget_key
from runtime.model.devices import mask_of, placement_masks
from runtime.model.events import (
    AgentsAllowed,
    AgentsStopped,
    BudgetLifted,
    BudgetSet,
    DevicesBusySeen,
    DevicesReserved,
    DevicesUnreserved,
    Event,
    HoldLifted,
    HoldPlaced,
    NodeStateSet,
)
from runtime.model.holds import Hold, HoldScope, NodeState, Reservation, hold_key
from runtime.model.nouns import Job, Node
from runtime.model.state import State, holders
from runtime.model.states import JobState, StopCause
from runtime_client.doors.refusal import refused
from runtime_client.models import ErrorKind

from .draft import OWNER
from .reactor import stop_order
from .refusal import suggestion

Meaning = Callable[[State, float], Sequence[Event]]


def pause(scope: HoldScope, name: str | None, reason: str, classes: Collection[str]) -> Meaning:
    """Put a hold on matching jobs, and ask those that run to leave.

    Args:
        classes: names of the priority classes there are.
    """

    def meaning(state: State, now_s: float) -> Sequence[Event]:
        if scope is HoldScope.CLASS and name not in classes:
            hint = suggestion(str(name), classes)
            message = f"there is no priority class {name!r}{hint}; they are {', '.join(classes)}"
            raise refused(ErrorKind.INVALID, "unknown_priority_class", message, path="name")
        hold = Hold(scope=scope, name=name, reason=reason, placed_at_s=now_s, placed_by=OWNER.name)
        jobs = [state.jobs[job_id] for job_id in state.index.holding]
        leaving = _asked_to_leave((job for job in jobs if hold.matches(job)), StopCause.PAUSE, f"{hold.key}: {reason}")
        return [HoldPlaced(hold=hold), *leaving]

    return meaning


def unpause(scope: HoldScope, name: str | None) -> Meaning:
    """Lift the hold with this very selector; others stay."""

    def meaning(state: State, now_s: float) -> Sequence[Event]:
        if hold_key(scope, name) not in state.holds:
            there_are = ", ".join(state.holds) or "none"
            message = f"there is no hold on {hold_key(scope, name)}; holds there are: {there_are}"
            raise refused(ErrorKind.NOT_FOUND, "no_such_hold", message)
        return [HoldLifted(scope=scope, name=name)]

    return meaning


def set_budget(budget: Budget) -> Meaning:
    """Limit what a session or project may use; an earlier limit of the same is replaced."""
    return lambda state, now_s: [] if state.budgets.get(budget.key) == budget else [BudgetSet(budget=budget)]


def lift_budget(scope: BudgetScope, name: str) -> Meaning:
    def meaning(state: State, now_s: float) -> Sequence[Event]:
        if budget_key(scope, name) not in state.budgets:
            there_are = ", ".join(state.budgets) or "none"
            message = f"there is no budget of {budget_key(scope, name)}; budgets there are: {there_are}"
            raise refused(ErrorKind.NOT_FOUND, "no_such_budget", message)
        return [BudgetLifted(scope=scope, name=name)]

    return meaning


def stop_agents(reason: str) -> Meaning:
    return lambda state, now_s: [AgentsStopped(reason=reason)]


def allow_agents() -> Meaning:
    """Asking twice changes nothing."""
    return lambda state, now_s: [] if state.agents_stop is None else [AgentsAllowed()]


def set_node_state(node_id: str, node_state: NodeState, reason: str) -> Meaning:
    """Say what a node is good for. When it is draining, what runs there is asked to leave."""

    def meaning(state: State, now_s: float) -> Sequence[Event]:
        _known_node(state, node_id)
        said = NodeStateSet(node_id=node_id, state=node_state, reason=reason)
        if node_state is not NodeState.DRAINING:
            return [said]
        why = f"node {node_id} is being drained" + (f": {reason}" if reason else "")
        return [said, *_asked_to_leave(holders(state, node_id), StopCause.DRAIN, why)]

    return meaning


def reserve(node_id: str, reservation: Reservation) -> Meaning:
    """Keep devices for somebody; what runs on them is asked to leave."""

    def meaning(state: State, now_s: float) -> Sequence[Event]:
        _check_devices(_known_node(state, node_id), reservation.devices)
        if reservation.until_s <= now_s:
            message = "until: it is over already; give a time that is still to come"
            raise refused(ErrorKind.INVALID, "invalid_value", message, path="until")
        wanted = mask_of(reservation.devices)
        on_them = [
            job
            for job in holders(state, node_id)
            if job.attempt is not None and placement_masks(job.attempt.placements).get(node_id, 0) & wanted
        ]
        why = f"its devices are reserved for {reservation.holder}"
        leaving = _asked_to_leave(on_them, StopCause.DRAIN, why)
        return [DevicesReserved(node_id=node_id, reservation=reservation), *leaving]

    return meaning


def unreserve(node_id: str, devices: tuple[int, ...]) -> Meaning:
    """Give reserved devices back; none named: all of the node."""

    def meaning(state: State, now_s: float) -> Sequence[Event]:
        _known_node(state, node_id)
        reserved = state.standing(node_id).reserved
        wanted = tuple(sorted(set(devices))) or reserved
        if not wanted or not set(wanted) <= set(reserved):
            there_are = ",".join(map(str, reserved)) or "none"
            message = f"these devices of {node_id} are not all reserved; those that are: {there_are}"
            raise refused(ErrorKind.NOT_FOUND, "not_reserved", message, path="devices")
        return [DevicesUnreserved(node_id=node_id, devices=wanted, reason="given back")]

    return meaning


def note_busy(node_id: str, devices: tuple[int, ...]) -> Meaning:
    """Say which devices of a node somebody else computes on; no others are."""

    def meaning(state: State, now_s: float) -> Sequence[Event]:
        _check_devices(_known_node(state, node_id), devices)
        seen = tuple(sorted(set(devices)))
        if seen == state.standing(node_id).busy_external:
            return []
        return [DevicesBusySeen(node_id=node_id, devices=seen)]

    return meaning


def _asked_to_leave(jobs: Iterable[Job], cause: StopCause, reason: str) -> list[Event]:
    """Those that were not asked to stop already, in order of submission."""
    present = sorted((job for job in jobs if job.state is not JobState.STOPPING), key=lambda job: job.order)
    return [stop_order(job, cause, reason) for job in present]


def _known_node(state: State, node_id: str) -> Node:
    node = state.nodes.get(node_id)
    if node is None:
        there_are = ", ".join(sorted(state.nodes)) or "none"
        message = f"there is no node {node_id[:80]!r}{suggestion(node_id, state.nodes)}; nodes there are: {there_are}"
        raise refused(ErrorKind.NOT_FOUND, "no_such_node", message)
    return node


def _check_devices(node: Node, devices: tuple[int, ...]) -> None:
    known = [device.index for device in node.devices]
    unknown = sorted(set(devices) - set(known))
    if unknown:
        message = f"devices: {node.node_id} has no device {unknown[0]}; it has {known[0]} to {known[-1]}"
        raise refused(ErrorKind.INVALID, "no_such_device", message, path="devices")
