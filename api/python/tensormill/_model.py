"""Models: what `load` returns and `compile` takes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _html
from ._program import PathLike, option, run_program

Dim = Union[int, str]
#: Extents by input name: ``{"x": [1, 3, 224, 224]}``, a text for a free dim; or the command line's own text.
InputShapes = Union[str, Mapping[str, Union[str, Sequence[Dim]]]]
#: Extents by free dim: ``{"N": [1, 8]}``; or the command line's own text.
Buckets = Union[str, Mapping[str, Union[str, Sequence[int]]]]


class TensorSpec(NamedTuple):
    """An input or output: its name, element type and shape, in which a text is a free dim."""

    name: str
    dtype: str
    shape: Tuple[Dim, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


def specs_of(items: Any) -> List[TensorSpec]:
    """Of the JSON that the program and the server print."""
    return [TensorSpec(str(one["name"]), str(one["dtype"]), tuple(one["shape"])) for one in items]


def shapes_text(shapes: Optional[InputShapes]) -> Optional[str]:
    """As the command line writes them.

    >>> shapes_text({"x": ["N", 3, 224, 224], "n": []})
    'x:[N,3,224,224] n:[]'
    """
    if shapes is None or isinstance(shapes, str):
        return shapes or None
    words = []
    for name, extents in shapes.items():
        inside = extents if isinstance(extents, str) else ",".join(str(one) for one in extents)
        words.append(f"{name}:[{inside.strip('[]')}]")
    return " ".join(words) or None


def buckets_text(buckets: Optional[Buckets]) -> Optional[str]:
    """As the command line writes them.

    >>> buckets_text({"N": [1, 8], "H": "32..640:32"})
    'N=1,8;H=32..640:32'
    """
    if buckets is None or isinstance(buckets, str):
        return buckets or None
    return ";".join(f"{name}={extents if isinstance(extents, str) else ','.join(map(str, extents))}"
                    for name, extents in buckets.items()) or None


class Model:
    """A model file: what it takes and gives, and the operators in it (``tvmc.TVMCModel``)."""

    def __init__(self, path: Path, model_format: Optional[str], facts: Mapping[str, Any],
                 input_shapes: Optional[InputShapes] = None) -> None:
        self.path = path
        self.model_format = model_format
        self.input_shapes = input_shapes
        self.facts = facts
        self.id: str = facts.get("id", "")
        self.format: str = facts.get("format", "")
        self.inputs = specs_of(facts.get("inputs", []))
        self.outputs = specs_of(facts.get("outputs", []))
        self.ops: Dict[str, int] = dict(facts.get("ops", {}))
        self.parameters: int = facts.get("parameters", 0)

    def summary(self) -> str:
        """Inputs, outputs and operators, a line each."""
        lines = [f"{self.path.name}: {self.format}, {self.parameters:,} parameters, {sum(self.ops.values())} nodes"]
        lines += [f"  in   {spec}" for spec in self.inputs] + [f"  out  {spec}" for spec in self.outputs]
        lines += [f"  {count:5} {op}" for op, count in sorted(self.ops.items(), key=lambda item: (-item[1], item[0]))]
        return "\n".join(lines)

    def save(self, path: PathLike) -> Path:
        """Copies the model's file to ``path``, and returns that."""
        return Path(shutil.copyfile(self.path, path))

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, specs)) for specs in (self.inputs, self.outputs))
        return f"<tensormill.Model {self.path.name}: {inputs} -> {outputs}>"

    def _repr_html_(self) -> str:
        ops = sorted(self.ops.items(), key=lambda item: (-item[1], item[0]))
        return _html.card(
            "Model", self.path.name,
            [("format", self.format), ("id", self.id), ("parameters", f"{self.parameters:,}")],
            [_html.tensors(self.inputs, self.outputs), _html.table(("operator", "nodes"), ops)])


def load(path: PathLike, model_format: Optional[str] = None, shape_dict: Optional[InputShapes] = None) -> Model:
    """Reads what a model file is. ``shape_dict``: extents of inputs, for all compiles of the model.

    Raises ProgramError: ``invalid_model``, ``operator_not_implemented`` (``errors`` name all such nodes), ``not_found``.
    """
    place = Path(os.fspath(path))
    facts = run_program(["show", str(place), *option("model-format", model_format)])
    return Model(place, model_format, facts, shape_dict)


def value_text(values: Optional[Mapping[str, Any]]) -> Optional[str]:
    """Inputs that are fixed for good, as the command line takes them."""
    return None if not values else json.dumps(dict(values))
