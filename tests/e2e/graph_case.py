"""Tests of graphs that are written node by node."""

import tempfile
import unittest
from pathlib import Path

import made_models
import mill
import numpy as np
from onnx import helper, mapping, numpy_helper


def kind(dtype):
    return mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(dtype)]


class GraphCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.constants, self.nodes = [], []

    def constant(self, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def node(self, op, *inputs, **attributes):
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        self.nodes.append(helper.make_node(op, names, [f"v{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def compile(self, inputs, result, shape, dtype, level):
        """A package of the nodes so far, whose last value is `result`; inputs by name as (dtype, shape)."""
        nodes = self.nodes + [helper.make_node("Identity", [result], ["y"])]
        inputs = [(name, kind(input_type), input_shape) for name, (input_type, input_shape) in inputs.items()]
        path = self.folder / "m.onnx"
        path.write_bytes(made_models.model_of(nodes, inputs, [("y", kind(dtype), shape)], self.constants))
        mill.check_program(self, "compile", path, "-o", self.folder / "m.tar", "--opt-level", level)

    def run_once(self, feed):
        """The finished process that runs the package, whatever its exit code."""
        np.savez(self.folder / "in.npz", **feed)
        return mill.run_program("run", self.folder / "m.tar", "--inputs", self.folder / "in.npz", "-o", self.folder / "out.npz")

    def answer(self, feed):
        done = self.run_once(feed)
        self.assertEqual(done.returncode, 0, f"{done.stdout}{done.stderr}")
        return mill.load_npz(self.folder / "out.npz")["y"]

    def run_model(self, feed, result, shape, dtype, level=3):
        """The answer of the model of the nodes so far, whose last value is `result`."""
        self.compile({name: (array.dtype, list(array.shape)) for name, array in feed.items()}, result, list(shape), dtype, level)
        return self.answer(feed)
