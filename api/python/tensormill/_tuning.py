"""Tuning on this machine, with a progress bar."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple, Optional, TextIO, Union

from . import _html
from ._model import Buckets, InputShapes, Model, buckets_text, shapes_text, value_text
from ._program import PathLike, option, run_program


class TuningResult(NamedTuple):
    """``records`` is the file for ``compile(tuning_records=...)``; times are of all kernels of the model."""

    records: Path
    trials: int
    default_ms: float
    best_ms: float
    report: Mapping[str, Any]

    def __fspath__(self) -> str:
        return str(self.records)

    def _repr_html_(self) -> str:
        rows = [(one["name"], one["trials"], f"{one['default_ms']:.4f}", f"{one['best_ms']:.4f}")
                for one in self.report.get("tasks", []) if one["trials"]]
        return _html.card("Tuning", self.records.name,
                          [("trials", self.trials), ("kernels", f"{self.default_ms:.3f} -> {self.best_ms:.3f} ms")],
                          [_html.table(("kernel", "trials", "default ms", "best ms"), rows)])


class Bar:
    """A line that is written over on a terminal and in a notebook; in a file a line a tenth of the way."""

    def __init__(self, stream: Optional[TextIO] = None, width: int = 24) -> None:
        self.stream = stream if stream is not None else sys.stderr
        self.width = width
        self.live = self.stream.isatty() or "ipykernel" in sys.modules
        self.tenth = -1

    def show(self, state: Mapping[str, Any]) -> None:
        """``state``: ``trials`` of ``trial_budget``, and, when there are any, ``default_ms`` and ``best_ms``."""
        part = min(state.get("trials", 0) / max(state.get("trial_budget", 1), 1), 1.0)
        full = round(part * self.width)
        line = f"[{'#' * full}{'.' * (self.width - full)}] trial {state.get('trials', 0)}/{state.get('trial_budget', 0)}"
        if "best_ms" in state:
            line += f"  model {state.get('default_ms', 0.0):.3f} -> {state['best_ms']:.3f} ms"
        if self.live:
            self.stream.write("\r" + line + "\033[K")
        elif int(part * 10) > self.tenth:
            self.tenth = int(part * 10)
            self.stream.write(line + "\n")
        self.stream.flush()

    def close(self) -> None:
        """Ends the line."""
        if self.live:
            self.stream.write("\n")
            self.stream.flush()


def tune(model: Union[Model, PathLike], target: Union[str, Mapping[str, Any]] = "llvm -mcpu=native",
         tuning_records: Optional[PathLike] = None, *, prior_records: Optional[PathLike] = None, trials: int = 1000,
         time_budget: Optional[float] = None, tuner: Optional[str] = None, enable_autoscheduler: bool = False,
         early_stopping: Optional[int] = None, tasks: Optional[str] = None, timeout: Optional[float] = None,
         number: Optional[int] = None, repeat: Optional[int] = None, min_repeat_ms: Optional[float] = None,
         threads: Optional[int] = None, seed: Optional[int] = None, input_shapes: Optional[InputShapes] = None,
         input_values: Optional[Mapping[str, Any]] = None, extents: Optional[Buckets] = None,
         progress: Union[bool, Callable[[Mapping[str, Any]], None]] = True) -> TuningResult:
    """Searches for faster schedules of a model's kernels (``tvmc.tune``) and returns the records.

    ``tuning_records`` is a file that is continued if it is there. ``extents`` of free dims, at which kernels that serve all
    are measured, and at the end the model: ``{"N": [1, 8]}``. ``progress``: a bar, none, or a function that gets
    ``trials``, ``trial_budget``, ``default_ms`` and ``best_ms``. Raises ProgramError; what was measured before stays in the file.
    """
    source = model if isinstance(model, Model) else Model(Path(os.fspath(model)), None, {})
    if tuning_records is None:
        handle, name = tempfile.mkstemp(prefix="tensormill-", suffix=".json")
        os.close(handle)
        tuning_records = name
    arguments = ["-v", "tune", str(source.path), "-o", os.fspath(tuning_records), "--trials", str(trials)]
    arguments += option("target", target if isinstance(target, str) else json.dumps(dict(target)))
    arguments += option("input-shapes", shapes_text(source.input_shapes if input_shapes is None else input_shapes))
    arguments += option("input-values", value_text(input_values))
    arguments += option("extents", buckets_text(extents))
    arguments += option("prior-records", None if prior_records is None else os.fspath(prior_records))
    for key, value in (("model-format", source.model_format), ("time-budget", time_budget), ("tuner", tuner),
                       ("early-stopping", early_stopping), ("tasks", tasks), ("timeout", timeout), ("number", number),
                       ("repeat", repeat), ("min-repeat-ms", min_repeat_ms), ("threads", threads), ("seed", seed)):
        arguments += option(key, value)
    if enable_autoscheduler:
        arguments.append("--enable-autoscheduler")
    bar = Bar() if progress is True else None
    show = bar.show if bar is not None else progress if callable(progress) else None

    def on_line(line: str) -> None:
        if show is not None and line.startswith("{"):
            show(json.loads(line))

    try:
        report = run_program(arguments, on_line)
    finally:
        if bar is not None:
            bar.close()
    return TuningResult(Path(os.fspath(tuning_records)), report["trials"], report["default_ms"], report["best_ms"], report)
