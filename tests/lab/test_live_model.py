"""Sessions on a table with a model behind a real endpoint beside them, as the figures of a real model are measured."""

from __future__ import annotations

import json

import numpy as np
import pytest
from model_endpoint import calls, model_endpoint, says

from bench.figure import Unavailable
from bench.live_model import URL, Played, play, served_model
from bench.tables import Table

pytestmark = pytest.mark.code

ALL_OF_IT = json.dumps({"trials": [{"parameters": {"x": x, "y": y}} for x in range(5) for y in range(5)]})


def a_table() -> Table:
    """A bowl on a grid of 5 by 5, and two seeds; best at (3, 3)."""
    places = tuple(range(5))
    x, y = np.meshgrid(places, places, indexing="ij")
    means = ((x - 3) ** 2 + (y - 3) ** 2).astype(float)
    return Table(
        name="bowl",
        grid={"x": places, "y": places},
        is_ordinal={"x": True, "y": True},
        losses=np.stack([means - 0.1, means + 0.1], axis=-1),
        means=means,
        default={"x": 0, "y": 0},
    )


def played(monkeypatch: pytest.MonkeyPatch, *plays: object) -> Played:
    with model_endpoint(*plays) as endpoint:  # type: ignore[arg-type]
        monkeypatch.setenv(URL, endpoint.base_url)
        model: dict[str, object] = {"name": "qwen", "base_url": endpoint.base_url, "batch": 2}
        return play(a_table(), 0, n_trials=20, model=model)


def test_what_a_model_answers_becomes_trials_and_each_question_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    lived = played(monkeypatch, calls("answer", ALL_OF_IT))
    assert (lived.n_search, lived.n_of_model > 0) == (20, True)
    assert lived.asked
    assert all(one.value is not None for one in lived.asked)
    assert len(lived.calls) == len(lived.asked)


def test_a_question_is_lost_when_none_of_its_calls_gives_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    lived = played(monkeypatch, says("so so"))
    assert (lived.n_search, lived.n_of_model) == (20, 0)
    assert {one.value for one in lived.asked} == {None}
    assert len(lived.calls) > len(lived.asked)


def test_without_a_model_the_same_seed_is_the_same_session() -> None:
    first, again = (play(a_table(), 3, n_trials=5, model=None) for _ in range(2))
    assert first == again
    assert not first.asked


def test_where_no_model_is_served_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL, raising=False)
    with pytest.raises(Unavailable, match=f"set {URL}"):
        served_model()
    monkeypatch.setenv(URL, "http://127.0.0.1:9/v1")
    with pytest.raises(Unavailable, match="does not answer"):
        served_model()
