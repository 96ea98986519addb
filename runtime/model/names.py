"""The names of the events, as the journal and the wire spell them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import get_args

from .events import Event


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


EVENT_CLASSES: Mapping[str, type[Event]] = MappingProxyType({_snake_case(c.__name__): c for c in get_args(Event)})
"""Every event class by its name."""
_NAMES = {event_class: name for name, event_class in EVENT_CLASSES.items()}


def event_type_name(event: Event) -> str:
    """`AttemptEnded` -> `attempt_ended`."""
    return _NAMES[type(event)]
