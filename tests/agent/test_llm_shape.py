"""The shape of answers: schemas that every server reads, sentences about what does not fit."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import pytest
from ladder_questions import Pick, Picks
from pydantic import BaseModel, Field

from agent.llm.shape import example_of, fit, schema_of


class Stop(BaseModel):
    kind: Literal["stop"]
    reason: str


class Go(BaseModel):
    kind: Literal["go"]
    picks: Picks
    n: int = Field(gt=3)
    share: float = Field(ge=0, le=1)
    is_sure: bool
    level: Literal["low", "high"] | None = None


class Either(BaseModel):
    title: Annotated[Stop | Go, Field(discriminator="kind")]


class Told(BaseModel):
    model_config = {"json_schema_extra": {"examples": [{"text": "so it looks"}]}}
    text: str


class Loop(BaseModel):
    inner: list[Loop] = Field(default_factory=list)


@pytest.mark.parametrize("reply", [Pick, Picks, Stop, Go, Either, Told])
def test_a_schema_has_no_references_and_keeps_the_names_of_fields(reply: type[BaseModel]) -> None:
    schema = schema_of(reply)
    text = json.dumps(schema)
    assert "$ref" not in text
    assert "$defs" not in text
    assert set(schema["properties"]) == set(reply.model_fields)


@pytest.mark.parametrize("reply", [Pick, Picks, Stop, Go, Either, Told])
def test_an_example_is_an_answer(reply: type[BaseModel]) -> None:
    assert fit(example_of(reply), reply).problems == ()


def test_an_example_that_the_class_gives_goes_first() -> None:
    assert example_of(Told) == {"text": "so it looks"}


def test_a_class_that_refers_to_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="itself"):
        schema_of(Loop)


def test_what_does_not_fit_is_said_with_place_and_value_seen() -> None:
    problems = fit({"trials": [{"lr": 7}, {}], "color": 1}, Picks).problems
    assert problems == (
        "trials.0.lr: Input should be less than 1; seen: 7",
        "trials.1.lr: Field required",
        "color: Extra inputs are not permitted; seen: 1",
    )


def test_of_many_problems_a_few_are_said_and_long_values_are_cut() -> None:
    problems = fit({f"x{n}": "y" * 500 for n in range(30)}, Picks).problems
    assert len(problems) == 9
    assert problems[-1] == "and 22 more"
    assert max(map(len, problems)) < 200
