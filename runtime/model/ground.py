"""What a node offers besides its devices: cores, memory, and which cores belong to which device. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .nouns import Node

UNBOUND = 1 << 50
"""Of a node that does not say how much it has (a simulated one): it binds nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreGroup:
    """Devices that share their cores with each other and with nobody else."""

    devices: int
    """As a mask."""
    cpu_milli: int
    """Thousandths of a core that they own together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A node with nothing on it."""

    cpu_milli: int
    memory_mb: int
    device_memory: tuple[tuple[int, int], ...]
    """Memory of a device in MiB, and the devices that have so much; those that do not say are left out."""
    core_groups: tuple[CoreGroup, ...]
    """Those that give most devices for the fewest cores come first."""


def ground_of(node: Node) -> Ground:
    sizes: dict[int, int] = {}
    for device in node.devices:
        if device.memory_mb is not None:
            sizes[device.memory_mb] = sizes.get(device.memory_mb, 0) | 1 << device.index
    return Ground(
        cpu_milli=node.cpus * 1000 or UNBOUND,
        memory_mb=node.memory_mb or UNBOUND,
        device_memory=tuple(sizes.items()),
        core_groups=_core_groups([device.index for device in node.devices], node.cpus),
    )


def own_cores(n_devices: int, n_cores: int) -> list[range]:
    """The cores that each device owns, by its place on the node.

    Every core belongs to a device where there are at least as many cores; else neighbours share one. Without cores
    nobody owns any.
    """
    if n_cores >= n_devices:
        return [range(i * n_cores // n_devices, (i + 1) * n_cores // n_devices) for i in range(n_devices)]
    return [range(core := i * n_cores // n_devices, core + min(1, n_cores)) for i in range(n_devices)]


def _core_groups(indexes: Sequence[int], n_cores: int) -> tuple[CoreGroup, ...]:
    masks: dict[tuple[int, range], int] = {}
    for place, (index, cores) in enumerate(zip(sorted(indexes), own_cores(len(indexes), n_cores), strict=True)):
        key = (0 if cores else place, cores)
        masks[key] = masks.get(key, 0) | 1 << index
    groups = (CoreGroup(devices=mask, cpu_milli=len(cores) * 1000) for (_, cores), mask in masks.items())
    return tuple(sorted(groups, key=lambda group: (group.cpu_milli, -group.devices.bit_count(), group.devices)))
