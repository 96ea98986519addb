"""`nightlab node list`: the machines and their devices."""

from __future__ import annotations

import typer

from nightlab.output import print_json, print_table

from .options import HomeOption, JsonOption, runtime

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="The machines and their devices.",
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
            device.job_id or "free",
        )
        for node in nodes
        for device in node.devices
    ]
    print_table(("device", "state", "kind", "#memory", "job"), rows, state_column=1)
