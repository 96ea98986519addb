"""Scalars from TensorBoard event files, read bit by bit while they grow.

An event file is a sequence of TFRecords: length (8 bytes, little endian), masked CRC-32C of the length (4), data, CRC
of the data (4). The data is a protobuf `Event`. Only what scalars need is decoded here.
Source: tensorflow/core/lib/io/record_writer.h; tensorflow/core/util/event.proto; framework/summary.proto, tensor.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

HEADER_BYTES = 12
_TRAILER_BYTES = 4
LONGEST_RECORD = 64 * 1024 * 1024
_DT_FLOAT, _DT_DOUBLE, _DT_INT32, _DT_INT64 = 1, 2, 3, 9
_LITTLE_ENDIAN = {_DT_FLOAT: "<f", _DT_DOUBLE: "<d", _DT_INT32: "<i", _DT_INT64: "<q"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    tag: str
    value: float
    step: int
    wall_time_s: float


class NotAnEventFile(ValueError):
    """The bytes are no TFRecords."""


def whole_records(data: bytes) -> tuple[list[bytes], int]:
    """The complete records at the beginning of `data`, and how many bytes they take. A torn one is left.

    Raises NotAnEventFile when a length does not agree with its checksum.
    """
    records: list[bytes] = []
    position = 0
    while position + HEADER_BYTES <= len(data):
        length, checksum = struct.unpack_from("<QI", data, position)
        if length > LONGEST_RECORD or checksum != _masked_crc(data[position : position + 8]):
            raise NotAnEventFile(f"no TFRecord at byte {position}")
        end = position + HEADER_BYTES + length + _TRAILER_BYTES
        if end > len(data):
            break
        records.append(data[position + HEADER_BYTES : end - _TRAILER_BYTES])
        position = end
    return records, position


def first_record_bytes(data: bytes) -> int:
    """The size on disk of the record that begins `data`, complete or not."""
    (length,) = struct.unpack_from("<Q", data)
    return HEADER_BYTES + int(length) + _TRAILER_BYTES


def scalars(event: bytes) -> list[Scalar]:
    """The scalars of one serialized `Event`; none when it holds something else or is damaged."""
    try:
        return _scalars(event)
    except (ValueError, struct.error, IndexError):
        return []


def _scalars(event: bytes) -> list[Scalar]:
    wall_time_s, step = 0.0, 0
    values: list[tuple[str, float]] = []
    for field, content in _fields(event):
        if field == 1 and isinstance(content, bytes):
            (wall_time_s,) = struct.unpack("<d", content)
        elif field == 2 and isinstance(content, int):
            step = _signed(content)
        elif field == 5 and isinstance(content, bytes):
            values += [found for number, body in _fields(content) if number == 1 and (found := _summary_value(body))]
    return [Scalar(tag=tag, value=value, step=step, wall_time_s=wall_time_s) for tag, value in values]


def _summary_value(body: int | bytes) -> tuple[str, float] | None:
    tag, value = None, None
    for field, content in _fields(_message(body)):
        if field == 1:
            tag = _message(content).decode()
        elif field == 2:
            (value,) = struct.unpack("<f", _message(content))
        elif field == 8:
            value = _tensor_scalar(_message(content))
    return (tag, float(value)) if tag is not None and value is not None else None


def _tensor_scalar(tensor: bytes) -> float | None:
    """The value of a tensor with one element; None for other tensors."""
    kind, numbers = 0, []
    for field, content in _fields(tensor):
        if field == 1 and isinstance(content, int):
            kind = content
        elif field == 4 and kind in _LITTLE_ENDIAN:
            numbers += [number for (number,) in struct.iter_unpack(_LITTLE_ENDIAN[kind], _message(content))]
        elif field in (5, 6) and isinstance(content, bytes):
            numbers += [number for (number,) in struct.iter_unpack("<f" if field == 5 else "<d", content)]
        elif field in (7, 10):
            numbers += [_signed(n) for n in ([content] if isinstance(content, int) else _varints(content))]
    return float(numbers[0]) if len(numbers) == 1 else None


def _message(content: int | bytes) -> bytes:
    if isinstance(content, int):
        raise ValueError("a number where bytes were expected")
    return content


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field number, content) of a protobuf message: an int for varints, the raw bytes for all else."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        field, wire_type = key >> 3, key & 7
        if wire_type == 0:
            number, position = _varint(message, position)
            yield field, number
            continue
        if wire_type == 2:
            size, position = _varint(message, position)
        elif wire_type in (1, 5):
            size = 8 if wire_type == 1 else 4
        else:
            raise ValueError(f"wire type {wire_type}")
        if position + size > len(message):
            raise ValueError("a field longer than its message")
        yield field, message[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
        if shift > 63:
            raise ValueError("a varint longer than 10 bytes")


def _varints(data: bytes) -> list[int]:
    numbers, position = [], 0
    while position < len(data):
        number, position = _varint(data, position)
        numbers.append(number)
    return numbers


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def _crc_table() -> tuple[int, ...]:
    """Of CRC-32C (Castagnoli), reflected polynomial 0x82F63B78. Source: RFC 3720, appendix B.4."""
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


_CRC_TABLE = _crc_table()


def _masked_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
