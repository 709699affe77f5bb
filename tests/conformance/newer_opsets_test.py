"""Operators and forms that the data package (opset 17) lacks: one node each, expected values by numpy from the standard's
text."""

import math
import unittest

import numpy as np
from onnx import TensorProto, helper

from one_node import RANDOM, OneNode, floats


def softplus(x):
    return np.log1p(np.exp(x))


def erf(x):
    return np.vectorize(math.erf)(x)


def triangle_resize(x, out):
    """The last axis of x with the filter stretched by the scale: what antialias means for mode linear."""
    scale = out / x.shape[-1]
    result = np.zeros(x.shape[:-1] + (out,))
    for i in range(out):
        center = (i + 0.5) / scale - 0.5
        at = np.arange(math.floor(center - 1 / scale) - 1, math.ceil(center + 1 / scale) + 2)
        weights = np.maximum(0, 1 - np.abs(at - center) * scale)
        values = x[..., np.clip(at, 0, x.shape[-1] - 1)]
        result[..., i] = (values * weights).sum(-1) / weights.sum()
    return result


def group_norm(x, groups, scale, bias):
    rows = x.reshape(x.shape[0], groups, -1).astype(np.float64)
    rows = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
    return rows.reshape(x.shape) * scale.reshape(1, -1, 1, 1) + bias.reshape(1, -1, 1, 1)


class NewerOpsets(OneNode):
    def test_activations(self):
        x = floats(3, 5)
        self.check("Mish", 18, [x], [(x * np.tanh(softplus(x))).astype(np.float32)])
        self.check("Gelu", 20, [x], [(0.5 * x * (1 + erf(x / math.sqrt(2)))).astype(np.float32)])
        self.check("Swish", 24, [x], [(x / (1 + np.exp(-2.0 * x))).astype(np.float32)], alpha=2.0)

    def test_rms_normalization(self):
        x, scale = floats(2, 3, 5), floats(3, 5)
        wide = x.astype(np.float64)
        expected = wide / np.sqrt((wide**2).mean((1, 2), keepdims=True) + 1e-5) * scale
        self.check("RMSNormalization", 23, [x, scale], [expected.astype(np.float32)], axis=1)

    def test_group_normalization(self):
        x, scale, bias = floats(2, 6, 3, 5), floats(6), floats(6)
        self.check("GroupNormalization", 21, [x, scale, bias], [group_norm(x, 3, scale, bias).astype(np.float32)],
                   num_groups=3)
        self.check("GroupNormalization", 18, [x, scale[:3], bias[:3]],
                   [group_norm(x, 3, scale[:3].repeat(2), bias[:3].repeat(2)).astype(np.float32)], num_groups=3)

    def test_reductions_take_axes_as_an_operand(self):
        x, axes = floats(2, 3, 5), np.array([1], np.int64)
        self.check("ReduceMax", 18, [x, axes], [x.max(1)], keepdims=0)
        self.check("ReduceL2", 18, [x, axes], [np.sqrt((x**2).sum(1, keepdims=True))])

    def test_reductions_of_bools_and_integers(self):
        x, axes = RANDOM.integers(0, 2, (3, 4)).astype(bool), np.array([1], np.int64)
        self.check("ReduceMax", 20, [x, axes], [x.max(1)], keepdims=0)
        self.check("ReduceMin", 20, [x, axes], [x.min(1, keepdims=True)])
        whole = RANDOM.integers(1, 9, (3, 4)).astype(np.int32)
        self.check("ReduceL2", 18, [whole, axes], [np.sqrt((whole.astype(float) ** 2).sum(1)).astype(np.int32)], keepdims=0)

    def test_pool_of_powers_with_partial_windows(self):
        x = np.abs(floats(1, 1, 5))
        expected = [np.sqrt((x[0, 0, i:i + 2] ** 2).sum()) for i in (0, 2, 4)]
        self.check("LpPool", 18, [x], [np.array([[expected]], np.float32)], kernel_shape=[2], strides=[2], ceil_mode=1)

    def test_division_in_a_given_precision(self):
        x, scale = np.arange(0, 40, 0.25).astype(np.float16), np.array(1 / 6, np.float16)
        narrow = np.clip(np.rint(x / scale), 0, 255).astype(np.uint8)
        self.check("QuantizeLinear", 23, [x, scale], [narrow])
        wide = np.clip(np.rint(x.astype(np.float32) / scale.astype(np.float32)), 0, 255).astype(np.uint8)
        self.assertFalse(np.array_equal(narrow, wide))
        self.check("QuantizeLinear", 23, [x, scale], [wide], precision=1)

    def test_split_into_parts(self):
        x = floats(2, 7)
        self.check("Split", 18, [x], [x[:, :3], x[:, 3:6], x[:, 6:]], axis=1, num_outputs=3)

    def test_pad_of_some_axes(self):
        x = floats(2, 3)
        expected = np.pad(x, ((0, 0), (1, 2)), constant_values=1.5)
        self.check("Pad", 18, [x, np.array([1, 2], np.int64), np.array(1.5, np.float32), np.array([-1], np.int64)],
                   [expected])
        self.check("Pad", 19, [x, np.array([0, 2, 0, 2], np.int64)], [np.pad(x, ((0, 0), (2, 2)), mode="wrap")],
                   mode="wrap")

    def test_scatter_with_max_and_min(self):
        x, updates = floats(5), floats(4)
        indices = np.array([1, 1, -1, 3], np.int64)
        for reduction, at in (("max", np.maximum.at), ("min", np.minimum.at)):
            expected = x.copy()
            at(expected, indices, updates)
            self.check("ScatterElements", 18, [x, indices, updates], [expected], reduction=reduction)
            self.check("ScatterND", 18, [x, indices[:, None], updates], [expected], reduction=reduction)

    def test_resize_with_antialias_and_axes(self):
        x = floats(1, 2, 3, 9)
        sizes = np.array([4], np.int64)
        self.check("Resize", 18, [x, None, None, sizes], [triangle_resize(x, 4).astype(np.float32)], mode="linear",
                   antialias=1, axes=[3])
        expected = x[:, :, [0, 0, 1, 1, 2, 2]].repeat(2, 3)
        self.check("Resize", 18, [x, None, None, np.array([6, 90], np.int64)], [expected], mode="nearest", axes=[2, 3],
                   keep_aspect_ratio_policy="not_larger")

    def test_transform_of_the_last_axes(self):
        x = floats(2, 7, 1)
        line = np.fft.rfft(x[..., 0].astype(np.float64))
        expected = np.stack([line.real, line.imag], -1).astype(np.float32)
        self.check("DFT", 20, [x], [expected], onesided=1)

    def test_quantization_of_blocks(self):
        x = RANDOM.integers(-100, 100, (2, 6)).astype(np.int8)
        scale = np.abs(floats(2, 3)) + np.float32(0.5)
        self.check("DequantizeLinear", 21, [x, scale], [x * scale.repeat(2, 1)], axis=1, block_size=2)

    def test_sparse_values(self):
        right = np.array([[0, 1.5, 0], [0, 0, -2]], np.float32)
        values = helper.make_tensor("s", TensorProto.FLOAT, [2], [1.5, -2])
        info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3])  # noqa: E731
        for places in ([1, 5], [[0, 1], [1, 2]], [1, 6], [[0, 1], [-1, 2]]):
            indices = helper.make_tensor("i", TensorProto.INT64, np.shape(places), np.ravel(places))
            sparse = helper.make_sparse_tensor(values, indices, [2, 3])
            nodes = [helper.make_node("Constant", [], ["c"], sparse_value=sparse), helper.make_node("Add", ["x", "c"], ["y"]),
                     helper.make_node("Sub", ["x", "s"], ["z"])]
            graph = helper.make_graph(nodes, "sparse", [info("x")], [info("y"), info("z")], sparse_initializer=[sparse])

            def expect(answer, outputs):
                if np.max(places) > 5 or np.min(places) < 0:  # noqa: B023
                    return self.assertRegex(answer, 'error .*"s".*index (6|-1) of a sparse tensor')
                self.assertTrue(answer.startswith("ok "), answer)
                np.testing.assert_array_equal(outputs["0"], 1 + right)
                np.testing.assert_array_equal(outputs["1"], 1 - right)

            self.run_model(graph, 21, {"x": np.ones((2, 3), np.float32)}, expect)

    def test_an_unknown_condition_chooses_elements(self):
        x, y = floats(3), floats(3)
        for condition in (True, False):
            with self.subTest(condition=condition):
                branches = {f"{name}_branch": helper.make_graph(
                    [helper.make_node("Constant", [], [name], value=helper.make_tensor(name, TensorProto.FLOAT, [3], array))],
                    name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3])])
                    for name, array in (("then", x), ("else", y))}
                self.check("If", 21, [np.array(condition)], [x if condition else y], **branches)

    def test_a_loop_without_end_is_refused(self):
        scalar = lambda name, dtype: helper.make_tensor_value_info(name, dtype, [])  # noqa: E731
        body = helper.make_graph([helper.make_node("Identity", ["going"], ["still"]),
                                  helper.make_node("Neg", ["a"], ["b"])], "body",
                                 [scalar("i", TensorProto.INT64), scalar("going", TensorProto.BOOL),
                                  scalar("a", TensorProto.FLOAT)],
                                 [scalar("still", TensorProto.BOOL), scalar("b", TensorProto.FLOAT)])
        graph = helper.make_graph([helper.make_node("Loop", ["", "", "x"], ["y"], name="endless", body=body)], "endless",
                                  [scalar("x", TensorProto.FLOAT)], [scalar("y", TensorProto.FLOAT)])

        def expect(answer, _):
            self.assertRegex(answer, '^error .*"endless".*op Loop, opset 21, attribute body')

        self.run_model(graph, 21, {"x": np.array(1, np.float32)}, expect)

    def test_what_is_missing_in_a_subgraph_is_named(self):
        body = helper.make_graph([helper.make_node("NoSuchThing", ["x"], ["b"], name="inner")], "body", [],
                                 [helper.make_tensor_value_info("b", TensorProto.FLOAT, [])])
        graph = helper.make_graph([helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body),
                                   helper.make_node("NorThis", ["y"], ["z"], name="outer")], "missing",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, []),
                                   helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
                                  [helper.make_tensor_value_info("z", TensorProto.FLOAT, [])])

        def expect(answer, _):
            self.assertRegex(answer, '"If_0/then_branch/inner".*op NoSuchThing, opset 21.*"outer".*op NorThis')

        self.run_model(graph, 21, {"x": np.array(1, np.float32), "c": np.array(True)}, expect)


if __name__ == "__main__":
    unittest.main()
