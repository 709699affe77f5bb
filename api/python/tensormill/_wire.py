"""Protocol buffers' wire format, as much of it as messages of a few fields need: no generated code, no library beside it."""

from __future__ import annotations

import struct
from typing import Iterator, List, Tuple, Union

Piece = Union[bytes, memoryview]
#: Number and value of a field: an integer, or the bytes of a text, a message or packed integers.
Field = Tuple[int, Union[int, memoryview]]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; negative numbers are those of 64 bits.

    >>> varint(1), varint(300), len(varint(-1))
    (b'\\x01', b'\\xac\\x02', 10)
    """
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(number: int, value: int) -> bytes:
    """A field that is an integer or a truth value."""
    return varint(number << 3 | _VARINT) + varint(value)


def head(number: int, size: int) -> bytes:
    """What stands in front of a field of so many bytes."""
    return varint(number << 3 | _BYTES) + varint(size)


def text(number: int, value: Union[str, bytes]) -> bytes:
    """A field that is a text, or a message's bytes."""
    data = value.encode() if isinstance(value, str) else value
    return head(number, len(data)) + data


def _varint_at(data: memoryview, at: int) -> Tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("a message ends within a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
    raise ValueError("a number has more than ten bytes")


def fields(data: memoryview) -> Iterator[Field]:
    """The fields of a message in their order. Bytes are views of ``data``. Raises ValueError for what is no message.

    >>> [(number, value if isinstance(value, int) else bytes(value))
    ...  for number, value in fields(memoryview(integer(1, 300) + text(2, "ab")))]
    [(1, 300), (2, b'ab')]
    """
    at = 0
    while at < len(data):
        tag, at = _varint_at(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _varint_at(data, at)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, at = _varint_at(data, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"a field has the wire type {kind}")
        if size > len(data) - at:
            raise ValueError("a message ends within a field")
        part = data[at:at + size]
        at += size
        yield tag >> 3, part if kind == _BYTES else struct.unpack("<Q" if size == 8 else "<I", part)[0]


def signed(value: int) -> int:
    """An int64 of the 64 bits that stand in a message."""
    return value - (1 << 64) if value >> 63 else value


def integers(value: Union[int, memoryview]) -> List[int]:
    """A repeated int64: one element, or as many as are packed into one field."""
    if isinstance(value, int):
        return [signed(value)]
    found, at = [], 0
    while at < len(value):
        one, at = _varint_at(value, at)
        found.append(signed(one))
    return found
