"""Machines: who holds which device, what was spent, and taking a node out of use."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import Field

from agent.chat.tool import Desk, Foreseen, Result, Slash
from agent.planner.budget import Spend, cost_usd
from agent.task import Task
from agent.tools.errors import FixAndRetry, ToolFailed
from runtime_client.models import NodeState, NodeView
from runtime_client.protocol import NodeKeeper, Runtime

from .finding import at_runtime, named
from .made import Acts, Reads
from .showing import duration, number, plural, result, table
from .words import Arguments, Nothing, Words, nothing, taken

MOST_ROWS = 200


class OfNode(Arguments):
    node: str = Field(description="Id of a node, as list_devices tells.", max_length=100)


def _devices(desk: Desk, arguments: Nothing) -> Result:
    with at_runtime(desk) as runtime:
        nodes = runtime.nodes()
        holders = {job.job_id: job for job in runtime.jobs(states=("starting", "running", "stopping"), limit=500)}
    rows = []
    for node in nodes:
        for device in node.devices:
            job = holders.get(device.job_id or "")
            rows.append(
                (
                    node.node_id,
                    device.index,
                    device.kind,
                    node.state,
                    device.job_id,
                    None if job is None else job.spec.experiment_name,
                    None if job is None or job.spec.session is None else job.spec.session.session_id,
                    device.busy_reason or (device.reserved_for and f"reserved for {device.reserved_for}"),
                )
            )
    n_held = sum(1 for node in nodes for device in node.devices if device.job_id is not None)
    closed = [f"{one.node_id} is {one.state} ({one.state_reason or 'no reason'})" for one in nodes if _is_closed(one)]
    said = f"{plural(len(nodes), 'node')}, {plural(len(rows), 'device')}, {n_held} held by jobs"
    columns = ("node", "device", "kind", "state", "job", "experiment", "session", "note")
    return result("\n".join([said, *closed]), table=table(columns, rows[:MOST_ROWS]))


def _spend(desk: Desk, arguments: Nothing) -> Result:
    rows = []
    for one in desk.store.sessions()[:MOST_ROWS]:
        cost = cost_usd(Task.model_validate_json(one.task_json).budgets, Spend.of(one))
        rows.append((one.session_id, one.task_name, number(one.device_seconds), one.tokens, number(cost)))
    total = sum(one.device_seconds for one in desk.store.sessions())
    said = f"{duration(total)} of device time by sessions; money counts device time where their task gives it a price"
    return result(said, table=table(("session", "task", "device-seconds", "tokens", "US dollars"), rows))


def _cordon_ahead(desk: Desk, arguments: OfNode) -> Foreseen:
    with at_runtime(desk) as runtime:
        node = _node(runtime, arguments.node)
        if node.state == NodeState.CORDONED:
            raise ToolFailed(f"{node.node_id} is cordoned already", code="so_already")
    n_held = len({device.job_id for device in node.devices if device.job_id is not None})
    goes_on = f"{plural(n_held, 'job')} {'goes' if n_held == 1 else 'go'} on there"
    what = f"cordon node {node.node_id} ({plural(len(node.devices), 'device')}): it takes no new work; {goes_on}"
    return Foreseen(what=what, asks=True, why="it takes devices from everybody", device_seconds=0.0)


def _uncordon_ahead(desk: Desk, arguments: OfNode) -> Foreseen:
    with at_runtime(desk) as runtime:
        node = _node(runtime, arguments.node)
        n_queued = runtime.info().n_queued
        if not _is_closed(node):
            raise ToolFailed(f"{node.node_id} is {node.state}: it takes work", code="so_already")
    reason = f" ({node.state_reason})" if node.state_reason else ""
    what = f"uncordon node {node.node_id}, which is {node.state}{reason}: {plural(n_queued, 'job')} in the queue"
    return Foreseen(what=what, asks=True, why="jobs that wait may start there")


def _set_state(state: NodeState) -> Callable[[Desk, OfNode, str], Result]:
    def done(desk: Desk, arguments: OfNode, by: str) -> Result:
        with at_runtime(desk) as runtime:
            node = _node(runtime, arguments.node)
            if not isinstance(runtime, NodeKeeper):
                raise ToolFailed("this runtime keeps no nodes", code="no_nodes")
            now = runtime.set_node_state(node.node_id, state, reason=f"by {by}, in a chat")
        return result(f"{now.node_id} is {now.state}")

    return done


def _is_closed(node: NodeView) -> bool:
    return node.state in (NodeState.CORDONED, NodeState.DRAINING, NodeState.QUARANTINED)


def _node(runtime: Runtime, node_id: str) -> NodeView:
    nodes = {one.node_id: one for one in runtime.nodes()}
    if node_id not in nodes:
        raise FixAndRetry(f"no node {node_id!r}; there are: {named(list(nodes))}", code="unknown_node")
    return nodes[node_id]


def _of_node(words: Words) -> dict[str, str]:
    return taken(words, "node")


TOOLS = (
    Reads(
        name="list_devices",
        description="Nodes and devices: who holds each, which are free, reserved, or taken out of use.",
        arguments=Nothing,
        slash=Slash(name="devices", usage="/devices", summary="who holds which device", parse=nothing),
        look=_devices,
    ),
    Reads(
        name="read_spend",
        description="Device time, tokens and money that the sessions have used.",
        arguments=Nothing,
        slash=Slash(name="spend", usage="/spend", summary="what the sessions have used", parse=nothing),
        look=_spend,
    ),
    Acts(
        name="cordon_node",
        description="Have a node take no new work; what runs there goes on.",
        arguments=OfNode,
        slash=Slash(name="cordon", usage="/cordon NODE", summary="have a node take no new work", parse=_of_node),
        ahead=_cordon_ahead,
        do=_set_state(NodeState.CORDONED),
    ),
    Acts(
        name="uncordon_node",
        description="Have a node take work again.",
        arguments=OfNode,
        slash=Slash(name="uncordon", usage="/uncordon NODE", summary="have a node take work again", parse=_of_node),
        ahead=_uncordon_ahead,
        do=_set_state(NodeState.HEALTHY),
    ),
)
