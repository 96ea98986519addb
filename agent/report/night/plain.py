"""One night of a history as plain data, for programs. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from agent.sweeps.summary_text import summary_to_json
from agent.sweeps.views import NightSummary, NightView

from .sentence import headline

LEFT_OUT = ("sweep_json", "cells", "pid", "summary")


def night_row_data(night: NightView) -> dict[str, Any]:
    """Numbers that are not finite are text: JSON has none."""
    row = {name: value for name, value in asdict(night).items() if name not in LEFT_OUT}
    summary = None if night.summary is None else summary_to_json(night.summary)
    return {**row, "sentence": headline(night, night.summary or NightSummary()), "summary": summary}
