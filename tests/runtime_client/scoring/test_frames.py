"""Messages: values come back as they were, and bytes that are no message are refused."""

from __future__ import annotations

import json
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from runtime_client.scoring import frames
from runtime_client.scoring.errors import Malformed

MOST = 10_000
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
KINDS = st.sampled_from(["?", "i1", "<i8", ">i4", "u2", "<f2", "<f4", ">f8", "<c16"])


def taken_apart(message: bytes) -> Any:
    head, body = message[: frames.HEAD.size], message[frames.HEAD.size :]
    n_json, n_arrays = frames.sizes(head, len(body))
    assert n_json + n_arrays == len(body)
    return frames.decode(body, n_json)


@given(PLAIN)
def test_plain_values_come_back(value: object) -> None:
    assert taken_apart(frames.encode(value)) == value


@given(KINDS.flatmap(lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, min_side=0))))
def test_arrays_come_back(value: Any) -> None:
    found = taken_apart(frames.encode({"x": [value, 1]}))["x"][0]
    assert found.shape == value.shape
    assert numpy.array_equal(found, value, equal_nan=True)


@given(st.binary(max_size=200), st.integers(0, 200))
def test_no_bytes_do_more_than_be_refused(body: bytes, n_json: int) -> None:
    try:
        frames.decode(body, n_json)
    except Malformed:
        return


@pytest.mark.parametrize(
    ("told", "behind", "words"),
    [
        ({"$array": ["|O", [1]]}, b"12345678", "no plain type"),
        ({"$array": ["<f8", [2]]}, b"12345678", "has 16 bytes, and 8 are there"),
        ({"$array": ["<f8", [1]]}, b"123456789", "belong to no array"),
        ({"$array": ["<f8", [-1]]}, b"", "no possible shape"),
        ({"$array": ["<f8", [True]]}, b"12345678", "no possible shape"),
        ({"$array": ["<f8", [2**47, 2**47]]}, b"", "are there"),
        ({"$array": ["<f8", [0] * 40]}, b"", "no plain type"),
        ({"$array": 1}, b"", "no plain type"),
        ({"$array": ["<f8", [1]], "more": 1}, b"12345678", "no plain type"),
        ({"$array": ["<f8", [0, 2**47, 2**47]]}, b"", "no message"),
    ],
)
def test_arrays_that_can_not_be_are_refused(told: object, behind: bytes, words: str) -> None:
    text = json.dumps(told).encode()
    with pytest.raises(Malformed, match=words):
        frames.decode(text + behind, len(text))


@pytest.mark.parametrize("text", [b"[" * 200_000, b"1" * 5000, b"{", b"\xff", b""])
def test_json_that_is_none_is_refused(text: bytes) -> None:
    with pytest.raises(Malformed):
        frames.decode(text, len(text))


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ((b"\x80\x04\x95N", 1, 1), "no message"),
        ((b"nlc1", 1, MOST), f"it has {MOST + 1} bytes, and {MOST} are allowed"),
        ((b"nlc1", 2**24 + 1, 0), "are allowed"),
    ],
)
def test_a_head_that_announces_too_much_is_refused(head: tuple[bytes, int, int], words: str) -> None:
    with pytest.raises(Malformed, match=words):
        frames.sizes(frames.HEAD.pack(*head), MOST)


@pytest.mark.parametrize(
    "value", [object(), {1: 2}, {"$array": 1}, numpy.array([object()]), numpy.array(["text"]), b"bytes", {1, 2}]
)
def test_other_values_are_not_passed(value: object) -> None:
    with pytest.raises(TypeError):
        frames.encode(value)


def test_what_nests_too_deep_is_not_passed() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ValueError, match="nests too deep"):
        frames.encode(value)
