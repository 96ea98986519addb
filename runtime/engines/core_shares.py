"""Who may use which cores: all of them, less those that belong to an exclusive attempt's devices. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from runtime.engines.contract import AttemptKey, LaunchOrder
from runtime.model.ground import own_cores


@dataclass(slots=True)
class CoreShares:
    """The attempts on this node, and what of its cores each may use."""

    every: frozenset[int]
    """All cores that anybody here may use."""
    owned: dict[int, frozenset[int]]
    """The cores that belong to each device."""
    _exclusive: dict[AttemptKey, frozenset[int]] = field(default_factory=dict)

    def add(self, order: LaunchOrder, node_id: str, *, is_exclusive: bool) -> None:
        if is_exclusive:
            parts = [part for part in order.placements if part.node_id == node_id]
            self._exclusive[order.key] = self._cores_of(d for part in parts for d in (*part.devices, *part.kept))

    def drop(self, key: AttemptKey) -> None:
        self._exclusive.pop(key, None)

    def of(self, key: AttemptKey) -> frozenset[int]:
        """The cores of one attempt."""
        own = self._exclusive.get(key)
        if own is not None:
            return own
        return self.every.difference(*self._exclusive.values()) or self.every

    def _cores_of(self, devices: Iterable[int]) -> frozenset[int]:
        return frozenset().union(*(self.owned.get(device, frozenset()) for device in devices)) or self.every


def core_shares(devices: Iterable[int], cores: Iterable[int], n_usable: int) -> CoreShares:
    """
    Args:
        devices: indexes of the node's devices.
        cores: as the operating system numbers them.
        n_usable: so many of them are to be had at a time; a control group may allow fewer than there are.
    """
    places, every = sorted(devices), sorted(cores)
    shares = _shares(every[:n_usable], len(places))
    return CoreShares(every=frozenset(every), owned=dict(zip(places, shares, strict=True)))


def _shares(cores: Sequence[int], n_devices: int) -> list[frozenset[int]]:
    return [frozenset(cores[i] for i in own) for own in own_cores(n_devices, len(cores))]
