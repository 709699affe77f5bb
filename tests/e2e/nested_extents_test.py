"""Extents that depend on data, in models that sort, cut, join and select again what they found: detectors' last steps.
Compared with ONNX Runtime."""

import json
import tempfile
import unittest
from pathlib import Path

import mill
import numpy as np
from data_extents_test import model
from free_dims_models import Builder
from onnx import TensorProto, helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def node(b, op, inputs, outputs, **attributes):
    """A node of several outputs."""
    first = b.add(op, inputs, **attributes)
    names = [first] + [f"{first}.{i}" for i in range(1, outputs)]
    del b.nodes[-1].output[:]
    b.nodes[-1].output.extend(names)
    return names


def found_above(b, x, threshold):
    """Positions in the vector x whose elements are above a threshold."""
    return b.add("Squeeze", [b.add("NonZero", [b.add("Greater", [x, np.float32(threshold)])]), b.ints(0)])


def smaller_of(b, k, value, form):
    """min(k, the extent of a vector), as exporters write it."""
    if form == "min":
        return b.add("Min", [b.ints(k), b.add("Shape", [value])])
    if form == "reduce_min":
        return b.add("ReduceMin", [b.add("Concat", [b.ints(k), b.add("Shape", [value])], axis=0)], axes=[0], keepdims=1)
    short = b.add("Cast", [b.dim(value, 0)], to=TensorProto.INT32)
    scalar = b.add("Min", [np.asarray([k], np.int32), short])
    return b.add("Reshape", [b.add("Cast", [scalar], to=INT64), b.ints(-1)])


def best_of_found(k, form=None, extent=30, **options):
    """The best k of the values found, or of as many as there are."""
    b = Builder([("x", [extent])])
    values = b.add("Gather", ["x", found_above(b, "x", 0)])
    top, order = node(b, "TopK", [values, smaller_of(b, k, values, form) if form else b.ints(k)], 2, **options)
    return model(b, [(top, FLOAT), (order, INT64), (b.add("Mul", [top, b.add("Cast", [order], to=FLOAT)]), FLOAT)])


def parts_of_found(start, end, by_count=False, extent=30):
    b = Builder([("x", [extent])])
    values = b.add("Gather", ["x", found_above(b, "x", 0)])
    stop = b.add("Sub", [b.add("Shape", [values]), b.ints(2)]) if by_count else b.ints(end)
    return model(b, [(b.add("Slice", [values, b.ints(start), stop, b.ints(0)]), FLOAT)])


def joined():
    """What two masks find, one behind the other, with all rows between; rows, their doubles and their number."""
    b = Builder([("x", [12, 3]), ("y", [9, 3]), ("p", [12]), ("q", [9])])
    first = b.add("Gather", ["x", found_above(b, "p", 0)])
    second = b.add("Gather", ["y", found_above(b, "q", 0)])
    rows = b.add("Concat", [first, "y", second], axis=0)
    again = b.add("Concat", [b.add("Mul", [first, np.float32(2)]), "y", second], axis=0)
    last = b.add("Gather", [rows, np.asarray([-1, 0], np.int64)], axis=0)
    flat = b.add("Reshape", [rows, b.ints(-1)])
    return model(b, [(rows, FLOAT), (b.add("Add", [rows, again]), FLOAT), (b.add("Shape", [rows]), INT64), (last, FLOAT),
                     (flat, FLOAT)])


def found_in_found():
    """Positions, values and a compression of what a first search left."""
    b = Builder([("x", [30])])
    values = b.add("Gather", ["x", found_above(b, "x", 0)])
    inner = found_above(b, values, 0.5)
    kept = b.add("Compress", [values, b.add("Less", [values, np.float32(0.8)])], axis=0)
    ranks = b.add("Range", [np.int64(0), b.add("Squeeze", [b.dim(values, 0), b.ints(0)]), np.int64(1)])
    zeros = b.add("ConstantOfShape", [b.add("Shape", [values])], value=b.tensor(np.array([0.25], np.float32)))
    return model(b, [(inner, INT64), (b.add("Gather", [values, inner]), FLOAT), (kept, FLOAT), (ranks, INT64),
                     (b.add("Add", [zeros, b.add("Mul", [b.add("Cast", [ranks], to=FLOAT), values])]), FLOAT)])


def dense_detector(levels=(20, 8), classes=3):
    """RetinaNet's way: each level's best scores above a threshold, joined, suppressed by class, the best of all."""
    b = Builder([(name + str(i), [n, c]) for i, n in enumerate(levels) for name, c in (("boxes", 4), ("scores", classes))])
    boxes, scores, labels = [], [], []
    for i in range(len(levels)):
        flat = b.add("Reshape", [f"scores{i}", b.ints(-1)])
        places = found_above(b, flat, 0.1)
        top, order = node(b, "TopK", [b.add("Gather", [flat, places]), smaller_of(b, 10, places, "reduce_min")], 2)
        place = b.add("Gather", [places, order])
        boxes.append(b.add("Gather", [f"boxes{i}", b.add("Div", [place, np.int64(classes)])], axis=0))
        labels.append(b.add("Mod", [place, np.int64(classes)]))
        scores.append(top)
    boxes, scores, labels = (b.add("Concat", parts, axis=0) for parts in (boxes, scores, labels))
    # Boxes of different classes are moved apart, so that one suppression serves all.
    moved = b.add("Mul", [b.add("Cast", [labels], to=FLOAT), b.add("Add", [b.add("ReduceMax", [boxes], keepdims=0), np.float32(1)])])
    apart = b.add("Add", [boxes, b.add("Unsqueeze", [moved, b.ints(1)])])
    kept = b.add("NonMaxSuppression", [
        b.add("Unsqueeze", [apart, b.ints(0)]), b.add("Unsqueeze", [scores, b.ints(0, 1)]), b.ints(1 << 40), np.asarray([0.5], np.float32)])
    kept = b.add("Squeeze", [b.add("Gather", [kept, b.ints(2)], axis=1), b.ints(1)])
    kept = b.add("Slice", [kept, b.ints(0), b.ints(7), b.ints(0)])
    return model(b, [(b.add("Gather", [value, kept], axis=0), kind) for value, kind in ((boxes, FLOAT), (scores, FLOAT), (labels, INT64))])


def scattered(op, n=12):
    """What is found, doubled and put back to its rows: of a whole array, and of one as long as a first search found."""
    b = Builder([("x", [n, 3]), ("p", [n])])
    value = b.add("Gather", ["x", found_above(b, "p", -0.5)], axis=0)
    results = []
    for rows in ("x", value):
        total = b.add("ReduceSum", [rows, b.ints(1)], keepdims=0)
        at = found_above(b, total, 0)
        doubled = b.add("Mul", [b.add("Gather", [rows, at], axis=0), np.float32(2)])
        if op == "ScatterND":
            put = b.add(op, [rows, b.add("Unsqueeze", [at, b.ints(1)]), doubled])
        else:
            zeros = b.add("ConstantOfShape", [b.add("Concat", [b.dim(rows, 0), b.ints(3)], axis=0)])
            column = b.add("Reshape", [at, b.ints(-1, 1)])
            put = b.add(op, [zeros, b.add("Expand", [column, b.add("Concat", [b.dim(at, 0), b.ints(3)], axis=0)]), doubled], axis=0)
        results += [put, b.add("Add", [put, rows])]
    return model(b, [(name, FLOAT) for name in results])


def two_stage_detector(n=30, side=None, classes=3):
    """Faster R-CNN's way: proposals suppressed and cut, boxes of each level pooled from its map and merged, one more network,
    the classes' best boxes suppressed again."""
    large, small = (["H", "W"], ["h", "w"]) if side == "free" else ([16, 16], [8, 8])
    b = Builder([("large", [1, 4, *large]), ("small", [1, 4, *small]), ("boxes", [n, 4]), ("scores", [n])])
    rng = np.random.default_rng(12)

    def weights(*shape):
        return rng.uniform(-1, 1, shape).astype(np.float32)

    def suppressed(boxes, scores, most):
        kept = b.add("NonMaxSuppression", [b.add("Unsqueeze", [boxes, b.ints(0)]), b.add("Unsqueeze", [scores, b.ints(0, 1)]),
                                           b.ints(1 << 40), np.asarray([0.6], np.float32)])
        kept = b.add("Squeeze", [b.add("Gather", [kept, b.ints(2)], axis=1), b.ints(1)])
        return b.add("Slice", [kept, b.ints(0), b.ints(most), b.ints(0)])

    top, order = node(b, "TopK", ["scores", b.ints(20)], 2)
    boxes = b.add("Gather", ["boxes", order], axis=0)
    good = found_above(b, top, 0.2)
    boxes, top = b.add("Gather", [boxes, good], axis=0), b.add("Gather", [top, good])
    boxes = b.add("Gather", [boxes, suppressed(boxes, top, 12)], axis=0)
    corners = [b.add("Gather", [boxes, np.int64(i)], axis=1) for i in range(4)]
    sides = [b.add("Sub", [corners[i + 2], corners[i]]) for i in range(2)]
    area = b.add("Mul", sides)
    pooled = b.add("ConstantOfShape", [b.add("Concat", [b.dim(boxes, 0), b.ints(4, 3, 3)], axis=0)])
    for map_, scale, chosen in (("large", 1.0, b.add("Less", [area, np.float32(20)])),
                                ("small", 0.5, b.add("GreaterOrEqual", [area, np.float32(20)]))):
        at = b.add("Squeeze", [b.add("NonZero", [chosen]), b.ints(0)])
        own = b.add("Gather", [boxes, at], axis=0)
        picture = b.add("ConstantOfShape", [b.add("Shape", [at])], value=b.tensor(np.array([0], np.int64)))
        part = b.add("RoiAlign", [map_, own, picture], output_height=3, output_width=3, spatial_scale=scale, sampling_ratio=0)
        index = b.add("Expand", [b.add("Reshape", [at, b.ints(-1, 1, 1, 1)]), b.add("Concat", [b.dim(at, 0), b.ints(4, 3, 3)], axis=0)])
        pooled = b.add("ScatterElements", [pooled, index, part], axis=0)
    hidden = b.add("Relu", [b.add("Gemm", [b.add("Flatten", [pooled], axis=1), weights(36, 8), weights(8)])])
    share = b.add("Softmax", [b.add("Gemm", [hidden, weights(8, classes), weights(classes)])], axis=1)
    moves = b.add("Reshape", [b.add("Gemm", [hidden, weights(8, 4 * classes), weights(4 * classes)]),
                              b.add("Concat", [b.dim(hidden, 0), b.ints(classes, 4)], axis=0)])
    moved = b.add("Add", [b.add("Unsqueeze", [boxes, b.ints(1)]), b.add("Mul", [moves, np.float32(0.1)])])
    pairs = b.add("Transpose", [b.add("NonZero", [b.add("Greater", [share, np.float32(0.3)])])], perm=[1, 0])
    found, chance = b.add("GatherND", [moved, pairs]), b.add("GatherND", [share, pairs])
    label = b.add("Gather", [pairs, np.int64(1)], axis=1)
    apart = b.add("Add", [found, b.add("Unsqueeze", [b.add("Mul", [b.add("Cast", [label], to=FLOAT), np.float32(100)]), b.ints(1)])])
    kept = suppressed(apart, chance, 10)
    return model(b, [(b.add("Gather", [value, kept], axis=0), kind) for value, kind in ((found, FLOAT), (chance, FLOAT), (label, INT64))])


class ModelChecks(unittest.TestCase):
    """One model, one package, several inputs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path, self.package = self.folder / "model.onnx", self.folder / "module.tar"

    def check(self, made, feeds, stem, tolerance=1e-6):
        """One package at the lowest and the highest level, for each of `feeds`."""
        self.path.write_bytes(made)
        for level in (0, 3):
            mill.check_program(self, "compile", self.path, "--opt-level", level, "-o", self.package)
            for name, inputs in feeds.items():
                feed, expected = mill.reference(self.path, inputs, f"nested.{stem}.{name}")
                actual = mill.run_package(self, self.package, feed, self.folder / "out.npz")
                self.assertEqual(mill.compare.compare_sets(actual, expected, tolerance), [], f"{stem} {name}")

    def check_free(self, made, shapes, feeds, stem, tolerance=1e-6):
        """One package for inputs of any size."""
        self.path.write_bytes(made)
        done = mill.run_program("compile", self.path, "--input-shapes", shapes, "-o", self.package)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "", stem)
        for i, inputs in enumerate(feeds):
            feed, expected = mill.reference(self.path, inputs, f"nested.free.{stem}.{i}")
            actual = mill.run_package(self, self.package, feed, self.folder / "out.npz")
            self.assertEqual(mill.compare.compare_sets(actual, expected, tolerance), [], f"{stem} {i}")


class NestedExtents(ModelChecks):
    def vectors(self, *shares):
        """Vectors of 30, of which these many elements are above 0."""
        rng = np.random.default_rng(8)
        feeds = {}
        for share in shares:
            x = np.where(np.arange(30) < share, rng.uniform(0.01, 1, 30), rng.uniform(-1, -0.01, 30))
            feeds[str(share)] = {"x": rng.permutation(x).astype(np.float32)}
        return feeds

    def test_best_of_found(self):
        for form in ("min", "reduce_min", "scalar"):
            self.check(best_of_found(5, form), self.vectors(0, 3, 5, 30), f"best.{form}")
        self.check(best_of_found(5, "min", largest=0), self.vectors(3, 12), "least")
        self.check(best_of_found(5), self.vectors(5, 12), "best.fixed")

    def test_fewer_found_than_asked_for(self):
        self.path.write_bytes(best_of_found(5))
        mill.check_program(self, "compile", self.path, "-o", self.package)
        np.savez(self.folder / "in.npz", **self.vectors(4)["4"])
        done = mill.run_program("run", self.package, "-i", self.folder / "in.npz", "-o", self.folder / "out.npz")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("index", done.stderr)

    def test_parts_of_found(self):
        feeds = self.vectors(0, 2, 9, 30)
        for start, end in ((0, 4), (1, 1 << 40), (3, 8), (-4, 1 << 40), (-100, 5), (0, -3), (-5, -2)):
            self.check(parts_of_found(start, end), feeds, f"parts.{start}.{end}")
        self.check(parts_of_found(1, 0, by_count=True), self.vectors(2, 9, 30), "parts.count")

    def test_joined(self):
        rng = np.random.default_rng(9)

        def feed(p, q):
            return {"x": rng.uniform(-1, 1, (12, 3)).astype(np.float32), "y": rng.uniform(-1, 1, (9, 3)).astype(np.float32),
                    "p": np.asarray(p, np.float32), "q": np.asarray(q, np.float32)}

        self.check(joined(), {"some": feed(rng.uniform(-1, 1, 12), rng.uniform(-1, 1, 9)), "none": feed(-np.ones(12), -np.ones(9)),
                              "all": feed(np.ones(12), np.ones(9)), "first": feed(np.ones(12), -np.ones(9))}, "joined")

    def test_found_in_found(self):
        self.check(found_in_found(), self.vectors(0, 1, 14, 30), "inner")

    def test_dense_detector(self):
        rng = np.random.default_rng(10)
        feeds = {}
        for name, most in (("many", 1.0), ("few", 0.13), ("none", 0.1)):
            feed = {}
            for i, n in enumerate((20, 8)):
                corners = rng.uniform(0, 10, (n, 2))
                feed[f"boxes{i}"] = np.concatenate([corners, corners + rng.uniform(1, 6, (n, 2))], axis=1).astype(np.float32)
                feed[f"scores{i}"] = rng.uniform(0, most, (n, 3)).astype(np.float32)
            feeds[name] = feed
        feeds.pop("none")  # ONNX Runtime takes no maximum of no boxes
        self.check(dense_detector(), feeds, "dense", 1e-5)

    def test_scattered(self):
        rng = np.random.default_rng(11)
        x, p = rng.uniform(-1, 1, (12, 3)).astype(np.float32), rng.uniform(-1, 1, 12).astype(np.float32)
        feeds = {"some": {"x": x, "p": p}, "all": {"x": np.abs(x), "p": np.abs(p)}, "none": {"x": -np.abs(x), "p": p}}
        for op in ("ScatterElements", "ScatterND"):
            self.check(scattered(op), feeds, f"scattered.{op}")

    def test_no_box_has_a_copy_of_its_map(self):
        with tempfile.TemporaryDirectory() as folder:
            model, package = Path(folder) / "roi.onnx", str(Path(folder) / "roi.tar")
            ports = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in (
                ("x", 1, ["N", 16, "H", "W"]), ("boxes", 1, ["K", 4]), ("which", 7, ["K"]), ("y", 1, None))]
            node = helper.make_node("RoiAlign", ["x", "boxes", "which"], ["y"], output_height=2, output_width=2, sampling_ratio=1)
            model.write_bytes(helper.make_model(helper.make_graph([node], "roi", ports[:3], ports[3:]),
                                                opset_imports=[helper.make_opsetid("", 16)]).SerializeToString())
            mill.check_program(self, "compile", str(model), "--input-shapes", "x:[1,16,200,200] boxes:[1000,4] which:[1000]", "-o", package)
            # A copy for each had 2.5 GB.
            self.assertLess(json.loads(mill.check_program(self, "show", package, "--json"))["arena_bytes"], 16 << 20)

    def test_two_stage_detector(self):
        rng = np.random.default_rng(13)
        feeds = {}
        for name, most in (("many", 1.0), ("few", 0.25), ("none", 0.2)):
            corners = rng.uniform(0, 10, (30, 2))
            feeds[name] = {"boxes": np.concatenate([corners, corners + rng.uniform(1, 6, (30, 2))], axis=1),
                           "scores": rng.uniform(0, most, 30), "large": rng.uniform(-1, 1, (1, 4, 16, 16)),
                           "small": rng.uniform(-1, 1, (1, 4, 8, 8))}
            feeds[name] = {key: array.astype(np.float32) for key, array in feeds[name].items()}
        self.check(two_stage_detector(), feeds, "two_stage", 1e-4)

    def test_free_dims(self):
        rng = np.random.default_rng(14)

        def some(*shape):
            return rng.uniform(-1, 1, shape).astype(np.float32)

        def boxes(n):
            corners = rng.uniform(0, 10, (n, 2))
            return np.concatenate([corners, corners + rng.uniform(1, 6, (n, 2))], axis=1).astype(np.float32)

        vectors = [{"x": some(n)} for n in (1, 4, 9, 200)]
        self.check_free(best_of_found(5, "min", "N"), "x:[N]", vectors, "best")
        for start, end in ((0, 4), (1, 1 << 40), (3, 8), (0, -3)):
            self.check_free(parts_of_found(start, end, extent="N"), "x:[N]", vectors, f"parts.{start}.{end}")
        rows = [{"x": some(n, 3), "p": some(n)} for n in (12, 70)]
        self.check_free(scattered("ScatterND", "N"), "x:[N,3] p:[N]", rows, "scattered")
        levels = [{"boxes0": boxes(n), "boxes1": boxes(m), "scores0": np.abs(some(n, 3)), "scores1": np.abs(some(m, 3))}
                  for n, m in ((5, 9), (20, 8), (60, 31))]
        self.check_free(dense_detector(("A", "B")), "boxes0:[A,4] boxes1:[B,4] scores0:[A,3] scores1:[B,3]", levels, "dense", 1e-5)
        maps = [{"large": some(1, 4, 2 * h, 2 * w), "small": some(1, 4, h, w), "boxes": boxes(n), "scores": np.abs(some(n))}
                for h, w, n in ((8, 8, 30), (9, 13, 21), (20, 6, 150))]
        # The model takes no fewer than 20; it is held for counts that the plan leaves out.
        self.check_free(two_stage_detector("N", "free"), "large:[1,4,H,W] small:[1,4,h,w] boxes:[N,4] scores:[N]", maps, "two_stage", 1e-4)


if __name__ == "__main__":
    unittest.main()
