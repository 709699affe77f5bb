"""Shapes that a package has no kernels for are interpreted: from the command line and through the server."""

import json
import tempfile
import unittest

import mill
import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import serving
from packages import HEADER, PackageTest, floats, write

# As many rows as what a quotient leaves.
REST = """rest (float[N] x) => (float[R, N] y) <int64[1] seven = {7}, int64[1] one = {1}, float[1] half = {0.5}> {
  n = Shape(x)
  square = Mul(n, n)
  less = Mod(square, seven)
  rows = Add(less, one)
  shape = Concat<axis = 0>(rows, n)
  wide = Expand(x, shape)
  y = Mul(wide, half)
}"""


def rest(x):
    return np.tile(x / 2, (len(x)**2 % 7 + 1, 1))


# A generic plan takes N from 12 on.
ENDS = """ends (float[N, M] x) => (float[R, M] y)
  <int64[1] a = {-12}, int64[1] b = {-8}, int64[1] zero = {0}, int64[1] two = {2}> {
  r = Relu(x)
  s = Slice(r, a, b, zero, two)
  y = Concat<axis = 0>(r, s)
}"""


def ends(x):
    r = np.maximum(x, 0)
    return np.concatenate([r, r[-12:-8:2]])


# Two inputs, which come one after the other; nothing bounds the loop, whose results are stacked.
TWO = """two (float[N] x, float[N, M] y, int64 trips, bool go) => (float[R, M] z, float[T, M] all)
  <int64[1] seven = {7}, int64[1] one = {1}> {
  n = Shape(x)
  square = Mul(n, n)
  less = Mod(square, seven)
  rows = Add(less, one)
  column = Unsqueeze(x, one)
  sum = Add(column, y)
  total = ReduceSum<keepdims = 1>(sum)
  m = Shape<start = 1>(y)
  shape = Concat<axis = 0>(rows, m)
  z = Expand(total, shape)
  start = ReduceMax<axes = [0], keepdims = 0>(sum)
  last, all = Loop(trips, go, start) <body = turn (int64 i, bool c, float[M] v) => (bool d, float[M] w, float[M] kept) {
    d = Identity(c)
    w = Add(v, v)
    kept = Identity(v)
  }>
}"""


def two(x, y, trips):
    sums = x[:, None] + y
    z = np.full((len(x)**2 % 7 + 1, y.shape[1]), sums.sum(dtype=np.float64), np.float32)
    return z, sums.max(0)[None] * 2.0**np.arange(trips)[:, None]


# Windows of 5 and 9 elements: each branch takes lengths of its own.
BRANCHES = """branches (float[1, 1, N] x, bool c) => (float[1, 1, R] y)
  <float[1, 1, 5] five = {1, 1, 1, 1, 1}, float[1, 1, 9] nine = {1, 1, 1, 1, 1, 1, 1, 1, 1}> {
  y = If(c) <then_branch = yes () => (float[1, 1, P] p) { p = Conv(x, five) },
             else_branch = no () => (float[1, 1, Q] q) { q = Conv(x, nine) }>
}"""

# Lengths up to 271 end in one element; from 144 on there are two in the middle, below there is one.
FRAMES = """frames (float[N, 1, T] x) => (float[N, 1] y)
  <float[1, 1, 16] a = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}, float[1, 1, 3] b = {1, 2, 3}, int64[1] last = {2}> {
  f = Conv<strides = [64]>(x, a)
  g = Conv<strides = [2], pads = [1, 1]>(f, b)
  h = Conv<strides = [2], pads = [1, 1]>(g, b)
  y = Squeeze(h, last)
}"""


def convolved(x, weights, stride, pads=0):
    x = np.pad(x, ((0, 0), (pads, pads)))
    windows = np.lib.stride_tricks.sliding_window_view(x, len(weights), axis=1)[:, ::stride]
    return windows @ np.float32(weights)


def frames(x):
    f = convolved(x[:, 0], [1, 2, 3, 4, 5, 6, 7, 8] * 2, 64)
    return convolved(convolved(f, [1, 2, 3], 2, 1), [1, 2, 3], 2, 1)


# What a run says of shapes an operator has to know.
RESHAPED = """reshaped (float[N, K] x, int64[4] s) => (float[a, b, c, d] y, float[N, K] z) {
  r = Reshape(x, s)
  rows = Shape<start = 0, end = 1>(r)
  length = Shape<start = 1, end = 2>(r)
  all = Expand(length, rows)
  y = ReverseSequence<batch_axis = 0, time_axis = 1>(r, all)
  z = Neg(x)
}"""

# Without free dims; not even the rank is known.
RANKED = "ranked (float[4, 6] x, int64[3] s, int64 more) => (float y) {" + """
  one = Constant<value_ints = [0]>()
  m = Unsqueeze(more, one)
  t = Tile(s, m)
  u = Cast<to = 1>(t)
  n = NonZero(u)
  f = Cast<to = 7>(u)
  q = Squeeze(n, one)
  g = Gather(f, q)
  y = Reshape(x, g)
}"""


def turned(x):
    return x[:, ::-1]


# Two numbers in a line of two, or of three where there are seven rows.
NOT_SEVEN = """refusing (float[N, 3] x) => (float[N, 3] y) <float[2] w = {2.0, 3.0}> {
  n = Shape<start = 0, end = 1>(x)
  seven = Constant<value_ints = [7]>()
  off = Sub(n, seven)
  far = Abs(off)
  one = Constant<value_ints = [1]>()
  is_far = Min(far, one)
  three = Constant<value_ints = [3]>()
  length = Sub(three, is_far)
  line = Reshape(w, length)
  sum = ReduceSum<keepdims = 1>(line)
  y = Mul(x, sum)
}"""


# From seven elements on there is nothing that the ends could repeat; M has no such bound.
MIDDLE = """middle (float[N] x, float[M] z) => (float[R] y, float[M] w)
  <int64[1] a = {-3}, int64[1] b = {4}, int64[2] two = {2, 2}> {
  s = Slice(x, a, b)
  y = Pad<mode = "edge">(s, two)
  w = Neg(z)
}"""


class Interpreted(PackageTest):
    def test_what_is_left_of_an_extent(self):
        self.assertEqual(self.compile(REST), "")
        for extent in (1, 2, 3, 4, 5, 8, 100, 1001, 0):
            with self.subTest(extent=extent):
                x = floats(extent)
                np.testing.assert_array_equal(self.run_on({"x": x})["y"], rest(x))
        self.assertIn("float32 [5,5], expected float32 [N]", self.refused_with("--input-shapes", "x:[5,5]"))

    def test_shapes_beside_the_generic_plan(self):
        self.compile(ENDS)
        for shape in ((20, 4), (12, 0), (11, 1), (9, 3), (8, 3), (1, 1), (0, 4), (13, 5)):
            with self.subTest(shape=shape):
                x = floats(*shape)
                np.testing.assert_array_equal(self.run_on({"x": x})["y"], ends(x))

    def test_an_extent_that_is_refused_is_no_rule(self):
        said = self.compile(NOT_SEVEN, "--input-shapes", "x:[N,3]")
        self.assertIn("nodes compute something else at some extents than at others", said)
        for rows in (1, 2, 6, 8, 9, 15):
            x = floats(rows, 3)
            np.testing.assert_allclose(self.run_on({"x": x})["y"], 5 * x, rtol=1e-6)
        self.assertIn("does not reshape to [3]", self.refused({"x": floats(7, 3)}))

    def test_extents_that_no_range_has(self):
        said = self.compile(MIDDLE)
        self.assertIn("shapes without a plan are interpreted, which is slow: node \"Pad_1\" (Pad)", said)
        for n, m in ((1, 1), (2, 9), (3, 0), (4, 100), (5, 2), (6, 3)):
            with self.subTest(n=n, m=m):
                x, z = floats(n), floats(m)
                outputs = self.run_on({"x": x, "z": z})
                np.testing.assert_array_equal(outputs["y"], np.pad(x[-3:4], 2, mode="edge"))
                np.testing.assert_array_equal(outputs["w"], -z)
        self.assertIn("there is nothing to fill", self.refused({"x": floats(7), "z": floats(3)}))

    def test_filled_inputs(self):
        self.compile(REST)
        out = self.folder / "out.npz"
        mill.check_program(self, "run", self.package, "--input-shapes", "x:[4]", "--fill-mode", "ones", "-o", out)
        np.testing.assert_array_equal(mill.load_npz(out)["y"], np.full((3, 4), 0.5, np.float32))

    def test_several_inputs_and_a_loop_without_bound(self):
        self.compile(TWO)
        for n, m, trips in ((3, 4, 2), (8, 1, 0), (5, 7, 100), (1, 3, 1000)):
            with self.subTest(n=n, m=m, trips=trips):
                x, y = floats(n), floats(n, m) * np.float32(2**-20)
                actual = self.run_on({"y": y, "x": x, "trips": np.int64(trips), "go": np.bool_(True)})
                with np.errstate(over="ignore"):
                    z, stacked = (value.astype(np.float32) for value in two(x, y, trips))
                np.testing.assert_allclose(actual["z"], z, rtol=1e-5)
                np.testing.assert_allclose(actual["all"], stacked, rtol=1e-6)

    def test_branches_that_take_lengths_of_their_own(self):
        self.assertEqual(self.compile(BRANCHES), "")
        for length in (5, 6, 8, 9, 10, 30, 100):
            for condition, window in ((True, 5), (False, 9)):
                x = floats(1, 1, length)
                inputs = {"x": x, "c": np.bool_(condition)}
                with self.subTest(length=length, condition=condition):
                    if length >= window:
                        wanted = convolved(x[0], np.ones(window), 1)[None]
                        np.testing.assert_allclose(self.run_on(inputs)["y"], wanted, rtol=1e-5, atol=1e-6)
                        continue
                    np.savez(self.folder / "in.npz", **inputs)
                    self.assertIn(f'node "Conv_0": {window} has to be <= N ({length})', self.refused_with("-i", self.folder / "in.npz"))
        self.assertIn("the branch that is taken does not take inputs of these extents", self.refused_with("--input-shapes", "x:[1,1,4]"))

    def test_formulas_that_do_not_hold_below_the_samples(self):
        self.compile(FRAMES)
        for length in (16, 17, 79, 80, 100, 143, 144, 145, 200, 207, 208, 224, 271):
            for batch in (1, 2, 5):
                with self.subTest(batch=batch, length=length):
                    x = floats(batch, 1, length)
                    np.testing.assert_allclose(self.run_on({"x": x})["y"], frames(x), rtol=1e-4, atol=1e-4)
        self.assertIn("T is 15, the model takes 16 at least", self.refused_with("--input-shapes", "x:[1,1,15]"))
        self.assertIn("(T + 240)//256 (2) has to be == 1", self.refused_with("--input-shapes", "x:[1,1,272]"))

    def test_outputs_whose_rank_depends_on_extents(self):
        text = "ranks (float[3, N, M] x) => (float[] y) { s = Squeeze(x)\n  y = Neg(s) }"
        self.compile(text)
        for shape in ((4, 5), (1, 5), (4, 1), (1, 1), (2, 1), (1, 2), (0, 1), (0, 7), (30, 1)):
            with self.subTest(shape=shape):
                x = floats(3, *shape)
                np.testing.assert_array_equal(self.run_on({"x": x})["y"], -x.squeeze())

    def test_what_the_model_does_not_take_is_named(self):
        self.compile(TWO)
        feed = self.folder / "in.npz"
        np.savez(feed, x=floats(4), y=floats(5, 2), trips=np.int64(1), go=np.bool_(True))
        self.assertIn('input "y" has 5 for "N", an input before it 4', self.refused_with("-i", feed))

    def test_weights_in_a_file_beside_the_model(self):
        made = onnx.parser.parse_model(HEADER + REST.replace("float[1] half = {0.5}", "float[1] half"))
        weight = onnx.numpy_helper.from_array(np.full(1, 0.5, np.float32), "half")
        made.graph.initializer.append(weight)
        path = self.folder / "model.onnx"
        onnx.external_data_helper.convert_model_to_external_data(made, location="weights.bin", size_threshold=0)
        onnx.save(made, str(path))
        self.assertTrue((self.folder / "weights.bin").exists())
        mill.run_program("compile", path, "-o", self.package)
        for name in ("model.onnx", "weights.bin"):
            (self.folder / name).unlink()
        x = floats(5)
        np.testing.assert_array_equal(self.run_on({"x": x})["y"], rest(x))

    def test_random_constants_are_the_packages(self):
        text = REST.replace("float[1] half = {0.5}", "float[1] zero = {0}").replace(
            "y = Mul(wide, half)", "noise = RandomNormal<shape = [1]>()\n  y = Add(wide, noise)")
        mill.run_program("compile", write(self.folder, text), "--shape-buckets", "N=3", "-o", self.package)
        noise = {extent: self.run_on({"x": np.zeros(extent, np.float32)})["y"][0, 0] for extent in (3, 4, 5)}
        self.assertEqual(len(set(noise.values())), 1, noise)

    def test_a_package_with_all_its_plans_holds_no_model(self):
        text = "net (float[N] x) => (float[N] y) { y = Relu(x) }"
        done = mill.run_program("compile", write(self.folder, text), "-o", self.package)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertLess(json.loads(mill.check_program(self, "show", self.package, "--json"))["weight_bytes"], 100)


    def test_values_of_a_run_decide_about_shapes(self):
        warning = self.compile(RESHAPED)
        self.assertRegex(warning, 'there are no kernels, and each run is interpreted, .*"s"')
        shown = json.loads(mill.check_program(self, "show", self.package, "--json"))
        self.assertEqual([output["shape"] for output in shown["outputs"]], [[""] * 4, ["N", "K"]])
        for rows, shape in ((4, (1, 4, 2, 3)), (4, (1, 8, 1, 3)), (8, (2, 4, 3, 2)), (0, (0, 4, 1, 1)), (4, (1, 4, 2, 3))):
            with self.subTest(rows=rows, shape=shape):
                x = floats(rows, 6)
                actual = self.run_on({"x": x, "s": np.int64(shape)})
                np.testing.assert_array_equal(actual["y"], turned(x.reshape(shape)))
                np.testing.assert_array_equal(actual["z"], -x)
        feed = self.folder / "in.npz"
        np.savez(feed, x=floats(4, 6), s=np.int64([1, 4, 2, 4]))
        self.assertRegex(self.refused_with("-i", feed), "does not take inputs of these extents and values: .*Reshape")

    def test_a_rank_of_a_run(self):
        self.compile(RANKED)
        for more, shape in ((1, [2, 3, 4]), (1, [24, 0, 1]), (2, [0, 24, 0]), (2, [1, 0, -1]), (1, [24, 0, 0])):
            x = floats(4, 6)
            wanted = [extent for extent in shape * more if extent != 0]
            inputs = {"x": x, "s": np.int64(shape), "more": np.int64(more)}
            if wanted.count(-1) > 1 or wanted == [24, 24]:
                np.savez(self.folder / "in.npz", **inputs)
                self.assertIn("Reshape", self.refused_with("-i", self.folder / "in.npz"))
                continue
            np.testing.assert_array_equal(self.run_on(inputs)["y"], x.reshape(wanted))

    def test_values_that_are_given_make_kernels(self):
        done = mill.run_program("compile", write(self.folder, RESHAPED), "--input-values", '{"s": [1, 4, -1, 3]}', "--input-shapes", "x:[10,6]",
                                "-o", self.package)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        x = floats(10, 6)
        np.testing.assert_array_equal(self.run_on({"x": x})["y"], turned(x.reshape(1, 4, -1, 3)))


class InterpretedBehindHttp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls)
        cls.packages = {}
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("rest", REST), ("ends", ENDS), ("reshaped", RESHAPED), ("ranked", RANKED)):
                answer = cls.server.upload(name, write(folder, text).read_bytes())
                assert answer.status == 201, answer.body
                cls.packages[name] = cls.server.compile(name, {})
                answer = cls.server.deploy(name, cls.packages[name], version="1")
                assert answer.status == 201, answer.body

    def check(self, answer, expected):
        self.assertEqual(answer.status, 200, answer.body)
        np.testing.assert_array_equal(serving.from_npz(answer.body)["y"], expected)

    def test_deployments(self):
        for extent in (2, 5, 12):
            x = floats(extent)
            self.check(self.server.infer("rest", {"x": x}), rest(x))
        for shape in ((20, 4), (11, 1), (0, 4), (12, 3)):
            x = floats(*shape)
            self.check(self.server.infer("ends", {"x": x}), ends(x))

    def test_values_of_a_run(self):
        for shape in ((1, 4, 2, 3), (1, 8, 1, 3), (3, 4, 2, 1)):
            x = floats(4, 6)
            for answer in (self.server.infer("reshaped", {"x": x, "s": np.int64(shape)}),
                           self.server.run(self.packages["reshaped"], {"x": x, "s": np.int64(shape)})):
                self.check(answer, turned(x.reshape(shape)))
        x, inputs = floats(4, 6), {"s": np.int64([3, 0, 8]), "more": np.int64(1)}
        self.check(self.server.infer("ranked", {"x": x, **inputs}), x.reshape(3, 8))
        for wrong in ({"x": x[:3], **inputs}, {"x": x, "s": inputs["s"]}, {"x": x, "s": np.int64([3, 0, 7]), "more": np.int64(1)}):
            answer = self.server.infer("ranked", wrong)
            self.assertEqual((answer.status, answer.json()["code"]), (422, "invalid_tensor"), answer.body)

    def test_interpreted_runs_are_no_batches(self):
        answer = self.server.deploy("many", self.packages["reshaped"], max_batch=4)
        self.assertEqual(answer.status, 422, answer.body)
        self.assertIn("interpreted by itself", answer.json()["detail"])

    def test_packages(self):
        x = floats(11, 3)
        self.check(self.server.run(self.packages["ends"], {"x": x}), ends(x))

    def test_kserve(self):
        x = floats(4)
        tensor = {"name": "x", "datatype": "FP32", "shape": [4], "data": x.tolist()}
        answer = self.server.send_json("POST", "/v2/models/rest/infer", {"inputs": [tensor]})
        self.assertEqual(answer.status, 200, answer.body)
        output = answer.json()["outputs"][0]
        self.assertEqual(output["shape"], [3, 4])
        np.testing.assert_array_equal(np.float32(output["data"]).reshape(3, 4), rest(x))

    def test_errors(self):
        for inputs in ({"x": floats(3, 3)}, {"x": np.zeros(5, np.int64)}, {"z": floats(5)}, {}):
            for answer in (self.server.infer("rest", inputs), self.server.run(self.packages["rest"], inputs)):
                self.assertEqual(answer.status, 422, answer.body)
                self.assertEqual(answer.json()["code"], "invalid_tensor")
        x = floats(9)
        self.check(self.server.infer("rest", {"x": x}), rest(x))


if __name__ == "__main__":
    unittest.main()
