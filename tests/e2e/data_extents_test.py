"""Results whose extent depends on data, from inputs of a run."""

import tempfile
import unittest
from pathlib import Path

import mill
import numpy as np
import onnx
from free_dims_models import Builder
from onnx import TensorProto, helper, numpy_helper


def model(builder, outputs):
    """`outputs`: (name, type) pairs."""
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in builder.inputs]
    results = [helper.make_tensor_value_info(n, t, None) for n, t in outputs]
    graph = helper.make_graph(builder.nodes, "g", inputs, results, builder.constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    made.ir_version = 8
    return made.SerializeToString()


def bright_points():
    """The coordinates and values of the elements above a threshold."""
    b = Builder([("x", [6, 7])])
    found = b.add("NonZero", [b.add("Greater", ["x", np.float32(0.4)])])
    points = b.add("Transpose", [found], perm=[1, 0])
    values = b.add("Mul", [b.add("GatherND", ["x", points]), np.float32(2)])
    return model(b, [(found, TensorProto.INT64), (points, TensorProto.INT64), (values, TensorProto.FLOAT)])


def detections():
    """Boxes that stay after suppression, with their scores."""
    b = Builder([("boxes", [1, 40, 4]), ("scores", [1, 3, 40])])
    kept = b.add("NonMaxSuppression", ["boxes", "scores", b.ints(5), np.asarray([0.4], np.float32), np.asarray([0.1], np.float32)])
    column = b.add("Squeeze", [b.add("Slice", [kept, b.ints(2), b.ints(3), b.ints(1)]), b.ints(1)])
    chosen = b.add("Gather", [b.add("Squeeze", ["boxes", b.ints(0)]), column], axis=0)
    return model(b, [(kept, TensorProto.INT64), (chosen, TensorProto.FLOAT)])


def kept_columns():
    b = Builder([("x", [5, 8]), ("w", [8])])
    kept = b.add("Compress", ["x", b.add("Greater", ["w", np.float32(0)])], axis=1)
    return model(b, [(b.add("Neg", [kept]), TensorProto.FLOAT)])


def distinct_values(axis=None, **options):
    """The distinct elements or columns, twice each, with all that Unique says of them."""
    b = Builder([("x", [3, 5])])
    if axis is not None:
        options["axis"] = axis
    b.nodes.append(helper.make_node("Unique", ["x"], ["values", "first", "inverse", "counts"], **options))
    return model(b, [(b.add("Mul", ["values", np.float32(2)]), TensorProto.FLOAT)] +
                 [(name, TensorProto.INT64) for name in ("first", "inverse", "counts")])


def totals_of_found(rows=6):
    """What reductions make of all that is found, and how much it is."""
    b = Builder([("x", [rows, 7])])
    found = b.add("NonZero", [b.add("Greater", ["x", np.float32(0.4)])])
    values = b.add("Exp", [b.add("GatherND", ["x", b.add("Transpose", [found], perm=[1, 0])])])
    outputs = [(b.add("ReduceSum", [found, b.ints(1)]), TensorProto.INT64), (b.add("Shape", [found]), TensorProto.INT64),
               (b.add("Size", [found]), TensorProto.INT64)]
    for op in ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceLogSumExp", "ReduceLogSum"):
        outputs.append((b.add(op, [values], axes=[0], keepdims=0), TensorProto.FLOAT))
    count = b.add("Cast", [b.add("Gather", [b.add("Shape", [values]), b.ints(0)], axis=0)], to=TensorProto.FLOAT)
    outputs.append((b.add("Div", [values, count]), TensorProto.FLOAT))
    return model(b, outputs)


def found_places(builder):
    return builder.add("Cast", [builder.add("NonZero", ["x"])], to=TensorProto.FLOAT)


def mirrored_ends():
    """What is found between its own ends."""
    b = Builder([("x", [4])])
    return model(b, [(b.add("Pad", [found_places(b), b.ints(0, 1, 0, 1)], mode="reflect"), TensorProto.FLOAT)])


def filtered():
    """Windows of what is found."""
    b = Builder([("x", [4])])
    places = b.add("Unsqueeze", [found_places(b), b.ints(0)])
    return model(b, [(b.add("Conv", [places, np.ones((1, 1, 2), np.float32)]), TensorProto.FLOAT)])


class DataExtents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path, self.package = self.folder / "model.onnx", self.folder / "module.tar"

    def check(self, made, inputs, stem, tolerance=1e-6):
        self.path.write_bytes(made)
        feed, expected = mill.reference(self.path, inputs, stem)
        for level in (0, 3):
            mill.check_program(self, "compile", self.path, "--opt-level", level, "-o", self.package)
            actual = mill.run_package(self, self.package, feed, self.folder / "out.npz")
            self.assertEqual(mill.compare.compare_sets(actual, expected, tolerance), [], stem)
        self.check_of_constants(made, inputs, expected, stem, tolerance)

    def check_of_constants(self, made, inputs, expected, stem, tolerance=0):
        """The same where the model has the inputs as its own constants, which the compiler may compute with."""
        fixed = onnx.load_model_from_string(made)
        del fixed.graph.input[:]
        fixed.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in inputs.items())
        self.path.write_bytes(fixed.SerializeToString())
        mill.check_program(self, "compile", self.path, "-o", self.package)
        mill.check_program(self, "run", self.package, "-o", self.folder / "out.npz", "--repeat", 1, "--number", 1, "--warmup", 0)
        actual = mill.load_npz(self.folder / "out.npz")
        self.assertEqual(mill.compare.compare_sets(actual, expected, tolerance), [], f"{stem} of constants")

    def test_parts_of_constant_texts(self):
        node = helper.make_node("StringSplit", ["x"], ["parts", "counts"])
        results = [helper.make_tensor_value_info("parts", TensorProto.STRING, None),
                   helper.make_tensor_value_info("counts", TensorProto.INT64, None)]
        opsets = [helper.make_opsetid("", 20)]
        made = helper.make_model(helper.make_graph([node], "g", [], results), opset_imports=opsets, ir_version=9)
        texts = np.array(["one two", "three", "日本 a b"], object)
        expected = {"parts": np.array([["one", "two", ""], ["three", "", ""], ["日本", "a", "b"]]), "counts": np.array([2, 1, 3])}
        self.check_of_constants(made.SerializeToString(), {"x": texts}, expected, "data.parts")

    def test_points_boxes_and_columns(self):
        rng = np.random.default_rng(4)

        def some(*shape):
            return rng.uniform(-1, 1, shape).astype(np.float32)

        self.check(bright_points(), {"x": some(6, 7)}, "data.points")
        self.check(bright_points(), {"x": np.full((6, 7), 0.1, np.float32)}, "data.no_points")
        corners = some(1, 40, 2)
        boxes = np.concatenate([corners, corners + np.abs(some(1, 40, 2))], axis=2)
        self.check(detections(), {"boxes": boxes, "scores": some(1, 3, 40)}, "data.boxes")
        self.check(kept_columns(), {"x": some(5, 8), "w": some(8)}, "data.columns")

    def test_totals(self):
        rng = np.random.default_rng(5)
        for name, x in (("some", rng.uniform(-1, 1, (6, 7))), ("one", np.eye(6, 7) * 0.9), ("all", np.full((6, 7), 0.5))):
            self.check(totals_of_found(), {"x": x.astype(np.float32)}, f"data.totals.{name}", 1e-5)

    def test_totals_of_any_number_of_rows(self):
        self.path.write_bytes(totals_of_found("N"))
        mill.check_program(self, "compile", self.path, "--input-shapes", "x:[N,7]", "-o", self.package)
        rng = np.random.default_rng(6)
        for rows in (1, 2, 5, 40):
            x = rng.uniform(0, 1, (rows, 7)).astype(np.float32)
            x[0, 0] = 0.9
            feed, expected = mill.reference(self.path, {"x": x}, f"data.totals.rows{rows}")
            actual = mill.run_package(self, self.package, feed, self.folder / "out.npz")
            self.assertEqual(mill.compare.compare_sets(actual, expected, 1e-5), [], rows)

    def test_distinct_values(self):
        x = np.array([[1, 3, 1, 3, 2], [0, 5, 0, 5, 0], [2, 2, 2, 2, 2]], np.float32)
        for stem, made in (("flat", distinct_values()), ("first", distinct_values(sorted=0)), ("columns", distinct_values(1)),
                           ("unsorted", distinct_values(1, sorted=0)), ("rows", distinct_values(0))):
            self.check(made, {"x": x}, f"data.unique.{stem}")

    def test_mirrored_ends(self):
        for x in ([0, 1, 0, 2], [1, 1, 1, 1], [3, 0, 0, 1]):
            self.check(mirrored_ends(), {"x": np.asarray(x, np.float32)}, f"data.mirrored.{x[0]}")

    def test_windows_of_what_is_found(self):
        for x in ([0, 1, 0, 2], [1, 1, 1, 1], [3, 0, 2, 1]):
            self.check(filtered(), {"x": np.asarray(x, np.float32)}, f"data.filtered.{x[0]}")

    def test_windows_over_what_data_counts(self):
        b = Builder([("x", [4])])
        places = b.add("Unsqueeze", [found_places(b), b.ints(0)])
        made = model(b, [(b.add("MaxPool", [places], kernel_shape=[2], ceil_mode=1), TensorProto.FLOAT)])
        self.path.write_bytes(made)
        done = mill.run_program("compile", self.path, "-o", self.package)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for x in ([0, 1, 0, 2], [1, 1, 1, 1], [3, 0, 2, 1]):
            self.check(made, {"x": np.asarray(x, np.float32)}, f"data.pooled.{x[0]}")


if __name__ == "__main__":
    unittest.main()
