"""Arrays that the executor reads and writes where they lie, and DLPack."""

from __future__ import annotations

import ctypes
from typing import Any, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from ._dtypes import Array

# What kernels ask of a tensor: where it starts, and what is readable behind it.
ALIGNMENT = 64
PADDING = 64
_PAGE = 4096


def empty(shape: Union[int, Sequence[int]], dtype: npt.DTypeLike = np.float32) -> Array:
    """An array, not initialised, that runs read and write without a copy.

    >>> a = empty((2, 3), "float32")
    >>> a.shape, a.ctypes.data % 64
    ((2, 3), 0)
    """
    kind = np.dtype(dtype)
    extents: Tuple[int, ...] = (shape,) if isinstance(shape, int) else tuple(shape)
    count = 1
    for extent in extents:
        count *= extent
    return place(extents, kind, count * kind.itemsize)[0]


def place(shape: Tuple[int, ...], kind: "np.dtype[Any]", size: int) -> Tuple[Array, int]:
    """`empty` of ``size`` bytes, and the address."""
    raw = np.empty(size + ALIGNMENT + PADDING, np.uint8)
    address: int = raw.ctypes.data
    start = -address % ALIGNMENT
    return np.ndarray(shape, kind, raw.data, start), address + start


def is_lendable(array: Array, address: int) -> bool:
    """Whether kernels may read the array where it lies: aligned, row-major, and 64 bytes behind it are readable."""
    if address % ALIGNMENT or array.nbytes == 0:
        return False
    end = address + array.nbytes
    # Memory is readable by whole pages: what the last byte's page still holds is.
    if (end - 1) % _PAGE + PADDING < _PAGE:
        return True
    owner: Any = array.base
    while isinstance(owner, memoryview):
        owner = owner.obj
    if not isinstance(owner, np.ndarray) or not owner.flags.owndata:
        return False
    first: int = owner.__array_interface__["data"][0]
    return first <= address and end + PADDING <= first + owner.nbytes


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("index", ctypes.c_int32)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("rank", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


# DLPack's codes: signed, unsigned, float, bfloat, bool.
_KINDS = {0: "i", 1: "u", 2: "f", 4: "u", 6: "b"}


class _Lent:
    """Memory of another framework's tensor, as numpy's array interface shows it, and what keeps it alive."""

    def __init__(self, interface: Any, owner: object) -> None:
        self.__array_interface__ = interface
        self.owner = owner


def from_dlpack(tensor: Any) -> Array:
    """The tensor of another framework as a numpy array that shares its memory; bfloat16 as its raw bits.

    Anything that has ``__dlpack__`` and lies in this machine's memory: torch, jax, cupy's host arrays, numpy.

    >>> x = np.arange(4.0)
    >>> from_dlpack(x).ctypes.data == x.ctypes.data
    True
    """
    device = tensor.__dlpack_device__()
    if int(device[0]) not in (1, 3):
        raise TypeError(f"the tensor lies on DLPack device {tuple(device)}, not in this machine's memory")
    capsule = tensor.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # The capsule frees the tensor when it goes: it is kept, and never renamed to "used".
    head = _Tensor.from_address(get(capsule, b"dltensor"))
    kind = _KINDS.get(head.code)
    if kind is None or head.bits % 8 or head.lanes != 1:
        raise TypeError(f"DLPack type (code {head.code}, {head.bits} bits, {head.lanes} lanes) is no tensor's here")
    size = head.bits // 8
    shape = tuple(head.shape[i] for i in range(head.rank))
    strides = tuple(head.strides[i] * size for i in range(head.rank)) if head.strides else None
    element = f"{'|' if size == 1 else '<'}{kind}{size}"
    interface = {"version": 3, "shape": shape, "typestr": element,
                 "data": ((head.data or 0) + head.offset, True), "strides": strides}
    if 0 in shape:
        return np.zeros(shape, np.dtype(element))
    return np.asarray(_Lent(interface, (capsule, tensor)))


def as_array(value: Any) -> Array:
    """What a run takes as an input: numpy arrays, what has DLPack, what numpy makes an array of."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return from_dlpack(value)
    return np.asarray(value)
