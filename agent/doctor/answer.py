"""What a model may answer when it is asked why a job failed: the shape alone. Nothing in it is true or allowed yet."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from agent.doctor.diagnosis import FailureClass
from agent.thinking.ideas import Scalar, as_mapping

NOT_ASKED = frozenset(
    {FailureClass.STOPPED, FailureClass.MACHINE, FailureClass.TIME_LIMIT, FailureClass.HANG, FailureClass.NO_METRIC}
)
"""What the runtime knows by itself: no output makes it so."""
ASKED = tuple(each for each in FailureClass if each not in NOT_ASKED)


class Answer(BaseModel):
    """One opinion. `unknown` is an answer too."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, json_schema_extra={"additionalProperties": False, "required": ["failure"]}
    )

    failure: Annotated[FailureClass, WithJsonSchema({"enum": [each.value for each in ASKED]})] = FailureClass.UNKNOWN
    evidence: str = Field(default="", description="the one line of the output that says so, copied exactly")
    cause: str = Field(default="", description="one sentence")
    suggestion: str = Field(default="", description="one sentence: what to change")
    change: Annotated[dict[str, Scalar], BeforeValidator(as_mapping)] = Field(
        default_factory=dict, description="parameters to set to other values; empty where that would not help"
    )

    @model_validator(mode="before")
    @classmethod
    def _names_a_class(cls, given: object) -> object:
        if isinstance(given, dict) and given and "failure" not in given:
            raise ValueError('write an object with the field "failure"')
        return given
