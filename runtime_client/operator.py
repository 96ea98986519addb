"""What a person who runs the machines can ask of the runtime; a part of `RuntimeClient`."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, TypeAdapter

from .answers import as_many, as_one, segment
from .models import (
    AgentsStopRequest,
    BudgetRequest,
    BudgetScope,
    BudgetSelector,
    BudgetView,
    DevicesRequest,
    Garbage,
    GarbageRequest,
    HoldRequest,
    Holds,
    HoldScope,
    HoldSelector,
    NodeState,
    NodeStateRequest,
    NodeView,
    PolicySpec,
    ReservationRequest,
    Spend,
    SpendBy,
)
from .transport import Transport

_BUDGETS = TypeAdapter(list[BudgetView])


class OperatorCalls:
    """All methods raise `RuntimeClientError` and its children."""

    _transport: Transport

    def policy(self) -> PolicySpec:
        """The scheduling policy in force."""
        return as_one(PolicySpec, self._transport.call("GET", "/v1/policy"))

    def holds(self) -> Holds:
        return as_one(Holds, self._transport.call("GET", "/v1/holds"))

    def pause(self, scope: HoldScope, name: str | None = None, *, reason: str) -> Holds:
        """Hold matching jobs: those that run checkpoint and leave, none is started until `unpause`."""
        return self._holds("/v1/holds", HoldRequest(scope=scope, name=name, reason=reason))

    def unpause(self, scope: HoldScope, name: str | None = None) -> Holds:
        """Lift the hold with this very selector; others stay.

        Raises:
            NotFound: there is none.
        """
        return self._holds("/v1/holds/lift", HoldSelector(scope=scope, name=name))

    def budgets(self) -> list[BudgetView]:
        return as_many(_BUDGETS, self._transport.call("GET", "/v1/budgets"))

    def set_budget(self, scope: BudgetScope, name: str, *, device_seconds: float) -> list[BudgetView]:
        """Limit what a session or a project may use in all; beyond it jobs are refused (`OverBudget`), and end."""
        return self._budgets("/v1/budgets", BudgetRequest(scope=scope, name=name, device_seconds=device_seconds))

    def lift_budget(self, scope: BudgetScope, name: str) -> list[BudgetView]:
        """
        Raises:
            NotFound: there is none.
        """
        return self._budgets("/v1/budgets/lift", BudgetSelector(scope=scope, name=name))

    def _budgets(self, path: str, request: BaseModel) -> list[BudgetView]:
        return as_many(_BUDGETS, self._transport.call("POST", path, body=request.model_dump_json().encode()))

    def collect_garbage(
        self, *, dry_run: bool = True, older_than_days: float | None = None, quota_gb: float | None = None
    ) -> Garbage:
        """Delete the weights that nobody needs any more; a dry run only tells which."""
        request = GarbageRequest(dry_run=dry_run, older_than_days=older_than_days, quota_gb=quota_gb)
        return as_one(Garbage, self._transport.call("POST", "/v1/gc", body=request.model_dump_json().encode()))

    def stop_agents(self, *, reason: str) -> Holds:
        """From now on, what sessions submit is refused (`agents_stopped`)."""
        return self._holds("/v1/agents/stop", AgentsStopRequest(reason=reason))

    def allow_agents(self) -> Holds:
        return as_one(Holds, self._transport.call("POST", "/v1/agents/allow", is_repeatable=True))

    def set_node_state(self, node_id: str, state: NodeState, *, reason: str = "") -> NodeView:
        """Say what a node is good for; a draining one is left by what runs there."""
        return self._node(node_id, "state", NodeStateRequest(state=state, reason=reason))

    def reserve(self, node_id: str, devices: Sequence[int], *, holder: str, until: float) -> NodeView:
        """Keep devices for somebody until then (seconds since the epoch); what runs on them leaves."""
        request = ReservationRequest(devices=tuple(devices), holder=holder, until=until)
        return self._node(node_id, "reservations", request)

    def unreserve(self, node_id: str, devices: Sequence[int] = ()) -> NodeView:
        """Give reserved devices back; none named: all of the node."""
        return self._node(node_id, "reservations/lift", DevicesRequest(devices=tuple(devices)))

    def note_busy(self, node_id: str, devices: Sequence[int]) -> NodeView:
        """Say which devices of a node somebody else computes on, all of them."""
        return self._node(node_id, "busy-external", DevicesRequest(devices=tuple(devices)))

    def spend(self, *, by: SpendBy = SpendBy.PROJECT, since: float) -> Spend:
        """Device time since then (seconds since the epoch), and what became of it."""
        return as_one(Spend, self._transport.call("GET", "/v1/spend", query={"by": by.value, "since": since}))

    def _holds(self, path: str, request: BaseModel) -> Holds:
        return as_one(Holds, self._transport.call("POST", path, body=request.model_dump_json().encode()))

    def _node(self, node_id: str, what: str, request: BaseModel) -> NodeView:
        path = f"/v1/nodes/{segment(node_id)}/{what}"
        return as_one(NodeView, self._transport.call("POST", path, body=request.model_dump_json().encode()))
