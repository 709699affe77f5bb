"""Numbers of a run that say how many, how long or where, and are wrong: the run fails and names the node, as the import
does where the number is the model's own."""

import tempfile
import unittest
from pathlib import Path

import mill
import numpy as np
from onnx import TensorProto, helper, mapping, numpy_helper

FLOAT = np.float32
X = np.arange(24, dtype=FLOAT).reshape(2, 3, 4)
ROWS = X[0]
OUTPUTS = {"TopK": 2, "Split": 2, "LSTM": 3}
OPSETS = {"TensorScatter": 24, "RotaryEmbedding": 24, "Attention": 24}


def ints(*values):
    return np.asarray(values, np.int64)


def one(value, dtype=np.int64):
    return np.asarray(value, dtype)


def ones(*shape):
    return np.ones(shape, FLOAT)


RUN = object()  # stands for the operand that the run gives
# Operator, its operands, its attributes, what the run's operand may be, and what it may not be.
CASES = [
    ("TopK", [ROWS, RUN], {}, ints(2), [ints(5), ints(-1)]),
    ("TopK", [ROWS, RUN], {"axis": 0, "largest": 0}, ints(3), [ints(4)]),
    ("ConstantOfShape", [RUN], {}, ints(2, 3), [ints(-1, 3), ints(2, -4)]),
    ("Expand", [ones(3, 1), RUN], {}, ints(3, 4), [ints(2, 4), ints(3, -2), ints(3, -1)]),
    ("Tile", [ROWS, RUN], {}, ints(1, 2), [ints(-1, 2), ints(2, -1)]),
    ("Reshape", [X, RUN], {}, ints(6, 4), [ints(5, 5), ints(-1, -1), ints(-2, 12), ints(7, -1)]),
    ("Range", [one(0), one(5), RUN], {}, one(1), [one(0)]),
    ("Range", [one(0.0, FLOAT), one(5.0, FLOAT), RUN], {}, one(0.5, FLOAT), [one(0.0, FLOAT)]),
    ("Range", [one(0), RUN, one(1)], {}, one(5), [one(1 << 40)]),
    ("Slice", [X, ints(0), ints(2), ints(1), RUN], {}, ints(1), [ints(0)]),
    ("Slice", [X, ints(0, 0), ints(2, 2), RUN], {}, ints(0, 1), [ints(0, 3), ints(-4, 1), ints(1, -2)]),
    ("Pad", [ROWS, RUN], {}, ints(0, 0, 1, 1), [ints(-4, 0, 0, 0), ints(0, -3, 0, -3)]),
    ("Pad", [ROWS, RUN], {"mode": "edge"}, ints(0, 0, 1, 1), [ints(-4, 0, 0, 0)]),
    ("Pad", [ROWS, ints(1, 1), one(0.0, FLOAT), RUN], {}, ints(1), [ints(2), ints(-3)]),
    ("Resize", [X[None], "", "", RUN], {"mode": "nearest"}, ints(1, 2, 6, 8),
     [ints(1, 2, -1, 8), ints(1, 2, 0, 8), ints(1, 2, 6, 1 << 40)]),
    ("Resize", [X[None], "", RUN], {"mode": "linear"}, np.asarray([1, 1, 2, 2], FLOAT),
     [np.asarray([1, 1, scale, 2], FLOAT) for scale in (-1, 0, np.nan, np.inf)]),
    ("OneHot", [ints(0, 1, 2), RUN, np.asarray([0, 1], FLOAT)], {}, one(4), [one(-1)]),
    ("Gather", [ROWS, RUN], {"axis": 1}, ints(0, 3), [ints(4, 0), ints(-5, 0)]),
    ("GatherElements", [ROWS, RUN], {"axis": 1}, np.zeros((3, 4), np.int64),
     [np.full((3, 4), index, np.int64) for index in (4, -5)]),
    ("GatherND", [ROWS, RUN], {}, np.asarray([[0, 1]]), [np.asarray([[3, 0]]), np.asarray([[0, -5]])]),
    ("ScatterND", [ROWS, RUN, ones(1)], {}, np.asarray([[0, 1]]), [np.asarray([[3, 0]]), np.asarray([[0, -5]])]),
    ("ScatterElements", [ROWS, RUN, ones(1, 4)], {}, np.zeros((1, 4), np.int64),
     [np.full((1, 4), index, np.int64) for index in (3, -4)]),
    ("Split", [ROWS, RUN], {"axis": 1}, ints(1, 3), [ints(2, 3), ints(-1, 5), ints(1, 2)]),
    ("CumSum", [ROWS, RUN], {}, one(1), [one(2), one(-3)]),
    ("Squeeze", [ones(1, 3, 1), RUN], {}, ints(0), [ints(1), ints(3), ints(-4)]),
    ("Unsqueeze", [ROWS, RUN], {}, ints(0, 1), [ints(1, 1), ints(0, -4), ints(0, 4)]),
    ("ReduceSum", [ROWS, RUN], {}, ints(0), [ints(2), ints(-3)]),
    ("HannWindow", [RUN], {}, one(4), [one(-1), one(1 << 40)]),
    ("DFT", [ones(1, 4, 1), RUN, one(1)], {}, one(4), [one(-1), one(0)]),
    ("DFT", [ones(1, 4, 1), "", RUN], {}, one(1), [one(3), one(-4), one(2)]),
    ("STFT", [ones(1, 16, 1), RUN, ones(4)], {}, one(2), [one(0), one(-1)]),
    ("STFT", [ones(1, 16, 1), one(2), "", RUN], {}, one(4), [one(0), one(-4), one(17)]),
    ("MelWeightMatrix", [RUN, one(8), one(100), one(0.0, FLOAT), one(40.0, FLOAT)], {}, one(3), [one(-1)]),
    ("MelWeightMatrix", [one(3), one(8), RUN, one(0.0, FLOAT), one(40.0, FLOAT)], {}, one(100), [one(0)]),
    ("CenterCropPad", [ROWS, RUN], {}, ints(2, 6), [ints(-1, 6), ints(2, -1)]),
    ("ReverseSequence", [ROWS, RUN], {"batch_axis": 0, "time_axis": 1}, ints(0, 2, 4), [ints(1, 2, 5), ints(-1, 1, 1)]),
    ("LSTM", [ones(4, 2, 3), ones(1, 8, 3), ones(1, 8, 2), "", RUN], {"hidden_size": 2}, np.asarray([0, 4], np.int32),
     [np.asarray([1, 5], np.int32), np.asarray([-1, 4], np.int32)]),
    ("RoiAlign", [X[None], np.asarray([[0, 0, 1, 1]], FLOAT), RUN], {}, ints(0), [ints(1), ints(-1)]),
    ("AffineGrid", [ones(1, 2, 3), RUN], {}, ints(1, 1, 2, 3), [ints(1, 1, -2, 3), ints(2, 1, 2, 3)]),
    ("Col2Im", [ones(1, 4, 4), RUN, ints(2, 2)], {"strides": [2, 2]}, ints(4, 4), [ints(-4, 4), ints(2, 2)]),
    ("MaxUnpool", [ones(1, 1, 1, 1), RUN], {"kernel_shape": [2, 2]}, np.zeros((1, 1, 1, 1), np.int64),
     [np.full((1, 1, 1, 1), index, np.int64) for index in (4, -1)]),
    ("TensorScatter", [ones(1, 4, 2), ones(1, 2, 2), RUN], {"axis": 1}, ints(2), [ints(3), ints(-1)]),
    ("Dropout", [ROWS, RUN, np.asarray(True)], {"seed": 1}, one(0.5, FLOAT), [one(1.5, FLOAT), one(np.nan, FLOAT)]),
    ("RotaryEmbedding", [ones(1, 2, 2, 4), ones(8, 2), ones(8, 2), RUN], {}, np.asarray([[0, 1]]),
     [np.asarray([[0, 8]]), np.asarray([[0, -9]])]),
    ("Attention", [ones(1, 1, 2, 4), ones(1, 1, 6, 4), ones(1, 1, 6, 4), "", "", "", RUN], {}, ints(6), [ints(7), ints(-1)]),
]


def is_input(array):
    return array.dtype == FLOAT and array.ndim > 1


def model_of(case, value, is_of_run):
    """The operator's model, and what a run feeds beside the operand that is meant."""
    op, operands, attributes, _, _ = case
    names, inputs, constants, feed = [], [], [], {}
    for place, operand in enumerate(operands):
        if isinstance(operand, str):
            names.append("")
            continue
        names.append("given" if operand is RUN else f"x{place}")
        array = value if operand is RUN else operand
        if is_of_run if operand is RUN else is_input(array):
            kind = mapping.NP_TYPE_TO_TENSOR_TYPE[array.dtype]
            inputs.append(helper.make_tensor_value_info(names[-1], kind, array.shape))
            feed[names[-1]] = array
        else:
            constants.append(numpy_helper.from_array(array, names[-1]))
    if not inputs:
        inputs.append(helper.make_tensor_value_info("unused", TensorProto.FLOAT, [1]))
        feed["unused"] = ones(1)
    outputs = [f"y{place}" for place in range(OUTPUTS.get(op, 1))]
    node = helper.make_node(op, names, outputs, name="culprit", **attributes)
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info(name) for name in outputs], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSETS.get(op, 21))])
    model.ir_version = 10
    return model, feed


class WrongNumbers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def compile(self, model):
        path = self.folder / "m.onnx"
        path.write_bytes(model.SerializeToString())
        return mill.run_program("compile", path, "-O", 1, "-o", self.folder / "p.tar")

    def run_with(self, feed):
        np.savez(self.folder / "i.npz", **feed)
        return mill.run_program("run", self.folder / "p.tar", "-i", self.folder / "i.npz", "--warmup", 0)

    def refused(self, done, what):
        self.assertEqual(done.returncode, 3, f"{what}\n{done.stdout}{done.stderr}")
        self.assertIn('node "culprit"', done.stderr)

    def check(self, case):
        model, feed = model_of(case, case[3], True)
        done = self.compile(model)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_with(feed)
        self.assertEqual(done.returncode, 0, done.stderr)
        for wrong in case[4]:
            self.refused(self.run_with({**feed, "given": wrong}), f"given {wrong.tolist()}")
        # The model's own number is found when it is imported, or by each run.
        model, feed = model_of(case, case[4][0], False)
        done = self.compile(model)
        self.refused(self.run_with(feed) if done.returncode == 0 else done, "of the model")


def add_tests():
    for place, case in enumerate(CASES):
        setattr(WrongNumbers, f"test_{place:02}_{case[0]}", lambda self, c=case: self.check(c))


add_tests()

if __name__ == "__main__":
    unittest.main()
