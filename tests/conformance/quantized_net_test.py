"""Networks of quantized convolutions in both forms that exporters write, against numpy: integer sums are exact, so that
results are those of the standard's text, bit for bit. (ONNX Runtime is no judge here: its 8-bit products saturate in 16
bits on some CPUs.) Between QuantizeLinear and DequantizeLinear the text's arithmetic is that of float32, which is exact,
and so the same in any order, where all scales are powers of two."""

import unittest

import numpy as np
from onnx import helper

from contrib_ops_test import PeerCase, floats, info

RANDOM = np.random.default_rng(23)
FLOAT, UINT8, INT8, INT32 = 1, 2, 3, 6


def convolved(x, w, stride):
    """Odd kernels, padded to keep the extents."""
    reach = w.shape[2] // 2
    padded = np.pad(x, ((0, 0), (0, 0), (reach, reach), (reach, reach)))
    height, width = x.shape[2:]
    taps = [np.einsum("nchw,oc->nohw", padded[:, :, i:i + height, j:j + width], w[:, :, i, j])
            for i in range(w.shape[2]) for j in range(w.shape[3])]
    return sum(taps)[:, :, ::stride, ::stride]


def channels(scale):
    return scale.reshape(-1, 1, 1, 1) if scale.ndim == 1 else scale


def codes(real, zero):
    return np.clip(np.rint(real) + float(zero), 0, 255).astype(np.uint8)


class Network:
    """Nodes, and beside each the value that numpy gives it."""

    def __init__(self, **feed):
        self.nodes, self.constants, self.feed, self.value = [], [], feed, dict(feed)

    def constant(self, array, kind):
        name = f"c{len(self.constants)}"
        self.value[name] = np.asarray(array)
        self.constants.append(helper.make_tensor(name, kind, np.shape(array), np.asarray(array).tobytes(), raw=True))
        return name

    def node(self, op, inputs, value, **attributes):
        output = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        self.value[output] = value
        return output

    def step(self, scale, zero):
        return [self.constant(np.float32(scale), FLOAT), self.constant(np.uint8(zero), UINT8)]

    def weights(self, outputs, inputs, kernel, powers_of_two=False, kind=INT8):
        low, dtype = (-127, np.int8) if kind == INT8 else (0, np.uint8)
        w = RANDOM.integers(low, low + 255, (outputs, inputs, kernel, kernel)).astype(dtype)
        scales = 2.0 ** RANDOM.integers(-8, -5, outputs) if powers_of_two else 0.01 * RANDOM.uniform(0.5, 1.5, outputs)
        scales = scales.astype(np.float32)
        zeros = np.zeros(outputs, dtype) if kind == INT8 else RANDOM.integers(100, 150, outputs).astype(dtype)
        return [self.constant(w, kind), self.constant(scales, FLOAT), self.constant(zeros, kind)]

    def quantized(self, x, scale, zero):
        return self.node("QuantizeLinear", [x, scale, zero], codes(self.value[x] / self.value[scale], self.value[zero]))

    def dequantized(self, x, scale, zero, **attributes):
        wide = self.value[x].astype(np.float32) - channels(self.value[zero]).astype(np.float32)
        return self.node("DequantizeLinear", [x, scale, zero], wide * channels(self.value[scale]), **attributes)

    def qlinear_conv(self, x, step, weights, result, stride):
        (w, w_scale, w_zero), count = weights, self.value[weights[0]].shape[0]
        bias = self.constant(RANDOM.integers(-9999, 9999, count).astype(np.int32), INT32)
        wide = self.value[w].astype(np.int64) - channels(self.value[w_zero].astype(np.int64))
        sums = convolved(self.value[x].astype(np.int64) - int(self.value[step[1]]), wide, stride)
        sums = sums + self.value[bias].reshape(-1, 1, 1)
        scale = float(self.value[step[0]]) * self.value[w_scale].astype(np.float64).reshape(-1, 1, 1)
        real = sums * scale / float(self.value[result[0]])
        pad = self.value[w].shape[2] // 2
        return self.node("QLinearConv", [x, *step, w, w_scale, w_zero, *result, bias], codes(real, self.value[result[1]]),
                         pads=[pad] * 4, strides=[stride] * 2)


class QuantizedNets(PeerCase):
    def check_network(self, net, output):
        graph = helper.make_graph(net.nodes, "quantized", [info(name, array) for name, array in net.feed.items()],
                                  [helper.make_empty_tensor_value_info(output)], net.constants)
        (ours,) = self.run_own(graph, net.feed, 13)
        np.testing.assert_array_equal(ours, net.value[output])
        self.assertGreater(len(np.unique(ours)), 10)

    def test_layers_of_qlinear_conv(self):
        net = Network(x=RANDOM.integers(0, 256, (1, 40, 9, 11)).astype(np.uint8))
        value, step, inputs = "x", net.step(0.02, 3), 40
        for stride, kernel in ((1, 3), (1, 1), (2, 3)):
            result = net.step(0.5, 120)
            value = net.qlinear_conv(value, step, net.weights(48, inputs, kernel), result, stride)
            step, inputs = result, 48
        self.check_network(net, value)

    def test_layers_of_bytes_with_any_zero_points(self):
        net = Network(x=RANDOM.integers(0, 256, (1, 40, 9, 11)).astype(np.uint8))
        value, step, inputs = "x", net.step(0.02, 3), 40
        for stride, kernel in ((1, 3), (1, 1), (2, 3)):
            result = net.step(0.5, 120)
            value = net.qlinear_conv(value, step, net.weights(64, inputs, kernel, kind=UINT8), result, stride)
            step, inputs = result, 64
        self.check_network(net, value)
        net = Network(x=floats(1, 16, 12, 12))
        grid = net.step(2**-4, 128)
        value = net.dequantized(net.quantized("x", *grid), *grid)
        w = net.dequantized(*net.weights(64, 16, 3, powers_of_two=True, kind=UINT8), axis=0)
        sums = convolved(net.value[value].astype(np.float64), net.value[w].astype(np.float64), 1)
        value = net.node("Conv", [value, w], sums.astype(np.float32), pads=[1, 1, 1, 1])
        self.check_network(net, net.quantized(value, *net.step(0.5, 128)))

    def test_sums_past_float32(self):
        # 512 channels of 3x3: the sums pass 2^24, and the channels are cut into parts.
        net = Network(x=RANDOM.integers(200, 256, (1, 512, 4, 5)).astype(np.uint8))
        w = net.constant(np.full((3, 512, 3, 3), 127, np.int8), INT8)
        sums = convolved(net.feed["x"].astype(np.int64), net.value[w].astype(np.int64), 1)
        self.assertGreater(sums.max(), 2**24)
        self.check_network(net, net.node("ConvInteger", ["x", w], sums.astype(np.int32), pads=[1, 1, 1, 1]))

    def test_products_of_bytes_with_any_zero_points(self):
        """Weights of uint8 as dynamic quantization writes them: one zero point, one a column, and one of a run for the data."""
        x, zero = RANDOM.integers(0, 256, (2, 5, 64)).astype(np.uint8), np.array(77, np.uint8)
        w = RANDOM.integers(0, 256, (64, 40)).astype(np.uint8)
        for w_zero in (np.array(131, np.uint8), RANDOM.integers(0, 256, 40).astype(np.uint8)):
            net = Network(x=x, zero=zero)
            sums = (x.astype(np.int64) - 77) @ (w.astype(np.int64) - w_zero)
            inputs = ["x", net.constant(w, UINT8), "zero", net.constant(w_zero, UINT8)]
            self.check_network(net, net.node("MatMulInteger", inputs, sums.astype(np.int32)))
        net = Network(x=x)
        data, result = net.step(0.02, 77), net.step(30, 120)
        weights = [net.constant(w, UINT8), *net.step(0.5, 131)]
        sums = (x.astype(np.int64) - 77) @ (w.astype(np.int64) - 131)
        real = sums * (float(np.float32(0.02)) * 0.5) / 30
        self.check_network(net, net.node("QLinearMatMul", ["x", *data, *weights, *result], codes(real, 120)))

    def test_moves_between_quantize_and_dequantize(self):
        net = Network(x=RANDOM.integers(0, 256, (1, 16, 6, 5)).astype(np.uint8))
        step = net.step(2**-3, 100)
        value = net.dequantized("x", *step)
        twice = net.value[value].repeat(2, axis=2).repeat(2, axis=3)
        scales = net.constant(np.array([1, 1, 2, 2], np.float32), FLOAT)
        value = net.node("Resize", [value, "", scales], twice, mode="nearest", coordinate_transformation_mode="asymmetric",
                         nearest_mode="floor")
        pads = net.constant(np.array([0, 0, 1, 0, 0, 0, 0, 2], np.int64), 7)
        value = net.node("Pad", [value, pads], np.pad(twice, ((0, 0), (0, 0), (1, 0), (0, 2))))
        quantized = net.quantized(value, *step)
        value = net.dequantized(quantized, *step)
        w = net.dequantized(*net.weights(16, 16, 3, powers_of_two=True), axis=0)
        sums = convolved(net.value[value].astype(np.float64), net.value[w].astype(np.float64), 1)
        value = net.node("Conv", [value, w], sums.astype(np.float32), pads=[1, 1, 1, 1])
        self.check_network(net, net.quantized(value, *net.step(0.5, 128)))

    def test_residual_blocks_between_quantize_and_dequantize(self):
        net = Network(x=floats(1, 16, 12, 12))
        grid = net.step(2**-4, 128)
        value = net.dequantized(net.quantized("x", *grid), *grid)
        for _ in range(2):
            branch = value
            for last in (False, True):
                w = net.dequantized(*net.weights(16, 16, 3, powers_of_two=True), axis=0)
                sums = convolved(net.value[branch].astype(np.float64), net.value[w].astype(np.float64), 1)
                branch = net.node("Conv", [branch, w], sums.astype(np.float32), pads=[1, 1, 1, 1])
                if not last:
                    branch = net.node("Relu", [branch], np.maximum(net.value[branch], 0))
                step = net.step(0.5, 128 if last else 0)
                branch = net.dequantized(net.quantized(branch, *step), *step)
            value = net.node("Add", [branch, value], net.value[branch] + net.value[value])
            value = net.node("Relu", [value], np.maximum(net.value[value], 0))
            step = net.step(1, 0)
            quantized = net.quantized(value, *step)
            value = net.dequantized(quantized, *step)
        self.check_network(net, quantized)


if __name__ == "__main__":
    unittest.main()
