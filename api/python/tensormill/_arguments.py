"""What a whole run takes and gives by one call of the C interface, kept from run to run: a run of the same shapes makes and
checks nothing twice."""

from __future__ import annotations

import ctypes
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from . import _dtypes
from ._dtypes import Array, DType
from ._memory import is_lendable, place

# Up to here a copy takes less than to find out whether an array may be used where it lies, and to give its place to all steps.
SMALL_BYTES = 16384

# An array is a buffer: what checks types knows it from Python 3.12 on.
_view: Any = ctypes.c_char.from_buffer
_address_of_view = ctypes.addressof


class Tensor(ctypes.Structure):
    """tm_tensor"""

    _fields_ = [("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class Argument(Tensor):
    """tm_argument, whose first member is the tensor."""

    _fields_ = [("place", ctypes.c_void_p), ("room", ctypes.c_size_t), ("may_lend", ctypes.c_int32)]


def show(tensor: Any, array: Array, number: int) -> None:
    """Has the tensor describe the array but for its address; the array's extents are the tensor's own."""
    tensor.rank, tensor.shape = array.ndim, (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    tensor.dtype, tensor.bytes = number, array.nbytes


class _Input:
    __slots__ = ("argument", "dtype", "storage", "extents", "size", "kept")

    def __init__(self, argument: Argument, dtype: DType) -> None:
        self.argument = argument
        self.dtype = dtype
        self.storage = dtype.storage
        # Of arrays that need no look at their type any more; None: there are none.
        self.extents: Optional[Tuple[int, ...]] = None
        self.size = 0
        self.kept: Optional[Array] = None

    def fit(self, array: Array) -> Array:
        array = _dtypes.to_storage(array, self.dtype)
        show(self.argument, array, _dtypes.number_of(array, self.dtype))
        self.size = array.nbytes
        is_usual = array.dtype == self.storage and self.dtype.number != _dtypes.STRING
        self.extents = array.shape if is_usual else None
        self.argument.may_lend = 0
        return array

    def set(self, array: Array) -> None:
        flags = array.flags
        if array.shape != self.extents or array.dtype != self.storage or not flags.c_contiguous:
            array = self.fit(array)
            flags = array.flags
        # Twice as fast as array.ctypes, for which an array of nothing or that is not written is no buffer.
        address: int = _address_of_view(_view(array)) if flags.writeable and self.size else array.ctypes.data
        self.argument.data = address
        if self.size > SMALL_BYTES:
            self.argument.may_lend = is_lendable(array, address)
        self.kept = array


class _Output:
    __slots__ = ("argument", "dtype", "is_fixed", "shape", "size", "array", "address")

    def __init__(self, argument: Argument, dtype: DType, declared: Tuple[Any, ...]) -> None:
        self.argument = argument
        self.dtype = dtype
        self.is_fixed = all(isinstance(extent, int) for extent in declared)
        # Of the last run, which the next one's probably has; None: not known, or of texts, which are made into other arrays.
        self.shape: Optional[Tuple[int, ...]] = None
        self.size = 0
        self.array: Optional[Array] = None
        self.address = 0

    def make(self) -> None:
        argument = self.argument
        if self.shape is None:
            self.array, self.address = None, 0
            argument.place, argument.room, argument.may_lend = None, 0, 0
            return
        if self.size <= SMALL_BYTES:
            self.array = np.empty(self.shape, self.dtype.storage)
            self.address = _address_of_view(_view(self.array))
        else:
            self.array, self.address = place(self.shape, self.dtype.storage, self.size)
        argument.place = self.address

    def take(self) -> Array:
        argument, array = self.argument, self.array
        if array is None or argument.data != self.address:
            return self._copy()
        if self.is_fixed:
            return array
        shape = tuple(argument.shape[:argument.rank])
        return array if shape == self.shape else array.reshape(-1)[:argument.bytes // array.itemsize].reshape(shape)

    def _copy(self) -> Array:
        argument = self.argument
        self.dtype = _dtypes.BY_NUMBER[argument.dtype]
        shape, size = tuple(argument.shape[:argument.rank]), argument.bytes
        array = np.empty(shape, self.dtype.storage)
        if size:
            ctypes.memmove(array.ctypes.data, argument.data, size)
        self.shape = shape if size and self.dtype.number != _dtypes.STRING else None
        self.size = argument.room = size
        argument.may_lend = size > SMALL_BYTES
        return _dtypes.from_storage(array, self.dtype)


class Arguments:
    """Of an executor; for one thread at a time, as that is."""

    def __init__(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.inputs = (Argument * max(len(inputs), 1))()
        self.outputs = (Argument * max(len(outputs), 1))()
        # Elements of a ctypes array share its memory, and are made at each access.
        self._in = [_Input(self.inputs[index], port.dtype) for index, port in enumerate(inputs)]
        self._out = [_Output(self.outputs[index], port.dtype, port.shape) for index, port in enumerate(outputs)]
        self.input_count, self.output_count = len(inputs), len(outputs)
        self.in_address, self.out_address = ctypes.addressof(self.inputs), ctypes.addressof(self.outputs)

    def set(self, arrays: Sequence[Array]) -> None:
        """Before the run: ``arrays`` in the order of the inputs."""
        for one, array in zip(self._in, arrays):
            one.set(array)
        for out in self._out:
            out.make()

    def take(self) -> List[Array]:
        """After the run: the outputs, which are the caller's own. Inputs and outputs that stay lent are kept alive."""
        for one in self._in:
            if not one.argument.may_lend:
                one.kept = None
        return [out.take() for out in self._out]

    def forget(self) -> None:
        """What is lent no more."""
        for one in self._in:
            one.kept = None
        for out in self._out:
            out.array = None
