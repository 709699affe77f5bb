"""Operators outside of the standard's own domain, the newest standard ones, and functions that a model defines: one node
each, compared with ONNX Runtime on the same model."""

import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
from onnx import helper, mapping

import cases
from conformance_test import SOURCE
from program_case import ProgramCase

sys.path.insert(0, str(SOURCE / "tests/peer"))
import alive  # noqa: E402

RANDOM = np.random.default_rng(7)
MICROSOFT = "com.microsoft"
VERSIONS = {"ai.onnx.ml": 3}


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def info(name, array):
    return helper.make_tensor_value_info(name, mapping.NP_TYPE_TO_TENSOR_TYPE[array.dtype], array.shape)


class PeerCase(ProgramCase):
    def write(self, folder, graph, feed, opset, functions=(), domains=()):
        imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, VERSIONS.get(domain, 1)) for domain in domains]
        model = helper.make_model(graph, opset_imports=imports, functions=list(functions))
        model.ir_version = 9
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        cases.save(folder / "in.npz", feed)

    def own_outputs(self, folder):
        answer = self.program.ask(f"{folder}/model.onnx {folder}/in.npz {folder}/out.npz")
        self.assertTrue(answer.startswith("ok "), answer)
        ours = np.load(folder / "out.npz")
        return [ours[str(i)] for i in range(len(ours.files))]

    def run_own(self, graph, feed, opset, **options):
        """The program's outputs by position."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(Path(folder), graph, feed, opset, **options)
            return self.own_outputs(Path(folder))

    def run_both(self, graph, feed, opset, **options):
        """The program's and the peer's outputs by position."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.write(folder, graph, feed, opset, **options)
            alive.ort_run(str(folder / "model.onnx"), str(folder / "in.npz"), str(folder / "peer.npz"))
            peer = np.load(folder / "peer.npz")
            return self.own_outputs(folder), [peer[output.name] for output in graph.output]

    def check(self, op, inputs, outputs=1, opset=17, domain=MICROSOFT, units=0, **attributes):
        """`inputs`: arrays or None; `outputs`: how many of the node's. `units`: integers may differ by so many."""
        names = [f"x{i}" if array is not None else "" for i, array in enumerate(inputs)]
        feed = {name: array for name, array in zip(names, inputs) if name}
        wanted = [f"y{i}" for i in range(outputs)] if isinstance(outputs, int) else list(outputs)
        node = helper.make_node(op, names, wanted, domain=domain, **attributes)
        graph = helper.make_graph([node], "contrib", [info(name, array) for name, array in feed.items()],
                                  [helper.make_empty_tensor_value_info(name) for name in wanted if name])
        self.compare(*self.run_both(graph, feed, opset, domains=[domain] if domain else []), units)

    def compare(self, ours, peer, units=0):
        self.assertEqual(len(ours), len(peer))
        for i, (found, right) in enumerate(zip(ours, peer)):
            if units:
                self.assertEqual((found.dtype, found.shape), (right.dtype, right.shape))
                self.assertLessEqual(np.abs(found.astype(np.int64) - right).max(), units, f"output {i}")
            else:
                if right.dtype.kind == "f":
                    found, right = np.round(found, 4), np.round(right, 4)
                self.assertEqual(cases.difference(found, right), "", f"output {i}")


class ContribOps(PeerCase):
    def test_gelu_family(self):
        x, bias = floats(2, 5), floats(5)
        self.check("Gelu", [x])
        self.check("BiasGelu", [x, bias])
        self.check("FastGelu", [x, bias])
        self.check("FastGelu", [x])
        self.check("QuickGelu", [x], alpha=1.5)

    def test_fused_products(self):
        x, w = floats(1, 3, 7, 5), floats(4, 3, 3, 3)
        self.check("FusedConv", [x, w, floats(4), floats(1, 4, 7, 5)], pads=[1, 1, 1, 1], activation="Relu")
        self.check("FusedConv", [x, w], activation="LeakyRelu", activation_params=[0.25])
        self.check("FusedGemm", [floats(3, 5), floats(5, 4), floats(4)], activation="Relu", alpha=0.5)
        self.check("FusedMatMul", [floats(2, 5, 3), floats(2, 4, 5)], transA=1, transB=1, alpha=0.5)

    def test_skip_normalization(self):
        x, skip, gamma, beta, bias = floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8), floats(8)
        self.check("SkipLayerNormalization", [x, skip, gamma, beta, bias], ["y", "", "", "sum"], epsilon=1e-5)
        self.check("SkipLayerNormalization", [x, skip, gamma], epsilon=1e-5)
        self.check("SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], ["y", "", "", "sum"], epsilon=1e-5)
        self.check("SimplifiedLayerNormalization", [x, gamma], domain="", epsilon=1e-5, axis=-1)

    def test_attention_of_packed_weights(self):
        x, w, bias = floats(2, 5, 6), floats(6, 24), floats(24)
        self.check("Attention", [x, w, bias], num_heads=2)
        self.check("Attention", [x, w, bias], num_heads=2, unidirectional=1)
        self.check("Attention", [x, w, bias, np.array([[1] * 5, [1] * 3 + [0] * 2], np.int32)], num_heads=2)
        self.check("Attention", [x, w, bias, np.array([5, 2], np.int32)], num_heads=2)
        self.check("Attention", [x, w, bias, np.array([5, 4, 0, 2], np.int32)], num_heads=2)
        past = floats(2, 2, 2, 3, 4)
        for options in ({}, {"unidirectional": 1}):
            self.check("Attention", [x, w, bias, None, past], 2, num_heads=2, **options)

    def test_states_of_linear_attention(self):
        q, k, v = floats(2, 4, 8), floats(2, 4, 4) / 2, floats(2, 4, 6)
        decay, rate, state = -np.abs(floats(2, 4, 4)), np.abs(floats(2, 4, 2)) / 3, floats(2, 2, 2, 3)
        for rule, gates in (("linear", [None, None]), ("gated", [decay, None]), ("delta", [None, rate]), ("gated_delta", [decay, rate])):
            self.check("LinearAttention", [q, k, v, state, *gates], 2, opset=21, q_num_heads=4, kv_num_heads=2, update_rule=rule)
        # Heads of the state that share heads of the queries and of the keys.
        v, decay, rate, state = floats(2, 4, 12), -np.abs(floats(2, 4, 4)), np.abs(floats(2, 4, 4)) / 3, floats(2, 4, 2, 3)
        for k in (floats(2, 4, 4) / 2, floats(2, 4, 2) / 2, floats(2, 4, 8) / 2):
            for rule in ("gated", "gated_delta"):
                self.check("LinearAttention", [q[..., :4], k, v, state, decay, rate], 2, opset=21, q_num_heads=2, kv_num_heads=4,
                           update_rule=rule)
        x, w, bias, past = floats(2, 6, 5), floats(6, 1, 4), floats(6), floats(2, 6, 3)
        self.check("CausalConvWithState", [x, w, bias, past], 2, opset=21, activation="silu")
        self.check("CausalConvWithState", [x, w, None, past], 2, opset=21)

    def test_paths_of_time_warping(self):
        for shape in ((5, 9), (9, 5), (1, 7), (7, 1), (1, 1), (1, 6, 11), (40, 300)):
            self.check("DynamicTimeWarping", [floats(*shape)])
        # Where several steps are equally cheap, and where there is no number.
        same, odd = np.ones((6, 4), np.float32), floats(5, 5)
        odd[2, 3], odd[3, 1] = np.nan, np.inf
        for costs in (same, -same, RANDOM.integers(0, 3, (12, 15)).astype(np.float32), odd):
            self.check("DynamicTimeWarping", [costs])

    def test_multi_head_attention(self):
        q, k, v = floats(2, 3, 8), floats(2, 5, 8), floats(2, 5, 8)
        self.check("MultiHeadAttention", [q, k, v], num_heads=2)
        self.check("MultiHeadAttention", [q, k, v, floats(24)], num_heads=2, scale=0.25)
        self.check("MultiHeadAttention", [q, k, v, None, None, floats(1, 2, 3, 5)], num_heads=2)

    def check_group_query(self, queries, past, lengths, rotary=0, packed=False, **attributes):
        total = max(lengths)
        feed = {"q": floats(2, queries, 64), "k": floats(2, queries, 32), "v": floats(2, queries, 32),
                "pk": floats(2, 2, past, 16), "pv": floats(2, 2, past, 16),
                "lengths": np.array(lengths, np.int32) - 1}
        angles = np.outer(np.arange(16), 0.5 ** np.arange(8)).astype(np.float32)
        constants = [helper.make_tensor("total", 6, [1], [total])]
        operands = [*feed, "total"]
        if packed:
            feed["q"] = np.concatenate([feed["q"], feed.pop("k"), feed.pop("v")], 2)
            operands[1] = operands[2] = ""
        if rotary:
            feed.update(cos=np.cos(angles), sin=np.sin(angles))
            operands += ["cos", "sin"]
        node = helper.make_node("GroupQueryAttention", operands, ["y", "keys", "values"], domain=MICROSOFT, num_heads=4,
                                kv_num_heads=2, do_rotary=rotary, **attributes)
        graph = helper.make_graph([node], "group", [info(name, array) for name, array in feed.items()],
                                  [helper.make_empty_tensor_value_info(name) for name in node.output], constants)
        self.compare(*self.run_both(graph, feed, 17, domains=[MICROSOFT]))

    def test_group_query_attention(self):
        self.check_group_query(3, 0, [3, 3])
        self.check_group_query(1, 4, [5, 5])
        self.check_group_query(1, 4, [5, 5], rotary=1)
        self.check_group_query(3, 0, [3, 3], rotary=1, rotary_interleaved=1, scale=0.25)
        self.check_group_query(1, 6, [7, 7], local_window_size=3, softcap=2.0)
        self.check_group_query(3, 0, [3, 3], packed=True)
        self.check_group_query(1, 4, [5, 5], rotary=1, packed=True)

    def test_embeddings_with_normalization(self):
        ids, segments = RANDOM.integers(0, 9, (2, 5)).astype(np.int32), RANDOM.integers(0, 2, (2, 5)).astype(np.int32)
        mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
        self.check("EmbedLayerNormalization", [ids, segments, floats(9, 8), floats(6, 8), floats(2, 8), floats(8), floats(8),
                                               mask], 2, epsilon=1e-5)
        self.check("EmbedLayerNormalization", [ids, None, floats(9, 8), floats(6, 8), None, floats(8), floats(8)], 2,
                   epsilon=1e-5)

    def test_rotary_embedding_of_positions(self):
        x, ids = floats(2, 3, 16), np.array([[0, 1, 2], [4, 3, 1]], np.int64)
        caches = [floats(6, 4), floats(6, 4)]
        self.check("RotaryEmbedding", [x, ids, *caches])
        self.check("RotaryEmbedding", [x, ids, *caches], interleaved=1)
        self.check("RotaryEmbedding", [x, np.array([2], np.int64), *caches])

    def test_quantized_family(self):
        a = RANDOM.integers(0, 255, (2, 4, 6, 6)).astype(np.uint8)
        b = RANDOM.integers(0, 255, (2, 4, 6, 6)).astype(np.uint8)
        first, second = [scalar(0.02), scalar(120, np.uint8)], [scalar(0.03), scalar(100, np.uint8)]
        result = [scalar(0.04), scalar(128, np.uint8)]
        self.check("QLinearAdd", [a, *first, b, *second, *result], units=1)
        self.check("QLinearMul", [a, *first, b, *second, *result], units=1)
        self.check("QLinearLeakyRelu", [a, *first, *result], units=1, alpha=0.1)
        self.check("QLinearSigmoid", [a, *first, scalar(1 / 256), scalar(0, np.uint8)], units=1)
        self.check("QLinearGlobalAveragePool", [a, *first, *result], units=1, channels_last=0)
        self.check("QLinearAveragePool", [a, *first, *result], units=1, kernel_shape=[2, 2], strides=[2, 2])
        self.check("QLinearConcat", [*result, a, *first, b, *second], units=1, axis=1)

    def test_quantized_choices_and_matrices(self):
        a, b = RANDOM.integers(0, 255, (3, 8)).astype(np.uint8), RANDOM.integers(0, 255, (3, 8)).astype(np.uint8)
        first, second = [scalar(0.0217), scalar(120, np.uint8)], [scalar(0.0313), scalar(100, np.uint8)]
        result = [scalar(0.0419), scalar(128, np.uint8)]
        self.check("QLinearWhere", [a > b, a, *first, b, *second, *result], units=1)
        # Of seven bits: without VNNI the peer adds products in pairs, in 16 bits.
        weights, bias = RANDOM.integers(-63, 64, (8, 5)).astype(np.int8), RANDOM.integers(-9999, 9999, 5).astype(np.int32)
        operands = [a, *first, weights, scalar(0.0123), scalar(0, np.int8), bias]
        self.check("QGemm", [*operands, *result], units=1)
        self.check("QGemm", operands)

    def test_products_of_integers(self):
        a, b = RANDOM.integers(0, 255, (3, 5)).astype(np.uint8), RANDOM.integers(-9, 9, (5, 4)).astype(np.int8)
        scales = [scalar(0.1), scalar(0.2)]
        self.check("MatMulIntegerToFloat", [a, b, *scales, scalar(100, np.uint8), scalar(1, np.int8), floats(4)])
        self.check("DynamicQuantizeMatMul", [floats(3, 5), b, scalar(0.2), scalar(1, np.int8), floats(4)])

    def test_products_by_packed_weights(self):
        rows, columns, block = 5, 40, 16
        x = floats(2, 3, columns)
        for bits in (4, 8):
            codes = RANDOM.integers(0, 256, (rows, 3, block * bits // 8)).astype(np.uint8)
            scales = np.abs(floats(rows * 3))
            zeros = RANDOM.integers(0, 256, rows * ((3 * bits + 7) // 8)).astype(np.uint8)
            weights = [helper.make_tensor("codes", 2, codes.shape, codes.tobytes(), raw=True),
                       helper.make_tensor("scales", 1, scales.shape, scales),
                       helper.make_tensor("zeros", 2, zeros.shape, zeros.tobytes(), raw=True)]
            for operands in (["x", "codes", "scales"], ["x", "codes", "scales", "zeros"]):
                node = helper.make_node("MatMulNBits", operands, ["y"], domain=MICROSOFT, K=columns, N=rows, bits=bits,
                                        block_size=block)
                graph = helper.make_graph([node], "packed", [info("x", x)], [helper.make_empty_tensor_value_info("y")],
                                          weights[:len(operands) - 1])
                self.compare(*self.run_both(graph, {"x": x}, 17, domains=[MICROSOFT]))

    def test_bitwise_operators(self):
        a, b = RANDOM.integers(-99, 99, (3, 4)).astype(np.int32), RANDOM.integers(-99, 99, (4,)).astype(np.int32)
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
            self.check(op, [a, b], opset=18, domain="")
        self.check("BitwiseNot", [a], opset=18, domain="")

    def test_pools_of_powers(self):
        x = floats(2, 3, 7, 6)
        self.check("LpPool", [x], opset=11, domain="", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
        self.check("GlobalLpPool", [x], opset=11, domain="", p=3)

    def test_standard_attention(self):
        q, k, v = floats(2, 4, 3, 8), floats(2, 2, 5, 8), floats(2, 2, 5, 6)
        self.check("Attention", [q, k, v], opset=23, domain="")
        self.check("Attention", [q, k, v, floats(3, 5)], opset=23, domain="", scale=0.5)
        self.check("Attention", [q, k, v], opset=23, domain="", is_causal=1)
        self.check("Attention", [floats(2, 3, 8), floats(2, 5, 8), floats(2, 5, 8)], opset=23, domain="", q_num_heads=2,
                   kv_num_heads=2)
        # A mask of three dims beside lengths, which can only be one of each head.
        self.check("Attention", [q, k, v, floats(4, 3, 5), None, None, np.array([5, 3])], opset=24, domain="")
        past = [floats(2, 2, 4, 8), floats(2, 2, 4, 6)]
        self.check("Attention", [q, k, v, None, *past], 3, opset=23, domain="")
        self.check("Attention", [q, k, v, RANDOM.integers(0, 2, (3, 5)).astype(bool) | np.eye(3, 5, dtype=bool)],
                   opset=23, domain="")

    def test_what_attention_tells_of_its_scores(self):
        q, k, v, mask = floats(2, 2, 3, 8), floats(2, 2, 5, 8), floats(2, 2, 5, 8), floats(3, 5)
        for mode in range(4):
            with self.subTest(mode=mode):
                self.check("Attention", [q, k, v, mask], ["y", "", "", "scores"], opset=23, domain="", softcap=2.0,
                           qk_matmul_output_mode=mode)

    def test_rotary_embedding(self):
        ids = np.array([[0, 1, 2], [4, 3, 1]], np.int64)
        caches = [floats(6, 4), floats(6, 4)]
        self.check("RotaryEmbedding", [floats(2, 5, 3, 8), *caches, ids], opset=23, domain="")
        self.check("RotaryEmbedding", [floats(2, 3, 16), *caches, ids], opset=23, domain="", num_heads=2, interleaved=1)

    def test_geometry(self):
        theta = floats(2, 2, 3)
        node = helper.make_node("AffineGrid", ["theta", "size"], ["y"], align_corners=1)
        size = helper.make_tensor("size", 7, [4], [2, 1, 3, 5])
        graph = helper.make_graph([node], "grid", [info("theta", theta)], [helper.make_empty_tensor_value_info("y")], [size])
        self.compare(*self.run_both(graph, {"theta": theta}, 20))
        x = floats(2, 8, 6)
        node = helper.make_node("Col2Im", ["x", "image", "block"], ["y"], pads=[0, 1, 0, 1], strides=[1, 2])
        extents = [helper.make_tensor("image", 7, [2], [4, 4]), helper.make_tensor("block", 7, [2], [2, 2])]
        x = floats(2, 12, 9)
        graph = helper.make_graph([node], "columns", [info("x", x)], [helper.make_empty_tensor_value_info("y")], extents)
        self.compare(*self.run_both(graph, {"x": x}, 18))
        x = floats(3, 8)
        node = helper.make_node("CenterCropPad", ["x", "shape"], ["y"])
        shape = helper.make_tensor("shape", 7, [2], [6, 5])
        graph = helper.make_graph([node], "middle", [info("x", x)], [helper.make_empty_tensor_value_info("y")], [shape])
        self.compare(*self.run_both(graph, {"x": x}, 18))

    def test_deformable_convolution(self):
        x, w, offset = floats(1, 4, 5, 6), floats(6, 2, 2, 2), floats(1, 16, 4, 5)
        mask = np.abs(floats(1, 8, 4, 5))
        self.check("DeformConv", [x, w, offset, floats(6), mask], opset=19, domain="", group=2, offset_group=2)

    def test_functions_of_the_model(self):
        body = [helper.make_node("Mul", ["a", "b"], ["product"]), helper.make_node("LeakyRelu", ["product"], ["y"])]
        slope = body[1].attribute.add()
        slope.name, slope.ref_attr_name, slope.type = "alpha", "slope", 1
        inner = helper.make_function("own", "Scaled", ["a", "b"], ["y"], body, [helper.make_opsetid("", 17)], ["slope"])
        nodes = [helper.make_node("Scaled", ["p", "q"], ["t"], domain="own", slope=0.25),
                 helper.make_node("Add", ["t", "q"], ["z"])]
        outer = helper.make_function("own", "Both", ["p", "q"], ["z"], nodes,
                                     [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)])
        call = [helper.make_node("Both", ["x", "x1"], ["once"], domain="own"),
                helper.make_node("Both", ["once", "x1"], ["twice"], domain="own")]
        feed = {"x": floats(3, 4), "x1": floats(4)}
        graph = helper.make_graph(call, "calls", [info(name, array) for name, array in feed.items()],
                                  [helper.make_tensor_value_info("twice", 1, [3, 4])])
        self.compare(*self.run_both(graph, feed, 17, functions=[inner, outer], domains=["own"]))

    def test_functions_without_end_are_refused(self):
        body = [helper.make_node("Round", ["a"], ["y"], domain="own")]
        function = helper.make_function("own", "Round", ["a"], ["y"], body, [helper.make_opsetid("own", 1)])
        feed = {"x": floats(3)}
        graph = helper.make_graph([helper.make_node("Round", ["x"], ["y"], domain="own", name="first")], "loop",
                                  [info("x", feed["x"])], [helper.make_tensor_value_info("y", 1, [3])])
        with self.assertRaisesRegex(AssertionError, "calls itself"):
            self.run_own(graph, feed, 17, functions=[function], domains=["own"])

    def lacking(self, op, attribute, **given):
        """A function whose operator's attribute is one of its own that has no default, and a call."""
        body = [helper.make_node(op, ["a"], ["y"])]
        reference = body[0].attribute.add()
        reference.name, reference.ref_attr_name, reference.type = attribute, "own_one", 1
        function = helper.make_function("own", "Scaled", ["a"], ["y"], body, [helper.make_opsetid("", 17)], ["own_one"])
        feed = {"x": floats(3)}
        graph = helper.make_graph([helper.make_node("Scaled", ["x"], ["y"], domain="own", **given)], "lacks",
                                  [info("x", feed["x"])], [helper.make_tensor_value_info("y", 1, [3])])
        return graph, feed, function

    def test_an_attribute_that_a_call_leaves_out_is_the_operators_default(self):
        for given in ({}, {"own_one": 0.25}):
            graph, feed, function = self.lacking("LeakyRelu", "alpha", **given)
            self.compare(*self.run_both(graph, feed, 17, functions=[function], domains=["own"]))

    def test_an_attribute_that_a_call_leaves_out_and_the_operator_needs(self):
        graph, feed, function = self.lacking("Cast", "to")
        with self.assertRaisesRegex(AssertionError, "Cast.*attribute to"):
            self.run_own(graph, feed, 17, functions=[function], domains=["own"])


if __name__ == "__main__":
    unittest.main()
