"""Operators that look along an axis whose extent depends on data, or on a free dim as no formula says. Compared with ONNX
Runtime, and with numpy where that says less than the standard."""

import json
import tarfile
import unittest

import mill
import numpy as np
from data_extents_test import model
from free_dims_models import Builder
from nested_extents_test import FLOAT, INT64, ModelChecks, found_above, node, smaller_of


def shares_and_sums(extent=30):
    """What every element of those found has of all of them, and what stands before it."""
    b = Builder([("x", [extent])])
    found = b.add("Gather", ["x", found_above(b, "x", -0.2)])
    floats = [b.add(op, [found], axis=0) for op in ("Softmax", "LogSoftmax", "Hardmax")]
    for options in ({}, {"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}):
        floats.append(b.add("CumSum", [found, np.int64(0)], **options))
    places = [b.add(op, [found], axis=0, select_last_index=last) for op in ("ArgMax", "ArgMin") for last in (0, 1)]
    return model(b, [(name, FLOAT) for name in floats] + [(name, INT64) for name in places])


def strides_and_lengths(extent=30):
    """Every other of those found, all from the end on, and all by their length."""
    b = Builder([("x", [extent, 2]), ("p", [extent])])
    found = b.add("Gather", ["x", found_above(b, "p", 0)], axis=0)
    far = 1 << 40
    parts = ((0, far, 2), (1, -1, 3), (-1, -far, -1), (-2, 1, -2), (far, -far, -5), (-3, far, 2), (2, 9, 4))
    floats = [b.add("Slice", [found, b.ints(start), b.ints(end), b.ints(0), b.ints(step)]) for start, end, step in parts]
    floats += [b.add("LpNormalization", [found], axis=axis, p=p) for axis in (0, 1) for p in (1, 2)]
    return model(b, [(name, FLOAT) for name in floats])


def copies_and_kinds(extent=30):
    """Those found with numbers around them, three times over, and the different ones among them."""
    b = Builder([("x", [extent])])
    found = b.add("Gather", ["x", found_above(b, "x", -0.2)])
    padded = b.add("Pad", [found, b.ints(1, 2), np.float32(0.5)])
    floats = [padded, b.add("Tile", [found, b.ints(3)])]
    places = []
    for order in (0, 1):
        steps = b.add("Floor", [b.add("Mul", [found, np.float32(4)])])
        values, *rest = node(b, "Unique", [steps], 4, sorted=order)
        floats.append(values)
        places += rest
    return model(b, [(name, FLOAT) for name in floats] + [(name, INT64) for name in places])


def pairs_of_found(extent=30):
    """Products of each row that one mask finds with each that another one does: a matrix of two counts."""
    b = Builder([("x", [extent, 4]), ("p", [extent]), ("q", [extent])])
    rows = b.add("Gather", ["x", found_above(b, "p", -0.2)], axis=0)
    others = b.add("Gather", ["x", found_above(b, "q", 0)], axis=0)
    products = b.add("MatMul", [rows, b.add("Transpose", [others], perm=[1, 0])])
    floats = [b.add("ReduceMax", [products], axes=[1], keepdims=0), b.add("ReduceMean", [products], keepdims=0),
              b.add("ReduceSum", [b.add("Softmax", [products], axis=1), b.ints(0)], keepdims=0),
              b.add("Reshape", [products, b.ints(-1)]), b.add("MatMul", [products, others])]
    own = b.add("Sub", [b.add("Unsqueeze", [rows, b.ints(1)]), b.add("Unsqueeze", [rows, b.ints(0)])])
    floats.append(b.add("ReduceMax", [own], axes=[1, 2], keepdims=0))
    floats += [products, b.add("Transpose", [b.add("Relu", [products])], perm=[1, 0]), b.add("Softmax", [products], axis=0)]
    places = [b.add("ArgMax", [products], axis=1, keepdims=0), b.add("Shape", [products])]
    return model(b, [(name, FLOAT) for name in floats] + [(name, INT64) for name in places])


def blocks(extent=30):
    """What two masks leave of a batch of matrices, and a table of three counts."""
    b = Builder([("x", [2, extent, extent, 3]), ("p", [extent]), ("q", [extent])])
    rows = b.add("Compress", ["x", b.add("Greater", ["p", np.float32(0)])], axis=1)
    both = b.add("Compress", [rows, b.add("Less", ["q", np.float32(0.2)])], axis=2)
    first, second, third = (b.add("Gather", [name, found_above(b, name, t)], axis=0) for name, t in (("p", 0), ("q", 0), ("q", -0.5)))
    table = b.add("Mul", [b.add("Mul", [b.add("Unsqueeze", [first, b.ints(1, 2)]), b.add("Unsqueeze", [second, b.ints(0, 2)])]), third])
    return model(b, [(name, FLOAT) for name in (both, b.add("Sigmoid", [both]), b.add("ReduceSum", [both, b.ints(3)], keepdims=0), table)])


def least_of_found(extent=30):
    """The least values among those found, some of which are no numbers, and their places."""
    b = Builder([("x", [extent])])
    roots = b.add("Sqrt", [b.add("Sub", ["x", np.float32(0.1)])])
    found = b.add("Gather", [roots, found_above(b, "x", -0.2)])
    results = []
    for largest in (0, 1):
        results += node(b, "TopK", [found, smaller_of(b, 50, found, "min")], 2, largest=largest)
    return model(b, list(zip(results, (FLOAT, INT64) * 2, strict=True)))


def least_by_numpy(x):
    with np.errstate(invalid="ignore"):
        found = np.sqrt(x - np.float32(0.1))[x > np.float32(-0.2)]
    rising = np.argsort(found, kind="stable")[:50]
    key = np.where(np.isnan(found), np.inf, found)
    falling = np.argsort(-key, kind="stable")[:50]
    return [found[rising], rising, found[falling], falling]


def best_of_rows(form):
    """The best 50 of each row, or as many as it has."""
    b = Builder([("x", ["B", "N"])])
    extent = b.dim("x", 1)
    if form == "min":
        k = b.add("Min", [b.ints(50), extent])
    elif form == "reduce_min":
        k = b.add("ReduceMin", [b.add("Concat", [b.ints(50), extent], axis=0)], axes=[0], keepdims=1)
    elif form == "joins":
        nothing = b.ints()
        for _ in range(60):
            nothing = b.add("Concat", [nothing, nothing], axis=0)
        k = b.add("ReduceMin", [b.add("Concat", [nothing, b.ints(50), extent], axis=0)], axes=[0], keepdims=1)
    else:
        k = extent
    top, order = node(b, "TopK", ["x", k], 2, axis=1, largest=int(form != "all"))
    first = b.add("Slice", [top, b.ints(0), b.add("Min", [b.ints(20), b.dim(top, 1)]), b.ints(1)])
    return model(b, [(top, FLOAT), (order, INT64), (first, FLOAT), (b.add("Shape", [top]), INT64)])


def joined_rows():
    """Rows of one free extent and those found among rows of another, in both orders."""
    b = Builder([("x", ["N", 3]), ("y", ["M", 3]), ("q", ["M"])])
    found = b.add("Gather", ["y", found_above(b, "q", 0)], axis=0)
    orders = (["x", found], [found, "x", found], ["y", b.add("Relu", ["x"]), b.add("Neg", ["y"])])
    rows = [b.add("Concat", parts, axis=0) for parts in orders]
    return model(b, [(name, FLOAT) for name in rows] + [(b.add("Shape", [rows[1]]), INT64)])


def proposals():
    """A region proposal network's end: the best places of each level, by their number in all levels, suppressed."""
    b = Builder([("large", [1, 6, "H", "W"]), ("small", [1, 6, "h", "w"])])
    rows = [b.add("Reshape", [b.add("Transpose", [name], perm=[0, 2, 3, 1]), b.ints(1, -1)]) for name in ("large", "small")]
    every = b.add("Concat", rows, axis=1)
    places, offset = [], np.int64(0)
    for row in rows:
        extent = b.add("Gather", [b.add("Shape", [row]), np.int64(1)], axis=0)
        both = b.add("Concat", [b.add("Unsqueeze", [np.int64(40), b.ints(0)]), b.add("Unsqueeze", [extent, b.ints(0)])], axis=0)
        least = b.add("Reshape", [b.add("Cast", [b.add("ReduceMin", [both], keepdims=0)], to=INT64), b.ints(-1)])
        order = node(b, "TopK", [row, least], 2, axis=1)[1]
        places.append(b.add("Add", [order, offset]))
        offset = extent
    chosen = b.add("Concat", places, axis=1)
    scores = b.add("Sigmoid", [b.add("GatherElements", [every, chosen], axis=1)])
    corner = b.add("Unsqueeze", [b.add("Squeeze", [b.add("Mul", [scores, np.float32(10)]), b.ints(0)]), b.ints(1)])
    boxes = b.add("Concat", [corner, corner] + [b.add("Add", [corner, np.float32(n)]) for n in (3, 4)], axis=1)
    kept = b.add("NonMaxSuppression", [b.add("Unsqueeze", [boxes, b.ints(0)]), b.add("Unsqueeze", [scores, b.ints(0)]),
                                       b.ints(1 << 40), np.asarray([0.5], np.float32)])
    kept = b.add("Squeeze", [b.add("Gather", [kept, b.ints(2)], axis=1), b.ints(1)])
    kept = b.add("Slice", [kept, b.ints(0), b.ints(20), b.ints(0)])
    return model(b, [(chosen, INT64), (scores, FLOAT), (b.add("Gather", [boxes, kept], axis=0), FLOAT)])


def rows_of_nothing(extent=30, width=0):
    """The rows found, of no elements each: their sums, themselves wider and beside each other, and copies of them."""
    b = Builder([("x", [extent, width]), ("p", [extent])])
    places = b.add("Unsqueeze", [found_above(b, "p", 0), b.ints(1)])
    found = b.add("GatherND", ["x", places])
    rows = b.add("Gather", ["x", b.add("Squeeze", [places, b.ints(1)])], axis=0)
    floats = [found, b.add("ReduceSum", [found, b.ints(1)], keepdims=0), b.add("Pad", [rows, b.ints(0, 1, 0, 1), np.float32(7)]),
              b.add("Concat", [rows, found], axis=1), b.add("Tile", [b.add("Relu", [rows]), b.ints(2, 3)]),
              b.add("Tile", [rows, b.add("Add", [b.add("Shape", [found_above(b, "p", 0.5)]), b.ints(1, 2)])])]
    return model(b, [(name, FLOAT) for name in floats])


class CountedAxes(ModelChecks):
    def some(self, *shape):
        return self.rng.uniform(-1, 1, shape).astype(np.float32)

    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(21)

    def vectors(self, *extents):
        return [{"x": self.some(n)} for n in extents]

    def check_both(self, make, shapes, fixed, free, stem):
        self.check(make(), {str(i): feed for i, feed in enumerate(fixed)}, stem, 1e-5)
        self.check_free(make("N"), shapes, free, stem, 1e-5)

    def test_shares_and_sums(self):
        self.check_both(shares_and_sums, "x:[N]", self.vectors(30, 30), self.vectors(5, 300), "shares")

    def test_strides_and_lengths(self):
        feeds = [{"x": self.some(n, 2), "p": self.some(n)} for n in (30, 30, 12, 70)]
        feeds[1]["p"] = np.where(np.arange(30) < 5, np.float32(1), np.float32(-1))
        self.check_both(strides_and_lengths, "x:[N,2] p:[N]", feeds[:2], feeds[2:], "strides")

    def test_copies_and_kinds(self):
        self.check_both(copies_and_kinds, "x:[N]", self.vectors(30, 30), self.vectors(5, 300), "copies")

    def test_pairs(self):
        feeds = [{"x": self.some(n, 4), "p": self.some(n), "q": self.some(n)} for n in (30, 30, 12, 70)]
        self.check_both(pairs_of_found, "x:[N,4] p:[N] q:[N]", feeds[:2], feeds[2:], "pairs")

    def test_blocks(self):
        feeds = [{"x": self.some(2, n, n, 3), "p": self.some(n), "q": self.some(n)} for n in (30, 30, 7, 40, 1)]
        self.check_both(blocks, "x:[2,N,N,3] p:[N] q:[N]", feeds[:2], feeds[2:], "blocks")
        b = {"x": self.some(2, 30, 30, 3), "p": np.full(30, -1, np.float32), "q": self.some(30)}
        self.check(blocks(), {"none": b}, "blocks.none")
        with tarfile.open(self.package) as archive:
            metadata = json.load(archive.extractfile("metadata.json"))
        self.assertEqual([output["shape"] for output in metadata["outputs"]], [[2, "", "", 3]] * 2 + [[2, "", ""], ["", "", ""]])

    def test_rows_of_nothing(self):
        feeds = [{"x": self.some(n, width), "p": self.some(n)} for n, width in ((30, 0), (30, 0), (12, 3), (40, 0))]
        self.check(rows_of_nothing(), {str(i): feed for i, feed in enumerate(feeds[:2])}, "rows")
        self.check_free(rows_of_nothing("N", "W"), "x:[N,W] p:[N]", feeds, "rows")

    def test_nothing_found(self):
        self.path.write_bytes(copies_and_kinds())
        mill.check_program(self, "compile", self.path, "-o", self.package)
        feed = self.folder / "in.npz"
        np.savez(feed, x=np.full(30, -0.9, np.float32))
        padded, copies, *kinds = mill.run_package(self, self.package, feed, self.folder / "out.npz").values()
        self.assertEqual(padded.tolist(), [0.5] * 3)
        self.assertEqual([len(copies), *map(len, kinds)], [0] * 9)

    def test_least_with_no_numbers(self):
        for extent, shapes in ((30, "x:[30]"), ("N", "x:[N]")):
            self.path.write_bytes(least_of_found(extent))
            mill.check_program(self, "compile", self.path, "--input-shapes", shapes, "-o", self.package)
            for feed in self.vectors(30, *([] if extent == 30 else [5, 90])):
                np.savez(self.folder / "in.npz", **feed)
                actual = mill.run_package(self, self.package, self.folder / "in.npz", self.folder / "out.npz")
                for got, expected in zip(actual.values(), least_by_numpy(feed["x"]), strict=True):
                    np.testing.assert_array_almost_equal(got, expected)

    def test_best_of_rows_of_any_length(self):
        rows = [{"x": self.some(b, n)} for b, n in ((1, 1), (2, 7), (3, 49), (1, 50), (2, 51), (3, 400))]
        for form in ("min", "reduce_min", "joins", "all"):
            self.check_free(best_of_rows(form), "x:[B,N]", rows, f"rows.{form}")

    def test_joined_rows_of_any_number(self):
        feeds = [{"x": self.some(n, 3), "y": self.some(m, 3), "q": self.some(m)} for n, m in ((1, 4), (30, 50), (50, 30), (7, 200))]
        self.check_free(joined_rows(), "x:[N,3] y:[M,3] q:[M]", feeds, "rows.joined")

    def test_proposals_of_maps_of_any_size(self):
        feeds = [{"large": self.some(1, 6, h, w), "small": self.some(1, 6, i, j)}
                 for h, w, i, j in ((8, 8, 4, 4), (2, 3, 1, 1), (4, 5, 2, 3), (13, 9, 6, 4))]
        self.check_free(proposals(), "large:[1,6,H,W] small:[1,6,h,w]", feeds, "proposals", 1e-5)


if __name__ == "__main__":
    unittest.main()
