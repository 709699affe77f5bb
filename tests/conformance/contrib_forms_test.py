"""com.microsoft's operators as exporters, optimizers and quantizers write them, and ONNX 1.0's experimental ones: compared
with ONNX Runtime, or with numpy where its CPU kernels lack the operator."""

import math
import unittest

import numpy as np
from onnx import helper, numpy_helper

from contrib_ops_test import MICROSOFT, RANDOM, PeerCase, floats, info, scalar


def integers(low, high, dtype, *shape):
    return RANDOM.integers(low, high, shape).astype(dtype)


def weights_of_seven_bits(*shape):
    """Without VNNI the peer adds products of 8 bits in pairs, in 16 bits: larger weights saturate there."""
    return integers(-63, 64, np.int8, *shape)


class Forms(PeerCase):
    def check_constants(self, op, feed, constants, outputs=1, tolerance=0.0, **attributes):
        """`feed` and `constants`: arrays by name, in the operands' order; None is left out. `tolerance`: of each element,
        as a part of the largest."""
        operands = {**feed, **constants}
        names = [name if array is not None else "" for name, array in operands.items()]
        node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=MICROSOFT, **attributes)
        feed = {name: array for name, array in feed.items() if array is not None}
        tensors = [numpy_helper.from_array(array, name) for name, array in constants.items() if array is not None]
        graph = helper.make_graph([node], "form", [info(name, array) for name, array in feed.items()],
                                  [helper.make_empty_tensor_value_info(name) for name in node.output], tensors)
        ours, peer = self.run_both(graph, feed, 17, domains=[MICROSOFT])
        if not tolerance:
            return self.compare(ours, peer)
        for found, right in zip(ours, peer, strict=True):
            self.assertEqual(found.shape, right.shape)
            self.assertLessEqual(np.abs(found - right).max(), tolerance * np.abs(right).max())

    def check_own(self, op, inputs, expected, **attributes):
        names = [f"x{i}" if array is not None else "" for i, array in enumerate(inputs)]
        feed = {name: array for name, array in zip(names, inputs) if name}
        node = helper.make_node(op, names, [f"y{i}" for i in range(len(expected))], domain=MICROSOFT, **attributes)
        graph = helper.make_graph([node], "form", [info(name, array) for name, array in feed.items()],
                                  [helper.make_empty_tensor_value_info(name) for name in node.output])
        self.compare(self.run_own(graph, feed, 17, domains=[MICROSOFT]), expected)

    def test_activation_parameters_behind_one_that_is_not_given(self):
        a, b = floats(3, 4), floats(4, 5)
        product = a @ b
        self.check_own("FusedGemm", [a, b], [np.clip(0.2 * product + 0.3, 0, 1)], activation="HardSigmoid", activation_beta=0.3)
        selu = 1.1 * np.where(product > 0, product, 1.6732632423543772 * np.expm1(product))
        self.check_own("FusedGemm", [a, b], [selu.astype(np.float32)], activation="Selu", activation_gamma=1.1)

    def test_names_of_standard_operators(self):
        self.check("Trilu", [floats(2, 4, 5), scalar(1, np.int64)], opset=12, upper=0)
        self.check("GatherND", [floats(2, 3, 4), integers(0, 2, np.int64, 3, 2)], opset=10)
        self.check("GridSample", [floats(1, 2, 5, 6), np.clip(floats(1, 3, 4, 2), -0.9, 0.9)], opset=12, mode="bilinear")
        self.check("ExpandDims", [floats(2, 3), scalar(-1, np.int32)])
        self.check("TransposeMatMul", [floats(2, 5, 3), floats(2, 4, 5)], transA=1, transB=1, alpha=0.5)

    def test_distances(self):
        a, b = floats(7, 5), floats(4, 5)
        self.check("CDist", [a, b], metric="euclidean")
        self.check("CDist", [a, b], metric="sqeuclidean")

    def test_pools_of_quantized_pictures(self):
        x = integers(0, 256, np.uint8, 2, 7, 6, 5)
        self.check("NhwcMaxPool", [x], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
        self.check("NhwcMaxPool", [integers(-128, 128, np.int8, 1, 6, 6, 3)], kernel_shape=[2, 2], strides=[2, 2])

    def test_experimental_operators(self):
        x = floats(2, 3, 4, 5)
        self.check("Affine", [x], opset=7, domain="", alpha=0.5, beta=-1.25)
        self.check("ParametricSoftplus", [x], opset=7, domain="", alpha=2.0, beta=0.75)
        self.check("ScaledTanh", [x], opset=7, domain="", alpha=2.0, beta=0.75)
        self.check("ImageScaler", [x], opset=7, domain="", scale=0.5, bias=[0.25, -1.0, 3.0])

    def test_quantized_attention(self):
        x, weights = integers(0, 255, np.uint8, 2, 5, 8), weights_of_seven_bits(8, 24)
        bias, mask = floats(24), np.array([[1] * 5, [1] * 3 + [0] * 2], np.int32)
        scales = {"x_scale": scalar(0.02), "w_scale": scalar(0.01)}
        zeros = {"x_zero": scalar(120, np.uint8), "w_zero": scalar(0, np.int8)}
        for options in ({}, {"unidirectional": 1}):
            self.check_constants("QAttention", {"x": x}, {"w": weights, "b": bias, **scales, "mask": mask, **zeros},
                                 num_heads=2, **options)
        columns = {"x_scale": scalar(0.02), "w_scale": np.abs(floats(24)) / 50}
        zeros["w_zero"] = np.zeros(24, np.int8)
        self.check_constants("QAttention", {"x": x}, {"w": weights, "b": bias, **columns, "mask": None, **zeros}, num_heads=2)

    def test_quantized_embeddings(self):
        ids, segments = integers(0, 9, np.int32, 2, 5), integers(0, 2, np.int32, 2, 5)
        tables = {f"t{i}": integers(0, 255, np.uint8, *shape) for i, shape in enumerate([(9, 8), (6, 8), (2, 8), (8,), (8,)])}
        scales = {f"s{i}": scalar(0.01 + 0.003 * i) for i in range(5)}
        zeros = {f"z{i}": scalar(100 + i, np.uint8) for i in range(5)}
        mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
        self.check_constants("QEmbedLayerNormalization", {"ids": ids, "segments": segments},
                             {**tables, "mask": mask, **scales, **zeros}, 2, epsilon=1e-5)

    def test_recurrence_with_quantized_weights(self):
        x, b = floats(6, 2, 5) / 2, floats(1, 32) / 4
        w, r = weights_of_seven_bits(1, 5, 16), weights_of_seven_bits(1, 4, 16)
        # The reference rounds inputs and states to eight bits too; here they stay as they are.
        for shape in ((1,), (1, 16)):
            constants = {"w": w, "r": r, "b": b, "lengths": None, "h": None, "c": None, "p": None,
                         "w_scale": np.full(shape, 0.008, np.float32), "w_zero": np.zeros(shape, np.int8),
                         "r_scale": np.full(shape, 0.006, np.float32), "r_zero": np.zeros(shape, np.int8)}
            self.check_constants("DynamicQuantizeLSTM", {"x": x}, constants, 3, tolerance=0.02, hidden_size=4)

    def test_rows_of_quantized_tables(self):
        ids = integers(0, 7, np.int64, 2, 3)
        codes, scales = integers(0, 256, np.uint8, 7, 16), np.abs(floats(7, 2))
        zeros = integers(0, 256, np.uint8, 7, 1)
        for given in ({}, {"zeros": zeros}):
            self.check_constants("GatherBlockQuantized", {"codes": codes, "ids": ids}, {"scales": scales, **given}, bits=4,
                                 block_size=16, gather_axis=0, quantize_axis=1)
        wide = {"scales": np.abs(floats(7, 1)), "zeros": integers(0, 256, np.uint8, 7, 1)}
        self.check_constants("GatherBlockQuantized", {"codes": codes, "ids": ids}, wide, bits=8, block_size=16, gather_axis=0,
                             quantize_axis=1)

    def test_products_by_places_in_a_table(self):
        rows, columns, block = 6, 32, 16
        x = floats(2, columns)
        for kind in (0, 1):
            weights = {"codes": integers(0, 256, np.uint8, rows * columns // 2),
                       "largest": np.abs(floats(rows * columns // block))}
            self.check_constants("MatMulBnb4", {"x": x}, weights, K=columns, N=rows, block_size=block, quant_type=kind)

    def test_columns_in_another_order(self):
        rows, columns, block = 5, 32, 16
        order = RANDOM.permutation(np.arange(columns) // block).astype(np.int32)
        weights = {"codes": integers(0, 256, np.uint8, rows, 2, block // 2), "scales": np.abs(floats(rows * 2)), "zeros": None,
                   "order": order}
        self.check_constants("MatMulNBits", {"x": floats(3, columns)}, weights, K=columns, N=rows, bits=4, block_size=block, tolerance=1e-4)

    def test_packed_queries_keys_and_values(self):
        heads, width = 2, 8

        def attention(q, k, v):
            q, k, v = (np.moveaxis(x, 2, 1).astype(np.float64) for x in (q, k, v))
            weights = np.exp(q @ np.moveaxis(k, 2, 3) / math.sqrt(width))
            y = weights / weights.sum(-1, keepdims=True) @ v
            return np.moveaxis(y, 1, 2).reshape(len(y), -1, heads * width).astype(np.float32)

        packed, bias = floats(2, 5, heads, 3, width), floats(3 * heads * width)
        parts = np.moveaxis(packed, 3, 0)
        present = [np.moveaxis(part, 1, 2) for part in parts[1:]]
        self.check_own("MultiHeadAttention", [packed], [attention(*parts), *present], num_heads=heads)
        moved = parts + bias.reshape(3, 1, 1, heads, width)
        self.check_own("MultiHeadAttention", [packed, None, None, bias], [attention(*moved)], num_heads=heads)
        query, pair = floats(2, 3, heads * width), floats(2, 5, heads, 2, width)
        expected = attention(query.reshape(2, 3, heads, width), pair[:, :, :, 0], pair[:, :, :, 1])
        self.check_own("MultiHeadAttention", [query, pair], [expected], num_heads=heads)
        self.check("MultiHeadAttention", [floats(2, 3, heads * width), floats(2, heads, 5, width), floats(2, heads, 5, width),
                                          floats(3 * heads * width)], num_heads=heads)

    def group_query(self, positions=None, bias=None, sink=None, queries=3, past=0, **attributes):
        feed = {"q": floats(2, queries, 64), "k": floats(2, queries, 32), "v": floats(2, queries, 32),
                "pk": floats(2, 2, past, 16) if past else None, "pv": floats(2, 2, past, 16) if past else None,
                "lengths": np.full(2, past + queries - 1, np.int32)}
        angles = np.outer(np.arange(16), 0.5 ** np.arange(8)).astype(np.float32)
        constants = {"total": np.array([past + queries], np.int32), "cos": np.cos(angles), "sin": np.sin(angles), "positions": positions,
                     "bias": bias, "sink": sink}
        self.check_constants("GroupQueryAttention", feed, constants, 3, num_heads=4, kv_num_heads=2, **attributes)

    def test_group_query_attention(self):
        self.group_query(positions=np.array([[3, 4, 5], [0, 2, 4]], np.int64), do_rotary=1)
        self.group_query(positions=np.array([[4], [2]], np.int64), do_rotary=1, queries=1, past=4)
        self.group_query(bias=floats(2, 4, 3, 3))
        self.group_query(bias=floats(1, 4, 1, 5), sink=floats(4), queries=1, past=4)
        self.group_query(bias=floats(1, 1, 3, 3), do_rotary=1)
        self.group_query(sink=floats(4))
        self.group_query(smooth_softmax=1)

    def test_normalized_groups(self):
        x, gamma, beta = floats(2, 3, 4, 8), floats(8), floats(8)

        def normalized(x, activation):
            rows = x.reshape(2, 12, 4, 2)
            rows = (rows - rows.mean((1, 3), keepdims=True)) / np.sqrt(rows.var((1, 3), keepdims=True) + 1e-5)
            y = rows.reshape(x.shape) * gamma + beta
            return y / (1 + np.exp(-y)) if activation else y

        for activation in (0, 1):
            self.check_own("GroupNorm", [x, gamma, beta], [normalized(x, activation)], groups=4, activation=activation,
                           epsilon=1e-5)
        last = np.ascontiguousarray(np.moveaxis(x, 3, 1))
        self.check_own("GroupNorm", [last, gamma, beta], [np.moveaxis(normalized(x, 1), 3, 1)], groups=4, activation=1,
                       epsilon=1e-5, channels_last=0)
        skip, bias = floats(2, 8), floats(8)
        whole = x + skip[:, None, None] + bias
        self.check_own("SkipGroupNorm", [x, gamma, beta, skip, bias], [normalized(whole, 1), whole], groups=4, activation=1,
                       epsilon=1e-5)

    def test_sums_with_bias(self):
        x, bias, skip = floats(2, 3, 8), floats(8), floats(2, 3, 8)
        self.check_own("BiasAdd", [x, bias, skip], [x + bias + skip])
        with_bias = (x + bias).astype(np.float64)
        right = with_bias[..., 4:]
        gelu = right / 2 * (1 + np.vectorize(math.erf)(right / np.sqrt(2)))
        self.check_own("BiasSplitGelu", [x, bias], [(with_bias[..., :4] * gelu).astype(np.float32)])

    def refuse(self, words, op, *shapes, **attributes):
        feed = {f"x{i}": np.zeros(shape, np.float32) for i, shape in enumerate(shapes)}
        node = helper.make_node(op, list(feed), ["y"], domain=MICROSOFT, name="apart", **attributes)
        graph = helper.make_graph([node], "form", [info(name, array) for name, array in feed.items()],
                                  [helper.make_empty_tensor_value_info("y")])
        with self.assertRaisesRegex(AssertionError, words):
            self.run_own(graph, feed, 17, domains=[MICROSOFT])

    def test_forms_that_are_refused(self):
        self.refuse("apart.*CDist.*metric.*cityblock", "CDist", (3, 2), (4, 2), metric="cityblock")
        self.refuse(r"apart.*bias has shape \[24\], expected \[18\]", "MultiHeadAttention", (2, 2, 6), (2, 2, 6), (2, 2, 6), (24,), num_heads=2)
        self.refuse("apart.*the caches have 8 columns for heads of 12", "RotaryEmbedding", (2, 2, 5, 12), (1,), (9, 8), (9, 8))


if __name__ == "__main__":
    unittest.main()
