"""The runtime's C interface (runtime/capi/tensormill.h) by ctypes: packages run in this process, and the interpreter's lock
is free while they do."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import _dtypes
from ._arguments import Arguments, Tensor, show
from ._dtypes import Array, DType
from ._errors import ExecutorError
from ._memory import empty, is_lendable, place
from ._program import HERE, program_path

_c_int32_p = ctypes.POINTER(ctypes.c_int32)


class _Port(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("dims", ctypes.POINTER(ctypes.c_char_p))]


class _Step(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("origin", ctypes.c_char_p), ("start_ns", ctypes.c_int64),
                ("duration_ns", ctypes.c_int64), ("flops", ctypes.c_int64), ("bytes", ctypes.c_int64)]


_VOID, _INT, _LONG, _SIZE, _TEXT = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_size_t, ctypes.c_char_p)
_OUT = ctypes.POINTER(ctypes.c_void_p)
_SIGNATURES: Dict[str, Tuple[Any, List[Any]]] = {
    "tm_last_error": (_TEXT, []),
    "tm_error_name": (_TEXT, [_INT]),
    "tm_version": (_TEXT, []),
    "tm_default_threads": (_INT, []),
    "tm_runtime_create": (_INT, [_INT, _OUT]),
    "tm_runtime_destroy": (None, [_VOID]),
    "tm_package_load": (_INT, [_TEXT, _OUT]),
    "tm_package_load_memory": (_INT, [_VOID, _SIZE, _OUT]),
    "tm_package_destroy": (None, [_VOID]),
    "tm_package_metadata": (_TEXT, [_VOID]),
    "tm_package_holds_model": (_INT, [_VOID]),
    "tm_package_input_count": (_INT, [_VOID]),
    "tm_package_output_count": (_INT, [_VOID]),
    "tm_package_input": (_INT, [_VOID, _INT, ctypes.POINTER(_Port)]),
    "tm_package_output": (_INT, [_VOID, _INT, ctypes.POINTER(_Port)]),
    "tm_executor_create": (_INT, [_VOID, _VOID, _LONG, _OUT]),
    "tm_executor_destroy": (None, [_VOID]),
    "tm_executor_input_index": (_INT, [_VOID, _TEXT, _c_int32_p]),
    "tm_executor_output_index": (_INT, [_VOID, _TEXT, _c_int32_p]),
    "tm_executor_set_input_at": (_INT, [_VOID, _INT, _VOID]),
    "tm_executor_lend_input": (_INT, [_VOID, _INT, _VOID, _VOID]),
    "tm_executor_input_buffer": (_INT, [_VOID, _INT, _OUT, _VOID]),
    "tm_executor_clear_inputs": (_INT, [_VOID]),
    "tm_executor_output_bytes": (_LONG, [_VOID, _INT]),
    "tm_executor_lend_output": (_INT, [_VOID, _INT, _VOID, _SIZE, _VOID]),
    "tm_executor_run": (_INT, [_VOID, _INT, _LONG]),
    "tm_executor_call": (_INT, [_VOID, _VOID, _INT, _VOID, _INT, _INT, _LONG]),
    "tm_executor_get_output_at": (_INT, [_VOID, _INT, _VOID]),
    "tm_executor_set_profiling": (_INT, [_VOID, _INT]),
    "tm_executor_step_count": (_INT, [_VOID]),
    "tm_executor_step": (_INT, [_VOID, _INT, ctypes.POINTER(_Step)]),
}

_lock = threading.Lock()
_library: Optional[ctypes.CDLL] = None


def library_path() -> Path:
    """libtensormill.so: what ``TM_LIBRARY`` names, else the one in this package, else the one beside the program."""
    named = os.environ.get("TM_LIBRARY")
    if named:
        return Path(named)
    bundled = HERE / "_bundle" / "lib" / "libtensormill.so.0"
    if bundled.exists():
        return bundled
    beside = program_path().resolve().parent.parent / "lib" / "libtensormill.so.0"
    if beside.exists():
        return beside
    raise ExecutorError("not_found", f"the executor's library is not here (not at {beside}); name it in TM_LIBRARY", -3)


def library() -> ctypes.CDLL:
    """The library, opened once."""
    global _library
    with _lock:
        if _library is None:
            path = library_path()
            try:
                opened = ctypes.CDLL(str(path))
            except OSError as error:
                raise ExecutorError("not_found", f"{path} cannot be opened: {error}", -3) from error
            for name, (result, arguments) in _SIGNATURES.items():
                function = getattr(opened, name)
                function.restype, function.argtypes = result, arguments
            _library = opened
        return _library


# The server's words for the C interface's codes.
_CODES = {-1: "invalid_tensor", -2: "invalid_package", -3: "not_found", -4: "memory_budget", -5: "tensor_data",
          -6: "deadline_exceeded", -7: "internal_error"}


def check(code: int) -> None:
    """Raises what the thread's last call says, unless ``code`` is 0."""
    if code == 0:
        return
    message = library().tm_last_error()
    raise ExecutorError(_CODES.get(code, "internal_error"), message.decode("utf-8", "replace"), code)


class Runtime:
    """The threads that runs share. ``threads``: by default as many as this process may use CPUs."""

    def __init__(self, threads: Optional[int] = None) -> None:
        lib = library()
        self.threads: int = threads if threads is not None else lib.tm_default_threads()
        handle = ctypes.c_void_p()
        check(lib.tm_runtime_create(self.threads, ctypes.byref(handle)))
        self.handle = handle
        # Threads are not there in a child that os.fork() made: there is nothing to join in it.
        self._end = weakref.finalize(self, _destroy_runtime, lib, handle, os.getpid())


def _destroy_runtime(lib: ctypes.CDLL, handle: ctypes.c_void_p, pid: int) -> None:
    if os.getpid() == pid:
        lib.tm_runtime_destroy(handle)


_default: Dict[int, Runtime] = {}


def default_runtime() -> Runtime:
    """The runtime of this process that all packages share which are given none."""
    pid = os.getpid()
    with _lock:
        found = _default.get(pid)
    if found is None:
        made = Runtime()
        with _lock:
            found = _default.setdefault(pid, made)
    return found


class Port(NamedTuple):
    """An input or output as the model declares it; ``shape`` has the name of a free dim in its place."""

    name: str
    dtype: DType
    shape: Tuple[Any, ...]


class LoadedPackage:
    """Code and weights; executors share them."""

    def __init__(self, path: Optional[Path], data: Optional[bytes] = None) -> None:
        lib = library()
        handle = ctypes.c_void_p()
        if data is not None:
            check(lib.tm_package_load_memory(data, len(data), ctypes.byref(handle)))
        else:
            check(lib.tm_package_load(os.fsencode(str(path)), ctypes.byref(handle)))
        self.handle = handle
        self._end = weakref.finalize(self, lib.tm_package_destroy, handle)
        self.metadata_text: str = lib.tm_package_metadata(handle).decode("utf-8")
        self.holds_model: bool = lib.tm_package_holds_model(handle) != 0
        self.inputs = self._ports(lib.tm_package_input_count, lib.tm_package_input)
        self.outputs = self._ports(lib.tm_package_output_count, lib.tm_package_output)

    def _ports(self, count: Any, get: Any) -> List[Port]:
        ports = []
        for index in range(count(self.handle)):
            port = _Port()
            check(get(self.handle, index, ctypes.byref(port)))
            shape = tuple(port.shape[i] if port.dims[i] is None else port.dims[i].decode() for i in range(port.rank))
            ports.append(Port(port.name.decode(), _dtypes.BY_NUMBER[port.dtype], shape))
        return ports


class StepTime(NamedTuple):
    """How long a step of a run took, in microseconds; ``origin`` is the model's node that it came from."""

    name: str
    origin: str
    start_us: float
    duration_us: float
    flops: int
    bytes: int


class _Slot:
    """A tensor of the C interface, filled again in place for each run."""

    __slots__ = ("tensor", "reference", "kept", "address")

    def __init__(self) -> None:
        self.tensor = Tensor()
        self.reference = ctypes.byref(self.tensor)
        self.kept: Any = None
        self.address = 0


class Executor:
    """Buffers of one run at a time: the module of TVM's graph executor. It belongs to one thread at a time."""

    def __init__(self, package: LoadedPackage, runtime: Optional[Runtime] = None, max_memory: int = 0) -> None:
        self.package = package
        self.runtime = runtime if runtime is not None else default_runtime()
        self._lib = library()
        handle = ctypes.c_void_p()
        check(self._lib.tm_executor_create(self.runtime.handle, package.handle, max_memory, ctypes.byref(handle)))
        self._handle = handle
        self._end = weakref.finalize(self, self._lib.tm_executor_destroy, handle)
        self._slots = [_Slot() for _ in package.inputs]
        self._outputs = [_Slot() for _ in package.outputs]
        self._arguments = Arguments(package.inputs, package.outputs)
        self._call = self._lib.tm_executor_call
        self._flag = ctypes.c_int32()
        self._flag_reference = ctypes.byref(self._flag)

    def input_index(self, name: str) -> int:
        """The place of an input by its name, or ``input_0`` ..."""
        index = ctypes.c_int32()
        check(self._lib.tm_executor_input_index(self._handle, name.encode(), ctypes.byref(index)))
        return index.value

    def output_index(self, name: str) -> int:
        """The place of an output by its name, or ``output_0`` ..."""
        index = ctypes.c_int32()
        check(self._lib.tm_executor_output_index(self._handle, name.encode(), ctypes.byref(index)))
        return index.value

    def set_input(self, index: int, array: Array, copy: bool = False) -> bool:
        """Sets an input; returns whether runs read the array where it lies, which it must not change before their end."""
        dtype = self.package.inputs[index].dtype
        array = _dtypes.to_storage(array, dtype)
        address: int = array.ctypes.data
        slot = self._slots[index]
        show(slot.tensor, array, _dtypes.number_of(array, dtype))
        slot.tensor.data = address
        if not copy and is_lendable(array, address):
            slot.kept = array
            code = self._lib.tm_executor_lend_input(self._handle, index, slot.reference, self._flag_reference)
            if code == 0:
                return self._flag.value != 0
        else:
            slot.kept = None
            code = self._lib.tm_executor_set_input_at(self._handle, index, slot.reference)
        check(code)
        return False

    def run(self, threads: int = 0, time_limit: Optional[float] = None) -> None:
        """Runs; ``time_limit`` in seconds."""
        limit = 0 if time_limit is None else max(1, int(time_limit * 1000))
        code = self._lib.tm_executor_run(self._handle, threads, limit)
        if code:
            check(code)

    def call(self, arrays: Sequence[Array], threads: int = 0, time_limit: Optional[float] = None) -> List[Array]:
        """A whole run: sets the inputs, which are all of the model's in its order, and returns the outputs, which are the
        caller's own. Up to 16 KB are copied, as is what kernels cannot read where it lies."""
        arguments = self._arguments
        arguments.set(arrays)
        limit = 0 if time_limit is None else max(1, int(time_limit * 1000))
        code = self._call(self._handle, arguments.in_address, len(arrays), arguments.out_address, arguments.output_count,
                          threads, limit)
        if code:
            check(code)
        return arguments.take()

    def lend_new_outputs(self) -> List[Optional[Array]]:
        """New arrays for the outputs of the next run, which writes them where they lie; None where it cannot."""
        lent: List[Optional[Array]] = []
        for index, slot in enumerate(self._outputs):
            shape, dtype = self._output(index)
            wanted = self._lib.tm_executor_output_bytes(self._handle, index)
            array: Optional[Array] = None
            if wanted == slot.tensor.bytes and wanted > 0:
                array, slot.address = place(shape, dtype.storage, wanted)
                code = self._lib.tm_executor_lend_output(self._handle, index, slot.address, wanted, self._flag_reference)
                if code:
                    check(code)
                if not self._flag.value:
                    array = None
            if array is None:
                slot.address = 0
                check(self._lib.tm_executor_lend_output(self._handle, index, None, 0, None))
            slot.kept = array
            lent.append(array)
        return lent

    def keep_outputs_inside(self) -> None:
        """The next run writes its outputs into the executor's own storage."""
        for index, slot in enumerate(self._outputs):
            slot.kept, slot.address = None, 0
            check(self._lib.tm_executor_lend_output(self._handle, index, None, 0, None))

    def output(self, index: int, lent: Optional[Array] = None) -> Array:
        """An output of the last run: ``lent``, where the run has written it there, else a copy."""
        shape, dtype = self._output(index)
        tensor = self._outputs[index].tensor
        if lent is not None and tensor.data == self._outputs[index].address:
            array = lent if shape == lent.shape else lent.reshape(-1)[:tensor.bytes // lent.itemsize].reshape(shape)
        else:
            array = empty(shape, dtype.storage)
            if tensor.bytes:
                ctypes.memmove(array.ctypes.data, tensor.data, tensor.bytes)
        return _dtypes.from_storage(array, dtype)

    def _output(self, index: int) -> Tuple[Tuple[int, ...], DType]:
        slot = self._outputs[index]
        code = self._lib.tm_executor_get_output_at(self._handle, index, slot.reference)
        if code:
            check(code)
        tensor = slot.tensor
        return tuple(tensor.shape[:tensor.rank]), _dtypes.BY_NUMBER[tensor.dtype]

    def clear(self) -> None:
        """Forgets inputs and outputs, and what they keep alive."""
        check(self._lib.tm_executor_clear_inputs(self._handle))
        for slot in self._slots:
            slot.kept = None
        self._arguments.forget()
        self.keep_outputs_inside()

    def profile(self, on: bool) -> None:
        """Whether runs from here on note the time of each step."""
        check(self._lib.tm_executor_set_profiling(self._handle, 1 if on else 0))

    def steps(self) -> List[StepTime]:
        """The steps of the last run that was noted."""
        times = []
        step = _Step()
        for index in range(self._lib.tm_executor_step_count(self._handle)):
            check(self._lib.tm_executor_step(self._handle, index, ctypes.byref(step)))
            times.append(StepTime(step.name.decode(), step.origin.decode(), step.start_ns / 1e3, step.duration_ns / 1e3,
                                  step.flops, step.bytes))
        return times
