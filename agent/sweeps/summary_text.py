"""What a night came to as JSON, for the store and for programs. Pure; rows of older versions are still read.

JSON has no numbers that are not finite, and PostgreSQL takes none: they are written as text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from agent.store.views import Interval
from agent.sweeps.views import CellBest, Change, NightSummary, WatchResult

JsonDict = dict[str, Any]
WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
INTERVALS = ("best", "interval")
NUMBERS = ("estimate", "low", "high", "default_value", "seconds", "memory_mb", "p_value", "alpha", "cost_usd")
"""Fields whose text is a number that is not finite."""


def summary_to_json(summary: NightSummary) -> JsonDict:
    written: JsonDict = _finite(asdict(summary))
    return written


def summary_from_json(data: Mapping[str, Any] | None) -> NightSummary | None:
    """None stays None; keys that are missing have their defaults, unknown ones are left out."""
    if data is None:
        return None
    known = _known(NightSummary, data)
    known["cells"] = tuple(CellBest(**_known(CellBest, cell)) for cell in data.get("cells", ()))
    known["watched"] = tuple(
        WatchResult(**{**_known(WatchResult, one), "change": Change(one["change"])}) for one in data.get("watched", ())
    )
    known["notified"] = tuple(data.get("notified", ()))
    return NightSummary(**known)


def _known(kind: type, data: Mapping[str, Any]) -> JsonDict:
    names = {field.name for field in fields(kind)}
    return {name: _read(name, value) for name, value in data.items() if name in names}


def _read(name: str, value: Any) -> Any:
    if name in INTERVALS and value is not None:
        return Interval(**{key: _read(key, part) for key, part in value.items()})
    return WORDS.get(value, value) if name in NUMBERS and isinstance(value, str) else value


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(name): _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value
