"""The machines of a simulation, from a few words (`64x8`) or from a node list of a trace."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from runtime.model.nouns import Device, Node

from .errors import BadScenario, BadTrace
from .tables import read_table

_PART = re.compile(r"(?P<n>\d+)x(?P<devices>\d+)(?:x(?P<kind>[A-Za-z][\w.\-]*))?")
DEFAULT_KIND = "gpu"
MAX_DEVICES = 1_000_000
_COLUMNS = {"openb": ("sn", "gpu", "model"), "hp-spot": ("node_name", "gpu_capacity_num", "gpu_model")}
"""Name, number of devices and kind of device in the node lists that we know, by the trace they belong to."""


def parse_nodes(text: str) -> tuple[Node, ...]:
    """`64x8` is 64 nodes of 8 devices; `2x8xH100,4x4xA100` names kinds; a file is a node list of openb or HP/Spot.

    Raises:
        BadScenario: it is neither.
        BadTrace: it is a file, but not such a list.
    """
    path = Path(text).expanduser()
    if "/" in text or text.endswith(".csv") or path.is_file():
        return read_nodes(path)
    sizes: list[tuple[int, str]] = []
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None or not int(match["n"]) or not int(match["devices"]):
            raise BadScenario(
                f"nodes {text!r} can not be understood; give NODESxDEVICES such as 64x8, "
                "NODESxDEVICESxKIND such as 2x8xH100, several with commas, or the file of a node list"
            )
        sizes += [(int(match["devices"]), match["kind"] or DEFAULT_KIND)] * min(int(match["n"]), MAX_DEVICES)
    return make_nodes(sizes)


def make_nodes(sizes: Sequence[tuple[int, str]], names: Sequence[str] | None = None) -> tuple[Node, ...]:
    """Nodes with so many devices of a kind each.

    Raises:
        BadScenario: more devices than anybody has.
    """
    if sum(n for n, _ in sizes) > MAX_DEVICES:
        raise BadScenario(f"more than {MAX_DEVICES:,} devices; simulate a part of them")
    width = len(str(len(sizes)))
    return tuple(make_node(names[i] if names else f"n{i + 1:0{width}d}", n, kind) for i, (n, kind) in enumerate(sizes))


def make_node(node_id: str, n_devices: int, kind: str = DEFAULT_KIND) -> Node:
    return Node(
        node_id=node_id,
        generation=1,
        boot_id="simulated",
        hostname=node_id,
        cpus=0,
        memory_mb=0,
        devices=tuple(Device(index=i, kind=kind, uuid=f"{node_id}-{i}", is_fake=True) for i in range(n_devices)),
    )


def read_nodes(path: Path) -> tuple[Node, ...]:
    """The nodes with devices of `openb_node_list_gpu_node.csv` or `node_info_df.csv`.

    Raises:
        BadTrace: it is neither, or a row is broken.
    """
    table = read_table(path)
    for name, n_devices, kind in _COLUMNS.values():
        if {name, n_devices, kind} <= set(table.columns):
            rows = [(row.text(name), row.whole(n_devices), row.text(kind) or DEFAULT_KIND) for row in table.rows()]
            return _named(path, [row for row in rows if row[1] > 0])
    known = "; or ".join(", ".join(columns) for columns in _COLUMNS.values())
    raise BadTrace(path, f"is no node list that is known here: it needs the columns {known}")


def _named(path: Path, rows: Iterable[tuple[str, int, str]]) -> tuple[Node, ...]:
    found = list(rows)
    names = [name for name, _, _ in found]
    if len(set(names)) != len(names):
        raise BadTrace(path, "two nodes have one name")
    return make_nodes([(n, kind) for _, n, kind in found], names)
