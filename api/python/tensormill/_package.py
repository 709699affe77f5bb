"""Packages: compiled models, and how they run."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import weakref
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _html, _npz
from ._dtypes import Array
from ._errors import ExecutorError
from ._memory import as_array
from ._model import Buckets, InputShapes, Model, TensorSpec, buckets_text, load, shapes_text, specs_of, value_text
from ._native import Executor, LoadedPackage, Runtime, StepTime
from ._program import PathLike, option, run_program

Inputs = Union[Mapping[str, Any], Any, None]


class Profile(NamedTuple):
    """How long each step of a run took."""

    steps: Tuple[StepTime, ...]

    @property
    def total_us(self) -> float:
        """Of all steps."""
        return sum(step.duration_us for step in self.steps)

    def __str__(self) -> str:
        longest = sorted(self.steps, key=lambda step: -step.duration_us)
        return "\n".join(f"{step.duration_us:10.1f} us  {step.name}  {step.origin}" for step in longest)

    def _repr_html_(self) -> str:
        longest = sorted(self.steps, key=lambda step: -step.duration_us)
        rows = [(f"{step.name} {step.origin}", step.duration_us) for step in longest]
        return _html.card("Profile", "", [("steps", len(self.steps)), ("total", f"{self.total_us:.1f} us")],
                          [_html.bars(rows, "us")])


class Result:
    """Outputs of a run (``tvmc.TVMCResult``), by name, by place or, of a model with one output, as an array.

    ``times`` are seconds, one a measured run; ``profile`` is there when it was requested.
    """

    def __init__(self, outputs: Dict[str, Array], times: Sequence[float] = (), profile: Optional[Profile] = None) -> None:
        self.outputs = outputs
        self.times = tuple(times)
        self.profile = profile

    def __getitem__(self, key: Union[str, int]) -> Array:
        return self.get_output(key)

    def get_output(self, key: Union[str, int]) -> Array:
        """An output by its name, ``output_0`` ..., or its place."""
        if isinstance(key, str):
            if key in self.outputs:
                return self.outputs[key]
            number = key[len("output_"):] if key.startswith("output_") else ""
            if not number.isdecimal() or int(number) >= len(self.outputs):
                raise KeyError(f"no output {key!r}; there are {', '.join(map(repr, self.outputs))}")
            key = int(number)
        return list(self.outputs.values())[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.outputs)

    def __len__(self) -> int:
        return len(self.outputs)

    def __contains__(self, name: object) -> bool:
        return name in self.outputs

    def keys(self) -> List[str]:
        """Names of the outputs, in the model's order."""
        return list(self.outputs)

    def numpy(self) -> Array:
        """The one output. Raises ValueError where there are several."""
        if len(self.outputs) != 1:
            raise ValueError(f"the model has {len(self.outputs)} outputs ({', '.join(self.outputs)}): take one by its name")
        return next(iter(self.outputs.values()))

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Array:
        array = self.numpy()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)

    def save(self, path: PathLike) -> None:
        """Writes the outputs as NPZ."""
        with open(path, "wb") as file:
            _npz.write(file, self.outputs)

    def format_times(self) -> str:
        """Mean, median, max, min and standard deviation in milliseconds."""
        if not self.times:
            return "no times: run with repeat"
        ms = 1e3 * np.array(self.times)
        return ("  mean (ms)  median (ms)   max (ms)   min (ms)   std (ms)\n"
                f"{ms.mean():11.4f} {np.median(ms):12.4f} {ms.max():10.4f} {ms.min():10.4f} {ms.std():10.4f}")

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}: {array.dtype}{list(array.shape)}" for name, array in self.outputs.items())
        return f"<tensormill.Result {inside}>"

    def _repr_html_(self) -> str:
        rows = [(name, array.dtype, list(array.shape)) for name, array in self.outputs.items()]
        parts = [_html.table(("output", "type", "shape"), rows)]
        if self.profile is not None:
            parts.append(self.profile._repr_html_())
        return _html.card("Result", "", [("runs", len(self.times))] if self.times else [], parts)


class Package:
    """A compiled model (``tvmc.TVMCPackage``). It may be used by several threads at once: each run has an executor of its
    own, which the next ones use again, and all share the weights.

    ``runtime`` has the threads; by default all packages share those of `default_runtime`. ``max_memory`` bounds the bytes of
    an executor's buffers.
    """

    def __init__(self, package_path: PathLike, runtime: Optional[Runtime] = None, max_memory: int = 0) -> None:
        self.path = Path(os.fspath(package_path))
        self._open(LoadedPackage(self.path), runtime, max_memory)

    @classmethod
    def from_bytes(cls, data: bytes, runtime: Optional[Runtime] = None, max_memory: int = 0) -> "Package":
        """A package from its archive in memory, as ``Client.package_archive`` gives it."""
        package = cls.__new__(cls)
        package.path = Path("package.tar")
        package._open(LoadedPackage(None, data), runtime, max_memory)
        package._data = data
        return package

    def _open(self, loaded: LoadedPackage, runtime: Optional[Runtime], max_memory: int) -> None:
        self._data: Optional[bytes] = None
        self._loaded = loaded
        self._runtime = runtime
        self._max_memory = max_memory
        self._free: List[Executor] = []
        self._pid = os.getpid()
        self.metadata: Dict[str, Any] = json.loads(loaded.metadata_text)
        self.inputs = specs_of(self.metadata["inputs"])
        self.outputs = specs_of(self.metadata["outputs"])
        self.target: str = self.metadata["target"]
        self._order = range(len(self.inputs))
        self._places = {spec.name: index for index, spec in enumerate(self.inputs)}
        self._names = [spec.name for spec in self.outputs]

    def executor(self) -> Executor:
        """An executor of one's own, to set inputs one by one; for one thread at a time."""
        return Executor(self._loaded, self._runtime, self._max_memory)

    def _take(self) -> Executor:
        if self._pid != os.getpid():
            self._free, self._pid = [], os.getpid()
        try:
            return self._free.pop()
        except IndexError:
            return self.executor()

    def run(self, *inputs: Any, repeat: Optional[int] = None, number: int = 1, profile: bool = False, threads: int = 0,
            time_limit: Optional[float] = None, **named: Any) -> Result:
        """Runs the model and returns its outputs, which are the caller's own.

        Inputs are arrays in the model's order, one mapping of names to arrays, or keywords; a numpy array, or anything with
        DLPack, of more than 16 KB is read where it lies if its address is a multiple of 64 (``tensormill.empty`` makes
        such), else copied.
        ``repeat`` measures so many times ``number`` runs each. ``time_limit`` is in seconds.

        Raises ExecutorError: ``invalid_tensor`` naming both sides, ``tensor_data``, ``memory_budget``,
        ``deadline_exceeded``.
        """
        executor = self._take()
        try:
            try:
                arrays = self._arrays(executor, inputs, named)
                if profile:
                    executor.profile(True)
                if len(arrays) == len(self.inputs):
                    found = executor.call([arrays[index] for index in self._order], threads, time_limit)
                else:
                    found = self._run_given(executor, arrays, threads, time_limit)
            except ExecutorError as error:
                # Shapes without kernels, and steps that the library lacks, are the program's.
                is_programs = error.code == "invalid_package" or (self._loaded.holds_model and error.code == "invalid_tensor")
                if not is_programs:
                    raise
                return self._run_by_program(arrays)
            steps = Profile(tuple(executor.steps())) if profile else None
            if profile:
                executor.profile(False)
            times = self._measure(executor, repeat, number, threads, time_limit) if repeat else ()
        finally:
            self._free.append(executor)
        return Result(dict(zip(self._names, found)), times, steps)

    def _arrays(self, executor: Executor, inputs: Sequence[Any], named: Mapping[str, Any]) -> Dict[int, Array]:
        if len(inputs) == 1 and not isinstance(inputs[0], np.ndarray) and isinstance(inputs[0], Mapping):
            named, inputs = {**inputs[0], **named}, ()
        if len(inputs) > len(self.inputs):
            raise ExecutorError("invalid_tensor", f"{len(inputs)} inputs are given, the model has {len(self.inputs)}", -1)
        arrays = {index: as_array(value) for index, value in enumerate(inputs)}
        for name, value in named.items():
            place = self._places.get(name)
            arrays[executor.input_index(name) if place is None else place] = as_array(value)
        return arrays

    def _run_given(self, executor: Executor, arrays: Mapping[int, Array], threads: int,
                   time_limit: Optional[float]) -> List[Array]:
        # An executor keeps inputs over runs; a run of the package has those that it is given.
        executor.clear()
        for index, array in arrays.items():
            executor.set_input(index, array)
        executor.run(threads, time_limit)
        return [executor.output(index) for index in range(len(self.outputs))]

    @staticmethod
    def _measure(executor: Executor, repeat: int, number: int, threads: int, time_limit: Optional[float]) -> List[float]:
        times = []
        for _ in range(repeat):
            start = time.perf_counter()
            for _ in range(number):
                executor.run(threads, time_limit)
            times.append((time.perf_counter() - start) / max(number, 1))
        return times

    def _run_by_program(self, arrays: Mapping[int, Array]) -> Result:
        """By the program: it interprets the model for shapes that the package has no kernels for, and has pictures and
        regular expressions, which the library in this process lacks."""
        with tempfile.TemporaryDirectory(prefix="tensormill-") as folder:
            into, out = Path(folder) / "in.npz", Path(folder) / "out.npz"
            into.write_bytes(_npz.dumps({self.inputs[index].name: array for index, array in arrays.items()}))
            package = self.path
            if self._data is not None:
                package = Path(folder) / "package.tar"
                package.write_bytes(self._data)
            run_program(["run", str(package), "-i", str(into), "-o", str(out)])
            made = _npz.loads(out.read_bytes())
            return Result({name: made[name] for name in self._names})

    def save(self, path: PathLike) -> Path:
        """Writes the package's archive to ``path``, and returns that."""
        if self._data is not None:
            Path(path).write_bytes(self._data)
            return Path(path)
        return Path(shutil.copyfile(self.path, path))

    def summary(self) -> str:
        """What it takes and gives, the target, and what it weighs."""
        facts = self.metadata
        lines = [f"{self.path.name}: {facts['num_steps']} steps for {self.target}"]
        lines += [f"  in   {spec}" for spec in self.inputs] + [f"  out  {spec}" for spec in self.outputs]
        lines.append(f"  weights {facts['weight_bytes'] / 1e6:.1f} MB, buffers {facts['arena_bytes'] / 1e6:.1f} MB")
        return "\n".join(lines)

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, specs)) for specs in (self.inputs, self.outputs))
        return f"<tensormill.Package {self.path.name}: {inputs} -> {outputs}>"

    def _repr_html_(self) -> str:
        facts = self.metadata
        kernels = [(one["symbol"], one["template"], ", ".join(one["origins"])) for one in facts["kernels"]]
        return _html.card(
            "Package", self.path.name,
            [("target", self.target), ("model", facts["model_digest"]), ("steps", facts["num_steps"]),
             ("weights", f"{facts['weight_bytes'] / 1e6:.1f} MB"), ("opt level", facts["opt_level"])],
            [_html.tensors(self.inputs, self.outputs), _html.table(("kernel", "template", "nodes"), kernels)])


def _list(names: Union[str, Sequence[str], None]) -> Optional[str]:
    return names if names is None or isinstance(names, str) else ",".join(names)


def compile(model: Union[Model, PathLike], target: Union[str, Mapping[str, Any]] = "llvm -mcpu=native", *,  # noqa: A001
            opt_level: int = 3, tuning_records: Optional[PathLike] = None, package_path: Optional[PathLike] = None,
            input_shapes: Optional[InputShapes] = None, shape_buckets: Optional[Buckets] = None,
            input_values: Optional[Mapping[str, Any]] = None, outputs: Union[str, Sequence[str], None] = None,
            desired_layout: Optional[str] = None, desired_layout_ops: Union[str, Sequence[str], None] = None,
            mixed_precision: Optional[str] = None,
            disabled_pass: Union[str, Sequence[str], None] = None, pass_config: Optional[Mapping[str, Any]] = None,
            dump_code: Union[str, Sequence[str], None] = None, verify: Optional[str] = None,
            threads: Optional[int] = None, runtime: Optional[Runtime] = None) -> Package:
    """Compiles a model, in a process of the ``tensormill`` program, and returns the package.

    Options are those of ``tensormill compile``. Without ``package_path`` the archive is a temporary file that goes with the
    package. Raises ProgramError.
    """
    source = model if isinstance(model, Model) else Model(Path(os.fspath(model)), None, {})
    path, owned = _package_place(package_path)
    arguments = ["compile", str(source.path), "-o", str(path), "--opt-level", str(opt_level)]
    arguments += option("target", target if isinstance(target, str) else json.dumps(dict(target)))
    arguments += option("model-format", source.model_format)
    arguments += option("input-shapes", shapes_text(source.input_shapes if input_shapes is None else input_shapes))
    arguments += option("shape-buckets", buckets_text(shape_buckets))
    arguments += option("input-values", value_text(input_values))
    arguments += option("outputs", _list(outputs))
    arguments += option("desired-layout", desired_layout)
    arguments += option("desired-layout-ops", _list(desired_layout_ops))
    arguments += option("mixed-precision", mixed_precision)
    arguments += option("tuning-records", None if tuning_records is None else os.fspath(tuning_records))
    arguments += option("disabled-pass", _list(disabled_pass))
    arguments += option("dump-code", _list(dump_code))
    arguments += option("verify", verify)
    arguments += option("threads", threads)
    for name, value in (pass_config or {}).items():
        arguments += ["--pass-config", f"{name}={value}"]
    try:
        run_program(arguments)
        package = Package(path, runtime)
    except BaseException:
        if owned:
            shutil.rmtree(path.parent, ignore_errors=True)
        raise
    if owned:
        weakref.finalize(package, shutil.rmtree, str(path.parent), ignore_errors=True)
    return package


def _package_place(package_path: Optional[PathLike]) -> Tuple[Path, bool]:
    if package_path is not None:
        return Path(os.fspath(package_path)), False
    return Path(tempfile.mkdtemp(prefix="tensormill-")) / "module.tar", True


def run(package: Union[Package, PathLike], inputs: Inputs = None, *, repeat: Optional[int] = None, number: int = 1,
        profile: bool = False, threads: int = 0) -> Result:
    """Runs a package once, or ``repeat`` times ``number`` runs measured (``tvmc.run``). Without inputs: of zeros."""
    loaded = package if isinstance(package, Package) else Package(package)
    if inputs is None:
        inputs = zeros(loaded.inputs)
    elif isinstance(inputs, (str, os.PathLike)):
        inputs = _npz.loads(Path(inputs).read_bytes())
    return loaded.run(inputs, repeat=repeat, number=number, profile=profile, threads=threads)


def zeros(specs: Sequence[TensorSpec]) -> Dict[str, Array]:
    """Zeros for inputs, a free dim as 1."""
    made = {}
    for spec in specs:
        shape = [extent if isinstance(extent, int) else 1 for extent in spec.shape]
        made[spec.name] = np.zeros(shape, "U1" if spec.dtype == "string" else spec.dtype)
    return made


__all__ = ["Package", "Profile", "Result", "compile", "load", "run"]
