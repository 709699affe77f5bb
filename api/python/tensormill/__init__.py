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
from typing import TYPE_CHECKING, Any, Dict, List

if TYPE_CHECKING:
    from ._errors import ErrorDetail, ExecutorError, JobError, ProgramError, ServerError, TensorMillError
    from ._memory import empty, from_dlpack
    from ._model import Model, TensorSpec, load
    from ._native import Executor, Runtime, StepTime, default_runtime, library_path
    from ._package import Package, Profile, Result, compile, run  # noqa: A004
    from ._program import program_path
    from ._tuning import Bar, TuningResult, tune
    from .client import AsyncClient, AsyncJob, Client, Job

    TVMCModel, TVMCPackage, TVMCResult = Model, Package, Result

__version__ = "0.1.0"

__all__ = ["AsyncClient", "AsyncJob", "Bar", "Client", "ErrorDetail", "Executor", "ExecutorError", "Job", "JobError", "Model",
           "Package", "Profile", "ProgramError", "Result", "Runtime", "ServerError", "StepTime", "TVMCModel", "TVMCPackage",
           "TVMCResult", "TensorMillError", "TensorSpec", "TuningResult", "compile", "default_runtime", "empty",
           "from_dlpack", "library_path", "load", "program_path", "run", "tune"]

# Where each name is. A module is imported when a name of it is first used: who uses a server does not wait for numpy's
# import, who runs packages not for the HTTP library's, and `import tensormill` for neither.
_MODULES = {
    "_errors": ("ErrorDetail", "ExecutorError", "JobError", "ProgramError", "ServerError", "TensorMillError"),
    "_memory": ("empty", "from_dlpack"),
    "_model": ("Model", "TensorSpec", "load"),
    "_native": ("Executor", "Runtime", "StepTime", "default_runtime", "library_path"),
    "_package": ("Package", "Profile", "Result", "compile", "run"),
    "_program": ("program_path",),
    "_tuning": ("Bar", "TuningResult", "tune"),
    "client": ("AsyncClient", "AsyncJob", "Client", "Job"),
}
_HOME: Dict[str, str] = {name: module for module, names in _MODULES.items() for name in names}

#: The names that tvmc has for them.
_OF_TVMC = {"TVMCModel": "Model", "TVMCPackage": "Package", "TVMCResult": "Result"}


def __getattr__(name: str) -> Any:
    if name == "client":
        return importlib.import_module(".client", __name__)
    called = _OF_TVMC.get(name, name)
    if called not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module("." + _HOME[called], __name__), called)
    # Found without this function from here on.
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__, "client"})
