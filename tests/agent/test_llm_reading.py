"""JSON as models write it: read where it is clear, refused in words where it is not."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.llm.reading import MAX_CHARACTERS, Unreadable, candidates, read, without_thoughts

WHOLE = {"trials": [{"lr": 0.01}, {"lr": 0.1}], "why": "x"}


@pytest.mark.parametrize(
    "text",
    [
        '{"trials": [{"lr": 0.01}, {"lr": 0.1}], "why": "x"}',
        'Sure! Here it is:\n{"trials": [{"lr": 0.01}, {"lr": 0.1}], "why": "x"}\nHope this helps {:-)',
        '```json\n{"trials": [{"lr": 0.01}, {"lr": 0.1}], "why": "x"}\n```',
        '```\n{"trials": [{"lr": 0.01}, {"lr": 0.1}], "why": "x"}\n```',
        '```json\n{"trials": [{"lr": 0.01}, {"lr": 0.1}], "why": "x"}',
        '{"trials": [{"lr": 0.01,}, {"lr": 0.1},], "why": "x",}',
        "{'trials': [{'lr': 0.01}, {'lr': 0.1}], 'why': 'x'}",
        "{trials: [{lr: .01}, {lr: +1e-1}], why: 'x'}",
        '{"trials": [{"lr": 0.01} // the default\n, {"lr": 0.1} /* bold */], # so\n "why": "x"}',
        '{"trials": [{"lr": 0.01} {"lr": 0.1}] "why": "x"}',
        '{"trials": [{"lr": 0.01}, {"lr": 0.1}], "why": "x"',
        '<think>{"lr": 5}? No.</think>{"trials": [{"lr": 0.01}, {"lr": 0.1}], "why": "x"}',
        'In [1] and {see} it says: {"trials": [{"lr": 0.01}, {"lr": 0.1}], "why": "\\u0078"}',
        '\ufeff{"trials": [{"lr": 0.01}, {"lr": 0.1}], "why": "x"}',
    ],
)
def test_loose_forms_are_read(text: str) -> None:
    assert WHOLE in [found.value for found in candidates(text)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2, 3', {"a": [1, 2]}),
        ('{"a": [{"x": 1}, {"x": 2, "y', {"a": [{"x": 1}]}),
        ('{"a": 1, "b": "half a sen', {"a": 1}),
        ('{"a": 1, "b": tr', {"a": 1}),
        ('{"a": 1, "b"', {"a": 1}),
        ('{"a": 1, "b": {"c": 2, "d": 1', {"a": 1, "b": {"c": 2}}),
        ('{"a": 1, "b": "x\\', {"a": 1}),
    ],
)
def test_of_what_was_cut_off_only_what_is_complete_is_kept(text: str, value: object) -> None:
    found = read(text)
    assert found.was_cut
    assert found.value == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"lr": NaN}', "NaN"),
        ('{"lr": -Infinity}', "NaN and infinities"),
        ('{"lr": 1e999}', "too large"),
        ('{"lr": ' + "9" * 5000 + "}", "5000 digits"),
        ('{"lr": 1, "lr": 2}', "given twice"),
        ('{"lr": 0.1.2}', "expected"),
        ('{"lr": 3abc}', "a number was expected"),
        ('{"lr": low}', "'low' is no value"),
        ("[" * 100 + "]" * 100, "nested"),
        ("I can not do that.", "no JSON object"),
        ("", "no JSON object"),
        ("x" * (MAX_CHARACTERS + 1), "characters"),
    ],
)
def test_what_is_not_clear_is_refused_in_words(text: str, says: str) -> None:
    with pytest.raises(Unreadable, match=says):
        candidates(text)


def test_no_part_of_an_unreadable_answer_is_taken_for_the_answer() -> None:
    text = '{"trials": [\n  {"lr": NaN},\n  {"lr": 0.1}\n]}'
    with pytest.raises(Unreadable, match="NaN"):
        candidates(text)


def test_types_of_python_and_of_json_are_both_read() -> None:
    assert read("{'a': True, 'b': None, 'c': false, 'd': null, 'e': 1e-4, 'f': -2, 'g': 5.}").value == {
        "a": True, "b": None, "c": False, "d": None, "e": 1e-4, "f": -2, "g": 5.0,
    }  # fmt: skip


def test_halves_of_characters_never_get_through() -> None:
    assert read('{"a": "\\ud83d\\ude00 \\ud83d \\udc00"}').value == {"a": "\U0001f600 \ufffd \ufffd"}


def test_thoughts_that_never_end_are_no_answer() -> None:
    assert without_thoughts('<think>so {"a": 1}') == ""


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=12)
@given(st.dictionaries(st.text(), _json, max_size=4), st.booleans())
def test_whatever_json_writes_is_read_back(value: dict[str, object], ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    if not ascii_only or "\\ud" not in text:
        assert read(text).value == value
    assert candidates(f"```json\n{text}\n```") != []


@settings(max_examples=40)
@given(st.text(alphabet="{}[]\"':,/#*\\ \n0e-.tfnulNa`<think>", max_size=60))
def test_no_text_breaks_the_reading(text: str) -> None:
    with contextlib.suppress(Unreadable):
        assert candidates(text)


@pytest.mark.parametrize("piece", ["{", '[{"a":', '"', '{"a":1} ', "`", "/*", "{/", "<think>", '{"a"', "[1 ", "\\"])
def test_an_answer_made_to_be_slow_is_not(piece: str) -> None:
    began = time.process_time()
    with contextlib.suppress(Unreadable):
        candidates(piece * (MAX_CHARACTERS // len(piece)))
    assert time.process_time() - began < 2.0
