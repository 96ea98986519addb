"""The words of a program for the kernel's filter of system calls. Pure.

Source: seccomp(2), linux/filter.h, linux/seccomp.h.
"""

from __future__ import annotations

import errno
import struct

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY, _RETURN, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
"""Offsets in struct seccomp_data; an argument has 8 bytes, of which the low 4 are looked at."""


def _word(kind: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", kind, if_true, if_false, value)


KILL, ASK, ALLOW = _word(_RETURN, 0x80000000), _word(_RETURN, 0x7FC00000), _word(_RETURN, 0x7FFF0000)
"""`ASK`: whoever listens at this filter makes the call in its place, or refuses it."""
LOAD_NUMBER, LOAD_ARCHITECTURE = _word(_LOAD, _NUMBER), _word(_LOAD, _ARCHITECTURE)


def load_argument(index: int) -> bytes:
    return _word(_LOAD, _ARGUMENTS + 8 * index)


def mask(bits: int) -> bytes:
    """Of what is loaded, these bits alone."""
    return _word(_AND, bits)


def refuse(number: int = errno.EPERM) -> bytes:
    return _word(_RETURN, 0x00050000 | number)


def if_equal(value: int, then: list[bytes]) -> list[bytes]:
    return [_word(_JUMP_EQUAL, value, 0, len(then)), *then]


def unless_equal(value: int, then: list[bytes]) -> list[bytes]:
    return [_word(_JUMP_EQUAL, value, len(then), 0), *then]


def if_at_least(value: int, then: list[bytes]) -> list[bytes]:
    return [_word(_JUMP_AT_LEAST, value, 0, len(then)), *then]


def if_any_of(bits: int, then: list[bytes]) -> list[bytes]:
    return [_word(_JUMP_ANY, bits, 0, len(then)), *then]


def of_call(number: int, then: list[bytes]) -> list[bytes]:
    """`then` may load what it likes: what it lets through is allowed. To be said while the number is loaded."""
    return if_equal(number, [*then, ALLOW])
