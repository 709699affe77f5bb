"""Axes, shapes, places and sizes that are numbers of a run: nothing of them is known when the model is compiled. Values by
numpy."""

import itertools
import unittest

import numpy as np
from onnx import helper

import cases
from one_node import OneNode, element_type, floats

OUTSIDE = "outside its axis"


def log_sum_exp(x, axis, keepdims):
    most = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    most = np.where(np.isfinite(most), most, 0)
    with np.errstate(divide="ignore"):
        found = np.log(np.sum(np.exp(x - most), axis=axis, keepdims=True)) + most
    return found if keepdims else np.squeeze(found, axis)


REDUCTIONS = {
    "ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min, "ReduceProd": np.prod,
    "ReduceL1": lambda x, **own: np.sum(np.abs(x), **own), "ReduceL2": lambda x, **own: np.sqrt(np.sum(x * x, **own)),
    "ReduceSumSquare": lambda x, **own: np.sum(x * x, **own), "ReduceLogSum": lambda x, **own: np.log(np.sum(x, **own)),
    "ReduceLogSumExp": log_sum_exp,
}


def ints(*values):
    return np.array(values, np.int64)


class OfARun(OneNode):
    """No value is bound when the model is compiled."""

    def answer(self, model, feed, buckets=""):
        found = super().answer(model, feed, buckets)
        self.assertRegex(found, "^(ok 0 |error )")
        return found

    def refuse(self, words, *operands, **options):
        with self.assertRaisesRegex(AssertionError, words):
            self.check(*operands, **options)

    def after_compress(self, node, x, keep, axis, others, right, opset=21):
        """The node's first operand is what is kept of x along an axis."""
        inputs = {"x": x, "keep": np.array(keep), **others}
        nodes = [helper.make_node("Compress", ["x", "keep"], ["some"], axis=axis), node]
        graph = helper.make_graph(nodes, "graph", [helper.make_tensor_value_info(name, element_type(array), array.shape)
                                                   for name, array in inputs.items()],
                                  [helper.make_tensor_value_info(f"y{i}", element_type(array), None) for i, array in enumerate(right)])

        def expect(answer, actual):
            self.assertTrue(answer.startswith("ok "), answer)
            for i, array in enumerate(right):
                self.assertEqual(cases.difference(actual[str(i)], array), "")

        self.run_model(graph, opset, inputs, expect)


class Reductions(OfARun):
    def test_each_over_each_axes(self):
        x = np.abs(floats(2, 3, 4)) + np.float32(0.1)
        for op, reduce in REDUCTIONS.items():
            for axes, keepdims in itertools.product(((1,), (-1,), (0, 2), (-2, 0), (2, 1, 0)), (0, 1)):
                with self.subTest(op=op, axes=axes, keepdims=keepdims):
                    right = reduce(x, axis=tuple(a % 3 for a in axes), keepdims=bool(keepdims))
                    self.check(op, 18, [x, ints(*axes)], [right], digits=4, keepdims=keepdims)

    def test_no_axes(self):
        """An empty list is one whatever the run says."""
        x = np.abs(floats(3, 2)) + np.float32(0.1)
        for op, reduce in REDUCTIONS.items():
            self.check(op, 18, [x, ints()], [reduce(x, axis=(0, 1), keepdims=True)], digits=4)
            alone = reduce(x[None], axis=(0,), keepdims=False)
            self.check(op, 18, [x, ints()], [alone], noop_with_empty_axes=1)
        self.check("ReduceSum", 13, [x, ints()], [x], noop_with_empty_axes=1, keepdims=0)

    def test_types(self):
        for dtype in (np.int32, np.int64, np.uint32, np.uint64, np.float16, np.float64):
            x = (floats(3, 4) * 4 + 9).astype(dtype)
            for keepdims in (0, 1):
                self.check("ReduceSum", 13, [x, ints(1)], [np.sum(x, 1, dtype=dtype, keepdims=bool(keepdims))], digits=1, keepdims=keepdims)
        for dtype in (np.int8, np.uint8, bool):
            x = (floats(3, 4) > 0).astype(dtype)
            self.check("ReduceMax", 20, [x, ints(0)], [np.max(x, 0, keepdims=True)])
            self.check("ReduceMin", 20, [x, ints(0)], [np.min(x, 0)], keepdims=0)
        many = np.full((4, 3), 30000, np.float16)
        self.check("ReduceMean", 18, [many, ints(0, 1)], [np.full((1, 1), 30000, np.float16)])

    def test_large_exponents(self):
        x = np.array([[1000, 1000, -1000], [-np.inf, -np.inf, -np.inf]], np.float32)
        for axes in ((1,), (0, 1), (0,)):
            self.check("ReduceLogSumExp", 18, [x, ints(*axes)], [log_sum_exp(x, axes, True)], digits=3)

    def test_nothing_to_reduce(self):
        x = np.zeros((2, 0, 3), np.float32)
        for axes, keepdims in itertools.product(((1,), (0,), (0, 2), (1, 2), (0, 1, 2)), (0, 1)):
            kept = bool(keepdims)
            self.check("ReduceSum", 13, [x, ints(*axes)], [np.sum(x, axes, keepdims=kept)], keepdims=keepdims)
            lowest = np.max(x, axes, keepdims=kept, initial=-np.inf)
            self.check("ReduceMax", 18, [x, ints(*axes)], [lowest], keepdims=keepdims)

    def test_free_dims(self):
        for rows, columns in ((5, 3), (8, 11), (1, 1), (0, 3)):
            x = floats(rows, 4, columns)
            for axes, keepdims in itertools.product(((0,), (2, 1)), (0, 1)):
                own = tuple(a % 3 for a in axes)
                for op in ("ReduceLogSumExp", "ReduceProd"):
                    self.check(op, 18, [x, ints(*axes)], [REDUCTIONS[op](x, axis=own, keepdims=bool(keepdims))], keepdims=keepdims,
                               free={0: {0: "R", 2: "C"}}, buckets="R=2,8;C=3")

    def test_what_data_decides(self):
        x = floats(4, 5)
        keep = np.array([True, False, True, True, False])
        for axes, keepdims, op in itertools.product(((0,), (1,), (-1, 0)), (0, 1), ("ReduceMean", "ReduceMax", "ReduceProd")):
            node = helper.make_node(op, ["some", "axes"], ["y0"], keepdims=keepdims)
            right = REDUCTIONS[op](x[:, keep], axis=tuple(a % 2 for a in axes), keepdims=bool(keepdims))
            self.after_compress(node, x, keep, 1, {"axes": ints(*axes)}, [np.asarray(right)])

    def test_axes_that_are_none(self):
        x = floats(2, 3)
        for axes, keepdims in itertools.product(((2,), (-3,), (0, 0), (1, -1), (2**40,), (-2**63,)), (0, 1)):
            self.refuse(OUTSIDE, "ReduceSum", 13, [x, ints(*axes)], [x], keepdims=keepdims)
        self.refuse("3 axes of rank 2", "ReduceSum", 13, [x, ints(0, 1, 2)], [x])


if __name__ == "__main__":
    unittest.main()
