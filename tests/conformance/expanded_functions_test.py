"""Functions of the standard written out as nodes, as other tools hand them on: shapes computed by Shape, Concat and Range,
branches that depend on ranks, padded masks, loops. Values by numpy."""

import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from attention_forms_test import attention
from one_node import RANDOM, OneNode, element_type, floats

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Body:
    """Nodes, added one by one; each gives the names of its outputs, or the only one."""

    def __init__(self, prefix=""):
        self.nodes, self.prefix = [], prefix

    def add(self, op, *inputs, outputs=1, **attributes):
        names = [f"{self.prefix}{op}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, values, dtype=np.int64):
        return self.add("Constant", value=numpy_helper.from_array(np.array(values, dtype)))

    def extent(self, x, axis):
        return self.add("Shape", x, start=axis, end=axis + 1)

    def branch(self, condition, yes, no, dtype=FLOAT):
        """If; `yes` and `no` add to a body and give the name of its output."""
        graphs = []
        for prefix, part in (("yes", yes), ("no", no)):
            inner = Body(f"{self.prefix}{prefix}_{len(self.nodes)}_")
            out = part(inner)
            graphs.append(helper.make_graph(inner.nodes, prefix, [], [helper.make_tensor_value_info(out, dtype, None)]))
        return self.add("If", condition, then_branch=graphs[0], else_branch=graphs[1])


class Expanded(OneNode):
    def check_body(self, body, outputs, opset, feed, expected, digits=5):
        """`outputs`: the names that the body gives to what is `expected`."""
        nodes = list(body.nodes) + [helper.make_node("Identity", [name], [f"y{i}"]) for i, name in enumerate(outputs)]
        graph = helper.make_graph(
            nodes, "body", [helper.make_tensor_value_info(name, element_type(array), array.shape) for name, array in feed.items()],
            [helper.make_tensor_value_info(f"y{i}", element_type(array), None) for i, array in enumerate(expected)])

        def expect(answer, actual):
            self.assertTrue(answer.startswith("ok "), answer)
            for i, right in enumerate(expected):
                self.assertEqual((actual[str(i)].dtype, actual[str(i)].shape), (right.dtype, right.shape))
                np.testing.assert_allclose(actual[str(i)], right, rtol=1e-3, atol=10.0**-digits)

        self.run_model(graph, opset, feed, expect)


def heads_apart(b, x, heads):
    shape = b.add("Concat", b.extent(x, 0), b.extent(x, 1), b.constant([heads]), b.constant([-1]), axis=0)
    return b.add("Transpose", b.add("Reshape", x, shape), perm=[0, 2, 1, 3])


def repeated(b, x, heads):
    """Each head of keys or values as often as queries share it."""
    have = b.extent(x, 1)
    even = b.add("Equal", b.add("Mod", heads, have), b.constant([0]))
    shares = b.add("And", b.add("Not", b.add("Equal", heads, have)), even)
    times = b.add("Where", shares, b.add("Div", heads, have), b.constant([1]))
    front, behind = b.add("Shape", x, start=0, end=2), b.add("Shape", x, start=2)
    wide = b.add("Expand", b.add("Unsqueeze", x, b.constant([2])), b.add("Concat", front, times, behind, axis=0))
    return b.add("Reshape", wide, b.add("Concat", b.extent(x, 0), heads, behind, axis=0))


def attention_body(feed, causal=False, softcap=0.0, heads=None):
    """Operands q, k, v and, where `feed` has them, mask, past_k, past_v and valid. Y, keys, values and the four scores."""
    b = Body()
    q, k, v = (heads_apart(b, x, count) for x, count in zip("qkv", heads)) if heads else "qkv"
    zero, minus = b.constant([0], np.float32), b.constant([-np.inf], np.float32)
    root = b.add("Sqrt", b.add("Div", b.constant([1], np.float32), b.add("Sqrt", b.add("Cast", b.add("Shape", q, start=3), to=FLOAT))))
    before = b.constant([0])
    if "past_k" in feed:
        before = b.extent("past_k", 2)
        k, v = b.add("Concat", "past_k", k, axis=2), b.add("Concat", "past_v", v, axis=2)
    keys = b.extent(k, 2)
    square = b.add("Concat", b.extent(q, 2), keys, axis=0)
    if "mask" in feed:
        added = b.add("Where", "mask", zero, minus) if feed["mask"].dtype == bool else "mask"
        missing = b.add("Sub", keys, b.add("Shape", "mask", start=-1))
        bias = b.add("Pad", added, b.add("Concat", b.constant([0]), missing, axis=0), b.add("CastLike", minus, added), b.constant([-1]))
    else:
        bias = b.add("ConstantOfShape", square)
    if causal:
        ones = b.add("ConstantOfShape", square, value=helper.make_tensor("one", BOOL, [1], [True]))
        bias = b.add("Add", bias, b.add("Where", b.add("Trilu", ones, before, upper=0), zero, minus))
    if "valid" in feed:
        counted = b.add("Range", b.constant(0), b.add("Squeeze", keys), b.constant(1))
        seen = b.add("Less", counted, b.add("Unsqueeze", "valid", b.constant([1])))
        bias = b.add("Add", bias, b.add("Unsqueeze", b.add("Where", seen, zero, minus), b.constant([1, 2])))
    count = b.extent(q, 1)
    turned = b.add("Transpose", repeated(b, k, count), perm=[0, 1, 3, 2])
    products = b.add("MatMul", b.add("Mul", q, root), b.add("Mul", turned, root))
    capped = products
    if softcap:
        cap = b.constant([softcap], np.float32)
        capped = b.add("Mul", b.add("Tanh", b.add("Div", products, cap)), cap)
    masked = b.add("Add", capped, bias)
    weights = b.add("Softmax", masked)
    y = b.add("MatMul", weights, repeated(b, v, count))
    if heads:
        y = b.add("Reshape", b.add("Transpose", y, perm=[0, 2, 1, 3]), b.constant([0, 0, -1]))
    return b, [y, k, v, products, capped, masked, weights]


class Attention(Expanded):
    def check_attention(self, heads=(6, 2), flat=False, softcap=0.0, causal=False, past=0, **more):
        q, k, v = floats(2, heads[0], 4, 8), floats(2, heads[1], 5, 8), floats(2, heads[1], 5, 6)
        feed = dict(zip("qkv", (q, k, v)), **more)
        kept = None
        if past:
            kept = floats(2, heads[1], past, 8), floats(2, heads[1], past, 6)
            feed.update(past_k=kept[0], past_v=kept[1])
        stages = [attention(q, k, v, more.get("mask"), kept, more.get("valid"), causal, softcap=softcap, mode=mode) for mode in range(4)]
        expected = [*stages[0][:3], *(stage[3] for stage in stages)]
        if flat:
            feed.update({name: feed[name].transpose(0, 2, 1, 3).reshape(2, feed[name].shape[2], -1) for name in "qkv"})
            expected[0] = expected[0].transpose(0, 2, 1, 3).reshape(2, 4, -1)
        body, outputs = attention_body(feed, causal, softcap, (heads[0], heads[1], heads[1]) if flat else None)
        self.check_body(body, outputs, 24, feed, expected)

    def test_heads(self):
        for flat in (False, True):
            for heads in ((3, 3), (6, 2), (4, 1)):
                self.check_attention(heads, flat)
                self.check_attention(heads, flat, causal=True, past=3)

    def test_masks(self):
        for shape in ((4, 5), (1, 5), (6, 4, 5), (2, 1, 4, 5), (2, 6, 4, 3), (4, 4)):
            self.check_attention(mask=floats(*shape), softcap=1.5)
            self.check_attention(mask=(RANDOM.integers(0, 2, shape) + (np.arange(shape[-1]) == 1)).astype(bool))

    def test_valid_lengths(self):
        lengths = np.array([3, 4], np.int64)
        self.check_attention(valid=lengths)
        self.check_attention(valid=lengths, mask=floats(2, 6, 4, 4), flat=True)


class Functions(Expanded):
    def test_rms_normalization(self):
        x = floats(2, 3, 4, 5)
        for axis in range(4):
            scale = floats(*x.shape[axis:])
            b = Body()
            rank = b.add("Size", b.add("Shape", "x"))
            axes = b.add("Range", b.constant(axis), rank, b.constant(1))
            mean = b.add("ReduceMean", b.add("Pow", "x", b.constant(2, np.float32)), axes)
            root = b.add("Sqrt", b.add("Add", mean, b.constant(1e-5, np.float32)))
            y = b.add("Mul", b.add("Div", "x", root), "scale")
            right = x / np.sqrt((x.astype(np.float64) ** 2).mean(tuple(range(axis, 4)), keepdims=True) + 1e-5) * scale
            self.check_body(b, [y], 23, {"x": x, "scale": scale}, [right.astype(np.float32)])

    def test_activations(self):
        """Numbers are float32 constants, in the type of the data by CastLike."""
        def number(b, value, by_attribute=False):
            constant = b.add("Constant", value_float=float(value)) if by_attribute else b.constant(value, np.float32)
            return b.add("CastLike", constant, "x")

        def less(b, value, yes, no):
            return b.add("Where", b.add("Less", "x", value), yes, no)

        def elu(b):
            return less(b, number(b, 0), b.add("Mul", number(b, 2, True), b.add("Sub", b.add("Exp", "x"), number(b, 1))), "x")

        def selu(b):
            alpha, gamma = number(b, 2, True), number(b, 3, True)
            low = b.add("Mul", gamma, b.add("Sub", b.add("Mul", alpha, b.add("Exp", "x")), alpha))
            return less(b, number(b, 0), low, b.add("Mul", gamma, "x"))

        def hard_sigmoid(b):
            line = b.add("Add", b.add("Mul", "x", number(b, 0.5, True)), number(b, 0.6, True))
            return b.add("Max", b.add("Min", line, number(b, 1)), number(b, 0))

        def shrink(b):
            limit, bias = number(b, 0.75, True), number(b, 0.25, True)
            high = b.add("Where", b.add("Less", limit, "x"), b.add("Sub", "x", bias), number(b, 0))
            return less(b, b.add("Neg", limit), b.add("Add", "x", bias), high)

        x = floats(3, 4, 5)
        wide = x.astype(np.float64)
        shrunk = np.where(wide < -0.75, wide + 0.25, np.where(wide > 0.75, wide - 0.25, 0))
        for part, right in ((elu, np.where(wide < 0, 2 * np.expm1(wide), wide)), (selu, 3 * np.where(wide < 0, 2 * np.expm1(wide), wide)),
                            (hard_sigmoid, np.clip(wide / 2 + 0.6, 0, 1)), (shrink, shrunk),
                            (lambda b: b.add("Log", b.add("Add", b.add("Exp", "x"), number(b, 1))), np.log1p(np.exp(wide))),
                            (lambda b: b.add("Div", "x", b.add("Add", number(b, 1), b.add("Abs", "x"))), wide / (1 + np.abs(wide)))):
            for dtype, digits in ((np.float32, 5), (np.float16, 2)):
                b = Body()
                self.check_body(b, [part(b)], 18, {"x": x.astype(dtype)}, [right.astype(dtype)], digits)

    def test_limits(self):
        x, low, high = floats(3, 4), np.array(-0.5, np.float32), np.array(0.25, np.float32)
        for dtype in (np.float32, np.int8):
            feed = {name: (4 * array).astype(dtype) for name, array in (("x", x), ("low", low), ("high", high))}
            b = Body()
            raised = b.add("Where", b.add("Less", "x", "low"), "low", "x")
            y = b.add("Where", b.add("Less", "high", raised), "high", raised)
            self.check_body(b, [y], 13, feed, [np.clip(feed["x"], feed["low"], feed["high"])])

    def test_affine_grids(self):
        """The rank decides between branches of other shapes."""
        for spatial in ((4, 5), (2, 3, 4)):
            rank = len(spatial)
            theta, size = floats(2, rank, rank + 1), np.array([2, 3, *spatial], np.int64)
            b = Body()
            is_deep = b.add("Equal", b.add("Size", "size"), b.constant(5))
            extents = b.branch(is_deep, lambda i: i.add("Slice", "size", i.constant([2]), i.constant([5])),
                               lambda i: i.add("Concat", i.constant([1]), i.add("Slice", "size", i.constant([2]), i.constant([4])), axis=0),
                               INT64)
            places = []
            for axis, part in enumerate(b.add("Split", extents, outputs=3, num_outputs=3)):
                count = b.add("Cast", b.add("Squeeze", part), to=FLOAT)
                step = b.add("Div", b.constant(2, np.float32), count)
                start = b.add("Sub", b.add("Div", step, b.constant(2, np.float32)), b.constant(1, np.float32))
                line = b.add("Range", b.constant(0, np.float32), count, b.constant(1, np.float32))
                place = b.add("Add", b.add("Mul", line, step), start)
                shape = [1, 1, 1, 1]
                shape[axis] = -1
                places.append(b.add("Expand", b.add("Reshape", place, b.constant(shape)), b.add("Concat", extents, b.constant([1]), axis=0)))
            flat = b.branch(is_deep, lambda i: i.add("Concat", places[2], places[1], places[0], axis=3),
                            lambda i: i.add("Squeeze", i.add("Concat", places[2], places[1], axis=3), i.constant([0])))
            matrix, shift = b.add("Split", "theta", b.constant([rank, 1]), outputs=2, axis=2)
            rows = b.add("Reshape", flat, b.constant([-1, rank]))
            moved = b.add("Add", b.add("MatMul", rows, b.add("Transpose", matrix, perm=[0, 2, 1])), b.add("Transpose", shift, perm=[0, 2, 1]))
            shape = b.add("Concat", b.add("Shape", "theta", end=1), b.add("Shape", flat), axis=0)
            axes = [(2 * np.arange(n) + 1) / n - 1 for n in spatial]
            grid = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(spatial)], -1)
            right = np.einsum("nij,...j->n...i", theta.astype(np.float64), grid).astype(np.float32)
            self.check_body(b, [b.add("Reshape", moved, shape)], 20, {"theta": theta, "size": size}, [right])

    def test_sizes_of_the_middle(self):
        x = floats(7, 4, 3)
        for target in ((3, 6), (10, 2), (7, 5)):
            b = Body()
            axes, two = b.constant([0, -2]), b.constant([2])
            have = b.add("Gather", b.add("Shape", "x"), axes)
            more = b.add("Sub", b.add("Max", have, "target"), have)
            half = b.add("Div", more, two)
            wide = b.add("Pad", "x", b.add("Concat", half, b.add("Sub", more, half), axis=0), "", axes)
            start = b.add("Div", b.add("Sub", b.add("Gather", b.add("Shape", wide), axes), "target"), two)
            y = b.add("Slice", wide, start, b.add("Add", start, "target"), axes)
            right = x
            for axis, count in enumerate(target):
                spare, missing = (max(0, sign * (right.shape[axis] - count)) for sign in (1, -1))
                right = np.take(right, range(spare // 2, right.shape[axis] - (spare + 1) // 2), axis)
                right = np.pad(right, [(missing // 2, (missing + 1) // 2) if i == axis else (0, 0) for i in range(3)])
            self.check_body(b, [y], 18, {"x": x, "target": np.array(target, np.int64)}, [right])

    def test_losses(self):
        scores, weights = floats(3, 5, 2, 2), np.abs(floats(5))
        labels = RANDOM.integers(0, 5, (3, 2, 2)).astype(np.int64)
        labels[0, 0, 0] = -1
        b = Body()
        logs = b.add("Reshape", b.add("LogSoftmax", b.add("Reshape", "scores", b.constant([0, 0, -1])), axis=1), b.add("Shape", "scores"))
        target = b.add("Unsqueeze", "labels", b.constant([1]))
        ignored = b.add("Equal", target, b.constant(-1))
        chosen = b.add("GatherElements", logs, b.add("Where", ignored, b.add("Sub", target, target), target), axis=1)
        zero = b.constant(0, np.float32)
        loss = b.add("Squeeze", b.add("Neg", b.add("Where", ignored, zero, chosen)), b.constant([1]))
        safe = b.add("Where", b.add("Squeeze", ignored, b.constant([1])), b.constant(0), "labels")
        weight = b.add("Where", b.add("Squeeze", ignored, b.constant([1])), zero, b.add("Gather", "weights", safe))
        mean = b.add("Div", b.add("ReduceSum", b.add("Mul", loss, weight), keepdims=0), b.add("ReduceSum", weight, keepdims=0))
        wide = scores.astype(np.float64)
        right_logs = wide - np.log(np.exp(wide).sum(1, keepdims=True))
        kept = np.where(labels < 0, 0, weights[labels])
        losses = -np.take_along_axis(right_logs, np.maximum(labels, 0)[:, None], 1)[:, 0] * kept
        self.check_body(b, [mean, logs], 15, {"scores": scores, "labels": labels, "weights": weights},
                        [np.array(losses.sum() / kept.sum(), np.float32), right_logs.astype(np.float32)])
        self.check("SoftmaxCrossEntropyLoss", 13, [scores, labels, weights],
                   [np.array(losses.sum() / kept.sum(), np.float32), right_logs.astype(np.float32)], ignore_index=-1)

    def test_sequences_by_loops(self):
        first, second, added = floats(2, 3), floats(4, 3), floats(3)
        sequence = helper.make_tensor_sequence_value_info
        inner = Body("in_")
        scalar = helper.make_tensor_value_info
        kept = inner.add("Identity", "going")
        more = inner.add("SequenceInsert", "made", inner.add("Add", inner.add("SequenceAt", "all", "i"), "added"))
        loop = helper.make_graph(inner.nodes, "each", [scalar("i", INT64, []), scalar("going", BOOL, []), sequence("made", FLOAT, None)],
                                 [scalar(kept, BOOL, []), sequence(more, FLOAT, None)])
        b = Body()
        b.nodes.append(helper.make_node("SequenceConstruct", ["first", "second"], ["all"]))
        made = b.add("Loop", b.add("SequenceLength", "all"), b.constant(True, bool), b.add("SequenceEmpty", dtype=FLOAT), body=loop)
        self.check_body(b, [b.add("ConcatFromSequence", made, axis=0)], 17, {"first": first, "second": second, "added": added},
                        [np.concatenate([first, second]) + added])

    def test_ranges_by_loops(self):
        for start, limit, step in ((1, 5, 2), (10, 6, -3), (5, 1, 2)):
            inner = Body("in_")
            kept, following, now = inner.add("Identity", "going"), inner.add("Add", "last", "step"), inner.add("Identity", "last")
            scalar = helper.make_tensor_value_info
            loop = helper.make_graph(inner.nodes, "count", [scalar("i", INT64, []), scalar("going", BOOL, []), scalar("last", FLOAT, [])],
                                     [scalar(kept, BOOL, []), scalar(following, FLOAT, []), scalar(now, FLOAT, [])])
            b = Body()
            count = b.add("Relu", b.add("Ceil", b.add("Div", b.add("Sub", "limit", "start"), "step")))
            _, y = b.add("Loop", b.add("Cast", count, to=INT64), b.add("Cast", count, to=BOOL), "start", outputs=2, body=loop)
            feed = {name: np.array(value, np.float32) for name, value in (("start", start), ("limit", limit), ("step", step))}
            self.check_body(b, [y], 18, feed, [np.arange(start, limit, step).astype(np.float32)])


if __name__ == "__main__":
    unittest.main()
