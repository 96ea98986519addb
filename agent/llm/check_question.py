"""The small question with one right answer by which an endpoint shows what it can do."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class BestRun(BaseModel):
    """The run with the highest accuracy."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, max_length=40)
    """Of the run, as in the table."""
    accuracy: float = Field(ge=0, le=1, allow_inf_nan=False)
