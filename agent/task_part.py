"""What all parts of a task file have in common: unknown keys are errors, and nothing changes after it was read."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Direction(StrEnum):
    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


class TaskPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
