"""Values and extents at the ends of what operators take: infinities, squares that overflow, nothing at all, halves."""

import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from one_node import RANDOM, OneNode, floats


def normalized(x, scale, bias, epsilon):
    centered = x - x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt((centered**2).mean(-1, keepdims=True) + epsilon)
    return centered * inverse * scale + bias, x.mean(-1, keepdims=True), inverse


class EdgeValues(OneNode):
    def test_limits_that_are_left_out_are_finite(self):
        x = np.array([-np.inf, np.inf, np.nan, 2], np.float32)
        most = np.finfo(np.float32).max
        self.check("Clip", 6, [x], [np.array([-most, 1, np.nan, 1], np.float32)], max=1.0)
        self.check("Clip", 10, [x], [np.array([0, most, np.nan, 2], np.float32)], min=0.0)
        for dtype in (np.float16, np.float32, np.float64):
            own, one, most = x.astype(dtype), np.array(1, dtype), np.finfo(dtype).max
            self.check("Clip", 13, [own, None, one], [np.array([-most, 1, np.nan, 1], dtype)])
            self.check("Clip", 13, [own, one], [np.array([1, most, np.nan, 2], dtype)])

    def test_slopes_of_integers(self):
        x, slope = np.array([[-3, 0, 5], [2**30, -7, 1]], np.int32), np.array([2, 3, -4], np.int32)
        self.check("PRelu", 16, [x, slope], [np.where(x < 0, x * slope, x)])

    def test_integers_that_shrink_keep_all_digits(self):
        for dtype, x in ((np.int64, [2**62 + 5, -(2**61) - 3, 1, -2, 0]), (np.uint64, [2**63 + 5, 2, 1, 2**60 + 1])):
            values = [n + 3 if n < -1 else n - 3 if n > 1 else 0 for n in x]
            self.check("Shrink", 9, [np.array(x, dtype)], [np.array([n % 2**64 for n in values], np.uint64).astype(dtype)], bias=3.0, lambd=1.5)

    def test_symmetric_windows_of_one_element_are_none(self):
        for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
            self.check(op, 17, [np.array(1)], [np.array([np.nan], np.float32)], constants=(0,), periodic=0)

    def test_places_of_a_pooled_map_of_odd_extents(self):
        """A MaxPool's places are undone where they were; others are those of the map that the windows make."""
        x = RANDOM.standard_normal((2, 3, 7, 5)).astype(np.float32)
        rows = x[:, :, :6, :4].reshape(2, 3, 3, 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(2, 3, 3, 2, 4)
        expected = np.zeros_like(x)
        for at in np.ndindex(2, 3, 3, 2):
            row, column = divmod(int(rows[at].argmax()), 2)
            expected[at[0], at[1], 2 * at[2] + row, 2 * at[3] + column] = rows[at].max()
        windows = {"kernel_shape": [2, 2], "strides": [2, 2]}
        graph = helper.make_graph(
            [helper.make_node("MaxPool", ["x"], ["v", "i"], **windows), helper.make_node("Shape", ["x"], ["s"]),
             helper.make_node("MaxUnpool", ["v", "i", "s"], ["y"], **windows)], "undone",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])

        def expect(answer, outputs):
            self.assertTrue(answer.startswith("ok "), answer)
            np.testing.assert_array_equal(outputs["0"], expected)

        self.run_model(graph, 11, {"x": x}, expect)

    def test_places_of_many_taps(self):
        """More than a table would hold: of windows that are large, and of a map that may become large."""
        x = floats(1, 2, 200, 190)
        windows = np.lib.stride_tricks.sliding_window_view(x, (32, 30), (2, 3)).reshape(1, 2, 169, 161, -1)
        first = windows.argmax(-1)
        rows, columns = np.arange(169)[:, None] + first // 30, np.arange(161) + first % 30
        places = (np.arange(2)[:, None, None] * 200 + rows) * 190 + columns
        self.check("MaxPool", 22, [x], [windows.max(-1), places], kernel_shape=[32, 30])
        x = floats(1, 1, 40, 30)
        pairs = x.reshape(1, 1, 20, 2, 15, 2).transpose(0, 1, 2, 4, 3, 5).reshape(1, 1, 20, 15, 4)
        first = pairs.argmax(-1)
        places = (np.arange(20)[:, None] * 2 + first // 2) * 30 + np.arange(15) * 2 + first % 2
        self.check("MaxPool", 22, [x], [pairs.max(-1), places], free={0: {2: "H", 3: "W"}}, buckets="H=640;W=640", kernel_shape=[2, 2],
                   strides=[2, 2])

    def test_places_in_a_map_of_another_size(self):
        """The standard's example: places are those of the map that the windows make, zeros go on behind it, whatever its
        extents are. (The peer takes places in the output.)"""
        x = np.arange(1, 5, dtype=np.float32).reshape(1, 1, 2, 2)
        places = np.array([5, 7, 13, 15]).reshape(1, 1, 2, 2)
        free = dict(enumerate("NCHW"))
        for extents in ((5, 5), (4, 7), (3, 4)):
            whole = np.zeros((1, 1, 8, 8), np.float32)
            whole[0, 0, 1:4:2, 1:4:2] = x
            for buckets in ("", "H=3;W=3"):
                self.check("MaxUnpool", 11, [x, places, np.array([1, 1, *extents])], [whole[:, :, :extents[0], :extents[1]]],
                           constants=(2,), free={0: free, 1: free}, buckets=buckets, kernel_shape=[2, 2], strides=[2, 2])
        for batch, channels in ((1, 2), (2, 1)):
            with self.assertRaisesRegex(AssertionError, "output_shape has 2, expected 1"):
                self.check("MaxUnpool", 11, [x, places, np.array([batch, channels, 5, 5])], [x], constants=(2,), kernel_shape=[2, 2], strides=[2, 2])

    def test_a_graph_that_an_extent_decides_about(self):
        """Slopes are of the channels or of the last axis: kernels for the buckets alone, other shapes are interpreted."""
        x, slope = np.ones((3, 4, 5), np.float32), np.ones(4, np.float32)
        graph = helper.make_graph(
            [helper.make_node("PRelu", ["x", "slope"], ["y"])], "slopes",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["A", "B", "C"]),
             helper.make_tensor_value_info("slope", TensorProto.FLOAT, ["D"])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
        for rows in (3, 2):
            self.run_model(graph, 16, {"x": -x[:rows], "slope": 2 * slope}, lambda answer, outputs, rows=rows: (
                self.assertTrue(answer.startswith("ok "), answer),
                np.testing.assert_array_equal(outputs["0"], -2 * x[:rows])), buckets="A=3;B=4;C=5;D=4")

    def test_channels_that_a_number_of_the_run_chooses(self):
        """As many as the weights take; a run in which there are others fails."""
        x, weights = np.ones((1, 6, 4), np.float32), np.ones((2, 4, 1), np.float32)
        graph = helper.make_graph(
            [helper.make_node("Slice", ["x", "from", "to", "axes"], ["part"]), helper.make_node("Conv", ["part", "w"], ["y"])],
            "chosen",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape),
             helper.make_tensor_value_info("from", TensorProto.INT64, [1])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(array, name) for name, array in
             (("to", np.array([6])), ("axes", np.array([1])), ("w", weights))])

        def expect(answer, outputs):
            self.assertTrue(answer.startswith("ok 0 "), answer)
            np.testing.assert_array_equal(outputs["0"], np.full((1, 2, 4), 4, np.float32))

        self.run_model(graph, 13, {"x": x, "from": np.array([2])}, expect)
        with self.assertRaisesRegex(AssertionError, 'node "Conv_1" .*the input has 3 channels, the weights take 4'):
            self.run_model(graph, 13, {"x": x, "from": np.array([3])}, expect)

    def test_a_negative_celu(self):
        x = np.array([-2, -0.5, 0, 0.5, 3], np.float32)
        for alpha in (-1.5, 2.0):
            wanted = np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha))
            self.check("Celu", 12, [x], [wanted.astype(np.float32)], alpha=alpha)

    def test_inverses_of_what_has_no_square(self):
        for dtype, large in ((np.float32, 3e38), (np.float64, 1e300), (np.float16, 6e4)):
            x = np.array([large, 300, 99, 101, 1.5, 1e3], dtype)
            wide = x.astype(np.float64)
            digits = 2 if dtype == np.float16 else 5
            self.check("Asinh", 9, [np.concatenate([x, -x])], [np.arcsinh(np.concatenate([wide, -wide])).astype(dtype)], digits=digits)
            self.check("Acosh", 9, [x], [np.arccosh(wide).astype(dtype)], digits=digits)

    def test_angles_past_all_turns_have_some_sine(self):
        x = np.array([3e38, -1e30, 1e300, 1e15])
        graph = helper.make_graph([helper.make_node("Sin", ["x"], ["y"]), helper.make_node("Cos", ["x"], ["z"])], "turns",
                                  [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [4])],
                                  [helper.make_tensor_value_info(name, TensorProto.DOUBLE, None) for name in "yz"])

        def expect(answer, outputs):
            self.assertTrue(answer.startswith("ok "), answer)
            for array in outputs.values():
                self.assertTrue(np.all(np.abs(array) <= 1), array)

        self.run_model(graph, 9, {"x": x}, expect)

    def test_determinants_of_any_order(self):
        large = RANDOM.standard_normal((2, 3, 40, 40))
        singular = RANDOM.standard_normal((5, 5))
        singular[3] = 2 * singular[1]
        poisoned = np.eye(3)
        poisoned[2, 2] = np.nan
        for dtype in (np.float32, np.float64):
            for x in (large, singular, np.zeros((4, 4)), poisoned, np.zeros((2, 0, 0)), np.zeros((0, 3, 3)), np.eye(3)[[2, 1, 0]]):
                x = x.astype(dtype)
                expected = np.linalg.det(x.astype(np.float64)).astype(dtype)
                # Of exact zeros rounding leaves more or less.
                self.check("Det", 22, [x], [expected if x is not singular else np.zeros((), dtype)], digits=4)

    def test_statistics_of_layer_normalization_are_float32(self):
        x, scale, bias = floats(3, 17) * 3, floats(17), floats(17)
        for dtype, digits in ((np.float16, 2), (np.float64, 5)):
            parts = [part.astype(dtype) for part in (x, scale, bias)]
            y, mean, inverse = normalized(*(part.astype(np.float64) for part in parts), 1e-5)
            self.check("LayerNormalization", 17, parts, [y.astype(dtype), mean.astype(np.float32), inverse.astype(np.float32)], digits=digits)

    def test_squares_past_float16(self):
        x = (floats(2, 9) * 9000).astype(np.float16)
        one, none = np.ones(9, np.float16), np.zeros(9, np.float16)
        y, _, _ = normalized(x.astype(np.float64), 1, 0, 1e-5)
        self.check("LayerNormalization", 17, [x, one, none], [y.astype(np.float16)], digits=2)

    def test_the_largest_of_nothing(self):
        for shape in ((0, 3), (3, 0), (2, 0, 3)):
            x = np.zeros(shape, np.float32)
            self.check("Hardmax", 9, [x], [x])
            self.check("Hardmax", 13, [x], [x])

    def test_output_shapes_of_transposed_convolutions(self):
        """An odd padding is one more at the start, but for SAME_UPPER at the end."""
        x, w = floats(1, 1, 3), floats(1, 1, 3)
        full = (x[0, 0, :, None] * w[0, 0]).reshape(1, 1, 9)  # strides as long as the kernel: nothing overlaps
        for cut in (0, 1, 2, 3):
            for auto_pad, start in ((None, cut - cut // 2), ("NOTSET", cut - cut // 2), ("SAME_LOWER", cut - cut // 2), ("SAME_UPPER", cut // 2)):
                options = {} if auto_pad is None else {"auto_pad": auto_pad}
                self.check("ConvTranspose", 11, [x, w], [full[..., start:9 - cut + start]], strides=[3], output_shape=[9 - cut], **options)

    def test_backward_slices_from_before_the_first_element(self):
        x = floats(3, 4)
        for start, end, expected in ((-9, -9, x[:1]), (-4, -2**40, x[:1]), (-4, 0, x[:0]), (9, -9, x[::-1]), (2, -3, x[2:0:-1])):
            parts = [np.array([value], np.int64) for value in (start, end, 0, -1)]
            self.check("Slice", 13, [x, *parts], [expected])
        parts = [np.array([value], np.int64) for value in (-9, -9, 0, -1)]
        self.check("Slice", 13, [x[:0], *parts], [x[:0]])

    def test_shrunk_integers_wrap(self):
        x = np.array([0, 1, 2, 200], np.uint8)
        self.check("Shrink", 9, [x], [np.array([0, 255, 0, 198], np.uint8)], lambd=0.0, bias=2.0)

    def test_products_whose_rows_come_before_the_batches(self):
        left, right = floats(5, 2, 3, 4), floats(2, 3, 4, 6)
        wide = left.transpose(1, 2, 0, 3)
        microsoft = (("com.microsoft", 1),)
        self.check("FusedMatMul", 17, [left, right], [wide @ right], domains=microsoft, transBatchA=1)
        self.check("FusedMatMul", 17, [wide, right.transpose(2, 0, 1, 3)], [wide @ right], domains=microsoft, transBatchB=1)
        turned = left.transpose(3, 1, 2, 0)
        self.check("FusedMatMul", 17, [turned, right], [0.5 * (wide @ right)], domains=microsoft, transBatchA=1, transA=1, alpha=0.5)

    def test_what_is_no_number_is_unequal(self):
        x = np.array([[np.nan], [2], [3]], np.float32)
        for mode, rows in (("BRANCH_NEQ", [1, 7, 1]), ("BRANCH_EQ", [7, 1, 7]), ("BRANCH_LEQ", [7, 1, 7]), ("BRANCH_GT", [7, 7, 1])):
            self.check("TreeEnsembleRegressor", 15, [x], [np.array(rows, np.float32)[:, None]], domains=(("ai.onnx.ml", 3),), n_targets=1,
                       nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0], nodes_values=[2.0, 0.0, 0.0],
                       nodes_modes=[mode, "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
                       target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0], target_weights=[1.0, 7.0])

    def test_labels_of_what_is_no_number(self):
        keys = numpy_helper.from_array(np.array([1, np.nan]))
        values = numpy_helper.from_array(np.array([5, 7], np.int16))
        default = numpy_helper.from_array(np.array([-2], np.int16))
        self.check("LabelEncoder", 21, [np.array([np.nan, 1, 3])], [np.array([7, 5, -2], np.int16)], domains=(("ai.onnx.ml", 4),),
                   keys_tensor=keys, values_tensor=values, default_tensor=default)
        x = np.array([1, np.nan, 3], np.float32)
        self.check("LabelEncoder", 21, [x], [np.array([5, 7, -0.0], np.float32)], domains=(("ai.onnx.ml", 4),),
                   keys_floats=[1.0, np.nan], values_floats=[5.0, 7.0])

    def test_trees_answer_in_the_type_that_they_are_asked_in(self):
        for dtype in (np.float16, np.float32, np.float64):
            x = np.array([[1, 5], [4, 0], [4, 2], [3, 1]], dtype)
            rows = np.array([[5, 0], [0, 12], [-2, 0], [5, 0]], dtype)
            tensor = lambda values, kind=dtype: numpy_helper.from_array(np.array(values, kind))  # noqa: E731
            self.check("TreeEnsemble", 21, [x], [rows], domains=(("ai.onnx.ml", 5),), n_targets=2, tree_roots=[0],
                       nodes_featureids=[0, 1], nodes_splits=tensor([3, 1]), nodes_modes=tensor([0, 0], np.uint8),
                       nodes_truenodeids=[0, 1], nodes_falsenodeids=[1, 2], nodes_trueleafs=[1, 1], nodes_falseleafs=[0, 1],
                       leaf_targetids=[0, 1, 0], leaf_weights=tensor([5, 12, -2]))

    def test_softmax_of_squares_down_the_columns(self):
        for shape, axis in (((9, 9), 0), ((16, 16), 0), ((2, 7, 7), 1), ((8, 8, 8), 0), ((8, 8, 8), 1), ((33, 33), 1)):
            x = floats(*shape)
            powers = np.exp(x - x.max(axis, keepdims=True))
            y = powers / powers.sum(axis, keepdims=True)
            self.check("Softmax", 13, [x], [y], axis=axis)
            self.check("LogSoftmax", 13, [x], [np.log(y)], axis=axis)

    def test_positions_between_two_elements(self):
        """3.5 / 0.7 is 5 in float32, and more than 5 in float64: half past an element is nearer to the one below."""
        x = np.arange(33, dtype=np.float32)[None, None, None]
        for scale in (0.7, 2.3, 1.5, 0.34):
            ratio = np.float32(scale)
            at = (np.arange(int(33 * ratio), dtype=np.float32) + np.float32(0.5)) / ratio - np.float32(0.5)
            y = x[..., np.clip(np.ceil(at - np.float32(0.5)), 0, 32).astype(np.int64)]
            self.check("Resize", 13, [x, None, np.array([1, 1, 1, scale], np.float32)], [y], mode="nearest")

    def test_paths_through_matrices_of_any_extent(self):
        """Dynamic time warping: of equally cheap steps to the next row, the next column or both, the one along the row."""
        def path(costs):
            total = np.full((costs.shape[0] + 1, costs.shape[1] + 1), np.inf, np.float32)
            total[0, 0] = 0
            steps = {}
            for j, i in np.ndindex(costs.shape[1], costs.shape[0]):
                both, above, left = total[i, j], total[i, j + 1], total[i + 1, j]
                steps[i, j] = (1, 1) if both < min(above, left) else (1, 0) if above < min(both, left) else (0, 1)
                total[i + 1, j + 1] = costs[i, j] + {(1, 1): both, (1, 0): above, (0, 1): left}[steps[i, j]]
            at, cells = (costs.shape[0] - 1, costs.shape[1] - 1), []
            while min(at) >= 0:
                cells.append(at)
                at = at[0] - steps[at][0], at[1] - steps[at][1]
            return np.array(cells[::-1], np.int32).reshape(-1, 2).T

        for shape in ((1, 1), (3, 8), (8, 3), (1, 9), (20, 33), (0, 4), (5, 0)):
            costs = floats(*shape)
            self.check("DynamicTimeWarping", 17, [costs], [path(costs)], domains=[("com.microsoft", 1)],
                       free={0: {0: "R", 1: "C"}}, buckets="R=8;C=16")

    def test_grams_of_rows_whose_length_is_free(self):
        pool = [(5, 6), (7, 8), (6, 7)]
        options = {"max_gram_length": 2, "min_gram_length": 2, "mode": "TF", "ngram_counts": [0, 2], "ngram_indexes": [3, 4, 0, 1, 2],
                   "pool_int64s": [4, 9, *(number for gram in pool for number in gram)]}
        for extent in (0, 1, 2, 7):
            row = [5, 6, 7, 8, 6, 7, 2][:extent]
            counts = np.zeros((2, 5), np.float32)
            for i, first in enumerate(row):
                for second in row[i + 1:i + 7]:
                    if (first, second) in pool:
                        counts[:, pool.index((first, second))] += 1
            x = np.array([row] * 2, np.int64)
            with self.subTest(extent=extent):
                self.check("TfIdfVectorizer", 9, [x], [counts], max_skip_count=5, **options)
                self.check("TfIdfVectorizer", 9, [x], [counts], free={0: {0: "N", 1: "T"}}, buckets="N=3;T=12", max_skip_count=5, **options)


if __name__ == "__main__":
    unittest.main()
