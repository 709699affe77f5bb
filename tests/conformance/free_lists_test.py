"""Lists of a free length, which is the one that the node's other operands demand: such models have a plan with symbols, and
runs of other lengths are refused. Values by numpy, or those of the same node whose list has its length."""

import unittest

import numpy as np
from onnx import helper

from one_node import OneNode, element_type, floats


def ints(*values):
    return np.array(values, np.int64)


X = floats(2, 3, 4)
# Operator, opset, operands by name, which of these are lists of the free length N, attributes.
NODES = {
    "Pad": ("Pad", 19, {"x": X, "n": ints(1, 0, 2, 0, 1, 0)}, "n", {}),
    "Pad of axes": ("Pad", 19, {"x": X, "n": ints(1, 2), "": None, "axes": ints(2)}, "n", {}),
    "Pad, as many axes as pads": ("Pad", 19, {"x": X, "pads": ints(1, 2, 0, 1), "": None, "n": ints(2, 0)}, "n", {}),
    "Tile": ("Tile", 13, {"x": X, "n": ints(2, 1, 3)}, "n", {}),
    "Slice": ("Slice", 13, {"x": X, "n": ints(0, 1), "m": ints(2, 3), "axes": ints(1, 2)}, "nm", {}),
    "Split": ("Split", 13, {"x": X, "n": ints(1, 3)}, "n", {"axis": 2}),
    "Resize to sizes": ("Resize", 19, {"x": X, "": None, " ": None, "n": ints(2, 6, 5)}, "n", {}),
    "Resize of axes": ("Resize", 19, {"x": X, "": None, " ": None, "n": ints(5)}, "n", {"axes": [2]}),
    "Resize by scales": ("Resize", 19, {"x": X, "": None, "n": np.array([1, 2, 1.5], np.float32)}, "n", {}),
    "CenterCropPad": ("CenterCropPad", 18, {"x": X, "n": ints(2, 5, 2)}, "n", {}),
    "CenterCropPad of axes": ("CenterCropPad", 18, {"x": X, "n": ints(2)}, "n", {"axes": [1]}),
    "AffineGrid": ("AffineGrid", 20, {"x": floats(2, 2, 3), "n": ints(2, 3, 4, 5)}, "n", {}),
    "Col2Im": ("Col2Im", 18, {"x": floats(1, 8, 9), "n": ints(4, 4), "block": ints(2, 2)}, "n", {}),
    "OneHot": ("OneHot", 11, {"x": ints(0, 2, 1), "depth": ints(3), "n": np.array([0, 1], np.float32)}, "n", {}),
}


class FreeLists(OneNode):
    def answers(self, op, opset, operands, lists, attributes, feed, is_free):
        """What the program says, and the outputs."""
        names = [name.strip() for name in operands]
        shapes = {name: ["N"] if is_free and name in lists else array.shape for name, array in operands.items() if array is not None}
        inputs = [helper.make_tensor_value_info(name, element_type(operands[name]), shape) for name, shape in shapes.items()]
        outputs = [f"y{i}" for i in range(2 if op == "Split" else 1)]
        graph = helper.make_graph([helper.make_node(op, names, outputs, **attributes)], "one", inputs,
                                  [helper.make_empty_tensor_value_info(name) for name in outputs])
        return self.run_model(graph, opset, feed, lambda answer, found: (answer, found), buckets="*" if is_free else "")

    def test_each_has_the_length_that_is_demanded(self):
        for name, (op, opset, operands, lists, attributes) in NODES.items():
            with self.subTest(name=name):
                feed = {own: array for own, array in operands.items() if array is not None}
                answer, found = self.answers(op, opset, operands, lists, attributes, feed, True)
                self.assertRegex(answer, "^ok .* symbolic")
                said, right = self.answers(op, opset, operands, lists, attributes, feed, False)
                self.assertRegex(said, "^ok ")
                self.assertEqual(found.keys(), right.keys())
                for each, array in right.items():
                    np.testing.assert_array_equal(found[each], array)

    def test_of_other_lengths_they_are_refused(self):
        for name, (op, opset, operands, lists, attributes) in NODES.items():
            with self.subTest(name=name):
                feed = {own: np.concatenate([array, array[:1]]) if own in lists else array
                        for own, array in operands.items() if array is not None}
                answer, _ = self.answers(op, opset, operands, lists, attributes, feed, True)
                self.assertRegex(answer, "^error ")
                self.assertNotIn("internal error", answer)


if __name__ == "__main__":
    unittest.main()
