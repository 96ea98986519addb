"""What known models cost at their vendors; the facts, with source and date, are in `prices.json`."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from agent.llm.guard import host_of
from agent.task import Prices

_FILE = Path(__file__).with_name("prices.json")
_BUILD = re.compile(r"([-@](latest|\d{3,4}|\d{6,8}|\d{4}-\d{2}-\d{2}))?")
"""What may follow a known name: the date or number of a build. `gpt-4.1-mini` is no build of `gpt-4.1`."""


class _Vendor(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    hosts: tuple[str, ...] = Field(min_length=1)
    """Only there: the same name at another endpoint, such as one's own, has another price."""
    source: str
    as_of: str = Field(pattern=r"\d{4}-\d{2}(-\d{2})?")
    models: dict[str, tuple[float, float]]
    """Prompt and completion."""


class _PriceList(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    about: str
    vendors: tuple[_Vendor, ...]


def known_price(model: str, base_url: str) -> Prices | None:
    """The price of a model at an endpoint, by the longest known name that it begins with; None: it is unknown."""
    host = host_of(base_url).lower()
    for vendor in _price_list().vendors:
        if host not in vendor.hosts:
            continue
        name = model.removeprefix("models/")
        fitting = [known for known in vendor.models if name.startswith(known) and _BUILD.fullmatch(name[len(known) :])]
        if fitting:
            prompt, completion = vendor.models[max(fitting, key=len)]
            return Prices(prompt=prompt, completion=completion)
    return None


@cache
def _price_list() -> _PriceList:
    return _PriceList.model_validate(json.loads(_FILE.read_text(encoding="utf-8")))
