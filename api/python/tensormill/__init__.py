"""TensorMill: compiles trained models to fast packages, and runs and serves them.

>>> import tensormill as tm
>>> m = tm.load(DIGITS)
>>> p = tm.compile(m, target="llvm -mcpu=native", input_shapes={"image": [1, 1, 28, 28]}, package_path=WORK / "d.tar")
>>> x = tm.empty((1, 1, 28, 28))
>>> x[:] = 0
>>> y = p.run(x)
>>> y["logits"].shape
(1, 10)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._errors import ErrorDetail, ExecutorError, JobError, ProgramError, ServerError, TensorMillError
from ._memory import empty, from_dlpack
from ._model import Model, TensorSpec, load
from ._native import Executor, Runtime, StepTime, default_runtime, library_path
from ._package import Package, Profile, Result, compile, run  # noqa: A004
from ._program import program_path
from ._tuning import Bar, TuningResult, tune

if TYPE_CHECKING:
    from .client import AsyncClient, AsyncJob, Client, Job

__version__ = "0.1.0"

#: The names that tvmc has for them.
TVMCModel, TVMCPackage, TVMCResult = Model, Package, Result

__all__ = ["AsyncClient", "AsyncJob", "Bar", "Client", "ErrorDetail", "Executor", "ExecutorError", "Job", "JobError", "Model",
           "Package", "Profile", "ProgramError", "Result", "Runtime", "ServerError", "StepTime", "TVMCModel", "TVMCPackage",
           "TVMCResult", "TensorMillError", "TensorSpec", "TuningResult", "compile", "default_runtime", "empty",
           "from_dlpack", "library_path", "load", "program_path", "run", "tune"]

_OF_CLIENT = ("AsyncClient", "AsyncJob", "Client", "Job")


def __getattr__(name: str) -> Any:
    # The HTTP library takes longer to import than all else: who runs packages here does not wait for it.
    if name in _OF_CLIENT or name == "client":
        module = importlib.import_module(".client", __name__)
        return module if name == "client" else getattr(module, name)
    raise AttributeError(f"module 'tensormill' has no attribute {name!r}")
