"""What a model may answer when it is asked for an edit: the shape alone, and the edit that stands beside it. Pure."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, create_model
from pydantic.json_schema import SkipJsonSchema

from agent.llm.form import Beside
from agent.task import Task
from agent.thinking.ideas import Part, Scalar, Sentence, as_mapping, values_of

_JSON = re.compile(
    r"^[ \t]*```[ \t]*json[c5]?[ \t]*\n(.*?)^[ \t]*```[ \t]*$\n?", re.MULTILINE | re.DOTALL | re.IGNORECASE
)
_EDIT = re.compile(r"^(?:<<<< (?:edit|new) \S|<<<<<<< SEARCH|--- \S.*\n\+\+\+ \S)", re.MULTILINE)


def as_text(given: object) -> object:
    """A list of lines as the text that it means; nothing as an empty text."""
    if isinstance(given, list) and all(isinstance(line, str) for line in given):
        return "\n".join(given)
    return "" if given is None else given


class Edit(Part):
    """A change of the code to be tried, and why."""

    model_config = ConfigDict(
        extra="allow",
        frozen=True,
        json_schema_extra={
            "additionalProperties": False,
            "required": ["why", "edit"],
            "examples": [{"why": "a wider layer, since the loss still falls", "gain": 0.02, "chance": 0.6, "edit": ""}],
        },
    )

    why: Sentence = Field(description="what is changed and why, one sentence")
    parent: Annotated[str, BeforeValidator(as_text)] = Field(
        default="", description="base or a trial's id; empty: the code that is shown"
    )
    gain: float | None = Field(default=None, description="expected, over the base")
    chance: float | None = Field(default=None, description="0 to 1: that it beats the base")
    parameters: Annotated[dict[str, Scalar], BeforeValidator(as_mapping)] = Field(default_factory=dict)
    edit: Annotated[str, BeforeValidator(as_text)] = Field(default="", description="blocks")


def edit_of(task: Task) -> type[Edit]:
    """`Edit` with the schema of this task's space."""
    values = values_of(task) if task.space else SkipJsonSchema[dict[str, Scalar]]
    return create_model("Edit", __base__=Edit, parameters=(values, Field(default_factory=dict)))


def apart(text: str) -> tuple[str, str]:
    """The part of an answer that may hold the JSON, and the edit outside of it; empty: there is none."""
    block = _JSON.search(text)
    if block is not None:
        rest = text[: block.start()] + text[block.end() :]
        return (block[1], rest) if _EDIT.search(rest) else (text, "")
    first = _EDIT.search(text)
    return (text, "") if first is None else (text[: first.start()], text)


BESIDE = Beside(field="edit", form="answer_fenced_edit", apart=apart)
