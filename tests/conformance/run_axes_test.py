"""Axes, shapes, places and sizes that are numbers of a run: nothing of them is known when the model is compiled. Values by
numpy."""

import itertools
import unittest

import numpy as np
from onnx import helper, numpy_helper

import cases
from one_node import OneNode, element_type, floats

AXES = r'node ".*": (axis -?[0-9]+ is none of|axes .* are not each one of) -[0-9]+ to [0-9]'
LONG = 'node ".*": axes .* of shape .* are not all of one element'
# By the node alone, or by an import of the model at the numbers of that run.
SHAPE = r'node ".*"( \(Reshape\))?: (shape .* is none of [0-9]+ elements, of shape|.*shape has -|.*does not reshape to \[|shape .* is too large|shape has 0 at)'
SPLIT = 'node ".*": lengths .* of parts are no split of [0-9]+ elements'


def log_sum_exp(x, axis, keepdims):
    most = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    most = np.where(np.isfinite(most), most, 0)
    with np.errstate(divide="ignore"):
        found = np.log(np.sum(np.exp(x - most), axis=axis, keepdims=True)) + most
    return found if keepdims else np.squeeze(found, axis)


REDUCTIONS = {
    "ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min, "ReduceProd": np.prod,
    "ReduceL1": lambda x, **own: np.sum(np.abs(x), **own), "ReduceL2": lambda x, **own: np.sqrt(np.sum(x * x, **own)),
    "ReduceSumSquare": lambda x, **own: np.sum(x * x, **own), "ReduceLogSum": lambda x, **own: np.log(np.sum(x, **own)),
    "ReduceLogSumExp": log_sum_exp,
}


def ints(*values):
    return np.array(values, np.int64)


class OfARun(OneNode):
    """No value is bound when the model is compiled."""

    def answer(self, model, feed, buckets=""):
        found = super().answer(model, feed, buckets)
        self.assertRegex(found, "^(ok 0 |error )")
        return found

    def refuse(self, words, *operands, **options):
        with self.assertRaisesRegex(AssertionError, words):
            self.check(*operands, **options)

    def check_nodes(self, nodes, inputs, right, opset=21, digits=None):
        """`inputs`: by name; the outputs are y0, y1 ..., in the order of what is right, to so many decimal digits, or as near as the
        standard's cases have to be."""
        graph = helper.make_graph(nodes, "graph", [helper.make_tensor_value_info(name, element_type(array), array.shape)
                                                   for name, array in inputs.items()],
                                  [helper.make_tensor_value_info(f"y{i}", element_type(array), None) for i, array in enumerate(right)])

        def expect(answer, actual):
            self.assertTrue(answer.startswith("ok "), answer)
            for i, array in enumerate(right):
                if digits is None:
                    self.assertEqual(cases.difference(actual[str(i)], array), "")
                    continue
                self.assertEqual(actual[str(i)].shape, array.shape)
                np.testing.assert_almost_equal(actual[str(i)], array, digits)

        self.run_model(graph, opset, inputs, expect)

    def check_nodes_with(self, nodes, constants, inputs, right):
        given = [helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array, name)) for name, array in constants.items()]
        self.check_nodes([*given, *nodes], inputs, right)

    def after_compress(self, node, x, keep, axis, others, right):
        """The node's first operand is what is kept of x along an axis."""
        self.check_nodes([helper.make_node("Compress", ["x", "keep"], ["some"], axis=axis), node], {"x": x, "keep": np.array(keep), **others},
                         right)


class Reductions(OfARun):
    def test_each_over_each_axes(self):
        x = np.abs(floats(2, 3, 4)) + np.float32(0.1)
        for op, reduce in REDUCTIONS.items():
            for axes, keepdims in itertools.product(((1,), (-1,), (0, 2), (-2, 0), (2, 1, 0)), (0, 1)):
                with self.subTest(op=op, axes=axes, keepdims=keepdims):
                    right = reduce(x, axis=tuple(a % 3 for a in axes), keepdims=bool(keepdims))
                    self.check(op, 18, [x, ints(*axes)], [right], digits=4, keepdims=keepdims)

    def test_no_axes(self):
        """An empty list is one whatever the run says."""
        x = np.abs(floats(3, 2)) + np.float32(0.1)
        for op, reduce in REDUCTIONS.items():
            self.check(op, 18, [x, ints()], [reduce(x, axis=(0, 1), keepdims=True)], digits=4)
            alone = reduce(x[None], axis=(0,), keepdims=False)
            self.check(op, 18, [x, ints()], [alone], noop_with_empty_axes=1)
        self.check("ReduceSum", 13, [x, ints()], [x], noop_with_empty_axes=1, keepdims=0)

    def test_types(self):
        for dtype in (np.int32, np.int64, np.uint32, np.uint64, np.float16, np.float64):
            x = (floats(3, 4) * 4 + 9).astype(dtype)
            for keepdims in (0, 1):
                self.check("ReduceSum", 13, [x, ints(1)], [np.sum(x, 1, dtype=dtype, keepdims=bool(keepdims))], digits=1, keepdims=keepdims)
        for dtype in (np.int8, np.uint8, bool):
            x = (floats(3, 4) > 0).astype(dtype)
            self.check("ReduceMax", 20, [x, ints(0)], [np.max(x, 0, keepdims=True)])
            self.check("ReduceMin", 20, [x, ints(0)], [np.min(x, 0)], keepdims=0)
        many = np.full((4, 3), 30000, np.float16)
        self.check("ReduceMean", 18, [many, ints(0, 1)], [np.full((1, 1), 30000, np.float16)])

    def test_large_exponents(self):
        x = np.array([[1000, 1000, -1000], [-np.inf, -np.inf, -np.inf]], np.float32)
        for axes in ((1,), (0, 1), (0,)):
            self.check("ReduceLogSumExp", 18, [x, ints(*axes)], [log_sum_exp(x, axes, True)], digits=3)

    def test_nothing_to_reduce(self):
        x = np.zeros((2, 0, 3), np.float32)
        for axes, keepdims in itertools.product(((1,), (0,), (0, 2), (1, 2), (0, 1, 2)), (0, 1)):
            kept = bool(keepdims)
            self.check("ReduceSum", 13, [x, ints(*axes)], [np.sum(x, axes, keepdims=kept)], keepdims=keepdims)
            lowest = np.max(x, axes, keepdims=kept, initial=-np.inf)
            self.check("ReduceMax", 18, [x, ints(*axes)], [lowest], keepdims=keepdims)

    def test_free_dims(self):
        for rows, columns in ((5, 3), (8, 11), (1, 1), (0, 3)):
            x = floats(rows, 4, columns)
            for axes, keepdims in itertools.product(((0,), (2, 1)), (0, 1)):
                own = tuple(a % 3 for a in axes)
                for op in ("ReduceLogSumExp", "ReduceProd"):
                    self.check(op, 18, [x, ints(*axes)], [REDUCTIONS[op](x, axis=own, keepdims=bool(keepdims))], keepdims=keepdims,
                               free={0: {0: "R", 2: "C"}}, buckets="R=2,8;C=3")

    def test_what_data_decides(self):
        x = floats(4, 5)
        keep = np.array([True, False, True, True, False])
        for axes, keepdims, op in itertools.product(((0,), (1,), (-1, 0)), (0, 1), ("ReduceMean", "ReduceMax", "ReduceProd")):
            node = helper.make_node(op, ["some", "axes"], ["y0"], keepdims=keepdims)
            right = REDUCTIONS[op](x[:, keep], axis=tuple(a % 2 for a in axes), keepdims=bool(keepdims))
            self.after_compress(node, x, keep, 1, {"axes": ints(*axes)}, [np.asarray(right)])

    def test_what_is_reduced_meets_the_rest(self):
        """One element stands for all along an axis that is reduced, and for itself along another."""
        x, make = floats(3, 4), helper.make_node
        nodes = [make("ReduceMean", ["x", "axes"], ["mean"]), make("Sub", ["x", "mean"], ["away"]), make("Mul", ["away", "away"], ["square"]),
                 make("ReduceMean", ["square", "axes"], ["variance"]), make("Sqrt", ["variance"], ["deviation"]),
                 make("Div", ["away", "deviation"], ["y0"]), make("Greater", ["mean", "x"], ["y1"]), make("Where", ["y1", "mean", "x"], ["y2"])]
        for axes in ((0,), (1,), (-1, 0)):
            mean, deviation = x.mean(axes, keepdims=True), x.std(axes, keepdims=True)
            self.check_nodes(nodes, {"x": x, "axes": ints(*axes)}, [(x - mean) / deviation, mean > x, np.maximum(mean, x)], 18)

    def test_axes_that_are_none(self):
        x = floats(2, 3)
        for axes, keepdims in itertools.product(((2,), (-3,), (0, 0), (1, -1), (2**40,), (-2**63,)), (0, 1)):
            self.refuse(AXES, "ReduceSum", 13, [x, ints(*axes)], [x], keepdims=keepdims)
            self.refuse(AXES, "ReduceSum", 13, [x[:1, :1], ints(*axes)], [x], keepdims=keepdims)
        self.refuse("axis 7 is none of -2 to 1", "ReduceSum", 13, [x, ints(7)], [x])
        self.refuse(r"axes \[0,-2\] are not each one of -2 to 1, and none twice", "ReduceSum", 13, [x, ints(0, -2)], [x])
        self.refuse("3 axes of rank 2", "ReduceSum", 13, [x, ints(0, 1, 2)], [x])


class Shapes(OfARun):
    def test_reshape(self):
        x = floats(2, 3, 4)
        for shape in ((24,), (6, 4), (4, -1), (-1, 6), (0, -1), (0, 0, 4), (2, 0, -1), (1, 24, 1), (3, 2, 2, 2), (-1,), (0, 12)):
            right = x.reshape([x.shape[d] if extent == 0 else extent for d, extent in enumerate(shape)])
            self.check("Reshape", 14, [x, ints(*shape)], [right])
        self.check("Reshape", 21, [x.astype(np.int8), ints(-1, 3)], [x.astype(np.int8).reshape(-1, 3)])
        self.check("Reshape", 21, [x > 0, ints(4, 6)], [(x > 0).reshape(4, 6)])

    def test_reshape_one(self):
        x = floats(1)
        self.check("Reshape", 14, [x, ints()], [x[0]])
        self.check("Reshape", 14, [x[0], ints(1, -1)], [x[None]])

    def test_reshape_of_nothing(self):
        x = np.zeros((0, 3), np.float32)
        for shape, allowzero in (((0, 5), 1), ((3, 0), 1), ((7, 0, 2), 1), ((5, -1), 0), ((0,), 1), ((0, 3), 0), ((0, 7), 0)):
            extents = [x.shape[d] if extent == 0 and not allowzero else extent for d, extent in enumerate(shape)]
            self.check("Reshape", 14, [x, ints(*shape)], [np.zeros([0 if e == -1 else e for e in extents], np.float32)], allowzero=allowzero)

    def test_reshape_many(self):
        """More than there is room for at first."""
        x = floats(3, 1400)
        for shape in ((1400, 3), (-1, 2), (2, 2, 1050), (4200,)):
            self.check("Reshape", 14, [x, ints(*shape)], [x.reshape(shape)])

    def test_shapes_that_do_not_fit(self):
        x = floats(2, 3)
        for shape in ((5,), (-1, -1), (4, -1), (-2, 3), (-6, -1), (2, 3, 0), (7, -1), (2**32, 2**32), (0, -3), (2**62, 4), (12, -1)):
            self.refuse(SHAPE, "Reshape", 14, [x, ints(*shape)], [x])
        for shape in ((0, -1), (0, 6), (-1, 0)):
            self.refuse(SHAPE, "Reshape", 14, [x, ints(*shape)], [x], allowzero=1)
        self.refuse(r"shape \[4,-1\] is none of 6 elements, of shape \[2,3\]", "Reshape", 14, [x, ints(4, -1)], [x])

    def test_reshape_free(self):
        for rows in (2, 4, 10):
            x = floats(rows, 6)
            for shape in ((-1, 3), (0, 2, 3)):
                right = x.reshape([x.shape[d] if extent == 0 else extent for d, extent in enumerate(shape)])
                self.check("Reshape", 14, [x, ints(*shape)], [right], free={0: {0: "N"}}, buckets="N=4")

    def test_reshaped_beside_a_bias(self):
        x, bias = floats(2, 6), floats(4)
        make = helper.make_node
        nodes = [make("Reshape", ["x", "shape"], ["some"]), make("Add", ["some", "bias"], ["y0"])]
        for shape in ((3, 4), (-1, 4), (12, 1)):
            self.check_nodes(nodes, {"x": x, "bias": bias, "shape": ints(*shape)}, [x.reshape(shape) + bias])
        with self.assertRaisesRegex(AssertionError, 'node "Add_1".*(axis -1 of an operand of 2 elements meets one of 4|do not broadcast)'):
            self.check_nodes(nodes, {"x": x, "bias": bias, "shape": ints(6, 2)}, [x])

    def test_reshaped_to_numbers_behind_a_shape_of_the_run(self):
        x = floats(2, 3, 8)
        make = helper.make_node
        nodes = [make("Reshape", ["x", "first"], ["own"]), make("Reshape", ["own", "back"], ["y0"])]
        for first, back in (((2, 3, 1, 8), (2, 3, 8)), ((48,), (6, 8)), ((4, 12), (-1, 8)), ((48, 1, 1), (3, 2, -1)), ((1, 6, 8), (2, 2, -1, 4))):
            with self.subTest(first=first, back=back):
                self.check_nodes_with(nodes, {"back": ints(*back)}, {"x": x, "first": ints(*first)}, [x.reshape(back)])
        self.check_nodes_with(nodes, {"back": ints(0, -1)}, {"x": x, "first": ints(6, 1, 8)}, [x.reshape(6, 8)])
        self.check_nodes_with(nodes, {"back": ints(0, 2, 4)}, {"x": x, "first": ints(6, 8)}, [x.reshape(6, 2, 4)])
        with self.assertRaisesRegex(AssertionError, r"shape \[2,5,5\] is none of 48 elements|48 elements does not reshape to \[2,5,5\]"):
            self.check_nodes_with(nodes, {"back": ints(2, 5, 5)}, {"x": x, "first": ints(6, 8)}, [x])

    def test_made_in_a_shape_of_the_run(self):
        x, make = floats(12), helper.make_node
        nodes = [make("Reshape", ["x", "shape"], ["own"]), make("EyeLike", ["own"], ["y0"], k=1), make("RandomNormalLike", ["own"], ["noise"]),
                 make("Sub", ["noise", "noise"], ["y1"])]
        for shape in ((2, 6), (4, 3), (1, 12)):
            self.check_nodes(nodes, {"x": x, "shape": ints(*shape)}, [np.eye(*shape, k=1, dtype=np.float32), np.zeros(shape, np.float32)])

    def test_reshape_what_data_decides(self):
        x = floats(4, 6)
        keep = np.array([True, False, True, True, False, True])
        node = helper.make_node("Reshape", ["some", "shape"], ["y0"])
        for shape in ((2, 8), (-1, 2), (2, 2, 4), (16,), (0, 2, 2)):
            right = x[:, keep].reshape([4 if extent == 0 else extent for extent in shape])
            self.after_compress(node, x, keep, 1, {"shape": ints(*shape)}, [right])

    def test_squeeze(self):
        x = floats(1, 3, 1, 4, 1)
        for axes in ((0,), (2,), (-1,), (0, 2), (2, 0), (-5, -1), (0, 2, 4)):
            self.check("Squeeze", 13, [x, ints(*axes)], [np.squeeze(x, axes)])
        self.check("Squeeze", 24, [x > 0, ints(2)], [x[:, :, 0] > 0])
        for axes in ((1,), (0, 0), (5,), (-6,), (0, 1), (3, 4, 0)):
            self.refuse(f"{AXES}|{LONG}", "Squeeze", 13, [x, ints(*axes)], [x])
        self.refuse(r"axes 3 of shape \[1,3,1,4,1\] are not all of one element", "Squeeze", 13, [x, ints(3)], [x])
        self.check("Squeeze", 13, [x[:, :1, :, :1], ints(1, 0, 4, 3, 2)], [x[0, 0, 0, 0, 0]])
        for one in (floats(4), np.zeros(0, np.float32), floats(1)):
            self.refuse(AXES if len(one) == 1 else LONG, "Squeeze", 13, [one, ints(0 if len(one) != 1 else 1)], [x])
        self.check("Squeeze", 13, [np.zeros((1, 0, 1), np.int8), ints(2)], [np.zeros((1, 0), np.int8)])

    def test_unsqueeze(self):
        x = floats(3, 4)
        for axes in ((0,), (1,), (2,), (-1,), (0, 1), (3, 0), (-1, -3), (0, 4, 2)):
            self.check("Unsqueeze", 13, [x, ints(*axes)], [np.expand_dims(x, axes)])
        self.check("Unsqueeze", 24, [(x * 9).astype(np.int16), ints(1)], [(x * 9).astype(np.int16)[:, None]])
        for axes in ((3,), (-4,), (0, 0), (1, -3)):
            self.refuse(AXES, "Unsqueeze", 13, [x, ints(*axes)], [x])
        one = np.array(2.5, np.float32)
        self.check("Unsqueeze", 13, [one, ints(0, -1)], [one[None, None]])
        self.refuse(AXES, "Unsqueeze", 13, [one, ints(1)], [one])
        self.check("Unsqueeze", 13, [np.zeros((0, 2), np.float32), ints(1)], [np.zeros((0, 1, 2), np.float32)])

    def test_axes_of_free_dims(self):
        for rows in (1, 5, 9):
            x = floats(rows, 1, 4)
            options = {"free": {0: {0: "N"}}, "buckets": "N=4"}
            self.check("Squeeze", 13, [x, ints(-2)], [x[:, 0]], **options)
            self.check("Unsqueeze", 13, [x, ints(1, 0)], [x[None, None]], **options)
            if rows == 1:
                self.check("Squeeze", 13, [x, ints(0)], [x[0]], **options)
            else:
                self.refuse(LONG, "Squeeze", 13, [x, ints(0)], [x], **options)

    def test_axes_of_what_data_decides(self):
        x = floats(4, 1, 5)
        keep = np.array([True, False, True, True, False])
        for op, axes, right in (("Squeeze", (1,), x[:, 0, keep]), ("Unsqueeze", (0, 2), x[None, :, None][..., keep])):
            self.after_compress(helper.make_node(op, ["some", "axes"], ["y0"]), x, keep, 2, {"axes": ints(*axes)}, [right])

    def test_strings(self):
        x = np.array([["a", "bc"], ["def", ""], ["gh", "i"]])
        self.check("Reshape", 14, [x, ints(2, -1)], [x.reshape(2, 3)])
        self.check("Unsqueeze", 13, [x, ints(1)], [x[:, None]])
        self.check("Squeeze", 13, [x[:1], ints(-2)], [x[0]])


class Slices(OfARun):
    def parts(self, x, starts, ends, axes, steps):
        places = [slice(None)] * x.ndim
        for start, end, axis, step in zip(starts, ends, axes, steps):
            extent = x.shape[axis]
            start = min(max(start + extent if start < 0 else start, 0), extent if step > 0 else extent - 1)
            end = end + extent if end < 0 else end
            places[axis] = slice(start, None if step < 0 and end < 0 else max(end, 0), step)
        return x[tuple(places)]

    def test_all_of_it(self):
        x = floats(4, 5, 3)
        for starts, ends, axes, steps in (((1,), (4,), (0,), (2,)), ((3, -1), (-9, 0), (0, 1), (-1, -2)), ((0, 1), (2**62, -1), (2, -2), (1, 3)),
                                          ((-2, 0, 9), (9, 3, -9), (-3, 2, 1), (1, 2, -1)), ((2,), (2,), (1,), (5,)), ((4,), (-2**63,), (1,), (-2**63,)),
                                          ((0,), (3,), (2,), (2**63 - 1,))):
            right = self.parts(x, starts, ends, axes, steps)
            operands = [ints(*numbers) for numbers in (starts, ends, axes, steps)]
            self.check("Slice", 13, [x, *operands], [right])
            self.check("Slice", 13, [x, *operands], [right], constants=(3,))
            self.check("Slice", 13, [x, *operands], [right], constants=(1, 2))
            if set(steps) == {1}:
                self.check("Slice", 13, [x, *operands[:3]], [right])
        self.check("Slice", 13, [x, *(np.array([n], np.int32) for n in (3, 0, 0, -2))], [x[3:0:-2]])
        self.check("Slice", 13, [x, ints(1), ints(3), ints(-1)], [x[:, :, 1:3]])
        self.check("Slice", 13, [x[:, :0], ints(1, 0), ints(3, 2), ints(0, 1)], [x[1:3, :0]])

    def test_free_and_decided_by_data(self):
        numbers = {name: ints(value) for name, value in (("start", -1), ("end", 0), ("axis", 1), ("step", -2))}
        for columns in (3, 8):
            x = floats(2, columns)
            self.check("Slice", 13, [x, *numbers.values()], [x[:, -1:0:-2]], free={0: {1: "N"}}, buckets="N=4")
        keep = np.array([True, False, True, True, True, True])
        x = floats(2, 6)
        self.after_compress(helper.make_node("Slice", ["some", *numbers], ["y0"]), x, keep, 1, numbers, [x[:, keep][:, -1:0:-2]])

    def test_slices_of_what_is_joined(self):
        x = floats(1, 16, 9, 10)
        make = helper.make_node
        nodes = [make("Relu", ["x"], ["r"]), make("Concat", ["x", "r", "x"], ["all"], axis=1), make("Slice", ["all", "starts", "ends", "axes"], ["y0"])]
        joined = np.concatenate([x, np.maximum(x, 0), x], 1)
        for axis in range(4):
            right = joined[tuple(slice(2 if d == axis else 0, None) for d in range(4))]
            self.check_nodes(nodes, {"x": x, "starts": ints(2), "ends": ints(2**31), "axes": ints(axis)}, [right])

    def test_what_is_no_slice(self):
        x = floats(3, 4)
        for start, end, axis, step in (((0,), (1,), (2,), (1,)), ((0,), (1,), (0,), (0,)), ((0, 0), (1, 1), (1, -1), (1, 1))):
            self.refuse(f'{AXES}|node "Slice_0": a step is 0', "Slice", 13, [x, ints(*start), ints(*end), ints(*axis), ints(*step)], [x])
        self.refuse("steps has 1 values, expected 2", "Slice", 13, [x, ints(0, 0), ints(1, 1), ints(0, 1), ints(1)], [x])

    def test_steps_past_all_extents(self):
        x = floats(4, 3)
        keep = np.array([True, False, True, True])
        make = helper.make_node
        for step in (2**31 + 1, -2**31 - 1, 2**62, -2**62, 2**63 - 1, -2**63):
            start, end = (1, 3) if step > 0 else (2, 0)
            numbers = {"start": ints(start), "end": ints(end), "axis": ints(0)}
            nodes = [make("Constant", [], ["step"], value_ints=[step]), make("Slice", ["x", *numbers, "step"], ["y0"])]
            self.check_nodes(nodes, {"x": x, **numbers}, [x[start:start + 1]])
            nodes = [make("Compress", ["x", "keep"], ["some"], axis=0), nodes[0]]
            nodes += [make("Constant", [], [name], value_ints=value.tolist()) for name, value in numbers.items()]
            nodes += [make("Slice", ["some", *numbers, "step"], ["y0"])]
            self.check_nodes(nodes, {"x": x, "keep": keep}, [x[keep][start:start + 1]])

    def test_strings(self):
        x = np.array(["a", "bc", "def", "g"])
        self.check("Slice", 13, [x, ints(3), ints(0), ints(0), ints(-1)], [x[3:0:-1]])


class Splits(OfARun):
    def test_sizes(self):
        x = floats(3, 7)
        for sizes in ((2, 5), (0, 7), (7, 0), (3, 1, 0, 3), (7,)):
            right = np.split(x, np.cumsum(sizes)[:-1], 1)
            self.check("Split", 13, [x, ints(*sizes)], right, axis=-1)
        self.check("Split", 18, [(x > 0), ints(1, 2)], [x[:1] > 0, x[1:] > 0])
        self.check("Split", 18, [x[:0], ints(0, 0)], [x[:0], x[:0]])
        self.check("Split", 13, [np.array(["a", "b", "c"]), ints(1, 2)], [np.array(["a"]), np.array(["b", "c"])])
        self.check("Split", 1, [floats(4) * 0 + 1, np.array([1, 3], np.float32)], [np.ones(1, np.float32), np.ones(3, np.float32)])

    def test_free_and_decided_by_data(self):
        for columns in (5, 9):
            x = floats(2, columns)
            self.check("Split", 18, [x, ints(2, columns - 2)], [x[:, :2], x[:, 2:]], axis=1, free={0: {1: "N"}}, buckets="N=5")
        keep = np.array([True, False, True, True, True, True])
        x = floats(2, 6)
        node = helper.make_node("Split", ["some", "sizes"], ["y0", "y1"], axis=1)
        self.after_compress(node, x, keep, 1, {"sizes": ints(1, 4)}, [x[:, keep][:, :1], x[:, keep][:, 1:]])

    def test_sizes_that_do_not_fit(self):
        x = floats(5)
        for sizes in ((2, 2), (6, -1), (3, 3), (2**62, 2**62), (2**63 - 1, 6), (-2**63, 5)):
            self.refuse(SPLIT, "Split", 13, [x, ints(*sizes)], [x, x])
        self.refuse("3 values, expected 2", "Split", 13, [x, ints(1, 2, 2)], [x, x])


class Functions(OfARun):
    """What operators are as functions of others."""

    def test_reductions(self):
        x = np.abs(floats(2, 3, 4)) + np.float32(0.1)
        sum_of = lambda name, keepdims: [helper.make_node("ReduceSum", [name, "axes"], ["sum"], keepdims=keepdims)]
        written = {
            "ReduceL1": lambda kept: [helper.make_node("Abs", ["x"], ["abs"]), *sum_of("abs", kept), helper.make_node("Identity", ["sum"], ["y0"])],
            "ReduceL2": lambda kept: [helper.make_node("Mul", ["x", "x"], ["square"]), *sum_of("square", kept),
                                      helper.make_node("Cast", ["sum"], ["wide"], to=1), helper.make_node("Sqrt", ["wide"], ["root"]),
                                      helper.make_node("CastLike", ["root", "x"], ["y0"])],
            "ReduceLogSum": lambda kept: [*sum_of("x", kept), helper.make_node("Log", ["sum"], ["y0"])],
            "ReduceLogSumExp": lambda kept: [helper.make_node("Cast", ["x"], ["wide"], to=11), helper.make_node("Exp", ["wide"], ["exp"]),
                                             *sum_of("exp", kept), helper.make_node("Log", ["sum"], ["log"]),
                                             helper.make_node("CastLike", ["log", "x"], ["y0"])],
        }
        for op, nodes in written.items():
            for axes, keepdims in (((1,), 0), ((-2, 0), 1), ((), 1), ((0, 1, 2), 0)):
                own = tuple(a % 3 for a in axes) or (0, 1, 2)
                right = np.asarray(REDUCTIONS[op](x, axis=own, keepdims=bool(keepdims)))
                self.check_nodes(nodes(keepdims), {"x": x, "axes": ints(*axes)}, [right], 18)

    def test_center_crop_pad(self):
        x = floats(5, 4, 3)
        make = helper.make_node
        for axes, shape, right in (((0, 1), (3, 7), np.pad(x[1:4], [(0, 0), (1, 2), (0, 0)])), ((-1,), (1,), x[:, :, 1:2]),
                                   ((2, 0), (5, 6), np.pad(x, [(0, 1), (0, 0), (1, 1)]))):
            nodes = [make("Constant", [], ["two"], value_ints=[2]), make("Constant", [], ["axes"], value_ints=list(axes)),
                     make("Shape", ["x"], ["all"]), make("Gather", ["all", "axes"], ["own"]), make("Max", ["own", "shape"], ["padded"]),
                     make("Sub", ["padded", "own"], ["more"]), make("Div", ["more", "two"], ["left"]), make("Sub", ["more", "left"], ["right"]),
                     make("Concat", ["left", "right"], ["pads"], axis=0), make("Pad", ["x", "pads", "", "axes"], ["long"]),
                     make("Sub", ["padded", "shape"], ["less"]), make("Div", ["less", "two"], ["start"]), make("Add", ["start", "shape"], ["end"]),
                     make("Slice", ["long", "start", "end", "axes"], ["y0"])]
            self.check_nodes(nodes, {"x": x, "shape": ints(*shape)}, [right], 18)


if __name__ == "__main__":
    unittest.main()
