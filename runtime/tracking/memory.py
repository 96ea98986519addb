"""Which params the present attempt of a run has logged: only its own second value for one is an error.

Kept in memory. After a restart of the server the gateway is lenient: a differing value is noted as a tag instead.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable

from runtime.engines.contract import AttemptKey

from .door import Caller

_RUNS = 10_000


class ParamMemory:
    def __init__(self) -> None:
        self._keys: OrderedDict[str, tuple[int, set[str]]] = OrderedDict()

    def of(self, run_id: str, caller: Caller) -> Collection[str]:
        """The params that this attempt logged to a run."""
        if not isinstance(caller, AttemptKey):
            return ()
        attempt, keys = self._keys.get(run_id, (caller.attempt, set()))
        return frozenset(keys) if attempt == caller.attempt else ()

    def add(self, run_id: str, caller: Caller, keys: Iterable[str]) -> None:
        added = set(keys)
        if not added or not isinstance(caller, AttemptKey):
            return
        attempt, known = self._keys.pop(run_id, (caller.attempt, set()))
        self._keys[run_id] = (caller.attempt, known | added if attempt == caller.attempt else added)
        while len(self._keys) > _RUNS:
            self._keys.popitem(last=False)
