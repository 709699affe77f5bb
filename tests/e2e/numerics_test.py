"""Numbers at the edges: ties between quanta, powers of integers and doubles, casts that round once, folded constants.

Expected values are worked out in float64 or in Python's integers.
"""

import decimal
import math
import unittest

import graph_case
import numpy as np
from onnx import TensorProto

RNG = np.random.default_rng(17)


def power_of(base, exponent, whole):
    """base^exponent as a float64, by logarithms of 40 digits; of a whole exponent with the sign that it gives."""
    odd = bool(whole and exponent % 2)
    sign = -1.0 if odd and math.copysign(1, base) < 0 else 1.0
    size = abs(base)
    if exponent == 0 or size == 1:
        return sign
    if size in (0.0, math.inf):
        return sign * (math.inf if (size == 0) == (exponent < 0) else 0.0)
    with decimal.localcontext(decimal.Context(prec=40, Emin=-(10**17), Emax=10**17)):
        power = decimal.Decimal(size).ln() * decimal.Decimal(exponent)
        return sign * (math.inf if power > 720 else 0.0 if power < -760 else float(power.exp()))


class NumericsTest(graph_case.GraphCase):
    def check_quanta(self, shape, out_shape, inner, exact, dtype, axis):
        """quantize(inner(dequantize(x))) is within a rounding of exact(x) of the nearest quantum: at a tie either."""
        self.constants, self.nodes = [], []
        limits = np.iinfo(dtype)
        channels = shape[1]
        zero, out_zero = dtype(limits.min + 120), dtype(limits.min + 100)
        scale, out_scale = np.float32(0.02), np.float32(0.05 if exact is not softmax else 1 / 256)
        scales, zeros = scale, zero
        if axis is not None:
            scales = (scale * (1 + np.arange(channels) % 3)).astype(np.float32)
            zeros = (zero - np.arange(channels) % 5).astype(dtype)
        x = RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)
        attributes = {} if axis is None else {"axis": axis}
        wide = self.node("DequantizeLinear", "x", scales, zeros, **attributes)
        y = self.node("QuantizeLinear", inner(wide), out_scale, out_zero)
        got = self.run_model({"x": x}, y, out_shape, dtype).astype(np.int64)

        def along(values):
            return np.asarray(values, np.float64).reshape([-1 if axis is not None else 1] + [1] * (len(shape) - 2))

        value = exact((x - along(zeros)) * along(scales)) / np.float64(out_scale) + int(out_zero)
        nearest = np.clip(np.rint(value), limits.min, limits.max).astype(np.int64)
        at_tie = np.abs(np.abs(value - np.floor(value)) - 0.5) < 1e-3
        np.testing.assert_array_equal(np.where(at_tie, nearest, got), nearest)
        self.assertLessEqual(np.abs(got - nearest).max(), 1)

    def test_what_lies_between_two_quanta_may_become_either(self):
        forms = {
            "mean": ((32, 8, 8), (32, 8, 1), lambda v: self.node("ReduceMean", v, axes=[2]),
                     lambda x: x.mean(2, keepdims=True)),
            "global pool": ((2, 8, 4, 4), (2, 8, 1, 1), lambda v: self.node("GlobalAveragePool", v),
                            lambda x: x.mean((2, 3), keepdims=True)),
            "pool": ((2, 8, 8, 8), (2, 8, 4, 4),
                     lambda v: self.node("AveragePool", v, kernel_shape=[2, 2], strides=[2, 2]),
                     lambda x: x.reshape(2, 8, 4, 2, 4, 2).mean((3, 5))),
            "resize": ((1, 4, 6, 6), (1, 4, 12, 12),
                       lambda v: self.node("Resize", v, np.zeros(0, np.float32), np.float32([1, 1, 2, 2]), mode="linear"),
                       lambda x: doubled(doubled(x, 2), 3)),
            "softmax": ((32, 8), (32, 8), lambda v: self.node("Softmax", v, axis=1), softmax),
        }
        for name, (shape, out_shape, inner, exact) in forms.items():
            for dtype in (np.uint8, np.int8):
                axis = 1 if dtype is np.int8 and len(shape) > 2 else None
                with self.subTest(name, dtype=dtype.__name__, axis=axis):
                    self.check_quanta(shape, out_shape, inner, exact, dtype, axis)

    def test_a_rounded_number_and_a_half_is_truncated_at_every_level(self):
        x = np.float32([[-2.3, -1.2, 1.6, 2.7]])
        for level in (0, 3):
            self.constants, self.nodes = [], []
            half = self.node("Add", self.node("Round", "x"), np.float32(0.5))
            data = self.node("DequantizeLinear", self.node("Cast", half, to=TensorProto.INT8), np.float32(0.5), np.int8(0))
            weights = self.node("DequantizeLinear", np.eye(4, dtype=np.int8), np.float32(2), np.int8(0))
            got = self.run_model({"x": x}, self.node("MatMul", data, weights), (1, 4), np.float32, level)
            np.testing.assert_array_equal(got, np.float32([[-1, 0, 2, 3]]), f"level {level}")

    def test_nan_has_one_quantum_at_every_level(self):
        x = np.float32([[np.nan, 1, -3, np.nan, np.inf, -np.inf, 200, 0]])
        weights = RNG.integers(-100, 100, (8, 8)).astype(np.int8)
        answers = {}
        for level in range(4):
            for zero in (np.int8(0), np.int8(3), np.int8(-128), np.uint8(0), np.uint8(130)):
                self.constants, self.nodes = [], []
                q = self.node("QuantizeLinear", "x", np.float32(0.5), zero)
                data = self.node("DequantizeLinear", q, np.float32(0.5), zero)
                product = self.node("MatMul", data, self.node("DequantizeLinear", weights, np.float32(0.25), np.int8(0)))
                y = self.node("Concat", product, data, self.node("Cast", q, to=TensorProto.FLOAT), axis=1)
                got = self.run_model({"x": x}, y, (1, 24), np.float32, level)
                # NaN becomes the integer 0, as in every other conversion.
                limits = np.iinfo(zero.dtype)
                quanta = np.clip(np.rint(np.nan_to_num(x / 0.5, posinf=1e9, neginf=-1e9)) + int(zero), limits.min, limits.max)
                quanta[np.isnan(x)] = 0
                np.testing.assert_array_equal(got[:, 16:], quanta, f"level {level}, zero point {zero!r}")
                wide = (quanta - int(zero)) * 0.5
                np.testing.assert_array_equal(got[:, 8:16], wide)
                np.testing.assert_allclose(got[:, :8], wide @ (weights * 0.25), rtol=1e-6)
                np.testing.assert_array_equal(got, answers.setdefault((zero.dtype.str, int(zero)), got))

    def test_exponents_are_taken_as_they_are(self):
        half, odd = 0.5, [3, -5, 2**24 + 1, -(2**24) - 1, 2**53 + 1, 2**63 - 1, 2**62, -(2**63) + 1]
        cases = [
            (np.float32, np.int64, [-1.0, -2.0, -0.0, np.inf, -np.inf, 1 + half**22, -1 - half**22, -1 + half**23], odd),
            (np.float64, np.int64, [-1.0, -2.0, -0.0, np.inf, -np.inf, 1 + half**52, -1 - half**52, -1 + half**53], odd),
            (np.float32, np.uint64, [-1.0, -1.0, -0.0, 2.0], [2**63 + 1, 2**64 - 1, 2**64 - 1, 7]),
            (np.float32, np.int32, [1 - half**24, -1 + half**24, 1 + half**23, -1.0], [2**24 + 1, 2**25 + 1, 2**26 + 3, 2**31 - 1]),
            (np.float32, np.float64, [1e30, 1 + half**20, 7.0, 2.0], [1.1, 2.0**25 / 3, 1 / 3, -126.1]),
            (np.float16, np.float32, [60000.0, 0.001, 3.0, 1 + half**10], [1 / 3, 0.1, 1e-3, 1024.5]),
            (np.float16, np.int16, [1 + half**10, 1 - half**11, -1.0, -1.0], [4097, 8193, 2049, 4097]),
        ]
        for base_type, power_type, bases, exponents in cases:
            x, e = np.array(bases, base_type), np.array(exponents, power_type)
            expected = np.array([power_of(float(b), p if power_type is not np.float64 else float(p), int(np.issubdtype(power_type, np.integer)))
                                 for b, p in zip(x, e.tolist())])
            for level in (0, 3):
                for constant in (False, True):
                    self.constants, self.nodes = [], []
                    feed = {"x": x} if constant else {"x": x, "e": e}
                    with self.subTest(base=base_type.__name__, exponent=power_type.__name__, level=level, constant=constant):
                        got = self.run_model(feed, self.node("Pow", "x", e if constant else "e"), x.shape, base_type, level)
                        with np.errstate(over="ignore"):
                            np.testing.assert_array_max_ulp(got, expected.astype(base_type), 2)
                        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))

    def test_powers_of_integers_are_exact(self):
        bases = [3, 59049, -7, 10, 2, -2, 1, -1, 0, 5]
        powers = [30, 3, 17, 17, 62, 63, -5, -3, 0, 28]
        for base_type, power_type in ((np.int64, np.int64), (np.int32, np.int64), (np.int64, np.int32)):
            self.constants, self.nodes = [], []
            feed = {"x": np.array(bases, base_type), "e": np.array(powers, power_type)}
            got = self.run_model(feed, self.node("Pow", "x", "e"), (len(bases),), base_type)
            bits = 8 * np.dtype(base_type).itemsize

            def expected(b, e, bits=bits):
                power = b**e if e >= 0 else int(1 / b**-e)
                return (power + 2**(bits - 1)) % 2**bits - 2**(bits - 1)

            self.assertEqual(got.tolist(), [expected(b, e) for b, e in zip(bases, powers)])
        self.constants, self.nodes = [], []
        got = self.run_model({"x": np.array([2, 9, 16, -3], np.int64)}, self.node("Pow", "x", np.float32([3, 0.5, -1, 3])),
                             (4,), np.int64)
        self.assertEqual(got.tolist(), [8, 3, 0, -27])

    def test_functions_of_doubles_keep_their_digits(self):
        x = np.concatenate([np.float64([0.0099, 1e-5, 0.25, 0.75, 0.999]), -np.float64([1e-9, 0.0101, 0.5])])
        for op, function in (("Atanh", math.atanh), ("Asinh", math.asinh), ("Elu", math.expm1), ("Sinh", math.sinh)):
            self.constants, self.nodes = [], []
            values = -np.abs(x) if op == "Elu" else x
            got = self.run_model({"x": values}, self.node(op, "x"), x.shape, np.float64)
            np.testing.assert_allclose(got, [function(v) for v in values], rtol=1e-15)
        # A negative alpha turns what is below 0 around.
        self.constants, self.nodes = [], []
        values = -np.abs(x)
        got = self.run_model({"x": values}, self.node("Celu", self.node("Cast", "x", to=TensorProto.FLOAT), alpha=-1.5), x.shape, np.float32)
        np.testing.assert_allclose(got, -1.5 * np.expm1(values / -1.5), rtol=1e-6)
        self.constants, self.nodes = [], []
        got = self.run_model({"x": np.float64([2, 3, 10, 7])}, self.node("Pow", "x", np.float64([3, 3, 3, 17])), (4,), np.float64)
        self.assertEqual(got.tolist(), [8, 27, 1000, 7**17 * 1.0])

    def test_what_nearly_cancels_is_right_alone(self):
        """Where a kernel has no other results, these are off by what their terms are."""
        x = np.linspace(-4.3, -4.1, 37, dtype=np.float32)
        wanted = x.astype(np.float64) * [math.erfc(-value / math.sqrt(2)) / 2 for value in x.astype(np.float64)]
        for level in (0, 3):
            self.constants, self.nodes = [], []
            clipped = self.node("Clip", "x", np.float32(-4.3), np.float32(-4.1))
            got = self.run_model({"x": x}, self.node("Gelu", clipped, domain="com.microsoft"), x.shape, np.float32, level)
            np.testing.assert_allclose(got, wanted, atol=1e-6)

    def test_doubles_become_halves_in_one_rounding(self):
        x = np.float64([1 + 2**-11 + 2**-40, 65519.99999999999, 65520, 2**-25 * (1 + 2**-40), 2**-25, -1 - 2**-11])
        got = self.run_model({"x": x}, self.node("Cast", "x", to=TensorProto.FLOAT16), x.shape, np.float16)
        with np.errstate(over="ignore"):
            expected = x.astype(np.float16)
        np.testing.assert_array_equal(got, expected)
        # And as a constant, which is folded.
        self.constants, self.nodes = [], []
        folded = self.node("Add", self.node("Cast", x, to=TensorProto.FLOAT16), "x")
        got = self.run_model({"x": np.zeros(6, np.float16)}, folded, x.shape, np.float16)
        np.testing.assert_array_equal(got, expected)

    def test_normalization_of_halves_is_finite_where_it_is(self):
        x = np.float16([[[200]], [[100]]]).reshape(1, 2, 1, 1)
        scale, bias, mean, variance = np.float16([[2, 1], [1, -1], [200, 99], [1e-5, 0.01]])
        for level in (0, 3):
            self.constants, self.nodes = [], []
            y = self.node("BatchNormalization", "x", scale, bias, mean, variance, epsilon=1e-5)
            got = self.run_model({"x": x}, y, x.shape, np.float16, level)
            centred = x.astype(np.float64).ravel() - mean
            expected = centred * scale / np.sqrt(variance.astype(np.float64) + np.float32(1e-5)) + bias
            np.testing.assert_allclose(got.ravel(), expected, rtol=2e-3)


def softmax(x):
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def doubled(x, axis):
    """Twice as many rows by half-pixel interpolation."""
    count = x.shape[axis]
    at = np.clip((np.arange(2 * count) + 0.5) / 2 - 0.5, 0, count - 1)
    low = np.floor(at).astype(int)
    part = (at - low).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    return np.take(x, low, axis) * (1 - part) + np.take(x, np.minimum(low + 1, count - 1), axis) * part


if __name__ == "__main__":
    unittest.main()
