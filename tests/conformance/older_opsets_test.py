"""Operators as the first opsets have them: what models of 2017 hold."""

import unittest

import numpy as np
from onnx import TensorProto, helper

from one_node import OneNode, element_type, floats


class OlderOpsets(OneNode):
    def test_types_by_name(self):
        x = floats(3, 4) * 5
        self.check("Cast", 1, [x], [np.trunc(x).astype(np.int32)], to="INT32")
        self.check("Cast", 5, [x], [x.astype(np.float64)], to="DOUBLE")

    def test_copies_along_an_axis(self):
        x = floats(2, 3)
        self.check("Tile", 1, [x, np.array([3], np.float32), np.array([1], np.float32)], [np.tile(x, (1, 3))])

    def test_growth_by_two_numbers(self):
        x = floats(1, 2, 3, 4)
        self.check("Upsample", 1, [x], [x.repeat(2, 2).repeat(3, 3)], height_scale=2.0, width_scale=3.0)

    def test_recurrent_layers(self):
        x, w, r, b = floats(4, 2, 3), floats(1, 5, 3), floats(1, 5, 5), floats(1, 10)
        h, rows = np.zeros((2, 5), np.float32), []
        for step in x:
            h = np.tanh(step @ w[0].T + h @ r[0].T + b[0, :5] + b[0, 5:])
            rows.append(h)
        self.check("RNN", 1, [x, w, r, b], [np.stack(rows)[:, None], h[None]], hidden_size=5, output_sequence=1)

    def test_operands_spread_from_an_axis_on(self):
        """Before opset 7 shapes spread only where the node says so, and from the axis that it names."""
        x, row, middle = floats(2, 3, 4, 5), floats(5), floats(3, 4)
        for op, function in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide)):
            for opset in (1, 6):
                options = {"consumed_inputs": [0, 0]} if opset == 1 else {}
                self.check(op, opset, [x, row], [function(x, row)], broadcast=1, **options)
                self.check(op, opset, [x, middle], [function(x, middle[:, :, None])], broadcast=1, axis=1, **options)
                self.check(op, opset, [x, middle[:1, 0]], [function(x, middle[0, 0])], broadcast=1, **options)
        flags, some = x > 0, middle > 0
        for op, function in (("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)):
            self.check(op, 1, [flags, some], [function(flags, some[:, :, None])], broadcast=1, axis=1)
        for op, function in (("Greater", np.greater), ("Less", np.less)):
            self.check(op, 1, [x, middle], [function(x, middle[:, :, None])], broadcast=1, axis=1)
        whole = (x * 3).astype(np.int32)
        self.check("Equal", 1, [whole, whole[0, :, :, 0]], [whole == whole[0, :, :, 0][:, :, None]], broadcast=1, axis=1)
        self.check("Pow", 1, [np.abs(x), middle], [np.abs(x) ** middle[:, :, None]], broadcast=1, axis=1)
        self.check("PRelu", 1, [x, floats(1) * 0 + 0.5], [np.where(x < 0, x * 0.5, x)], consumed_inputs=[0, 0])
        slope = floats(3)
        self.check("PRelu", 6, [x, slope], [np.where(x < 0, x * slope[:, None, None], x)])

    def test_products_with_a_bias_that_spreads(self):
        a, b, row = floats(4, 3), floats(5, 3), floats(5)
        for opset in (1, 6):
            self.check("Gemm", opset, [a, b, row], [0.5 * a @ b.T + 2 * row], transB=1, broadcast=1, alpha=0.5, beta=2.0)

    def test_normalization_at_inference(self):
        x, scale, bias, mean, var = floats(2, 3, 4, 4), floats(3), floats(3), floats(3), np.abs(floats(3)) + 0.5

        def spread(v):
            return v[:, None, None]

        expected = (x - spread(mean)) / np.sqrt(spread(var) + 1e-3) * spread(scale) + spread(bias)
        for opset, options in ((1, {"consumed_inputs": [0, 0, 0, 1, 1], "is_test": 1}), (6, {"is_test": 1}), (7, {})):
            self.check("BatchNormalization", opset, [x, scale, bias, mean, var], [expected], epsilon=1e-3, **options)
        means, deviations = x.mean((2, 3), keepdims=True), np.sqrt(x.var((2, 3), keepdims=True) + 1e-5)
        for opset, options in ((1, {"consumed_inputs": [0, 0, 0]}), (6, {})):
            self.check("InstanceNormalization", opset, [x, scale, bias], [(x - means) / deviations * spread(scale) + spread(bias)], **options)

    def test_statistics_of_each_element(self):
        x, scale, bias, mean, var = floats(2, 3, 4, 5), floats(3, 4, 5), floats(3, 4, 5), floats(3, 4, 5), np.abs(floats(3, 4, 5))
        expected = (x - mean) / np.sqrt(var + np.float32(1e-5)) * scale + bias
        for opset in (7, 8):
            self.check("BatchNormalization", opset, [x, scale, bias, mean, var], [expected], spatial=0)

    def test_geometry_by_attributes(self):
        x = floats(2, 3, 4)
        self.check("Reshape", 1, [x], [x.reshape(2, 12)], shape=[0, -1], consumed_inputs=[0])
        self.check("Pad", 1, [x], [np.pad(x, ((0, 0), (1, 0), (2, 1)), constant_values=3)], paddings=[0, 1, 2, 0, 0, 1], value=3.0)
        self.check("Pad", 2, [x], [np.pad(x, ((0, 0), (1, 1), (2, 1)), mode="reflect")], pads=[0, 1, 2, 0, 1, 1], mode="reflect")
        self.check("Slice", 1, [x], [x[:, 1:, -3:-1]], starts=[1, -3], ends=[1000, -1], axes=[1, 2])
        self.check("Slice", 1, [x], [x[:1, :2]], starts=[0, 0], ends=[1, 2])
        self.check("Concat", 1, [x, x], [np.concatenate([x, x], 1)])
        self.check("Split", 1, [x], [x[:, :, :1], x[:, :, 1:]], axis=2, split=[1, 3])
        self.check("Split", 1, [x, np.array([1, 2], np.float32)], [x[:, :1], x[:, 1:]], axis=1)
        self.check("Split", 2, [x], [x[..., :2], x[..., 2:]], axis=2)
        self.check("Squeeze", 1, [x[:, :1]], [x[:, 0]], axes=[1])
        self.check("Unsqueeze", 1, [x], [x[:, None, ..., None]], axes=[1, 4])
        self.check("Upsample", 7, [x], [x.repeat(3, 1).repeat(2, 2)], scales=[1.0, 3.0, 2.0], mode="nearest")
        top = -np.sort(-x, axis=2)[..., :2]
        self.check("TopK", 1, [x], [top, np.argsort(-x, axis=2, kind="stable")[..., :2]], axis=2, k=2)

    def test_limits_and_what_passes_through(self):
        x = floats(3, 4)
        for opset, options in ((1, {"consumed_inputs": [0]}), (6, {})):
            self.check("Clip", opset, [x], [np.clip(x, -0.5, 0.25)], min=-0.5, max=0.25, **options)
            self.check("Clip", opset, [x], [np.maximum(x, 0)], min=0.0, **options)
            self.check("Dropout", opset, [x], [x], is_test=1, ratio=0.7, **options)
            self.check("Relu", opset, [x], [np.maximum(x, 0)], **options)
            self.check("LeakyRelu", opset, [x], [np.where(x < 0, x * 0.1, x)], alpha=0.1, **options)
            self.check("Elu", opset, [x], [np.where(x < 0, np.expm1(x), x)], **options)
            self.check("Sum", opset, [x, x * 2, x * 3], [x * 6], **options)
            self.check("Max", opset, [x, -x], [np.abs(x)], **options)
            self.check("Mean", opset, [x, x * 2], [x * 1.5], **options)

    def test_axes_that_are_taken_as_rows(self):
        """Before opset 13 all axes from the given one on are one."""
        x = floats(2, 3, 4)
        rows = np.exp(x.reshape(2, 12) - x.reshape(2, 12).max(1, keepdims=True))
        shares = rows / rows.sum(1, keepdims=True)
        for opset in (1, 11):
            self.check("Softmax", opset, [x], [shares.reshape(x.shape)])
            self.check("LogSoftmax", opset, [x], [np.log(shares).reshape(x.shape)])
            largest = np.eye(12, dtype=np.float32)[x.reshape(2, 12).argmax(1)]
            self.check("Hardmax", opset, [x], [largest.reshape(x.shape)])

    def test_pools_of_the_first_opset(self):
        x = floats(1, 2, 4, 4)
        parts = x.reshape(1, 2, 2, 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(1, 2, 2, 2, 4)
        self.check("MaxPool", 1, [x], [parts.max(-1)], kernel_shape=[2, 2], strides=[2, 2])
        self.check("AveragePool", 1, [x], [parts.mean(-1)], kernel_shape=[2, 2], strides=[2, 2])
        self.check("LpPool", 1, [x], [np.sqrt((parts ** 2).sum(-1))], kernel_shape=[2, 2], strides=[2, 2])
        self.check("GlobalLpPool", 1, [x], [np.abs(x ** 3).sum((2, 3), keepdims=True) ** (1 / 3)], p=3.0)
        padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (1, 0)))
        sums = sum(padded[:, :, i:i + 4, j:j + 4] for i in (0, 1) for j in (0, 1))
        counts = np.outer([1, 2, 2, 2], [1, 2, 2, 2]).astype(np.float32)
        self.check("AveragePool", 1, [x], [sums / counts], kernel_shape=[2, 2], pads=[1, 1, 0, 0])

    def test_scan_of_sequences_of_other_lengths(self):
        """Totals of each sequence, its steps' totals, and a second input from its end."""
        totals = helper.make_graph(
            [helper.make_node("Add", ["before", "x"], ["sum"]), helper.make_node("Add", ["sum", "y"], ["after"]),
             helper.make_node("Mul", ["sum", "y"], ["step"])], "body",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("before", "x", "y")],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("after", "step")])
        feed = {"lens": np.array([5, 0, 3], np.int64), "start": floats(3, 2), "a": floats(3, 5, 2), "b": floats(3, 5, 2)}
        for directions in ([0, 0], [0, 1], [1, 0]):
            ends, steps = feed["start"].copy(), np.zeros((3, 5, 2), np.float32)
            for row, length in enumerate(feed["lens"]):
                a, b = (feed[name][row, :length] for name in "ab")
                a, b = (part[::-1] if backwards else part for part, backwards in zip((a, b), directions))
                for i in range(length):
                    sums = ends[row] + a[i]
                    ends[row], steps[row, i] = sums + b[i], sums * b[i]
            graph = helper.make_graph(
                [helper.make_node("Scan", list(feed), ["end", "steps"], num_scan_inputs=2, body=totals, directions=directions)], "scan",
                [helper.make_tensor_value_info(name, element_type(array), array.shape) for name, array in feed.items()],
                [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("end", "steps")])

            def expect(answer, outputs):
                self.assertTrue(answer.startswith("ok "), answer)
                np.testing.assert_allclose(outputs["0"], ends, rtol=1e-5)
                np.testing.assert_allclose(outputs["1"], steps, rtol=1e-5)

            self.run_model(graph, 8, feed, expect)


if __name__ == "__main__":
    unittest.main()
