"""Models whose branches extents decide: a generic plan has the branch of its samples, other extents are interpreted."""

import tempfile
import unittest

import mill
import numpy as np
import packages
import serving
from packages import floats

SWITCH = """switched (float[N, 3] x) => (float[N, 3] y) {
  n = Shape<start = 0, end = 1>(x)
  axes = Constant<value_ints = [0]>()
  two = Constant<value_float = 2.0>()
  number = Constant<value_ints = [NUMBER]>()
  is_such = COMPARED(n, number)
  condition = Squeeze(is_such, axes)
  y = If(condition) <then_branch = such () => (float[N, 3] p) { p = Mul(x, two) },
                     else_branch = other () => (float[N, 3] q) { q = Add(x, two) }>
}"""

# One switch in a branch that data decides about, one in a loop of as many turns as data says.
NESTED = """nested (float[N, 3] x, bool go, int64 trips) => (float[N, 3] y) {
  n = Shape<start = 0, end = 1>(x)
  axes = Constant<value_ints = [0]>()
  two = Constant<value_float = 2.0>()
  a = Constant<value_ints = [19]>()
  b = Constant<value_ints = [29]>()
  is_a = Equal(n, a)
  is_b = Equal(n, b)
  at_a = Squeeze(is_a, axes)
  at_b = Squeeze(is_b, axes)
  chosen = If(go) <then_branch = goes () => (float[N, 3] p) {
      p = If(at_a) <then_branch = such () => (float[N, 3] r) { r = Mul(x, two) },
                    else_branch = other () => (float[N, 3] s) { s = Add(x, two) }> },
    else_branch = stays () => (float[N, 3] q) { q = Neg(x) }>
  yes = Constant<value = bool {1}>()
  y = Loop(trips, yes, chosen) <body = turn (int64 i, bool c, float[N, 3] v) => (bool d, float[N, 3] w) {
      d = Identity(c)
      w = If(at_b) <then_branch = doubled () => (float[N, 3] t) { t = Mul(v, two) },
                    else_branch = more () => (float[N, 3] u) { u = Add(v, two) }> }>
}"""

# What a branch gives is known at any extents: a factor.
FACTOR = """factor (float[N, 3] x) => (float[N, 3] y) {
  n = Shape<start = 0, end = 1>(x)
  axes = Constant<value_ints = [0]>()
  number = Constant<value_ints = [20]>()
  is_such = Equal(n, number)
  condition = Squeeze(is_such, axes)
  k = If(condition) <then_branch = such () => (int64[1] p) { p = Constant<value_ints = [7]>() },
                     else_branch = other () => (int64[1] q) { q = Add(n, axes) }>
  f = Cast<to = 1>(k)
  y = Mul(x, f)
}"""

# The number is an extent of the output.
EXTENT = """extent (float[N, 3] x) => (float[R, 3] y) {
  n = Shape<start = 0, end = 1>(x)
  axes = Constant<value_ints = [0]>()
  seven = Constant<value_ints = [7]>()
  three = Constant<value_ints = [3]>()
  number = Constant<value_ints = [NUMBER]>()
  is_such = COMPARED(n, number)
  k = Where(is_such, seven, n)
  shape = Concat<axis = 0>(k, three)
  mean = ReduceMean<axes = [0], keepdims = 1>(x)
  y = Expand(mean, shape)
}"""

# Where the slice starts is bounded, and shows it behind some more rows.
BOUNDED = """bounded (float[N, 3] x) => (float[R, 3] y) {
  n = Shape<start = 0, end = 1>(x)
  axes = Constant<value_ints = [0]>()
  all = Constant<value_ints = [1000000]>()
  three = Constant<value_ints = [3]>()
  more = Constant<value_ints = [700]>()
  most = Constant<value_ints = [6700]>()
  part = Constant<value_ints = [16]>()
  tripled = Mul(n, three)
  shifted = Add(tripled, more)
  few = Min(shifted, most)
  start = Div(few, part)
  y = Slice(x, start, all, axes)
}"""


def switch(compared, number):
    return SWITCH.replace("COMPARED", compared).replace("NUMBER", str(number))


def switched(x, is_such):
    return x * np.float32(2) if is_such else x + np.float32(2)


def nested(x, go, trips):
    y = switched(x, len(x) == 19) if go else -x
    for _ in range(trips):
        y = switched(y, len(x) == 29)
    return y


class Switches(packages.PackageTest):
    def check(self, text, rows, is_such):
        self.compile(text)
        for n in rows:
            with self.subTest(text=text, rows=n):
                x = floats(n, 3)
                np.testing.assert_array_equal(self.run_on({"x": x})["y"], switched(x, is_such(n)))

    def test_one_number(self):
        for number in (1, 5, 20, 1024):
            rows = sorted({1, 2, max(number - 1, 1), number, number + 1, 2 * number})
            self.check(switch("Equal", number), rows, lambda n, number=number: n == number)

    def test_numbers_above_all_samples(self):
        for number in (20, 5000):
            rows = (1, number - 1, number, number + 1, 3 * number)
            self.check(switch("Greater", number), rows, lambda n, number=number: n > number)

    def test_numbers_that_branches_give(self):
        self.compile(FACTOR)
        for n in (1, 7, 19, 20, 21):
            x = floats(n, 3)
            np.testing.assert_array_equal(self.run_on({"x": x})["y"], x * np.float32(7 if n == 20 else n))

    def test_extents_that_numbers_decide(self):
        for compared, number, rows in (("Equal", 20, (1, 7, 19, 20, 21)), ("Greater", 5000, (1, 2000, 5000, 5001))):
            warning = self.compile(EXTENT.replace("COMPARED", compared).replace("NUMBER", str(number)))
            self.assertIn(f"there are kernels where N {'!=' if compared == 'Equal' else '<='} {number};", warning)
            for n in rows:
                with self.subTest(number=number, rows=n):
                    x = floats(n, 3)
                    is_such = n == number if compared == "Equal" else n > number
                    wanted = np.tile(x.mean(0, dtype=np.float64), (7 if is_such else n, 1))
                    np.testing.assert_allclose(self.run_on({"x": x})["y"], wanted, rtol=1e-4, atol=1e-5)

    def test_a_bound_of_what_follows_from_extents(self):
        self.compile(BOUNDED)
        for n in (1, 50, 100, 1999, 2000, 2001, 2020, 4000, 9000):
            with self.subTest(rows=n):
                x = floats(n, 3)
                np.testing.assert_array_equal(self.run_on({"x": x})["y"], x[min(3 * n + 700, 6700) // 16:])

    def test_buckets(self):
        # Kernels of its own say nothing of the number, and what is behind the last bucket is the generic plan's.
        self.compile(switch("Equal", 20), "--shape-buckets", "N=4,20")
        for n in (3, 4, 19, 20, 21):
            x = floats(n, 3)
            np.testing.assert_array_equal(self.run_on({"x": x})["y"], switched(x, n == 20))

    def test_nested_switches(self):
        self.compile(NESTED)
        for n in (1, 18, 19, 28, 29, 30):
            for go, trips in ((True, 0), (False, 3), (True, 3)):
                with self.subTest(rows=n, go=go, trips=trips):
                    x = floats(n, 3)
                    actual = self.run_on({"x": x, "go": np.bool_(go), "trips": np.int64(trips)})["y"]
                    np.testing.assert_allclose(actual, nested(x, go, trips), rtol=1e-6)

    def test_many_runs_of_one_process(self):
        self.compile(switch("Equal", 20))
        x = floats(20, 3)
        feed, out = self.folder / "in.npz", self.folder / "out.npz"
        np.savez(feed, x=x)
        mill.check_program(self, "run", self.package, "-i", feed, "-o", out, "--repeat", 3, "--number", 2)
        np.testing.assert_array_equal(mill.load_npz(out)["y"], switched(x, True))


class SwitchesBehindHttp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls)
        with tempfile.TemporaryDirectory() as folder:
            answer = cls.server.upload("switched", packages.write(folder, switch("Equal", 20)).read_bytes())
            assert answer.status == 201, answer.body
        cls.package = cls.server.compile("switched", {})
        answer = cls.server.deploy("switched", cls.package, version="1")
        assert answer.status == 201, answer.body

    def test_runs_and_deployments(self):
        for n in (19, 20, 21, 20):
            x = floats(n, 3)
            for answer in (self.server.infer("switched", {"x": x}), self.server.run(self.package, {"x": x})):
                with self.subTest(rows=n):
                    self.assertEqual(answer.status, 200, answer.body)
                    np.testing.assert_array_equal(serving.from_npz(answer.body)["y"], switched(x, n == 20))

    def test_kserve(self):
        x = floats(20, 3)
        tensors = [{"name": "x", "datatype": "FP32", "shape": [20, 3], "data": x.ravel().tolist()}]
        answer = self.server.send_json("POST", "/v2/models/switched/infer", {"inputs": tensors})
        self.assertEqual(answer.status, 200, answer.body)
        output = answer.json()["outputs"][0]
        np.testing.assert_array_equal(np.float32(output["data"]).reshape(20, 3), switched(x, True))


if __name__ == "__main__":
    unittest.main()
