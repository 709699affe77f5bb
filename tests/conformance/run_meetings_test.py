"""Axes that meet in a product, a sum or a concatenation, and of which a run says each extent by a number of its own. Values by
numpy."""

import itertools
import unittest

import numpy as np
from onnx import helper, numpy_helper

from one_node import element_type, floats
from run_axes_test import OfARun, ints


class Meetings(OfARun):
    """Axes of which a run says each extent by a number of its own, and which meet."""

    def reshaped(self, nodes, inputs, right, **shapes):
        """The nodes on what each input of `shapes` is reshaped to, by its own operand."""
        makers = [helper.make_node("Reshape", [name, f"{name}_shape"], [f"{name}_own"]) for name in shapes]
        feed = {**inputs, **{f"{name}_shape": ints(*shape) for name, shape in shapes.items()}}
        self.check_nodes([*makers, *nodes], feed, right)

    def test_elements(self):
        x, y = floats(12), floats(4)
        make = helper.make_node
        nodes = [make("Mul", ["x_own", "y_own"], ["y0"]), make("Less", ["y_own", "x_own"], ["y1"]), make("Where", ["y1", "y_own", "x_own"], ["y2"])]
        for first, second in (((3, 4), (1, 4)), ((3, 4), (4,)), ((12, 1), (1, 4)), ((1, 12), (4, 1)), ((4, 3), (4, 1)), ((1, 2, 6), (4, 1, 1)),
                              ((3, 2, 2), (2, 2)), ((3, 2, 2), (1, 1, 2, 2))):
            a, b = x.reshape(first), y.reshape(second)
            self.reshaped(nodes, {"x": x, "y": y}, [a * b, b < a, np.where(b < a, b, a)], x=first, y=second)
        for first, second, words in (((3, 4), (2, 2), r'node "Mul_2".*shapes \[3,4\] and \[2,2\] do not broadcast'),
                                     ((12,), (4,), r'node "Mul_2".*shapes \[12\] and \[4\] do not broadcast')):
            with self.assertRaisesRegex(AssertionError, words):
                self.reshaped(nodes, {"x": x, "y": y}, [x, x, x], x=first, y=second)

    def test_spread_along_axes_of_a_run(self):
        """What is taken off a mean along an axis is of the extents of both, whichever axis that is."""
        make = helper.make_node
        nodes = [make("ReduceMean", ["x", "axes"], ["mean"]), make("Sub", ["x", "mean"], ["off"]), make("Mul", ["off", "off"], ["squares"]),
                 make("ReduceMean", ["squares", "axes"], ["y0"]), make("Div", ["off", "y0"], ["y1"])]
        for shape, axis in itertools.product(((2, 3, 8), (1, 3, 8), (1, 1, 8)), (0, 1, -1)):
            x = floats(*shape)
            if x.shape[axis] == 1:
                continue
            off = x - x.mean(axis, keepdims=True)
            squares = (off * off).mean(axis, keepdims=True)
            self.check_nodes(nodes, {"x": x, "axes": ints(axis)}, [squares, off / squares], digits=4)

    def test_elements_that_data_chooses(self):
        x, y = floats(3, 5), floats(3, 4)
        make = helper.make_node
        nodes = [make("Compress", ["x", "k"], ["a"], axis=1), make("Compress", ["y", "l"], ["b"], axis=1), make("Sub", ["a", "b"], ["y0"]),
                 make("Max", ["b", "a", "b"], ["y1"])]
        for k, l in itertools.product(((1, 0, 1, 0, 1), (0, 0, 0, 0, 1), (0, 0, 0, 0, 0), (1, 1, 1, 1, 1)), ((1, 1, 0, 1), (0, 1, 0, 0), (0, 0, 0, 0))):
            a, b = x[:, np.array(k, bool)], y[:, np.array(l, bool)]
            feed = {"x": x, "k": np.array(k, bool), "y": y, "l": np.array(l, bool)}
            if a.shape[1] == b.shape[1] or 1 in (a.shape[1], b.shape[1]):
                self.check_nodes(nodes, feed, [a - b, np.maximum(a, b)])
            else:
                with self.assertRaisesRegex(AssertionError, "axis -1 of an operand of [0-9] elements meets one of [0-9]"):
                    self.check_nodes(nodes, feed, [x])

    def test_products(self):
        x, y = floats(24), floats(48)
        nodes = [helper.make_node("MatMul", ["x_own", "y_own"], ["y0"])]
        for first, second in (((2, 3, 4), (2, 4, 6)), ((1, 6, 4), (2, 4, 6)), ((4, 3, 2), (1, 2, 24)), ((2, 3, 4), (4, 12)), ((6, 4), (3, 4, 4)),
                              ((2, 1, 3, 4), (1, 3, 4, 4)), ((24,), (24, 2)), ((3, 8), (3, 2, 8, 1)), ((4, 1, 6, 1), (4, 2, 1, 6))):
            right = np.matmul(x.reshape(first).astype(np.float64), y.reshape(second)).astype(np.float32)
            makers = [helper.make_node("Reshape", [name, f"{name}_shape"], [f"{name}_own"]) for name in "xy"]
            graph_feed = {"x": x, "y": y, "x_shape": ints(*first), "y_shape": ints(*second)}
            self.check_close([*makers, *nodes], graph_feed, right)
        for first, second in (((2, 3, 4), (3, 4, 4)), ((2, 3, 4), (2, 6, 4)), ((24,), (12, 4)), ((6, 4), (3, 16))):
            with self.assertRaisesRegex(AssertionError, 'node "MatMul_2".*(axis -[123] of an operand of [0-9]+ elements meets one of [0-9]+|do not (broadcast|multiply))'):
                self.reshaped(nodes, {"x": x, "y": y}, [x], x=first, y=second)

    def check_close(self, nodes, inputs, right):
        graph = helper.make_graph(nodes, "graph", [helper.make_tensor_value_info(name, element_type(array), array.shape)
                                                   for name, array in inputs.items()],
                                  [helper.make_tensor_value_info("y0", element_type(right), None)])

        def expect(answer, actual):
            self.assertTrue(answer.startswith("ok "), answer)
            self.assertEqual(actual["0"].shape, right.shape)
            np.testing.assert_allclose(actual["0"], right, rtol=1e-4, atol=1e-4)

        self.run_model(graph, 21, inputs, expect)

    def test_shares_of_an_axis_of_the_run(self):
        """The weights of an attention, along an axis that is as long as the values' known one."""
        q, x, v = floats(2, 3, 3, 4), floats(2, 3, 12), floats(2, 3, 3, 5)
        make = helper.make_node
        nodes = [make("Reshape", ["x", "shape"], ["k"]), make("Transpose", ["k"], ["t"], perm=[0, 2, 3, 1]), make("MatMul", ["q", "t"], ["scores"]),
                 make("Softmax", ["scores"], ["shares"]), make("MatMul", ["shares", "v"], ["y0"])]
        scores = np.exp(np.matmul(q, x.reshape(2, 3, 3, 4).transpose(0, 2, 3, 1)))
        right = np.matmul(scores / scores.sum(-1, keepdims=True), v)
        self.check_close(nodes, {"q": q, "x": x, "v": v, "shape": ints(2, 3, 3, 4)}, right)

    def check_reshaped(self, nodes, x, shapes, right, opset=23):
        """The nodes on x in shapes of the run, of which some fit what the model knows."""
        make = [helper.make_node("Reshape", ["x", "shape"], ["own"])]
        for shape in shapes:
            self.check_nodes([*make, *nodes], {"x": x, "shape": ints(*shape)}, right(x.reshape(shape)), opset, 4)

    def test_axes_of_known_extents(self):
        """Channels, normalized axes and parts, which the model's own numbers tell."""
        x, make = floats(48), helper.make_node

        def constant(name, array):
            return make("Constant", [], [name], value=numpy_helper.from_array(array, name))

        weights = floats(4, 3, 1, 1)
        self.check_reshaped([constant("w", weights), make("Conv", ["own", "w"], ["y0"])], x, ((1, 3, 4, 4), (2, 3, 8, 1)),
                            lambda v: [np.einsum("nchw,mc->nmhw", v, weights[:, :, 0, 0])])
        scale = floats(6)
        self.check_reshaped([constant("s", scale), make("PRelu", ["own", "s"], ["y0"])], x, ((8, 6), (2, 4, 6)), lambda v: [np.where(v < 0, v * scale, v)])
        self.check_reshaped([constant("s", scale), make("LayerNormalization", ["own", "s"], ["y0"])], x, ((8, 6), (2, 4, 6)),
                            lambda v: [(v - v.mean(-1, keepdims=True)) / np.sqrt(v.var(-1, keepdims=True) + 1e-5) * scale])
        self.check_reshaped([constant("s", scale), make("RMSNormalization", ["own", "s"], ["y0"])], x, ((8, 6),),
                            lambda v: [v / np.sqrt((v * v).mean(-1, keepdims=True) + 1e-5) * scale])
        ones = floats(4)

        def grouped(v, groups):
            rows = v.reshape(len(v), groups, -1)
            rows = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
            return [rows.reshape(v.shape) * ones.reshape(4, 1, 1) + ones.reshape(4, 1, 1)]

        self.check_reshaped([constant("s", ones), make("GroupNormalization", ["own", "s", "s"], ["y0"], num_groups=2)], x, ((1, 4, 6, 2), (3, 4, 2, 2)),
                            lambda v: grouped(v, 2))
        self.check_reshaped([constant("s", ones), make("InstanceNormalization", ["own", "s", "s"], ["y0"])], x, ((2, 4, 3, 2),), lambda v: grouped(v, 4))
        self.check_reshaped([constant("n", ints(2, 4)), make("Split", ["own", "n"], ["y0", "y1"], axis=1)], x, ((8, 6), (2, 6, 4)),
                            lambda v: [v[:, :2], v[:, 2:]])
        self.check_reshaped([make("Split", ["own"], ["y0", "y1"], axis=1, num_outputs=2)], x, ((8, 6), (2, 3, 8)),
                            lambda v: [v[:, :(v.shape[1] + 1) // 2], v[:, (v.shape[1] + 1) // 2:]])
        self.check_reshaped([constant("n", ints(1)), make("Squeeze", ["own", "n"], ["y0"])], x, ((6, 1, 8), (48, 1, 1)), lambda v: [v[:, 0]])
        with self.assertRaisesRegex(AssertionError, 'node "Conv_2".*(axis -3 of an operand of 4 elements meets one of 3|4 channels, the weights take 3)'):
            self.check_reshaped([constant("w", weights), make("Conv", ["own", "w"], ["y0"])], x, ((1, 4, 4, 3),), lambda v: [v])
        with self.assertRaisesRegex(AssertionError, 'node "Squeeze_2".*axis 1 has extent 3, expected 1'):
            self.check_reshaped([constant("n", ints(1)), make("Squeeze", ["own", "n"], ["y0"])], x, ((2, 3, 8),), lambda v: [v])

    def test_products_with_what_is_known(self):
        x, weights = floats(24), floats(2, 4, 3)
        make = helper.make_node
        nodes = [make("Reshape", ["x", "shape"], ["own"]), make("MatMul", ["own", "weights"], ["y0"])]
        for shape in ((6, 4), (1, 6, 4), (2, 3, 4), (3, 1, 2, 4), (3, 2, 1, 4)):
            self.check_close(nodes, {"x": x, "weights": weights, "shape": ints(*shape)}, np.matmul(x.reshape(shape), weights))
        for shape in ((4, 6), (3, 2, 4), (2, 4, 3), (24,)):
            with self.assertRaisesRegex(AssertionError, 'node "MatMul_1".*(axis -[123] of an operand of [0-9]+ elements meets one of [24]|do not (broadcast|multiply))'):
                self.check_close(nodes, {"x": x, "weights": weights, "shape": ints(*shape)}, x)

    def test_joined(self):
        x, y = floats(12), floats(6)
        for axis, first, second in ((0, (4, 3), (2, 3)), (1, (3, 4), (3, 2)), (-1, (2, 3, 2), (2, 3, 1)), (0, (12,), (6,)), (1, (2, 3, 2), (2, 3, 1)),
                                    (0, (3, 4), (6, 1))):
            nodes = [helper.make_node("Concat", ["x_own", "y_own", "x_own"], ["y0"], axis=axis)]
            a, b = x.reshape(first), y.reshape(second)
            try:
                right = np.concatenate([a, b, a], axis)
            except ValueError:
                with self.assertRaisesRegex(AssertionError, 'node "Concat_2".*(axis -[123] of an operand of [0-9]+ elements meets one of [0-9]+|they differ outside of axis)'):
                    self.reshaped(nodes, {"x": x, "y": y}, [x], x=first, y=second)
                continue
            self.reshaped(nodes, {"x": x, "y": y}, [right], x=first, y=second)

    def test_joined_with_what_is_fixed(self):
        """What data leaves is as long as the other part, or it is no run."""
        x, y = floats(2, 5), floats(3, 5)
        make = helper.make_node
        nodes = [make("Compress", ["x", "k"], ["a"], axis=1), make("Concat", ["a", "y"], ["y0"], axis=0)]
        self.check_nodes(nodes, {"x": x, "y": y, "k": np.ones(5, bool)}, [np.concatenate([x, y])])
        for k in ((1, 1, 0, 1, 1), (0, 0, 0, 1, 0), (0, 0, 0, 0, 0)):
            with self.assertRaisesRegex(AssertionError, f'node "Concat_1": axis -1 of an operand of {sum(k)} elements meets one of 5'):
                self.check_nodes(nodes, {"x": x, "y": y, "k": np.array(k, bool)}, [x])

    def test_expanded(self):
        x = floats(6)
        make = helper.make_node
        nodes = [make("Expand", ["x_own", "to"], ["y0"])]
        for own, to in (((2, 3), (2, 3)), ((6, 1), (6, 4)), ((1, 6), (3, 6)), ((6, 1), (2, 1, 5)), ((2, 3), (1,)), ((1, 6), (1, 1)), ((6, 1), (6, 0))):
            right = np.broadcast_to(x.reshape(own), np.broadcast_shapes(own, to)).copy()
            self.reshaped(nodes, {"x": x, "to": ints(*to)}, [right], x=own)
        for own, to in (((2, 3), (2, 4)), ((6, 1), (3, 6)), ((2, 3), (0, 3))):
            with self.assertRaisesRegex(AssertionError, 'node "Expand_1".*(axis -[12] of an operand of [0-9] elements meets one of [0-9]|do not broadcast)'):
                self.reshaped(nodes, {"x": x, "to": ints(*to)}, [x], x=own)
        for k in ((1, 1, 1, 1, 1, 1), (0, 0, 1, 0, 0, 0)):
            feed, chosen = {"x": x, "k": np.array(k, bool)}, x[np.array(k, bool)]
            nodes = [make("Compress", ["x", "k"], ["some"], axis=0), make("Constant", [], ["to"], value_ints=[2, 6]), make("Expand", ["some", "to"], ["y0"])]
            self.check_nodes(nodes, feed, [np.broadcast_to(chosen, (2, 6)).copy()])
        with self.assertRaisesRegex(AssertionError, 'node "Expand_2": axis -1 of an operand of 2 elements meets one of 6'):
            self.check_nodes(nodes, {**feed, "k": np.array([0, 1, 0, 0, 1, 0], bool)}, [x])

    def test_attention(self):
        """Heads apart and together again by shapes that are each an operand of their own."""
        make = helper.make_node
        nodes = [make("Transpose", ["q_own"], ["q_heads"], perm=[0, 2, 1, 3]), make("Transpose", ["k_own"], ["k_heads"], perm=[0, 2, 3, 1]),
                 make("Transpose", ["v_own"], ["v_heads"], perm=[0, 2, 1, 3]), make("MatMul", ["q_heads", "k_heads"], ["scores"]),
                 make("Softmax", ["scores"], ["weights"], axis=-1), make("MatMul", ["weights", "v_heads"], ["all"]),
                 make("Transpose", ["all"], ["moved"], perm=[0, 2, 1, 3]), make("Reshape", ["moved", "last"], ["y0"])]
        for batch, queries, keys, heads, width in ((2, 3, 3, 2, 4), (1, 2, 5, 3, 2), (2, 1, 4, 1, 6)):
            q, k, v = floats(batch, queries, heads * width), floats(batch, keys, heads * width), floats(batch, keys, heads * width)
            shapes = {"q": (batch, queries, heads, width), "k": (batch, -1, heads, width), "v": (0, 0, heads, -1)}
            own = {"q": q.reshape(shapes["q"]), "k": k.reshape(batch, keys, heads, width), "v": v.reshape(batch, keys, heads, width)}
            scores = np.einsum("bqhd,bkhd->bhqk", own["q"], own["k"])
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            right = np.einsum("bhqk,bkhd->bqhd", weights, own["v"]).reshape(batch, queries, -1)
            makers = [make("Reshape", [name, f"{name}_shape"], [f"{name}_own"]) for name in shapes]
            feed = {"q": q, "k": k, "v": v, **{f"{name}_shape": ints(*shape) for name, shape in shapes.items()}, "last": ints(0, 0, -1)}
            self.check_close([*makers, *nodes], feed, right)


if __name__ == "__main__":
    unittest.main()
