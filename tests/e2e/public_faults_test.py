"""Small graphs that once gave wrong answers, or none: each is compiled without optimization and with it, and gives what it should.

Expected values are worked out in float64 or in Python's integers.
"""

import math
import unittest

import graph_case
import numpy as np
from onnx import TensorProto, helper

LEVELS = (0, 3)
RNG = np.random.default_rng(23)
ZERO = np.uint8(120)


def exactly(number):
    """What float32 holds of a number, in float64."""
    return np.float64(np.float32(number))


def bytes_of(shape):
    """Bytes, of which the first quarter is 0: sums of equal ones, that lie at a tie where the scales are multiples."""
    x = RNG.integers(0, 256, shape).astype(np.uint8)
    x.reshape(-1)[:x.size // 4] = 0
    return x


class PublicFaultsTest(graph_case.GraphCase):
    def each_level(self):
        """The levels, with an empty graph for each."""
        for level in LEVELS:
            self.constants, self.nodes = [], []
            with self.subTest(level=level):
                yield level

    def check_rounded(self, got, value, rounded):
        """Every element is what the value, or one next to it by the roundings of float32, is rounded to: at a tie either."""
        near = 1e-5 * np.maximum(1, np.abs(value))
        low, high = rounded(value - near), rounded(value + near)
        np.testing.assert_array_equal(got, np.where(got == low, low, high))

    def dequantized(self, x, scale, zero):
        return self.node("DequantizeLinear", x, np.float32(scale), zero)

    def check_quanta(self, shape, scale, inner, exact, out_scale):
        """quantize(inner(dequantize(x)))."""
        x, out_zero = bytes_of(shape), np.uint8(100)
        quanta = exact((x - np.float64(ZERO)) * exactly(scale)) / exactly(out_scale)
        for level in self.each_level():
            wide = inner(self.dequantized("x", scale, ZERO))
            y = self.node("QuantizeLinear", wide, np.float32(out_scale), out_zero)
            got = self.run_model({"x": x}, y, quanta.shape, np.uint8, level)
            self.check_rounded(got, quanta, lambda q: np.clip(np.rint(q) + int(out_zero), 0, 255))

    def test_a_mean_between_two_quanta(self):
        self.check_quanta((2, 32, 8), 0.02, lambda v: self.node("ReduceMean", v, axes=[2]), lambda x: x.mean(2, keepdims=True), 0.05)

    def test_a_product_between_two_quanta(self):
        weights = RNG.integers(-9, 10, (6, 4)).astype(np.int8)
        self.check_quanta((1, 16, 6, 6), 0.05, lambda v: self.node("MatMul", v, self.dequantized(weights, 0.01, np.int8(0))),
                          lambda x: x @ (weights * exactly(0.01)), 0.1)

    def test_a_sum_that_is_rounded_down(self):
        # By 0.05 all quotients are whole numbers, but for the last place; by 0.037 few are.
        for step in (0.05, 0.037):
            x = bytes_of((2, 32, 8))
            value = (x - np.float64(ZERO)).sum(2, keepdims=True) * exactly(0.1) / exactly(step)
            for level in self.each_level():
                total = self.node("ReduceSum", self.dequantized("x", 0.1, ZERO), np.int64([2]))
                y = self.node("Floor", self.node("Div", total, np.float32(step)))
                self.check_rounded(self.run_model({"x": x}, y, value.shape, np.float32, level), value, np.floor)

    def test_powers_of_doubles_are_exact(self):
        for level in self.each_level():
            got = self.run_model({"x": np.float64([2, 3, 10])}, self.node("Pow", "x", np.float64(3)), (3,), np.float64, level)
            self.assertEqual(got.tolist(), [8, 27, 1000])

    def test_powers_of_long_integers_are_exact(self):
        bases, exponents = [3, 7, 10], [30, 17, 17]
        for level in self.each_level():
            got = self.run_model({"x": np.int64(bases)}, self.node("Pow", "x", np.int64(exponents)), (3,), np.int64, level)
            self.assertEqual(got.tolist(), [base**exponent for base, exponent in zip(bases, exponents)])

    def check_cast_bytes(self, x, weights, op):
        """dequantize(int8(round(x) + 1/2)) times an identity: the cast cuts off, as no rounding to quanta does."""
        for level in self.each_level():
            half = self.node("Add", self.node("Round", "x"), np.float32(0.5))
            data = self.dequantized(self.node("Cast", half, to=TensorProto.INT8), 0.5, np.int8(0))
            y = self.node(op, data, self.dequantized(weights, 2, np.int8(0)))
            np.testing.assert_array_equal(self.run_model({"x": x}, y, x.shape, np.float32, level), np.trunc(np.rint(x) + 0.5))

    def test_bytes_that_a_cast_makes_for_a_product(self):
        x = np.concatenate([np.float32([[-3, -2, 2, 3]]), RNG.uniform(-100, 100, (5, 4)).astype(np.float32)])
        self.check_cast_bytes(x, np.eye(4, dtype=np.int8), "MatMul")

    def test_bytes_that_a_cast_makes_for_a_convolution(self):
        x = RNG.uniform(-100, 100, (1, 4, 5, 5)).astype(np.float32)
        x[0, :, 0, 0] = [-3, -2, 2, 3]
        self.check_cast_bytes(x, np.eye(4, dtype=np.int8).reshape(4, 4, 1, 1), "Conv")

    def test_a_normalization_behind_a_convolution_of_halves_is_finite(self):
        half = np.float16
        x, weight, scale, variance = half([[[[0.001]]]]), half([[[[400]]]]), half([100]), half([0.1])
        # weight * scale / sqrt(variance) is more than the largest half.
        expected = float(x[0, 0, 0, 0]) * 400 * 100 / math.sqrt(float(variance[0]) + exactly(1e-5))
        for level in self.each_level():
            y = self.node("BatchNormalization", self.node("Conv", "x", weight), scale, half([0]), half([0]), variance)
            got = self.run_model({"x": x}, y, x.shape, half, level)
            np.testing.assert_allclose(got.ravel().astype(np.float64), [expected], rtol=1e-3)

    def test_rows_without_a_number_have_an_edge(self):
        for level in self.each_level():
            y = self.node("Pad", "x", np.int64([1, 1, 1, 1]))
            self.compile({"x": (np.float32, ["S", 64])}, y, None, np.float32, level)
            for rows in (2, 1, 5):
                x = RNG.uniform(-1, 1, (rows, 64)).astype(np.float32)
                np.testing.assert_array_equal(self.answer({"x": x}), np.pad(x, 1))

    def test_doubles_become_halves_in_one_rounding(self):
        x = np.float64([1 + 2**-11 + 2**-40, np.nextafter(65520, 0)])
        for level in self.each_level():
            got = self.run_model({"x": x}, self.node("Cast", "x", to=TensorProto.FLOAT16), x.shape, np.float16, level)
            self.assertEqual(got.tolist(), [1.0009765625, 65504])

    def test_an_inverse_of_doubles_near_0(self):
        for level in self.each_level():
            got = self.run_model({"x": np.float64([0.0099])}, self.node("Atanh", "x"), (1,), np.float64, level)
            np.testing.assert_allclose(got, [math.atanh(0.0099)], rtol=1e-15)

    def check_refused(self, inputs, result, dtype, level, right, wrong):
        """The package gives an answer to `right` and refuses `wrong`, naming the node that is called culprit."""
        self.compile(inputs, result, None, dtype, level)
        answer = self.answer(right)
        done = self.run_once(wrong)
        self.assertEqual(done.returncode, 3, f"{done.stdout}{done.stderr}")
        self.assertIn('node "culprit"', done.stderr)
        return answer

    def test_more_of_an_axis_than_it_has(self):
        x = np.float32([3, 1])
        for level in self.each_level():
            self.nodes.append(helper.make_node("TopK", ["x", "k"], ["values", "places"], name="culprit"))
            got = self.check_refused({"x": (np.float32, [2]), "k": (np.int64, [1])}, "values", np.float32, level,
                                     {"x": x, "k": np.int64([1])}, {"x": x, "k": np.int64([5])})
            self.assertEqual(got.tolist(), [3])

    def test_a_shape_below_0(self):
        for level in self.each_level():
            y = self.node("ConstantOfShape", "s", name="culprit")
            got = self.check_refused({"s": (np.int64, [2])}, y, np.float32, level, {"s": np.int64([2, 3])}, {"s": np.int64([-1, 3])})
            np.testing.assert_array_equal(got, np.zeros((2, 3), np.float32))


if __name__ == "__main__":
    unittest.main()
