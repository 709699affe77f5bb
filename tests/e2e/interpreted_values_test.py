"""Packages with kernels for some shapes, of whose other shapes the import lacks a run's values: these are interpreted with them,
from the command line and through the server."""

import json
import tempfile
import unittest

import mill
import numpy as np
import serving
from packages import PackageTest, floats, ints, write

# Where the rows are such ones, values of s are extents that an operator has to know.
BLOCKS = """blocks (float[N, 24] x, int64[4] s) => (float[N, 24] y) {
  n = Shape<start = 0, end = 1>(x)
  axes = Constant<value_ints = [0]>()
  number = Constant<value_ints = [NUMBER]>()
  is_such = COMPARED(n, number)
  condition = Squeeze(is_such, axes)
  y = If(condition) <then_branch = values () => (float[a, b] p) {
      r = Reshape(x, s)
      rows = Shape<start = 0, end = 1>(r)
      length = Shape<start = 1, end = 2>(r)
      all = Expand(length, rows)
      d = ReverseSequence<batch_axis = 0, time_axis = 1>(r, all)
      whole = Shape(x)
      p = Reshape(d, whole) },
    else_branch = none () => (float[N, 24] q) { q = Neg(x) }>
}"""

# The rank of what the loop hands on, which nothing bounds, is that of a run.
GROWING = """growing (float[N, 4] x, int64[R] s, int64 trips, bool go) => (float[N, 4] y, float[T] all) {
  n = Shape<start = 0, end = 1>(x)
  axes = Constant<value_ints = [0]>()
  number = Constant<value_ints = [30]>()
  is_such = Greater(n, number)
  condition = Squeeze(is_such, axes)
  shape = Shape(x)
  y, all = If(condition) <then_branch = values () => (float[a, b] p, float[t] sums) {
      r = Reshape(x, s)
      last, sums = Loop(trips, go, r) <body = turn (int64 i, bool c, float v) => (bool d, float w, float sum) {
        d = Identity(c)
        w = Add(v, v)
        sum = ReduceSum<keepdims = 0>(w) }>
      p = Reshape(last, shape) },
    else_branch = none () => (float[N, 4] q, float[u] few) {
      q = Neg(x)
      few = ReduceSum<keepdims = 0>(x, axes) }>
}"""


def blocks(compared, number):
    return BLOCKS.replace("COMPARED", compared).replace("NUMBER", str(number))


def turned(x, shape):
    return x.reshape(shape)[:, ::-1].reshape(x.shape)


class InterpretedValues(PackageTest):
    def check_blocks(self, rows, is_such):
        for shape in ((rows, 4, 2, 3), (rows, 8, 3, 1), (1, 4 * rows, 6, 1), (rows, 4, 2, 3)):
            with self.subTest(rows=rows, shape=shape):
                x = floats(rows, 24)
                wanted = turned(x, shape) if is_such else -x
                np.testing.assert_array_equal(self.run_on({"x": x, "s": ints(*shape)})["y"], wanted)

    def test_one_row_alone_needs_them(self):
        warning = self.compile(blocks("Equal", 1))
        self.assertIn("there are kernels where N != 1; shape_buckets make more", warning)
        for rows in (1, 2, 3, 24):
            self.check_blocks(rows, rows == 1)
        self.assertRegex(self.refused({"x": floats(1, 24), "s": ints(1, 4, 2, 4)}), "of these extents and values: .*Reshape")

    def test_many_rows_need_them(self):
        warning = self.compile(blocks("Greater", 20))
        self.assertIn("there are kernels where N <= 20; shape_buckets make more", warning)
        for rows in (1, 20, 21, 100):
            self.check_blocks(rows, rows > 20)

    def test_one_number_of_rows_needs_them(self):
        self.compile(blocks("Equal", 7))
        for rows in (6, 7, 8, 9):
            self.check_blocks(rows, rows == 7)

    def test_buckets_of_both_kinds(self):
        self.compile(blocks("Greater", 20), "--shape-buckets", "N=4,24")
        kinds = json.loads(mill.check_program(self, "show", self.package, "--json"))
        self.assertTrue(kinds["kernels"])
        for rows in (4, 5, 24, 25):
            self.check_blocks(rows, rows > 20)

    def test_filled_inputs(self):
        self.compile(blocks("Equal", 1))
        out = self.folder / "out.npz"
        feed = self.folder / "in.npz"
        np.savez(feed, x=floats(1, 24), s=ints(1, 4, 2, 3))
        mill.check_program(self, "run", self.package, "-i", feed, "--repeat", "3", "--print-time", "-o", out)
        np.testing.assert_array_equal(mill.load_npz(out)["y"], turned(floats(1, 24), (1, 4, 2, 3)))
        # Zeros are no shape of what is to be reshaped.
        done = mill.run_program("run", self.package, "--input-shapes", "x:[1,24]", "--fill-mode", "zeros")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("Reshape", done.stderr)

    def test_a_loop_without_bound_among_them(self):
        self.compile(GROWING)
        for rows, trips, shape in ((3, 2, (3, 4)), (30, 2, (30, 4)), (31, 0, (31, 4)), (32, 3, (4, 8, 4)), (32, 40, (128,)), (40, 5, (2, 2, 40))):
            with self.subTest(rows=rows, trips=trips, shape=shape):
                x = floats(rows, 4)
                actual = self.run_on({"x": x, "s": ints(*shape), "trips": np.int64(trips), "go": np.bool_(True)})
                if rows <= 30:
                    np.testing.assert_array_equal(actual["y"], -x)
                    np.testing.assert_allclose(actual["all"], x.sum(0), rtol=1e-5, atol=1e-5)
                    continue
                np.testing.assert_array_equal(actual["y"], x * np.float32(2)**trips)
                sums = x.sum(dtype=np.float64) * 2.0**np.arange(1, trips + 1)
                np.testing.assert_allclose(actual["all"], sums, rtol=1e-4)


class InterpretedValuesBehindHttp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls)
        cls.packages = {}
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("one", blocks("Equal", 1)), ("many", blocks("Greater", 20))):
                answer = cls.server.upload(name, write(folder, text).read_bytes())
                assert answer.status == 201, answer.body
                cls.packages[name] = cls.server.compile(name, {})
                answer = cls.server.deploy(name, cls.packages[name], version="1")
                assert answer.status == 201, answer.body

    def test_runs_and_deployments(self):
        for name, rows, is_such in (("one", 1, True), ("one", 2, False), ("one", 1, True), ("many", 20, False), ("many", 21, True)):
            for shape in ((rows, 4, 2, 3), (rows, 8, 3, 1)):
                with self.subTest(name=name, rows=rows, shape=shape):
                    x = floats(rows, 24)
                    wanted = turned(x, shape) if is_such else -x
                    inputs = {"x": x, "s": ints(*shape)}
                    for answer in (self.server.infer(name, inputs), self.server.run(self.packages[name], inputs)):
                        self.assertEqual(answer.status, 200, answer.body)
                        np.testing.assert_array_equal(serving.from_npz(answer.body)["y"], wanted)

    def test_kserve(self):
        x, shape = floats(1, 24), [1, 4, 2, 3]
        tensors = [{"name": "x", "datatype": "FP32", "shape": [1, 24], "data": x.ravel().tolist()},
                   {"name": "s", "datatype": "INT64", "shape": [4], "data": shape}]
        answer = self.server.send_json("POST", "/v2/models/one/infer", {"inputs": tensors})
        self.assertEqual(answer.status, 200, answer.body)
        output = answer.json()["outputs"][0]
        self.assertEqual(output["shape"], [1, 24])
        np.testing.assert_array_equal(np.float32(output["data"]).reshape(1, 24), turned(x, shape))

    def test_errors(self):
        x = floats(1, 24)
        for inputs in ({"x": x, "s": ints(1, 4, 2, 4)}, {"x": x}, {"x": x, "s": ints(1, 4, 6)}, {"x": floats(1, 23), "s": ints(1, 4, 2, 3)}):
            for answer in (self.server.infer("one", inputs), self.server.run(self.packages["one"], inputs)):
                self.assertEqual((answer.status, answer.json()["code"]), (422, "invalid_tensor"), answer.body)


if __name__ == "__main__":
    unittest.main()
