"""What all parts of a task file have in common: unknown keys are errors, and nothing changes after it was read."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class TaskPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
