"""Element types: the model's names, the C interface's numbers, numpy's types."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Tuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class DType(NamedTuple):
    """``storage`` is what an element is in memory: of types that numpy lacks the raw bits."""

    name: str
    number: int
    storage: "np.dtype[Any]"


STRING = 21

_ROWS: Tuple[Tuple[str, int, str], ...] = (
    ("float32", 0, "f4"), ("float64", 1, "f8"), ("float16", 2, "f2"), ("bfloat16", 3, "u2"), ("int8", 4, "i1"),
    ("int16", 5, "i2"), ("int32", 6, "i4"), ("int64", 7, "i8"), ("uint8", 8, "u1"), ("uint16", 9, "u2"),
    ("uint32", 10, "u4"), ("uint64", 11, "u8"), ("bool", 12, "?"), ("float8e4m3fn", 13, "u1"),
    ("float8e4m3fnuz", 14, "u1"), ("float8e5m2", 15, "u1"), ("float8e5m2fnuz", 16, "u1"), ("float8e8m0", 17, "u1"),
    ("float4e2m1", 18, "u1"), ("int4", 19, "i1"), ("uint4", 20, "u1"), ("string", STRING, "u1"), ("int2", 22, "i1"),
    ("uint2", 23, "u1"))

BY_NUMBER: Dict[int, DType] = {number: DType(name, number, np.dtype(storage)) for name, number, storage in _ROWS}


def to_storage(array: Array, dtype: DType) -> Array:
    """``array`` as the executor reads it: row-major, of the input's type. Never converts numbers.

    >>> to_storage(np.array(["a", "bcd"]), BY_NUMBER[STRING])
    array([[ 97,   0,   0],
           [ 98,  99, 100]], dtype=uint8)
    """
    if dtype.number == STRING:
        return _text_bytes(array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype != dtype.storage:
        same_bits = array.dtype.name == dtype.name or (array.dtype.kind == "V" and dtype.name not in np.sctypeDict)
        if not same_bits or array.dtype.itemsize != dtype.storage.itemsize:
            return array  # The executor's own message names both types.
        array = np.ascontiguousarray(array).view(dtype.storage)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def number_of(array: Array, wanted: DType) -> int:
    """The C interface's number for an array that `to_storage` gave for ``wanted``."""
    if array.dtype == wanted.storage:
        return wanted.number
    for dtype in BY_NUMBER.values():
        if dtype.storage == array.dtype and dtype.number <= 12 and dtype.name != "bfloat16":
            return dtype.number
    raise TypeError(f"an array of {array.dtype} is no tensor; {wanted.name} is expected")


def from_storage(array: Array, dtype: DType) -> Array:
    """What `Package.run` returns for an output of the type: texts for strings, raw bits for what numpy lacks."""
    if dtype.number != STRING:
        return array
    if array.shape[-1] == 0:
        return np.zeros(array.shape[:-1], dtype="<U1")
    rows = np.ascontiguousarray(array).view(f"S{array.shape[-1]}")[..., 0]
    return np.char.decode(rows, "utf-8")


def _text_bytes(array: Array) -> Array:
    if array.dtype.kind == "O":
        array = np.array([str(one) for one in array.ravel()]).reshape(array.shape)
    if array.dtype.kind == "U":
        array = np.char.encode(array, "utf-8")
    if array.dtype.kind != "S":
        return array
    width = max(array.dtype.itemsize, 1)
    rows = np.ascontiguousarray(array.astype(f"S{width}"))
    return np.frombuffer(rows.tobytes(), np.uint8).reshape(array.shape + (width,))
