"""The messages between a scorer and its candidate: JSON, with arrays as bytes behind it. Never pickle. Pure.

What comes from the candidate is believed in nothing: sizes are bounded before they are read, and an array is made only
where its type is plain and its bytes are exactly as many as its shape says.
"""

from __future__ import annotations

import json
import math
import struct
from typing import TYPE_CHECKING, Any

from .errors import Malformed

if TYPE_CHECKING:
    import numpy

HEAD = struct.Struct("<4sIQ")
"""Magic, bytes of JSON, bytes of arrays."""
MOST_JSON_BYTES = 2**24
_MAGIC = b"nlc1"
_ARRAY = "$array"
_TYPES = frozenset({"|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"})
_MOST_DIMENSIONS = 32


def encode(value: object) -> bytes:
    """A message: None, numbers, text, arrays, tensors, and lists and dicts of these.

    Raises:
        TypeError, ValueError: something else is in it, or it nests too deep.
    """
    arrays: list[bytes] = []
    try:
        told = json.dumps(_plain(value, arrays), separators=(",", ":")).encode()
    except RecursionError:
        raise ValueError("it nests too deep") from None
    if len(told) > MOST_JSON_BYTES:
        raise ValueError(f"{len(told)} bytes besides arrays, at most {MOST_JSON_BYTES}: pass numbers as arrays")
    return b"".join([HEAD.pack(_MAGIC, len(told), sum(map(len, arrays))), told, *arrays])


def sizes(head: bytes, most_bytes: int) -> tuple[int, int]:
    """Bytes of JSON and of arrays that follow.

    Raises:
        Malformed: they are too many, or it is no message.
    """
    magic, n_json, n_arrays = HEAD.unpack(head)
    if magic != _MAGIC:
        raise Malformed("it is no message")
    if n_json > MOST_JSON_BYTES or n_json + n_arrays > most_bytes:
        raise Malformed(f"it has {n_json + n_arrays} bytes, and {min(MOST_JSON_BYTES, most_bytes)} are allowed")
    return n_json, n_arrays


def decode(body: bytes | bytearray, n_json: int) -> Any:
    """The value of a message without its head; tuples are lists.

    Raises:
        Malformed: it is none.
    """
    try:
        told = json.loads(body[:n_json])
        reader = _Arrays(memoryview(body)[n_json:])
        value = reader.filled(told)
    except Malformed:
        raise
    except (ValueError, RecursionError, OverflowError, MemoryError) as error:
        raise Malformed(f"it is no message: {str(error)[:200]}") from None
    if reader.left:
        raise Malformed(f"{reader.left} bytes belong to no array of it")
    return value


def words(value: object) -> str:
    """What a value is, in words for people."""
    if hasattr(value, "shape"):
        return f"an array of shape {tuple(value.shape)}"
    return "nothing" if value is None else f"{type(value).__name__}"


def is_finite(value: Any) -> bool:
    """Whether no number in it is NaN or infinite."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(map(is_finite, value))
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if hasattr(value, "dtype"):
        import numpy

        return bool(numpy.isfinite(value).all())
    return True


def _plain(value: object, arrays: list[bytes]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item, arrays) for item in value]
    if isinstance(value, dict):
        if _ARRAY in value or not all(isinstance(key, str) for key in value):
            raise TypeError(f"the keys of a dict are text, and none is {_ARRAY!r}")
        return {key: _plain(item, arrays) for key, item in value.items()}
    if hasattr(value, "__array__"):
        return _array(value, arrays)
    raise TypeError(f"{type(value).__name__} can not be passed: numbers, text, arrays, lists and dicts can")


def _array(value: Any, arrays: list[bytes]) -> Any:
    import numpy

    if hasattr(value, "detach"):
        value = value.detach().cpu()
    found = numpy.asarray(value)
    found = found.astype(found.dtype.newbyteorder("<"), copy=False)
    if found.dtype.str not in _TYPES:
        raise TypeError(f"an array of {found.dtype} can not be passed: make it booleans, integers or floats")
    arrays.append(found.tobytes())
    return {_ARRAY: [found.dtype.str, list(found.shape)]}


class _Arrays:
    """Takes the bytes of arrays in the order in which the message names them."""

    def __init__(self, given: memoryview) -> None:
        self._given = given

    @property
    def left(self) -> int:
        return len(self._given)

    def filled(self, told: Any) -> Any:
        if isinstance(told, list):
            return [self.filled(item) for item in told]
        if isinstance(told, dict):
            if _ARRAY in told:
                return self._next(told)
            return {key: self.filled(item) for key, item in told.items()}
        return told

    def _next(self, told: dict[str, Any]) -> numpy.ndarray[Any, Any]:
        import numpy

        match told[_ARRAY]:
            case [str(kind), list(shape)] if kind in _TYPES and len(shape) <= _MOST_DIMENSIONS and len(told) == 1:
                pass
            case _:
                raise Malformed("one of its arrays is of no plain type")
        if not all(type(length) is int and 0 <= length < 2**48 for length in shape):
            raise Malformed("one of its arrays has no possible shape")
        n_bytes = math.prod(shape) * numpy.dtype(kind).itemsize
        if n_bytes > len(self._given):
            raise Malformed(f"an array of shape {tuple(shape)} has {n_bytes} bytes, and {len(self._given)} are there")
        taken, self._given = self._given[:n_bytes], self._given[n_bytes:]
        return numpy.frombuffer(taken, dtype=kind).reshape(shape).copy()
