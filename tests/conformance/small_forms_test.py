"""Forms at the ends of what operators take: operands that are left out or have no elements, scalars, values on a threshold.
Values by numpy and from the standard's text."""

import itertools
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from one_node import OneNode, element_type, floats

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def described(name, array, optional=False):
    kind = helper.make_tensor_type_proto(element_type(array), array.shape)
    return helper.make_value_info(name, helper.make_optional_type_proto(kind) if optional else kind)


class Graphs(OneNode):
    def check_nodes(self, nodes, opset, inputs, feed, expected, buckets=""):
        """`inputs`: value infos; the outputs are y0, y1 ..., in the order of what is `expected`. `buckets`: those of dims that
        the inputs name."""
        outputs = [helper.make_tensor_value_info(f"y{i}", element_type(array), None) for i, array in enumerate(expected)]
        graph = helper.make_graph(nodes, "graph", inputs, outputs)

        def expect(answer, actual):
            self.assertTrue(answer.startswith("ok "), answer)
            for i, right in enumerate(expected):
                np.testing.assert_array_equal(actual[str(i)], right, strict=True)

        self.run_model(graph, opset, feed, expect, buckets=buckets)


class FreePads(OneNode):
    def test_pads_beside_rows_of_any_number(self):
        """In front of a row of whole vectors all lanes of one read its first element, and those that are padded must not."""
        for width in (5, 16, 17, 64):
            for pads in ((1, 1, 1, 1), (0, 1, 0, 0), (2, 3, 1, 17), (1, 0, 0, 1), (0, -2, 1, 3)):
                x = floats(3, width)
                cut = x[:, max(-pads[1], 0):]
                right = np.pad(cut, ((pads[0], pads[2]), (max(pads[1], 0), pads[3])), constant_values=np.float32(0.5))
                with self.subTest(width=width, pads=pads):
                    self.check("Pad", 21, [x, np.array(pads), np.array(0.5, np.float32)], [right], free={0: {0: "S"}}, constants=(1, 2))


class PlacesOfOneValue(Graphs):
    """An index out of range stops the run, also where the element is the same at every place, or nothing is made of it: of
    numbers of indices that stay free, and of those that do not."""

    FORMS = {
        "one element": ([], (1,), "Gather", (1,), {}),
        "one value": ([("Expand", [5])], (1,), "Gather", (5,), {}),
        "one row": ([("Expand", [5, 3])], (1, 3), "Gather", (5,), {}),
        "one column": ([("Expand", [3, 5])], (3, 1), "Gather", (5,), {"axis": 1}),
        "one of a reshaped column": ([("Expand", [4, 3]), ("Reshape", [12])], (4, 1), "Gather", (12,), {}),
        "elements": ([("Expand", [5])], (1,), "GatherElements", (5,), {}),
        "places": ([("Expand", [5, 3])], (1, 3), "GatherND", (5, 3), {}),
        "places of one value": ([("Expand", [5, 3])], (1, 1), "GatherND", (5, 3), {}),
    }

    def graph_of(self, moves, shape, op, extents, attributes, count, last):
        """y0 = the elements at `at` plus what is given for each of them; `last` is made of that."""
        x = "x"
        nodes, constants = [], []
        for i, (move, to) in enumerate(moves):
            constants.append(numpy_helper.from_array(np.array(to, np.int64), f"to{i}"))
            nodes.append(helper.make_node(move, [x, f"to{i}"], [f"m{i}"]))
            x = f"m{i}"
        nodes.append(helper.make_node(op, [x, "at"], ["g"], **attributes))
        nodes += [helper.make_node(each, inputs, [output]) for each, inputs, output in last]
        places = [count, len(extents)] if op == "GatherND" else [count]
        inputs = [helper.make_tensor_value_info("x", FLOAT, shape), helper.make_tensor_value_info("at", INT64, places)]
        return helper.make_graph(nodes, "graph", inputs, [helper.make_tensor_value_info("y0", FLOAT, None)], constants)

    def test_places_out_of_range(self):
        lasts = ([("Neg", ["g"], "y0")], [("Sub", ["g", "g"], "s"), ("Add", ["s", "g"], "y0")], [("ReduceMax", ["g"], "y0")])
        for (name, (moves, shape, op, extents, attributes)), count, last in itertools.product(self.FORMS.items(), (3, "N"), lasts):
            good = np.zeros((3, len(extents)), np.int64)
            good[1] = [extent - 1 for extent in extents]
            feed = {"x": floats(*shape)}
            graph = self.graph_of(moves, shape, op, extents, attributes, count, last)
            buckets = "*" if count == "N" else ""
            for axis in range(len(extents)):
                bad = good.copy()
                bad[2, axis] = extents[axis]
                for at, is_right in ((good, True), (bad, False)):
                    places = at if op == "GatherND" else at[:, 0]

                    def expect(answer, _, is_right=is_right):
                        self.assertEqual(answer.startswith("ok "), is_right, answer)
                        if not is_right:
                            self.assertRegex(answer, "outside its axis")

                    with self.subTest(name, count=count, axis=axis, is_right=is_right, last=last[0][0]):
                        self.run_model(graph, 17, {**feed, "at": places}, expect, buckets=buckets)


class AttentionMasks(OneNode):
    """A mask of three dims is one of each head, beside valid lengths as well, whatever else it could be."""

    def test_as_many_heads_as_entries_of_the_batch(self):
        q, k, v, mask = floats(2, 2, 3, 4), floats(2, 2, 5, 4), floats(2, 2, 5, 4), floats(2, 3, 5)
        lengths = np.array([5, 2])
        scores = q @ k.transpose(0, 1, 3, 2) / 2 + mask + np.where(np.arange(5) < lengths[:, None], 0, -np.inf)[:, None, None]
        weights = np.exp(scores - scores.max(axis=3, keepdims=True))
        right = (weights / weights.sum(axis=3, keepdims=True)) @ v
        self.check("Attention", 24, [q, k, v, mask, None, None, lengths], [right.astype(np.float32)])


class LargeWindows(OneNode):
    """Pooling windows larger than the padded input: what is left over a stride is rounded toward zero, as the standard's
    shape inference and ONNX Runtime do, so that less than a stride leaves one window and less than two none."""

    def pooled(self, op, x, stride, lacks):
        values = {"MaxPool": x.max(axis=2), "AveragePool": x.mean(axis=2), "LpPool": np.sqrt((x * x).sum(axis=2))}[op]
        return values[:, :, None] if lacks < stride else np.zeros((*x.shape[:2], 0, x.shape[3]), np.float32)

    def test_windows_that_lack_less_than_two_strides(self):
        for op in ("MaxPool", "AveragePool", "LpPool"):
            for kernel, stride in ((3, 1), (3, 2), (4, 2), (5, 2), (4, 3), (6, 3)):
                for more in ({}, {"ceil_mode": 1}):
                    x = floats(1, 2, 2, 3)
                    right = self.pooled(op, x, stride, kernel - 2)
                    with self.subTest(op=op, kernel=kernel, stride=stride, **more):
                        self.check(op, 22, [x], [right], kernel_shape=[kernel, 1], strides=[stride, 1], **more)

    def test_another_axis_has_its_own_windows(self):
        x = floats(1, 1, 2, 4)
        right = np.maximum(x.max(axis=2, keepdims=True)[..., 0:3:2], x.max(axis=2, keepdims=True)[..., 1:4:2])
        self.check("MaxPool", 22, [x], [right], kernel_shape=[3, 2], strides=[2, 2])
        self.check("AveragePool", 22, [x], [x.mean(axis=2, keepdims=True)[..., :3:2]], kernel_shape=[4, 1], strides=[3, 2])

    def test_places_of_the_largest(self):
        x = np.array([3, 1, 2, 5], np.float32).reshape(1, 1, 2, 2)
        self.check("MaxPool", 22, [x], [np.array([[[[3, 5]]]], np.float32), np.array([[[[0, 3]]]])], kernel_shape=[3, 1], strides=[2, 1])
        none = np.zeros((1, 1, 0, 2), np.float32)
        self.check("MaxPool", 22, [x], [none, none.astype(np.int64)], kernel_shape=[3, 1])

    def test_pads_count_where_they_are_asked_for(self):
        x = np.array([1, 3], np.float32).reshape(1, 1, 2, 1)
        for include, right in ((0, 2), (1, 1)):
            self.check("AveragePool", 22, [x], [np.full((1, 1, 1, 1), right, np.float32)], kernel_shape=[5, 1], strides=[2, 1],
                       pads=[1, 0, 1, 0], count_include_pad=include)

    def test_what_lacks_more_is_refused(self):
        for op in ("MaxPool", "AveragePool", "LpPool"):
            for attributes in ({"kernel_shape": [4, 1]}, {"kernel_shape": [6, 1], "strides": [2, 1]}):
                self.assertIn("the window reaches over", self.answer_to(op, 22, [floats(1, 1, 2, 2)], **attributes))


class OptionalValues(Graphs):
    def test_a_tensor_is_there(self):
        x = floats(4)
        for op, right in (("OptionalHasElement", np.array(True)), ("OptionalGetElement", x)):
            node = helper.make_node(op, ["x"], ["y0"])
            self.check_nodes([node], 18, [described("x", x)], {"x": x}, [right])
            self.check_nodes([node], 18, [described("x", x, optional=True)], {"x/0": x}, [right])

    def test_nothing_is_there(self):
        for operands in ([], [""]):
            self.check_nodes([helper.make_node("OptionalHasElement", operands, ["y0"])], 18, [], {}, [np.array(False)])
        self.check_nodes([helper.make_node("OptionalHasElement", ["x"], ["y0"])], 18,
                         [described("x", np.array(0, np.int32), optional=True)], {}, [np.array(False)])


class Sequences(Graphs):
    def test_parts_without_their_axis(self):
        x = floats(3, 2)
        nodes = [helper.make_node("Constant", [], ["i"], value_int=-1), helper.make_node("SplitToSequence", ["x"], ["s"], axis=1, keepdims=0),
                 helper.make_node("SequenceAt", ["s", "i"], ["y0"])]
        self.check_nodes(nodes, 24, [described("x", x)], {"x": x}, [x[:, 1]])

    def test_one_part_of_an_axis_of_any_extent(self):
        """A sequence has as many parts as the axis elements."""
        nodes = [helper.make_node("Constant", [], ["i"], value_int=1), helper.make_node("SplitToSequence", ["x"], ["s"], keepdims=0),
                 helper.make_node("SequenceAt", ["s", "i"], ["y0"])]
        for extent in (5, 40):
            x = floats(extent, 3)
            self.check_nodes(nodes, 24, [helper.make_tensor_value_info("x", FLOAT, ["N", 3])], {"x": x}, [x[1]], buckets="N=8")


    def test_elements_along_an_axis_of_any_extent(self):
        """Each is squared, as a sequence of them, and they are joined again."""
        body = helper.make_graph([helper.make_node("Mul", ["e", "e"], ["square"])], "each",
                                 *([helper.make_value_info(name, helper.make_tensor_type_proto(FLOAT, None))] for name in ("e", "square")))
        joined = [helper.make_node("SequenceMap", ["s"], ["t"], body=body),
                  helper.make_node("ConcatFromSequence", ["t"], ["y0"], axis=1, new_axis=1), helper.make_node("SequenceLength", ["t"], ["y1"])]
        one = helper.make_node("Constant", [], ["one"], value_int=1)
        for extent in (5, 40):
            x = floats(2, extent)
            described_x = [helper.make_tensor_value_info("x", FLOAT, [2, "N"])]
            dropped = helper.make_node("SplitToSequence", ["x"], ["s"], axis=1, keepdims=0)
            self.check_nodes([dropped] + joined, 18, described_x, {"x": x}, [x * x, np.array(extent)], buckets="N=8")
            kept = helper.make_node("SplitToSequence", ["x", "one"], ["s"], axis=1)
            self.check_nodes([one, kept] + joined, 18, described_x, {"x": x}, [(x * x)[:, :, None].reshape(2, extent, 1), np.array(extent)],
                             buckets="N=8")

    def test_parts_of_an_axis_of_any_extent(self):
        """Of three elements each, of which the last has what is left."""
        nodes = [helper.make_node("Constant", [], ["three"], value_int=3), helper.make_node("Constant", [], ["last"], value_int=-1),
                 helper.make_node("SplitToSequence", ["x", "three"], ["s"]), helper.make_node("ConcatFromSequence", ["s"], ["y0"], axis=0),
                 helper.make_node("SequenceAt", ["s", "last"], ["y1"]), helper.make_node("SequenceLength", ["s"], ["y2"])]
        for extent in (1, 3, 7, 40):
            x = floats(extent, 2)
            start = (extent - 1) // 3 * 3
            self.check_nodes(nodes, 24, [helper.make_tensor_value_info("x", FLOAT, ["N", 2])], {"x": x},
                             [x, x[start:], np.array(start // 3 + 1)], buckets="N=8")


class Scans(Graphs):
    def test_scalars(self):
        """States and elements of rank 0; two states, of which one is a product."""
        names = ("sum", "product", "next")
        body = helper.make_graph(
            [helper.make_node("Add", ["sum", "next"], ["added"]), helper.make_node("Mul", ["product", "next"], ["multiplied"]),
             helper.make_node("Identity", ["added"], ["kept"])], "step",
            [helper.make_tensor_value_info(name, FLOAT, []) for name in names],
            [helper.make_tensor_value_info(name, FLOAT, []) for name in ("added", "multiplied", "kept")])
        feed = {"sum": np.array(0, np.float32), "product": np.array(1, np.float32), "x": np.arange(1, 6).astype(np.float32)}
        node = helper.make_node("Scan", ["sum", "product", "x"], ["y0", "y1", "y2"], num_scan_inputs=1, body=body)
        for opset in (9, 25):
            self.check_nodes([node], opset, [described(name, array) for name, array in feed.items()], feed,
                             [np.array(15, np.float32), np.array(120, np.float32), np.cumsum(feed["x"])])


class ShapesAsOthersWriteThem(Graphs):
    def test_one_element_for_a_scalar(self):
        """Ends of a range, axes and conditions as rows of one element or as scalars."""
        x, count = floats(2, 1, 3), np.array([4], np.int64)
        zero, one, last = (helper.make_node("Constant", [], [name], value_int=value) for name, value in (("zero", 0), ("one", 1), ("last", -1)))
        branches = [helper.make_graph([helper.make_node("Add", ["steps", other], [f"{name}_out"])], name, [],
                                      [helper.make_value_info(f"{name}_out", helper.make_tensor_type_proto(INT64, None))])
                    for name, other in (("yes", "one"), ("no", "last"))]
        nodes = [zero, one, last, helper.make_node("Range", ["zero", "count", "one"], ["steps"]),
                 helper.make_node("Equal", ["count", "one"], ["is_one"]),
                 helper.make_node("If", ["is_one"], ["y0"], then_branch=branches[0], else_branch=branches[1]),
                 helper.make_node("Squeeze", ["x"], ["flat"]), helper.make_node("Unsqueeze", ["flat", "last"], ["y1"])]
        self.check_nodes(nodes, 20, [described("x", x), described("count", count)], {"x": x, "count": count},
                         [np.arange(4) - 1, x[:, 0, :, None]])


class RangesOfExtents(Graphs):
    def test_only_a_range_is_taken(self):
        """As detectors of voices take windows of a few lengths: their frames are to become one."""
        nodes = [helper.make_node("AveragePool", ["x"], ["frames"], kernel_shape=[256], strides=[128]),
                 helper.make_node("MaxPool", ["frames"], ["half"], kernel_shape=[3], strides=[2], pads=[1, 1]),
                 helper.make_node("MaxPool", ["half"], ["one"], kernel_shape=[3], strides=[2], pads=[1, 1]),
                 helper.make_node("Constant", [], ["axis"], value_ints=[2]), helper.make_node("Squeeze", ["one", "axis"], ["y0"])]
        for extent in (256, 300, 383, 384, 511, 512, 640, 700, 767):
            x = np.zeros((2, 1, extent), np.float32)
            x[:, :, ::128] = np.arange(1, 1 + len(x[0, 0, ::128])) * 128
            frames = (extent - 256) // 128 + 1
            best = max(x[0, 0, 128 * i : 128 * i + 256].sum() / 256 for i in range(frames))
            self.check_nodes(nodes, 24, [helper.make_tensor_value_info("x", FLOAT, ["N", 1, "T"])], {"x": x}, [np.full((2, 1), best, np.float32)],
                             buckets="N=2;T=256")



    def test_what_is_longer_is_refused_by_name(self):
        nodes = [helper.make_node("AveragePool", ["x"], ["frames"], kernel_shape=[256], strides=[128]),
                 helper.make_node("Constant", [], ["axis"], value_ints=[2]), helper.make_node("Squeeze", ["frames", "axis"], ["y0"])]

        def check(extent, buckets):
            self.check_nodes(nodes, 24, [helper.make_tensor_value_info("x", FLOAT, ["N", 1, "T"])], {"x": np.ones((2, 1, extent), np.float32)},
                             [np.ones((2, 1), np.float32)], buckets=buckets)

        for buckets in ("N=2;T=256", "N=2;T=300"):
            for extent in (256, 257, 383):
                check(extent, buckets)
            for extent in (384, 5000):
                with self.assertRaisesRegex(AssertionError, r"\"Squeeze_2\" \(Squeeze\): axis 2 has extent \d+, expected 1"):
                    check(extent, buckets)


class Ends(OneNode):
    def test_shapes_of_nothing(self):
        self.check("Shape", 25, [floats(3, 4, 5)], [np.array([], np.int64)], start=2, end=1)

    def test_slices_that_short_axes_end(self):
        for start, end, step in ((2, 10, 1), (2, 10, 2), (-3, 2**40, 1), (10, -2**40, -1)):
            for extent in (1, 4, 9, 11, 40):
                x = floats(extent, 2)
                right = x[start:None if abs(end) > extent else end:step]
                operands = [x, *(np.array([value], np.int64) for value in (start, end, 0, step))]
                self.check("Slice", 13, operands, [right], constants=(1, 2, 3, 4), free={0: {0: "N"}}, buckets="N=16")

    def test_starts_that_short_axes_move(self):
        """The last four in steps of two are as many of three elements, but others."""
        for extent in (0, 1, 2, 3, 4, 5, 9):
            x = floats(extent, 2)
            operands = [x, *(np.array([value], np.int64) for value in (-4, 2**40, 0, 2))]
            self.check("Slice", 13, operands, [x[-4::2]], constants=(1, 2, 3, 4), free={0: {0: "N"}}, buckets="N=8")

    def test_a_sum_over_no_index(self):
        self.check("Einsum", 12, [np.array(5.0)], [np.array(5.0)], equation="->")

    def test_boxes_on_the_threshold(self):
        """Boxes are dropped that overlap by more; these overlap by a seventh."""
        boxes, scores = np.array([[[0, 0, 1, 1], [0.5, 0.5, 1.5, 1.5]]], np.float32), np.array([[[0.9, 0.8]]], np.float32)
        seventh = np.float32(1 / 7)
        for threshold, kept in ((seventh, 2), (np.nextafter(seventh, np.float32(1)), 2), (np.float32(0.142857), 1)):
            self.check("NonMaxSuppression", 11, [boxes, scores, np.array([3], np.int64), np.array([threshold]), np.array([0], np.float32)],
                       [np.array([[0, 0, 0], [0, 0, 1]], np.int64)[:kept]])

    def test_boxes_by_limits_of_the_run(self):
        """How many are kept, and the thresholds, are known when the model runs alone."""
        corners = np.array([0, 0.4, 3, 3.3, 6], np.float32)
        boxes = np.stack([corners * 0, corners, corners * 0 + 1, corners + 1], axis=1)[None]
        scores = np.array([[[0.5, 0.9, 0.7, 0.6, 0.2]]], np.float32)
        free = {0: {0: "B", 1: "N"}, 1: {0: "B", 1: "C", 2: "N"}}
        for most, overlap, least, kept in ((5, 0.3, 0.0, [1, 2, 4]), (5, 0.3, 0.3, [1, 2]), (5, 0.99, 0.0, [1, 2, 3, 0, 4]),
                                           (2, 0.99, 0.0, [1, 2]), (0, 0.3, 0.0, []), (2**40, 0.3, 0.65, [1, 2])):
            limits = [np.array([most]), np.array([overlap], np.float32), np.array([least], np.float32)]
            for options in ({}, {"free": free, "buckets": "B=1;C=1;N=8"}):
                with self.subTest(most=most, overlap=overlap, least=least, **options):
                    rows = np.array([[0, 0, box] for box in kept], np.int64).reshape(-1, 3)
                    self.check("NonMaxSuppression", 11, [boxes, scores, *limits], [rows], **options)

    def test_repeats_of_the_run(self):
        """Each axis may be as long as the run says: that they are all long is not provided for."""
        x = floats(8, 9, 7, 1)
        for repeats in ((1, 3, 2, 2), (1, 1, 1, 1), (2, 1, 1, 12), (0, 1, 2, 1)):
            self.check("Tile", 13, [x, np.array(repeats)], [np.tile(x, repeats)])

    def test_diagonals_of_the_run(self):
        for dtype in (np.float32, np.int64, np.bool_):
            x = (floats(2, 4, 5) > 0).astype(dtype)
            for k in (-7, -2, 0, 3, 2**40):
                cut = int(np.clip(k, -9, 9))
                for upper, right in ((1, np.triu(x, cut)), (0, np.tril(x, cut))):
                    self.check("Trilu", 14, [x, np.array(k)], [right], upper=upper)
                    self.check("Trilu", 14, [x, np.array(k)], [right], upper=upper, free={0: {1: "R", 2: "C"}}, buckets="R=8;C=3")

    def test_sums_along_an_axis_of_the_run(self):
        x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        for axis in (-3, -1, 0, 1, 2):
            self.check("CumSum", 14, [x, np.array(axis, np.int32)], [np.cumsum(x, axis)])
            self.check("CumSum", 14, [x, np.array(axis, np.int32)], [np.flip(np.cumsum(np.flip(x, axis), axis), axis)], reverse=1,
                       free={0: {1: "T"}}, buckets="T=8")
        for axis in (3, -4):
            with self.assertRaisesRegex(AssertionError, f"axis {axis} is none of -3 to 2"):
                self.check("CumSum", 14, [x, np.array(axis)], [x])

    def test_the_largest_and_smallest_of_nothing(self):
        axes = np.array([1], np.int64)
        for dtype in (bool, np.int8, np.uint8, np.int32, np.uint64):
            x = np.zeros((2, 0, 3), dtype)
            low, high = (False, True) if dtype is bool else (np.iinfo(dtype).min, np.iinfo(dtype).max)
            self.check("ReduceMax", 20, [x, axes], [np.full((2, 1, 3), low, dtype)])
            self.check("ReduceMin", 20, [x, axes], [np.full((2, 1, 3), high, dtype)])

    def test_groups_of_transposed_convolutions(self):
        x, w = floats(3, 4, 3, 2), floats(4, 3, 2, 2)
        right = np.zeros((3, 6, 4, 3), np.float32)
        for group in range(2):
            for i in range(2):
                for j in range(2):
                    taps = w[2 * group:2 * group + 2, :, i, j]
                    right[:, 3 * group:3 * group + 3, i:i + 3, j:j + 2] += np.einsum("nchw,cm->nmhw", x[:, 2 * group:2 * group + 2], taps)
        self.check("ConvTranspose", 22, [x, w], [right], group=2)

    def test_places_among_equal_elements(self):
        x = np.array([[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 3, 3]], np.int64)
        places = np.array([[0, 1, 2], [0, 1, 2], [2, 3, 0]], np.int64)
        self.check("TopK", 24, [x, np.array([3], np.int64)], [np.take_along_axis(x, places, 1), places], axis=1)


class EditedGraphs(Graphs):
    """Nodes that stand before those that they read from: what tools leave behind that put nodes in."""

    def test_nodes_in_any_order(self):
        x = floats(3)
        nodes = [helper.make_node("Add", ["b", "a"], ["y0"]), helper.make_node("Neg", ["a"], ["b"]),
                 helper.make_node("Abs", ["x"], ["a"])]
        self.check_nodes(nodes, 24, [described("x", x)], {"x": x}, [np.zeros(3, np.float32)])

    def test_a_branch_reads_what_is_made_later(self):
        x = floats(3)

        def branch(op):
            inner = [helper.make_node("Identity", ["inner"], ["out"]), helper.make_node(op, ["made"], ["inner"])]
            return helper.make_graph(inner, op, [], [helper.make_tensor_value_info("out", FLOAT, [3])])

        nodes = [helper.make_node("If", ["c"], ["y0"], then_branch=branch("Neg"), else_branch=branch("Abs")),
                 helper.make_node("Mul", ["x", "x"], ["made"])]
        for condition in (True, False):
            c = np.array(condition)
            self.check_nodes(nodes, 24, [described("x", x), described("c", c)], {"x": x, "c": c}, [-x * x if condition else x * x])

    def test_a_cycle(self):
        x = floats(3)
        nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Neg", ["a"], ["b"]), helper.make_node("Abs", ["a"], ["y0"])]
        graph = helper.make_graph(nodes, "graph", [described("x", x)], [described("y0", x)])
        self.run_model(graph, 24, {"x": x}, lambda answer, _: self.assertIn('reads "b", which is made later: the graph has a cycle', answer))


class BranchesOfOtherShapes(Graphs):
    """Exporters keep both branches, though each takes only the shapes that its case comes with."""

    def nodes(self, then_axes=2, else_axes=3):
        def branch(name, kept):
            nodes = [helper.make_node("Constant", [], ["kept"], value_ints=[kept, 2]), helper.make_node("Reshape", ["x", "kept"], ["r"]),
                     helper.make_node("ReduceSum", ["r"], ["out"], keepdims=0)]
            return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info("out", FLOAT, [])])

        return [helper.make_node("If", ["c"], ["y0"], then_branch=branch("then", then_axes), else_branch=branch("else", else_axes))]

    def test_only_one_can_be_taken(self):
        for extent, taken in ((4, True), (6, False)):
            x, c = np.arange(extent, dtype=np.float32), np.array(taken)
            self.check_nodes(self.nodes(), 24, [described("x", x), described("c", c)], {"x": x, "c": c}, [x.sum()])

    def test_a_run_takes_the_other_one(self):
        x, c = np.arange(4, dtype=np.float32), np.array(False)
        graph = helper.make_graph(self.nodes(), "graph", [described("x", x), described("c", c)], [helper.make_tensor_value_info("y0", FLOAT, [])])
        self.run_model(graph, 24, {"x": x, "c": c}, lambda answer, _: self.assertRegex(answer, 'node .*If_0'))

    def test_only_one_can_be_taken_by_any_number_of_rows(self):
        def branch(name, *kept):
            nodes = [helper.make_node("Constant", [], ["kept"], value_ints=[0, *kept]), helper.make_node("Reshape", ["x", "kept"], ["r"]),
                     helper.make_node("ReduceSum", ["r"], ["out"], keepdims=0)]
            return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info("out", FLOAT, [])])

        nodes = [helper.make_node("If", ["c"], ["y0"], then_branch=branch("then", 3, 3), else_branch=branch("else", 2, 2))]
        c = np.array(False)
        inputs = [helper.make_tensor_value_info("x", FLOAT, ["N", 4]), described("c", c)]
        for rows in (1, 2, 9):
            x = np.arange(4 * rows, dtype=np.float32).reshape(rows, 4)
            self.check_nodes(nodes, 24, inputs, {"x": x, "c": c}, [x.sum()], buckets="N=2")

    def test_neither_can_be_taken(self):
        x, c = np.arange(5, dtype=np.float32), np.array(False)
        graph = helper.make_graph(self.nodes(), "graph", [described("x", x), described("c", c)], [helper.make_tensor_value_info("y0", FLOAT, [])])
        self.run_model(graph, 24, {"x": x, "c": c}, lambda answer, _: self.assertIn("both branches fail", answer))


if __name__ == "__main__":
    unittest.main()
