"""Quantized layers against integers summed by numpy, and against ONNX Runtime: every byte is the same.

Weights are of all eight bits, then of seven: without VNNI ONNX Runtime adds products of unsigned bytes in pairs, in 16 bits,
where larger weights saturate. Scales are powers of two, so that the specification's arithmetic is exact and there is one right answer.
"""

import tempfile
import unittest
from pathlib import Path

import made_models
import mill
import numpy as np
from onnx import helper, mapping, numpy_helper

RNG = np.random.default_rng(3)
ALL_BITS, SEVEN_BITS = 127, 63


def bytes_of(dtype, shape):
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def weights_of(most, shape):
    return RNG.integers(-most, most + 1, shape).astype(np.int8)


def requantized(sums, factor, zero, dtype):
    limits = np.iinfo(dtype)
    return np.clip(np.rint(sums * factor) + zero, limits.min, limits.max).astype(dtype)


def convolved(x, w, pad, stride):
    """int64 sums of [1,C,H,W] by [O,C,k,k]."""
    kernel = w.shape[2]
    x = np.pad(x.astype(np.int64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    rows, columns = ((extent - kernel) // stride + 1 for extent in x.shape[2:])
    y = np.zeros((1, w.shape[0], rows, columns), np.int64)
    for i in range(kernel):
        for j in range(kernel):
            tap = x[:, :, i:i + stride * rows:stride, j:j + stride * columns:stride]
            y += np.einsum("nchw,oc->nohw", tap, w[:, :, i, j].astype(np.int64))
    return y


class QuantizedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.constants, self.nodes = [], []

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def quantize(self, op, value, scale, zero, axis=None):
        name = f"v{len(self.nodes)}"
        inputs = [value, self.constant(name + ".s", np.asarray(scale, np.float32)), self.constant(name + ".z", zero)]
        attributes = {} if axis is None else {"axis": axis}
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def run_both(self, x, result, shape, dtype):
        """Our answer and ONNX Runtime's for the model of the nodes so far."""
        def kind(each):
            return mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(each)]

        self.nodes.append(helper.make_node("Identity", [result], ["y"]))
        model = made_models.model_of(self.nodes, [("x", kind(x.dtype), list(x.shape))],
                                     [("y", kind(dtype), list(shape))], self.constants)
        path, given = self.folder / "m.onnx", self.folder / "in.npz"
        path.write_bytes(model)
        np.savez(given, x=x)
        mill.check_program(self, "compile", path, "-o", self.folder / "m.tar")
        mill.check_program(self, "run", self.folder / "m.tar", "--inputs", given, "-o", self.folder / "out.npz")
        mill.alive.ort_run(str(path), str(given), str(self.folder / "peer.npz"))
        return mill.load_npz(self.folder / "out.npz")["y"], mill.load_npz(self.folder / "peer.npz")["y"]

    def check(self, x, value, expected, most):
        """The weights are up to `most`."""
        ours, peer = self.run_both(x, value, expected.shape, expected.dtype)
        np.testing.assert_array_equal(ours, expected)
        if most == SEVEN_BITS:
            np.testing.assert_array_equal(peer, expected)

    def check_conv(self, *form, channels=32):
        for most in (ALL_BITS, SEVEN_BITS):
            self.constants, self.nodes = [], []
            self.check_conv_of(most, channels, *form)

    def check_conv_of(self, most, channels, dtype, x_zero, y_zero, pad, stride, relu):
        x, w = bytes_of(dtype, (1, channels, 9, 11)), weights_of(most, (24, channels, 3, 3))
        bias = RNG.integers(-9999, 9999, 24).astype(np.int32)
        scales = np.ldexp(1.0, -(np.arange(24) % 3) - 7).astype(np.float32)
        data = self.quantize("DequantizeLinear", "x", 0.5, dtype(x_zero))
        weights = self.quantize("DequantizeLinear", self.constant("w", w), scales, np.zeros(24, np.int8), 0)
        shift = self.quantize("DequantizeLinear", self.constant("b", bias), scales / 2, np.zeros(24, np.int32), 0)
        self.nodes.append(helper.make_node("Conv", [data, weights, shift], ["c"], kernel_shape=[3, 3],
                                           pads=[pad] * 4, strides=[stride] * 2))
        if relu:
            self.nodes.append(helper.make_node("Relu", ["c"], ["r"]))
        value = self.quantize("QuantizeLinear", "r" if relu else "c", 16.0, dtype(y_zero))
        sums = convolved(x.astype(np.int64) - x_zero, w, pad, stride) + bias[:, None, None]
        sums = np.maximum(sums, 0) if relu else sums
        expected = requantized(sums, (scales.astype(np.float64) / 32)[:, None, None], y_zero, dtype)
        self.check(x, value, expected, most)

    def test_convolution_of_unsigned_bytes(self):
        self.check_conv(np.uint8, 0, 0, 1, 1, True)

    def test_convolution_with_zero_points(self):
        self.check_conv(np.uint8, 121, 130, 1, 2, False)

    def test_convolution_of_signed_bytes(self):
        self.check_conv(np.int8, -7, 3, 1, 1, False)

    def test_convolution_of_channels_that_fill_no_block(self):
        self.check_conv(np.uint8, 9, 5, 1, 1, True, channels=21)

    def test_matrix_product(self):
        for most in (ALL_BITS, SEVEN_BITS):
            self.constants, self.nodes = [], []
            self.check_matrix_product(most)

    def check_matrix_product(self, most):
        x, w = bytes_of(np.uint8, (2, 5, 64)), weights_of(most, (64, 40))
        data = self.quantize("DequantizeLinear", "x", 0.25, np.uint8(100))
        weights = self.quantize("DequantizeLinear", self.constant("w", w), np.float32(0.125), np.int8(0))
        self.nodes.append(helper.make_node("MatMul", [data, weights], ["c"]))
        value = self.quantize("QuantizeLinear", "c", 64.0, np.uint8(128))
        sums = (x.astype(np.int64) - 100) @ w.astype(np.int64)
        self.check(x, value, requantized(sums, 1 / 2048, 128, np.uint8), most)

    def test_sum_of_two_branches(self):
        x = bytes_of(np.uint8, (1, 16, 6, 6))
        first = self.quantize("DequantizeLinear", "x", 0.5, np.uint8(10))
        second = self.quantize("DequantizeLinear", "x", 0.25, np.uint8(77))
        self.nodes.append(helper.make_node("Add", [first, second], ["a"]))
        value = self.quantize("QuantizeLinear", "a", 1.0, np.uint8(30))
        wide = x.astype(np.float64)
        expected = requantized((wide - 10) * 0.5 + (wide - 77) * 0.25, 1, 30, np.uint8)
        ours, peer = self.run_both(x, value, expected.shape, np.uint8)
        np.testing.assert_array_equal(ours, expected)
        np.testing.assert_array_equal(peer, expected)

    def test_integer_operators(self):
        """ConvInteger, QLinearConv and MatMulInteger by a zero point that only the run knows."""
        x, w = bytes_of(np.uint8, (1, 32, 6, 7)), np.maximum(bytes_of(np.int8, (16, 32, 3, 3)), -127) // 8
        inputs = ["x", self.constant("w", w), self.constant("zx", np.uint8(17))]
        self.nodes.append(helper.make_node("ConvInteger", inputs, ["c"], pads=[1] * 4))
        sums = convolved(x.astype(np.int64) - 17, w, 1, 1)
        ours, peer = self.run_both(x, "c", sums.shape, np.int32)
        np.testing.assert_array_equal(ours, sums)
        np.testing.assert_array_equal(peer, sums)

        self.constants, self.nodes = [], []
        names = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"]
        values = [np.float32(0.5), np.uint8(17), w, np.float32(0.25), np.int8(0), np.float32(8), np.uint8(99)]
        for name, value in zip(names[1:], values):
            self.constant(name, value)
        self.nodes.append(helper.make_node("QLinearConv", names, ["q"], pads=[1] * 4))
        expected = requantized(sums, 1 / 64, 99, np.uint8)
        ours, peer = self.run_both(x, "q", expected.shape, np.uint8)
        np.testing.assert_array_equal(ours, expected)
        np.testing.assert_array_equal(peer, expected)

    def test_dynamic_product(self):
        x, w = RNG.standard_normal((5, 64)).astype(np.float32), weights_of(SEVEN_BITS, (64, 40))
        self.nodes.append(helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]))
        self.nodes.append(helper.make_node("MatMulInteger", ["q", self.constant("w", w), "z"], ["c"]))
        ours, peer = self.run_both(x, "c", (5, 40), np.int32)
        np.testing.assert_array_equal(ours, peer)


if __name__ == "__main__":
    unittest.main()
