"""Operators of com.microsoft that came last: mixtures of experts, pictures whose channels stand last, hashes, windows and
inverses, one node each, compared with ONNX Runtime on the same model, or by numpy where it has no kernel for this machine."""

import unittest

import numpy as np
from onnx import helper, numpy_helper

from contrib_ops_test import MICROSOFT, PeerCase, RANDOM, floats, info, scalar
from one_node import OneNode


def codes(*shape):
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


class PeerRest(PeerCase):
    def check_constants(self, op, inputs, constants, opset=17, **attributes):
        """`constants`: inputs whose values are the model's."""
        names = [f"x{i}" if array is not None else "" for i, array in enumerate(inputs)]
        given = {name: array for name, array in zip(names, inputs) if name}
        feed = {name: array for name, array in given.items() if int(name[1:]) not in constants}
        graph = helper.make_graph([helper.make_node(op, names, ["y"], domain=MICROSOFT, **attributes)], "rest",
                                  [info(name, array) for name, array in feed.items()], [helper.make_empty_tensor_value_info("y")],
                                  [numpy_helper.from_array(array, name) for name, array in given.items() if name not in feed])
        self.compare(*self.run_both(graph, feed, opset, domains=[MICROSOFT]))


class Experts(PeerRest):
    def mixture(self, tokens, experts, hidden, inner, width=1):
        """Operands of MoE; `width`: rows of the first layer for each of its results."""
        return [floats(*tokens, hidden), floats(int(np.prod(tokens)), experts), 0.3 * floats(experts, width * inner, hidden),
                floats(experts, width * inner), 0.3 * floats(experts, hidden, inner), floats(experts, hidden)]

    def test_activations_and_weights(self):
        for activation in ("relu", "gelu", "silu", "identity"):
            for normalized in (0, 1):
                self.check("MoE", self.mixture((7,), 4, 6, 10), activation_type=activation, k=2, normalize_routing_weights=normalized)

    def test_few_tokens_gather_their_experts(self):
        for k in (1, 2, 3):
            self.check("MoE", self.mixture((2,), 8, 6, 10), k=k, normalize_routing_weights=1)

    def test_batches_and_many_experts(self):
        self.check("MoE", self.mixture((2, 3), 20, 8, 8), k=4, activation_type="silu", normalize_routing_weights=1)

    def test_no_bias(self):
        operands = self.mixture((5,), 4, 6, 10)
        operands[3] = operands[5] = None
        self.check("MoE", operands[:5], k=2, activation_type="silu")

    def test_interleaved_gates(self):
        for options in ({}, {"activation_alpha": 1.702, "activation_beta": 1.0}, {"swiglu_limit": 0.7}):
            self.check("MoE", self.mixture((5,), 4, 6, 10, 2), k=2, activation_type="swiglu", swiglu_fusion=1,
                       normalize_routing_weights=1, **options)

    def quantized(self, bits, block, zeros, bias, width, tokens=5):
        experts, hidden, inner, pack = 4, 32, 48, 8 // bits
        x, router = floats(tokens, hidden), floats(tokens, experts)
        operands = [x, router]
        points = []
        for rows, columns in ((width * inner, hidden), (hidden, inner)):
            blocks = [columns // block] if block else []
            scales = (RANDOM.random([experts, rows] + blocks) * (0.02 if bits == 4 else 0.001)).astype(np.float32)
            operands += [codes(experts, rows, columns // pack), scales, floats(experts, rows) if bias else None]
            last = blocks[0] if block else rows
            points.append(codes(*[experts, rows][:2 if block else 1], -(-last // pack)) if zeros else None)
        operands += [None] * 3 + points
        while operands[-1] is None:
            operands.pop()
        attributes = {"block_size": block} if block else {}
        activation = {"activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0,
                      "swiglu_limit": 7.0} if width == 2 else {"activation_type": "silu"}
        constants = [i for i in range(2, len(operands)) if operands[i] is not None]
        self.check_constants("QMoE", operands, constants, k=2, normalize_routing_weights=1, expert_weight_bits=bits,
                             **attributes, **activation)

    def test_quantized(self):
        for bits in (4, 8):
            for block in (0, 16):
                self.quantized(bits, block, zeros=False, bias=True, width=1)
                self.quantized(bits, block, zeros=True, bias=False, width=1)
        self.quantized(4, 16, zeros=False, bias=True, width=2)
        self.quantized(4, 16, zeros=False, bias=True, width=2, tokens=1)


class DecoderAttention(PeerRest):
    batch, heads, width, past, room = 4, 2, 8, 3, 6

    def step(self, outputs=3, **operands):
        """A step behind `past` ones, in a cache with more room."""
        hidden = self.heads * self.width
        caches = [floats(self.batch, self.heads, self.room, self.width) for _ in range(2)]
        for cache in caches:
            cache[:, :, self.past:] = 0
        names = ("mask", "bias", "past_key", "past_value", "length", "beams", "indirection", "columns")
        given = {"past_key": caches[0], "past_value": caches[1], "length": np.array([self.past], np.int32), **operands}
        inputs = [floats(self.batch, 1, hidden) for _ in range(3)] + [given.get(name) for name in names]
        while inputs[-1] is None:
            inputs.pop()
        self.check("DecoderMaskedMultiHeadAttention", inputs, outputs, num_heads=self.heads, past_present_share_buffer=1)

    def test_steps(self):
        self.step()
        self.step(mask=RANDOM.integers(0, 2, (self.batch, self.past + 1)).astype(np.int32))
        self.step(bias=floats(1, self.heads, 1, self.past + 1))
        self.step(columns=floats(3 * self.heads * self.width))

    def test_beams(self):
        self.step(beams=np.array([2], np.int32), indirection=RANDOM.integers(0, 2, (2, 2, self.room)).astype(np.int32))

    def test_keys_of_an_encoder(self):
        keys, values = (floats(self.batch, self.heads, 5, self.width) for _ in range(2))
        query = floats(self.batch, 1, self.heads * self.width)
        self.check("DecoderMaskedMultiHeadAttention", [query, keys, values], num_heads=self.heads)
        mask = np.array([[1, 1, 1, 0, 0]] * self.batch, np.int32)
        self.check("DecoderMaskedMultiHeadAttention", [query, keys, values, mask], num_heads=self.heads, scale=0.5)


class Rest(PeerRest):
    def test_fused_activations(self):
        operands = [floats(3, 4), floats(4, 5), floats(5)]
        self.check("FusedGemm", operands, activation="Elu", activation_alpha=0.7)
        self.check("FusedGemm", operands, activation="Selu", activation_alpha=1.5, activation_beta=0.0, activation_gamma=1.1)
        self.check("FusedGemm", operands, activation="ThresholdedRelu", activation_alpha=0.4)
        for activation in ("Softplus", "Softsign", "Sigmoid", "Tanh"):
            self.check("FusedGemm", operands, activation=activation)
        operands = [floats(1, 3, 5, 5), floats(4, 3, 3, 3)]
        self.check("FusedConv", operands, activation="HardSwish", activation_params=[0.2, 0.4])
        self.check("FusedConv", operands, activation="HardSigmoid", activation_params=[0.2, 0.4])

    def test_inverse(self):
        for n in (1, 2, 3, 6):
            self.check("Inverse", [(floats(2, n, n) + 3 * np.eye(n)).astype(np.float32)])
        self.check("Inverse", [np.eye(4) + 0.1 * RANDOM.standard_normal((4, 4))])

    def test_integer_products(self):
        a = RANDOM.integers(-32768, 32768, (3, 5)).astype(np.int16)
        self.check("MatMulInteger16", [a, RANDOM.integers(-8000, 8000, (5, 4)).astype(np.int16)])

    def test_hashes(self):
        for dtype in (np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64):
            x = (RANDOM.standard_normal(20) * 1e6).astype(dtype) if dtype not in (np.uint32, np.uint64) else \
                RANDOM.integers(0, 1 << 32, 20).astype(dtype)
            for positive in (0, 1):
                self.check("MurmurHash3", [x], seed=42, positive=positive)
        self.check("MurmurHash3", [np.arange(-3, 4, dtype=np.int32)])

    def test_repeated_n_grams(self):
        ids = np.array([[1, 2, 3, 1, 2, 4, 1, 2], [5, 5, 5, 5, 5, 5, 5, 5], [0, 1, 2, 3, 4, 5, 6, 7]], np.int64)
        for size in (1, 2, 3, 8):
            self.check("NGramRepeatBlock", [ids, floats(3, 9)], ngram_size=size)

    def test_pad_range_windows(self):
        x = floats(3, 8)
        self.check_constants("Pad", [x, np.array([1, 0, 0, 2], np.int64), scalar(0.5)], [1], mode="constant")
        for start, limit, delta in ((0, 5, None), (2.0, 9.0, 1.5), (9, -1, -3)):
            kind = np.float32 if isinstance(start, float) else np.int64
            operands = [scalar(start, kind), scalar(limit, kind)] + ([scalar(delta, kind)] if delta is not None else [])
            self.check_constants("Range", operands, range(3))
        self.check("UnfoldTensor", [x], dim=1, size=3, step=2)
        self.check("UnfoldTensor", [floats(6, 2, 3)], dim=0, size=2)

    def test_unique_and_identity(self):
        self.check("Unique", [np.array([3, 1, 3, 2, 1, 7], np.float32)], 3)
        self.check("SampleOp", [floats(2, 3)])

    def test_crop_and_resize(self):
        x = floats(2, 3, 7, 9)
        boxes = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [-0.2, 0.3, 0.5, 1.3], [0.8, 0.9, 0.1, 0.2]], np.float32)
        pictures = np.array([0, 1, 1, 0], np.int32)
        for size in ((4, 5), (1, 3), (9, 1)):
            for mode in ("bilinear", "nearest"):
                self.check_constants("CropAndResize", [x, boxes, pictures, np.array(size, np.int32)], [3], mode=mode,
                                     extrapolation_value=0.5)

    def test_transposed_convolution_of_pads(self):
        self.check_constants("ConvTransposeWithDynamicPads",
                             [floats(1, 3, 5, 4), floats(3, 2, 3, 3), np.array([1, 0, 0, 1], np.int64), floats(2)], [2],
                             strides=[2, 2])


class ByNumpy(OneNode):
    """No kernel of the peer for this machine."""

    def test_mul_integer(self):
        a, b = codes(3, 1), codes(4)
        expected = (a.astype(np.int32) - 3) * (b.astype(np.int32) - 200)
        self.check("MulInteger", 17, [a, scalar(3, np.uint8), b, scalar(200, np.uint8)], [expected], [(MICROSOFT, 1)])

    def test_channels_last(self):
        x, w, bias = floats(1, 6, 5, 3), floats(4, 3, 3, 3), floats(4)
        sums = np.zeros((1, 6, 5, 4))
        wide = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
        for i in range(3):
            for j in range(3):
                sums += wide[:, i:i + 6, j:j + 5] @ w[:, :, i, j].T
        result = (sums + bias).astype(np.float32)
        self.check("NhwcConv", 17, [x, w, bias], [result], [(MICROSOFT, 1)], digits=4, pads=[1, 1, 1, 1])
        z = floats(1, 6, 5, 4)
        self.check("NhwcFusedConv", 17, [x, w, bias, z], [np.maximum(result + z, 0)], [(MICROSOFT, 1)], digits=4, pads=[1, 1, 1, 1],
                   activation="Relu")

    def test_means_round_as_exact_ones(self):
        """Scales whose quotient brings sums of four close to the middle of two codes; the peer's float32 rounds some away."""
        for dtype, low in ((np.uint8, 0), (np.int8, -128)):
            x = RANDOM.integers(low, low + 256, (2, 5, 8, 8)).astype(dtype)
            for scale, wanted in ((0.05, 0.05 * 1.3), (0.031, 0.031 * 1.7), (0.25, 0.125)):
                scales = [scalar(scale), scalar(wanted)]
                zeros = [scalar(low + 37, dtype), scalar(low + 90, dtype)]
                sums = x.astype(np.longdouble).reshape(2, 5, 4, 2, 4, 2).sum((3, 5)) - 4 * (low + 37)

                def code(mean):
                    real = np.rint(mean * np.longdouble(scales[0]) / np.longdouble(scales[1])) + low + 90
                    return np.clip(real, low, low + 255).astype(dtype)

                operands = [x, scales[0], zeros[0], scales[1], zeros[1]]
                domains = [(MICROSOFT, 1)]
                self.check("QLinearAveragePool", 17, operands, [code(sums / 4)], domains, kernel_shape=[2, 2], strides=[2, 2])
                whole = sums.sum((2, 3), keepdims=True) / 64
                self.check("QLinearGlobalAveragePool", 17, operands, [code(whole)], domains)

    def test_gates_in_halves_and_beside(self):
        x, router = floats(3, 6), floats(3, 4)
        first, second, third = 0.3 * floats(4, 10, 6), 0.3 * floats(4, 6, 10), 0.3 * floats(4, 10, 6)

        def sigmoid(v):
            return 1 / (1 + np.exp(-v.astype(np.float64)))

        def mixed(result):
            chances = np.exp(router) / np.exp(router).sum(1, keepdims=True)
            rows = []
            for token in range(3):
                best = np.argsort(-router[token])[:2]
                rows.append(sum(chances[token, e] * result(x[token], e) for e in best))
            return np.array(rows).astype(np.float32)

        gated = mixed(lambda v, e: ((first[e] @ v) * sigmoid(first[e] @ v) * (third[e] @ v)) @ second[e].T)
        beside = [x, router, first, None, second, None, third]
        domains = [(MICROSOFT, 1)]
        self.check("MoE", 17, beside, [gated], domains, k=2, activation_type="silu")
        self.check("MoE", 17, beside, [gated], domains, k=2, activation_type="swiglu", swiglu_fusion=0)
        halves = [x, router, np.concatenate([first, third], 1), None, second]
        self.check("MoE", 17, halves, [gated], domains, k=2, activation_type="swiglu", swiglu_fusion=2)


if __name__ == "__main__":
    unittest.main()
