"""Quantization in the types of opsets 19 to 25, and com.microsoft's QLinear operators, with values by numpy: dequantize,
compute, divide by the scale, round half to even, add the zero point, saturate."""

import unittest

import numpy as np
from onnx import TensorProto

from one_node import RANDOM, OneNode, floats

MICROSOFT = (("com.microsoft", 1),)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def quantized(x, scale, zero):
    limits = np.iinfo(zero.dtype)
    return np.clip(np.rint(x / scale) + zero.astype(np.float64), limits.min, limits.max).astype(zero.dtype)


def real(x, scale, zero):
    return (x.astype(np.int32) - zero.astype(np.int32)).astype(np.float32) * scale


def bytes_of(*shape, dtype=np.uint8):
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max + 1, shape).astype(dtype)


class Standard(OneNode):
    def test_wide_integers(self):
        x = floats(3, 8) * 50
        for dtype in (np.uint16, np.int16):
            for scale, zero in ((scalar(0.25), scalar(77, dtype)),
                                (np.array([0.5, 0.25, 2], np.float32), np.array([3, 0, 900], dtype))):
                line = (scale, zero) if scale.ndim == 0 else (scale[:, None], zero[:, None])
                codes = quantized(x.astype(np.float64), *line)
                self.check("QuantizeLinear", 21, [x, scale, zero], [codes], axis=0)
                self.check("DequantizeLinear", 21, [codes, scale, zero], [real(codes, *line)], axis=0)
        self.check("QuantizeLinear", 21, [x, scalar(0.5)], [quantized(x.astype(np.float64), 0.5, scalar(0, np.int16))],
                   output_dtype=TensorProto.INT16)
        wide = RANDOM.integers(-10**6, 10**6, (2, 3)).astype(np.int32)
        self.check("DequantizeLinear", 19, [wide, scalar(0.5)], [wide.astype(np.float32) / 2])

    def test_half_scales(self):
        x, scale = floats(2, 5).astype(np.float16), scalar(0.25, np.float16)
        codes = quantized(x.astype(np.float64), 0.25, scalar(3, np.uint8))
        self.check("QuantizeLinear", 19, [x, scale, scalar(3, np.uint8)], [codes])
        right = ((codes.astype(np.int32) - 3) * np.float32(0.25)).astype(np.float16)
        self.check("DequantizeLinear", 19, [codes, scale, scalar(3, np.uint8)], [right])

    def test_products(self):
        for dtype in (np.uint8, np.int8):
            for scales in (np.float32, np.float16):
                for shape in ((), (2,)):
                    a, b = bytes_of(*shape, 2, 4, dtype=dtype), bytes_of(*shape, 4, 3, dtype=dtype)
                    zeros = [scalar(value, dtype) for value in (113, 114, 118)]
                    steps = [scalar(value, scales) for value in (0.0066, 0.00705, 0.0107)]
                    sums = (a.astype(np.int64) - int(zeros[0])) @ (b.astype(np.int64) - int(zeros[1]))
                    right = quantized(sums * float(steps[0]) * float(steps[1]), float(steps[2]), zeros[2])
                    self.check("QLinearMatMul", 21, [a, steps[0], zeros[0], b, steps[1], zeros[1], steps[2], zeros[2]], [right])

    def test_products_past_the_largest_value(self):
        """They saturate."""
        one = scalar(1)
        for dtype, value, scale, right in ((np.uint8, 100, 0.2, 255), (np.int8, 100, 0.5, 127), (np.int8, -100, 0.5, -128)):
            operands = [np.full((1, 1), value, dtype), one, scalar(0, dtype), np.full((1, 1), 100, dtype), one, scalar(0, dtype)]
            self.check("QLinearMatMul", 21, [*operands, scalar(scale), scalar(0, dtype)], [np.full((1, 1), right, dtype)])

    def test_products_of_free_depth(self):
        """Sums of few products are exact in float32, those of many are not: one kernel for all."""
        for depth in (1, 5, 300):
            a, b = bytes_of(4, depth), bytes_of(depth, 3)
            sums = (a.astype(np.int64) - 113) @ (b.astype(np.int64) - 114)
            zeros = [scalar(value, np.uint8) for value in (113, 114, 118)]
            free = {"free": {0: {0: "M", 1: "K"}, 1: {0: "K", 1: "N"}}, "buckets": "M=2;K=8;N=2"}
            self.check("MatMulInteger", 10, [a, b, *zeros[:2]], [sums.astype(np.int32)], **free)
            free["free"] = {0: {0: "M", 1: "K"}, 3: {0: "K", 1: "N"}}
            right = quantized(sums * 0.0066 * 0.00705, 0.107, zeros[2])
            steps = [scalar(value) for value in (0.0066, 0.00705, 0.107)]
            self.check("QLinearMatMul", 21, [a, steps[0], zeros[0], b, steps[1], zeros[1], steps[2], zeros[2]], [right], **free)


class Microsoft(OneNode):
    def setUp(self):
        self.dtypes = (np.uint8, np.int8)

    def own(self, op, inputs, right, **attributes):
        self.check(op, 17, inputs, [right], MICROSOFT, **attributes)

    def form(self, dtype, scale, zero):
        return scalar(scale), scalar(zero, dtype)

    def test_sums_and_products(self):
        for dtype in self.dtypes:
            a, b = bytes_of(2, 3, 4, dtype=dtype), bytes_of(3, 1, dtype=dtype)
            of_a, of_b, of_y = self.form(dtype, 0.03, 5), self.form(dtype, 0.07, -3 if dtype == np.int8 else 9), self.form(dtype, 0.11, 20)
            for op, function in (("QLinearAdd", np.add), ("QLinearMul", np.multiply)):
                right = quantized(function(real(a, *of_a), real(b, *of_b)).astype(np.float64), 0.11, of_y[1])
                self.own(op, [a, *of_a, b, *of_b, *of_y], right)

    def test_functions_of_one_operand(self):
        for dtype in self.dtypes:
            x = bytes_of(3, 50, dtype=dtype)
            of_x, of_y = self.form(dtype, 0.04, 7), self.form(dtype, 1 / 256, -128 if dtype == np.int8 else 0)
            values = real(x, *of_x).astype(np.float64)
            self.own("QLinearSigmoid", [x, *of_x, *of_y], quantized(1 / (1 + np.exp(-values)), 1 / 256, of_y[1]))
            of_y = self.form(dtype, 0.05, 30)
            self.own("QLinearLeakyRelu", [x, *of_x, *of_y],
                     quantized(np.where(values < 0, np.float32(0.2) * values, values), np.float32(0.05), of_y[1]), alpha=0.2)

    def test_pools(self):
        for dtype in self.dtypes:
            x = bytes_of(2, 3, 5, 7, dtype=dtype)
            of_x, of_y = self.form(dtype, 0.04, 7), self.form(dtype, 0.02, 11)
            mean = real(x, *of_x).astype(np.float64).mean((2, 3), keepdims=True)
            self.own("QLinearGlobalAveragePool", [x, *of_x, *of_y], quantized(mean, np.float32(0.02), of_y[1]))
            last = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
            self.own("QLinearGlobalAveragePool", [last, *of_x, *of_y],
                     quantized(mean.transpose(0, 2, 3, 1), np.float32(0.02), of_y[1]), channels_last=1)
            values = real(x, *of_x).astype(np.float64)
            parts = np.lib.stride_tricks.sliding_window_view(values, (2, 3), (2, 3))[:, :, ::2, ::2].mean((-2, -1))
            self.own("QLinearAveragePool", [x, *of_x, *of_y], quantized(parts, np.float32(0.02), of_y[1]), kernel_shape=[2, 3],
                     strides=[2, 2])
            self.own("QLinearAveragePool", [last, *of_x, *of_y], quantized(parts.transpose(0, 2, 3, 1), np.float32(0.02), of_y[1]),
                     kernel_shape=[2, 3], strides=[2, 2], channels_last=1)

    def test_joined_parts(self):
        for dtype in self.dtypes:
            parts = [bytes_of(2, n, dtype=dtype) for n in (3, 1, 4)]
            forms = [self.form(dtype, 0.0317 * (i + 1), i) for i in range(3)]
            of_y = self.form(dtype, 0.0871, 13)
            values = np.concatenate([real(part, *form) for part, form in zip(parts, forms)], 1).astype(np.float64)
            operands = [each for part, form in zip(parts, forms) for each in (part, *form)]
            self.own("QLinearConcat", [*of_y, *operands], quantized(values, np.float32(0.0871), of_y[1]), axis=1)

    def test_matrices(self):
        for dtype in self.dtypes:
            a, b, bias = bytes_of(3, 5, dtype=dtype), bytes_of(5, 4, dtype=np.int8), RANDOM.integers(-9999, 9999, 4).astype(np.int32)
            of_a, of_y = self.form(dtype, 0.0317, 5), self.form(dtype, 0.613, 20)
            steps, zeros = np.array([0.02, 0.031, 0.017, 0.05], np.float32), np.array([3, 0, -7, 1], np.int8)
            for scale, zero in ((scalar(0.0231), scalar(-3, np.int8)), (steps, zeros)):
                sums = (a.astype(np.int64) - int(of_a[1])) @ (b.astype(np.int64) - zero.astype(np.int64)) + bias
                right = sums * (np.float64(of_a[0]) * scale.astype(np.float64))
                self.own("QGemm", [a, *of_a, b, scale, zero, bias], right.astype(np.float32))
                self.own("QGemm", [a, *of_a, b, scale, zero, bias, *of_y], quantized(right, np.float32(0.613), of_y[1]))
                turned = [np.ascontiguousarray(a.T), *of_a, np.ascontiguousarray(b.T), scale, zero, bias]
                self.own("QGemm", turned, (right * 0.5).astype(np.float32), transA=1, transB=1, alpha=0.5)

    def test_choices_and_means(self):
        for dtype in self.dtypes:
            condition = RANDOM.integers(0, 2, (3, 4)).astype(bool)
            a, b = bytes_of(3, 4, dtype=dtype), bytes_of(4, dtype=dtype)
            of_a, of_b, of_y = self.form(dtype, 0.0317, 5), self.form(dtype, 0.0719, 9), self.form(dtype, 0.0613, 20)
            values = np.where(condition, real(a, *of_a), real(b, *of_b)).astype(np.float64)
            self.own("QLinearWhere", [condition, a, *of_a, b, *of_b, *of_y], quantized(values, np.float32(0.0613), of_y[1]))
            x = bytes_of(2, 6, dtype=dtype)
            mean = real(x, *of_a).astype(np.float64).mean(1, keepdims=True)
            self.own("QLinearReduceMean", [x, *of_a, *of_y], quantized(mean, np.float32(0.0613), of_y[1]), axes=[1])
            powers = np.exp(real(x, *of_a).astype(np.float64))
            of_y = self.form(dtype, 1 / 256, -128 if dtype == np.int8 else 0)
            self.own("QLinearSoftmax", [x, *of_a, *of_y], quantized(powers / powers.sum(1, keepdims=True), 1 / 256, of_y[1]),
                     axis=1, opset=13)


if __name__ == "__main__":
    unittest.main()
