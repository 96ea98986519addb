"""`nightlab node ...`: the machines and their devices; what may run there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import wrong_use
from nightlab.output import print_json, print_table

from .options import HomeOption, JsonOption, runtime

if TYPE_CHECKING:
    from runtime_client.models import DeviceView, NodeState, NodeView

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="The machines and their devices: list, cordon, drain, reserve.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example:  nightlab node list",
)


@app.callback()
def _node() -> None:
    """The machines and their devices."""


@app.command("list", epilog="Example:  nightlab node list --json")
def list_nodes(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List every device: its node, its kind, and the job that holds it."""
    with runtime(home) as client:
        nodes = client.nodes()
    if as_json:
        print_json(nodes)
        return
    rows = [
        (
            f"{node.node_id}:{device.index}",
            node.state,
            f"{device.kind}{' (fake)' if device.is_fake else ''}",
            "" if device.memory_mb is None else f"{device.memory_mb // 1024} GiB",
            device.job_id or _idle(node, device),
            _remark(node, device),
        )
        for node in nodes
        for device in node.devices
    ]
    print_table(("device", "state", "kind", "#memory", "job", "note"), rows, state_column=1)
    for node in nodes:
        if node.sealed_by is not None:
            print(f"{node.node_id}: sealed jobs by {node.sealed_by}")
        if node.why_not_sealed is not None:
            print(f"{node.node_id}: no sealed jobs: {node.why_not_sealed}")


def _idle(node: NodeView, device: DeviceView) -> str:
    is_open = node.state in ("healthy", "suspect") and device.reserved_for is None and not device.busy_external
    return "free" if is_open else "closed"


def _remark(node: NodeView, device: DeviceView) -> str:
    notes = [node.state_reason]
    if device.reserved_for is not None and device.reserved_until is not None:
        until = time.strftime("%a %H:%M", time.localtime(device.reserved_until))
        notes.append(f"reserved for {device.reserved_for} until {until}")
    if device.busy_external:
        notes.append(device.busy_reason or "used by others")
    return "; ".join(note for note in notes if note)


NodeId = Annotated[str, typer.Argument(metavar="NODE", help="Node id, such as local.", show_default=False)]
Devices = Annotated[
    str, typer.Argument(metavar="NODE:DEVICES", help="Such as local:0,1 or local:0-3.", show_default=False)
]
ReasonOption = Annotated[str, typer.Option("--reason", help="Kept and shown.", metavar="TEXT")]


@app.command("cordon", epilog="Example:  nightlab node cordon local --reason 'new fan'")
def cordon(node_id: NodeId, reason: ReasonOption = "", home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Start nothing new on a node; what runs there goes on. Survives restarts and new registrations."""
    from runtime_client.models import NodeState

    _set_state(node_id, NodeState.CORDONED, reason, home, as_json)


@app.command("uncordon", epilog="Example:  nightlab node uncordon local")
def uncordon(node_id: NodeId, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Use a node again, whatever it was: cordoned, draining, quarantined or suspect."""
    from runtime_client.models import NodeState

    _set_state(node_id, NodeState.HEALTHY, "", home, as_json)


@app.command("drain", epilog="Example:  nightlab node drain local --reason 'kernel update'")
def drain(node_id: NodeId, reason: ReasonOption = "", home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Start nothing new on a node, and ask what runs there to checkpoint and go on elsewhere."""
    from runtime_client.models import NodeState

    _set_state(node_id, NodeState.DRAINING, reason, home, as_json)


@app.command("reserve", epilog="Example:  nightlab node reserve local:0,1 --until 18:00 --for alice")
def reserve(
    devices: Devices,
    until: Annotated[
        str, typer.Option(help="18:00, 2h, or a date with a time; then it lapses.", metavar="TIME", show_default=False)
    ],
    holder: Annotated[str, typer.Option("--for", help="Who gets them.", metavar="NAME", show_default=False)],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep devices for somebody outside of nightlab; what runs on them checkpoints and leaves."""
    from nightlab.moments import until as moment

    node_id, indexes = devices_of(devices)
    ends_at = moment(until, now=time.time(), option="--until")
    with runtime(home) as client:
        _show(client.reserve(node_id, indexes, holder=holder, until=ends_at), as_json)


@app.command("unreserve", epilog="Example:  nightlab node unreserve local:0,1")
def unreserve(devices: Devices, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Give reserved devices back before their time is over; a node alone means all of its devices."""
    node_id, indexes = devices_of(devices) if ":" in devices else (devices, ())
    with runtime(home) as client:
        _show(client.unreserve(node_id, indexes), as_json)


def devices_of(text: str) -> tuple[str, tuple[int, ...]]:
    """`local:0,2-3` as a node and its devices.

    Raises:
        Failure: it is not of that form.
    """
    node_id, colon, listed = text.rpartition(":")
    found: set[int] = set()
    for item in listed.split(","):
        first, dash, last = item.partition("-")
        ends = (first, last if dash else first)
        if not (node_id and colon) or not all(end.isascii() and end.isdigit() and len(end) < 6 for end in ends):
            raise wrong_use(f"{text!r} names no devices; write NODE:0,1 or NODE:0-3.", code="bad_devices")
        found.update(range(int(ends[0]), int(ends[1]) + 1))
    return node_id, tuple(sorted(found))


def _set_state(node_id: str, state: NodeState, reason: str, home: HomeOption, as_json: bool) -> None:
    with runtime(home) as client:
        _show(client.set_node_state(node_id, state, reason=reason), as_json)


def _show(node: NodeView, as_json: bool) -> None:
    if as_json:
        print_json(node)
        return
    print(f"{node.node_id}: {node.state}" + (f" ({node.state_reason})" if node.state_reason else ""))
    for device in node.devices:
        remark = _remark(node.model_copy(update={"state_reason": ""}), device)
        if device.job_id is not None or remark:
            held = f"{device.job_id} runs there" if device.job_id else ""
            print(f"  {node.node_id}:{device.index} {'; '.join(part for part in (remark, held) if part)}")
