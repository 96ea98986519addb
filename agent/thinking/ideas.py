"""What a model may answer when it is asked for ideas: the shape alone. Nothing in it is true or allowed yet.

The schema that goes to the endpoint names the task's parameters and choices, so that a model that is held to it can
name no others; what is read does not rely on that.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model, model_validator
from pydantic.json_schema import SkipJsonSchema

from agent.planner.reach import may_leave, reach
from agent.task import CategoricalParameter, FloatParameter, IntParameter, Parameter, Task

Scalar = str | int | float | bool | None
_FEW = 2
"""Lessons and wishes of each kind that a model which is held to the schema may give at once: small models repeat
themselves until the answer is cut off where a list has no end."""
_EVIDENCE = 4
"""Trials that it may name for a lesson."""
_SENTENCE_CHARACTERS = 200
Sentence = Annotated[str, Field(json_schema_extra={"maxLength": _SENTENCE_CHARACTERS})]
"""What is longer is read all the same."""


def as_mapping(given: object) -> object:
    """An object as it is; a list of name and value pairs as the object that it means."""
    if isinstance(given, list) and all(isinstance(one, dict) and {"name", "value"} <= set(one) for one in given):
        return {str(one["name"]): one["value"] for one in given}
    return given


class Part(BaseModel):
    """The schema allows no further fields; what comes all the same is kept, so that it can be refused by name.

    Else one word too many would cost a whole answer.
    """

    model_config = ConfigDict(extra="allow", frozen=True, json_schema_extra={"additionalProperties": False})

    @property
    def superfluous(self) -> tuple[str, ...]:
        return tuple(self.model_extra or ())


class Idea(Part):
    """A configuration to try. What it does not name stays as in the best so far."""

    parameters: Annotated[dict[str, Scalar], BeforeValidator(as_mapping)]
    why: Sentence = ""
    gain: float | None = Field(default=None, description="expected gain over the default; positive is better")
    chance: float | None = Field(default=None, description="from 0 to 1: that it beats the default")

    @model_validator(mode="before")
    @classmethod
    def _with_parameters_apart(cls, given: object) -> object:
        """Small models write the parameters beside the reason instead of under a name of their own."""
        if not isinstance(given, dict) or "parameters" in given:
            return given
        beside = {name: value for name, value in given.items() if name not in cls.model_fields}
        own = {name: value for name, value in given.items() if name in cls.model_fields}
        return {**own, "parameters": beside} if beside else given


class Again(Part):
    """A measured trial whose configuration should be measured on another seed."""

    trial: str
    why: Sentence = ""


class Stop(Part):
    """A running trial that can not become good any more."""

    trial: str
    why: Sentence = ""


class LessonIdea(Part):
    """What was learned, in one sentence, and the trials that show it."""

    text: Sentence
    trials: tuple[str, ...] = Field(json_schema_extra={"maxItems": _EVIDENCE})


def _at_most(n: int) -> Any:
    """An empty list; the schema allows so many items, and what is read is not held to that."""
    return Field(default=(), json_schema_extra={"maxItems": n})


class Ideas(Part):
    """The whole answer. One that says nothing is an answer too; one about something else is none."""

    model_config = ConfigDict(
        extra="allow", frozen=True, json_schema_extra={"additionalProperties": False, "required": ["trials"]}
    )

    trials: tuple[Idea, ...] = ()
    again: tuple[Again, ...] = _at_most(_FEW)
    stop: tuple[Stop, ...] = _at_most(_FEW)
    lessons: tuple[LessonIdea, ...] = _at_most(_FEW)

    @model_validator(mode="before")
    @classmethod
    def _is_about_trials(cls, given: object) -> object:
        if not isinstance(given, dict) or not given or given.keys() & cls.model_fields.keys():
            return given
        if "parameters" in given:
            return {"trials": [given]}
        raise ValueError('write an object with the list "trials"')


def may_repeat(task: Task) -> bool:
    """Whether a replicate may be wished for."""
    return "replicator" in task.search.use and task.search.replicates == 1


def ideas_of(task: Task, n: int | None = None, *, may_stop: bool = True) -> type[Ideas]:
    """`Ideas` with the schema of this task's space, and of what may be said at this moment.

    Args:
        n: configurations that are wanted at most; None: as many as the task asks for at once.
        may_stop: whether running trials may be named.
    """
    n = n or (task.model.batch if task.model is not None else 1)
    idea = create_model("Idea", __base__=Idea, parameters=(values_of(task), ...))
    fields: dict[str, Any] = {"trials": (tuple[idea, ...], _at_most(n))}
    if not may_repeat(task):
        fields["again"] = (SkipJsonSchema[tuple[Again, ...]], ())
    if not may_stop:
        fields["stop"] = (SkipJsonSchema[tuple[Stop, ...]], ())
    return create_model("Ideas", __base__=Ideas, **fields)


def values_of(task: Task) -> Any:
    """The type of values of its parameters, with the schema that names them."""
    space: dict[str, Any] = {
        "type": "object",
        "properties": {name: _schema(parameter, task) for name, parameter in task.space.items()},
        "additionalProperties": False,
    }
    return Annotated[dict[str, Scalar], BeforeValidator(as_mapping), WithJsonSchema(space)]


def _schema(parameter: Parameter, task: Task) -> dict[str, Any]:
    match parameter:
        case CategoricalParameter():
            return {"enum": list(parameter.choices)}
        case IntParameter() | FloatParameter():
            low, high = reach(parameter) if may_leave(task) else (parameter.low, parameter.high)
            kind = "integer" if isinstance(parameter, IntParameter) else "number"
            return {"type": kind, "minimum": low, "maximum": high}
