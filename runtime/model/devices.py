"""Sets of devices as bit masks: bit i is the device with index i. Pure.

A mask is one immutable int, so that an overlay of a whole cluster is a small dict that is copied in no time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .nouns import Node, Placement

Masks = dict[str, int]
"""Devices by node."""
KindMasks = Mapping[str | None, int]
"""Devices of one node by kind; None: all of them."""


def mask_of(indexes: Iterable[int]) -> int:
    mask = 0
    for index in indexes:
        mask |= 1 << index
    return mask


def indexes_of(mask: int) -> tuple[int, ...]:
    """The devices in a mask, ascending."""
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(found)


def lowest(mask: int, n: int) -> int:
    """The mask of its n lowest devices; all of them when it has fewer."""
    kept = 0
    for _ in range(n):
        bit = mask & -mask
        kept |= bit
        mask ^= bit
    return kept


def kind_masks(node: Node) -> dict[str | None, int]:
    masks: dict[str | None, int] = {None: 0}
    for device in node.devices:
        bit = 1 << device.index
        masks[None] |= bit
        masks[device.kind] = masks.get(device.kind, 0) | bit
    return masks


def placement_masks(placements: Iterable[Placement]) -> Masks:
    """The devices that nobody else gets whole, by node."""
    return {placement.node_id: placement_mask(placement) for placement in placements}


def placement_mask(placement: Placement) -> int:
    mask = mask_of(placement.devices)
    return mask | mask_of(placement.kept) if placement.kept else mask


def count(masks: Mapping[str, int]) -> int:
    return sum(mask.bit_count() for mask in masks.values())


def n_devices(placements: Iterable[Placement]) -> int:
    return sum(len(placement.devices) for placement in placements)
