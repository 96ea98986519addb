"""Events, journal entries and snapshots as JSON values, and back. Pure.

Dataclasses become objects by field name; a field with a default may be missing, an unknown one is an error. Old
payloads are upcast step by step (`UPCASTS`) before they are read.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from .budgets import Budget
from .errors import BadPayload
from .estimates import Learned
from .events import Event, Recorded
from .evictions import Eviction
from .holds import AgentsStop, Hold, Standing
from .leaving import Departures
from .names import EVENT_CLASSES, event_type_name
from .nouns import Job, Node
from .state import State
from .usage import Usage

T = TypeVar("T")
Json = Any
JsonObject = dict[str, Json]

EVENT_VERSIONS: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(EVENT_CLASSES, 1),
        "attempt_ended": 3,
        "attempt_started": 4,
        "budget_set": 2,
        "job_submitted": 2,
        "node_joined": 3,
        "start_ordered": 2,
    }
)
"""The version each event type is written in. Raise one together with an entry in `UPCASTS`."""

UPCASTS: Mapping[tuple[str, int], Callable[[JsonObject], JsonObject]] = MappingProxyType(
    {
        ("attempt_ended", 1): lambda payload: payload,
        ("attempt_ended", 2): lambda payload: payload,
        ("attempt_started", 1): lambda payload: payload,
        ("attempt_started", 2): lambda payload: payload,
        ("attempt_started", 3): lambda payload: payload,
        ("budget_set", 1): lambda payload: payload,
        ("job_submitted", 1): lambda payload: payload,
        ("node_joined", 1): lambda payload: payload,
        ("node_joined", 2): lambda payload: payload,
        ("start_ordered", 1): lambda payload: payload,
    }
)
"""(type, version) -> the payload one version newer. Later versions have fields that may be missing."""

SNAPSHOT_VERSION = 3
OLDER_SNAPSHOTS = frozenset({1, 2})
"""Can be read: version 1 has no estimates, no holds, no standings and no stop of the agents; up to version 2 nothing
tells who set a budget, which then counts as a person's, nor whether and how a node seals jobs."""
_FRAME: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {
        "last_seq": (int,),
        "clock_s": (int, float),
        **dict.fromkeys(("fences", "recent", "spent", "evictions"), (dict,)),
        **dict.fromkeys(("nodes", "jobs", "holds", "standings", "estimates", "usages", "budgets"), (list,)),
    }
)
"""Kinds of the parts of a snapshot."""


def encode_event(event: Event) -> JsonObject:
    """The event's payload, in the version `EVENT_VERSIONS[event_type_name(event)]`."""
    payload: JsonObject = _encode(event)
    return payload


def decode_event(event_type: str, version: int, payload: JsonObject) -> Event:
    """The event of a stored payload of any known version.

    Raises:
        BadPayload: an unknown type or version, or a payload that does not fit.
    """
    event_class = EVENT_CLASSES.get(event_type)
    if event_class is None:
        raise BadPayload(path=event_type, why=f"unknown event type; known are {', '.join(EVENT_CLASSES)}")
    current = upcast(event_type, version, payload)
    return _decode(event_class, current, event_type)


def upcast(event_type: str, version: int, payload: JsonObject) -> JsonObject:
    """A stored payload in the version of today.

    Raises:
        BadPayload: written by a newer program, or no step leads on from this version.
    """
    target = EVENT_VERSIONS[event_type]
    if version > target:
        raise BadPayload(path=event_type, why=f"version {version} is newer than this program, which knows {target}")
    for step in range(version, target):
        change = UPCASTS.get((event_type, step))
        if change is None:
            raise BadPayload(path=event_type, why=f"no step leads on from version {step}")
        payload = change(payload)
    return payload


def encode_recorded(recorded: Recorded) -> JsonObject:
    name = event_type_name(recorded.event)
    return {
        "seq": recorded.seq,
        "type": name,
        "version": EVENT_VERSIONS[name],
        "at_s": recorded.at_s,
        "actor": recorded.actor,
        "on_behalf_of": recorded.on_behalf_of,
        "project": recorded.project,
        "payload": encode_event(recorded.event),
    }


def decode_recorded(entry: JsonObject) -> Recorded:
    """
    Raises:
        BadPayload: as `decode_event`, or a part of the envelope is missing.
    """
    missing = {"seq", "type", "version", "at_s", "actor", "payload"} - set(entry)
    if missing:
        raise BadPayload(path="recorded", why=f"missing {', '.join(sorted(missing))}")
    return Recorded(
        seq=entry["seq"],
        at_s=entry["at_s"],
        actor=entry["actor"],
        on_behalf_of=entry.get("on_behalf_of"),
        project=entry.get("project"),
        event=decode_event(entry["type"], entry["version"], entry["payload"]),
    )


def encode_state(state: State) -> JsonObject:
    """A snapshot: everything but the indexes, which follow from it."""
    return {
        "version": SNAPSHOT_VERSION,
        "last_seq": state.last_seq,
        "clock_s": state.clock_s,
        "nodes": [_encode(node) for node in state.nodes.values()],
        "jobs": [_encode(job) for job in state.jobs.values()],
        "fences": dict(state.fences),
        "estimates": [_encode(learned) for learned in state.estimates.remembered()],
        "leaving": [_encode(departures) for departures in state.leaving.remembered()],
        "usages": [_encode(usage) for usage in state.usages.remembered()],
        "recent": {job_id: list(notes) for job_id, notes in state.recent.items()},
        "holds": [_encode(hold) for hold in state.holds.values()],
        "agents_stop": _encode(state.agents_stop),
        "budgets": [_encode(budget) for budget in state.budgets.values()],
        "spent": dict(state.spent),
        "evictions": {name: [_encode(one) for one in past] for name, past in state.evictions.items()},
        "spoiled": sorted(state.spoiled),
        "standings": [_encode(standing) for standing in state.standings.values()],
    }


def decode_state(snapshot: JsonObject) -> State:
    """
    Raises:
        BadPayload: a version this program does not know, or a snapshot that does not fit.
    """
    _check_frame(snapshot)
    state = State(last_seq=snapshot["last_seq"], clock_s=snapshot["clock_s"], fences=dict(snapshot["fences"]))
    for n, budget in enumerate(snapshot.get("budgets", ())):
        found = _decode(Budget, budget, f"snapshot.budgets[{n}]")
        state.budgets[found.key] = found
    state.spent = {name: float(seconds) for name, seconds in snapshot.get("spent", {}).items()}
    state.evictions = {
        name: tuple(_decode(Eviction, one, f"snapshot.evictions.{name}") for one in past)
        for name, past in snapshot.get("evictions", {}).items()
    }
    state.spoiled = set(snapshot.get("spoiled", ()))
    _decode_operator_parts(state, snapshot)
    learned = enumerate(snapshot.get("estimates", ()))
    state.estimates.remember(_decode(Learned, entry, f"snapshot.estimates[{n}]") for n, entry in learned)
    left = enumerate(snapshot.get("leaving", ()))
    state.leaving.remember(_decode(Departures, entry, f"snapshot.leaving[{n}]") for n, entry in left)
    usages = enumerate(snapshot.get("usages", ()))
    state.usages.remember(_decode(Usage, entry, f"snapshot.usages[{n}]") for n, entry in usages)
    for n, node in enumerate(snapshot["nodes"]):
        state.put_node(_decode(Node, node, f"snapshot.nodes[{n}]"))
    for n, job in enumerate(snapshot["jobs"]):
        state.put_job(_decode(Job, job, f"snapshot.jobs[{n}]"))
    if "usages" not in snapshot:
        for job_id in sorted(state.index.holding):
            job = state.jobs[job_id]
            state.usages.change(job.project, job.priority, job.shape.n_devices, state.clock_s)
    state.recent = {job_id: tuple(notes) for job_id, notes in snapshot["recent"].items()}
    return state


def _check_frame(snapshot: Json) -> None:
    """Version, parts and their kinds; a damaged database holds anything."""
    if not isinstance(snapshot, dict):
        raise BadPayload(path="snapshot", why=f"expected an object, got {type(snapshot).__name__}")
    version = snapshot.get("version")
    if not isinstance(version, int) or version not in (SNAPSHOT_VERSION, *OLDER_SNAPSHOTS):
        raise BadPayload(path="snapshot", why=f"version {version!r}, this program knows {SNAPSHOT_VERSION}")
    wanted = {"last_seq", "clock_s", "nodes", "jobs", "fences", "recent"}
    if version > 1:
        wanted |= {"holds", "agents_stop", "standings"}
    missing = wanted - set(snapshot)
    if missing:
        raise BadPayload(path="snapshot", why=f"missing {', '.join(sorted(missing))}")
    for name, kinds in _FRAME.items():
        if name in snapshot and type(snapshot[name]) not in kinds:
            raise BadPayload(path=f"snapshot.{name}", why=f"got {type(snapshot[name]).__name__}")
    for job_id, notes in snapshot["recent"].items():
        if not isinstance(notes, list):
            raise BadPayload(path=f"snapshot.recent.{job_id}", why=f"expected a list, got {type(notes).__name__}")
    for session_id, fence in snapshot["fences"].items():
        if type(fence) is not int:
            raise BadPayload(path=f"snapshot.fences.{session_id}", why=f"expected a number, got {fence!r}")
    for name, seconds in snapshot.get("spent", {}).items():
        if type(seconds) not in (int, float):
            raise BadPayload(path=f"snapshot.spent.{name}", why=f"expected a number, got {seconds!r}")


def _decode_operator_parts(state: State, snapshot: JsonObject) -> None:
    """Before nodes and jobs, whose indexes follow from them too."""
    for n, hold in enumerate(snapshot.get("holds", ())):
        state.put_hold(_decode(Hold, hold, f"snapshot.holds[{n}]"))
    for n, standing in enumerate(snapshot.get("standings", ())):
        state.put_standing(_decode(Standing, standing, f"snapshot.standings[{n}]"))
    stop = snapshot.get("agents_stop")
    if stop is not None:
        state.agents_stop = _decode(AgentsStop, stop, "snapshot.agents_stop")


def _encode(value: object) -> Json:
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple):
        return [_encode(part) for part in value]
    if is_dataclass(value):
        cls: Any = type(value)
        return {name: _encode(getattr(value, name)) for name in _field_names(cls)}
    return value


@cache
def _field_names(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls))


def _decode(cls: type[T], value: Json, path: str) -> T:
    if not isinstance(value, dict):
        raise BadPayload(path=path, why=f"expected an object, got {value!r}")
    key: Any = cls
    plan = _plan(key)
    unknown = set(value) - set(plan)
    if unknown:
        raise BadPayload(path=path, why=f"unknown {', '.join(sorted(unknown))}; known are {', '.join(plan)}")
    found = {}
    for name, (hint, is_required) in plan.items():
        if name in value:
            found[name] = _decode_as(hint, value[name], f"{path}.{name}")
        elif is_required:
            raise BadPayload(path=f"{path}.{name}", why="missing")
    return cls(**found)


@cache
def _plan(cls: Any) -> Mapping[str, tuple[Any, bool]]:
    """Type and "is required" of each field."""
    hints = get_type_hints(cls)
    return {field.name: (hints[field.name], _is_required(field)) for field in fields(cls)}


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _decode_as(hint: Any, value: Json, path: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        options = [option for option in get_args(hint) if option is not type(None)]
        return None if value is None else _decode_as(options[0], value, path)
    if origin is tuple:
        if not isinstance(value, list):
            raise BadPayload(path=path, why=f"expected a list, got {value!r}")
        return tuple(_decode_as(get_args(hint)[0], part, f"{path}[{n}]") for n, part in enumerate(value))
    if is_dataclass(hint):
        return _decode(hint, value, path)  # type: ignore[arg-type]
    return _decode_scalar(hint, value, path)


def _decode_scalar(hint: type, value: Json, path: str) -> Any:
    if issubclass(hint, StrEnum):
        try:
            return hint(value)
        except ValueError:
            raise BadPayload(path=path, why=f"{value!r} is none of {', '.join(hint)}") from None
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not hint:
        raise BadPayload(path=path, why=f"expected {hint.__name__}, got {value!r}")
    return value
