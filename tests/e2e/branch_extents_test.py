"""Branches that work out extents: what is made of their numbers has kernels, and is bound where the branch is taken alone."""

import itertools
import unittest

import numpy as np
from packages import PackageTest, floats

# Of the rows that a mask leaves those above a bound and their places, or all of them, in another order.
CHOSEN = """chosen (float[ROWS, 3] x, bool[ROWS] mask, bool go, float bound) => (float[K, 3] y, int64[K] places, float[1, 3] total) {
  some = Compress<axis = 0>(x, mask)
  y, places = If(go) <then_branch = above () => (float[K1, 3] a, int64[K1] b) {
      first = Constant<value_int = 0>()
      flat = Constant<value_ints = [-1]>()
      column = Gather<axis = 1>(some, first)
      is_above = Greater(column, bound)
      found = NonZero(is_above)
      b = Reshape(found, flat)
      a = Gather<axis = 0>(some, b) },
    else_branch = turned () => (float[K2, 3] c, int64[K2] d) {
      zero = Constant<value_int = 0>()
      one = Constant<value_int = 1>()
      axis = Constant<value_ints = [0]>()
      size = Shape<start = 0, end = 1>(some)
      count = Squeeze(size, axis)
      places_up = Range(zero, count, one)
      last = Sub(count, one)
      d = Sub(last, places_up)
      c = Gather<axis = 0>(some, d) }>
  axes = Constant<value_ints = [0]>()
  total = ReduceSum(y, axes)
}"""

# A branch in a branch in a loop: each iteration keeps some of a row, which the next one sees.
NESTED = """nested (float[6] x, bool[T] goes, bool[T] doubles) => (float[K] y) {
  zero = Constant<value = float {0}>()
  size = Size(goes)
  y = Loop(size, , x) <body = one (int64 i, bool c, float[k] v) => (bool d, float[k1] w) {
    d = Identity(c)
    go = Gather(goes, i)
    double = Gather(doubles, i)
    w = If(go) <then_branch = kept () => (float[k2] a) {
        is_above = Greater(v, zero)
        rest = Compress<axis = 0>(v, is_above)
        a = If(double) <then_branch = twice () => (float[k3] p) { p = Concat<axis = 0>(rest, rest) },
                        else_branch = once () => (float[k4] q) { q = Neg(rest) }> },
      else_branch = as_it_is () => (float[k5] b) { b = Identity(v) }> }>
}"""


class BranchExtents(PackageTest):
    def check_chosen(self, rows):
        x = floats(rows, 3)
        for go, bound, mask in itertools.product((True, False), (-2, 0, 2), (np.ones(rows, bool), x[:, 1] > 0, np.arange(rows) == 1)):
            with self.subTest(rows=rows, go=go, bound=bound, mask=mask.tolist()):
                actual = self.run_on({"x": x, "mask": mask, "go": np.bool_(go), "bound": np.float32(bound)})
                some = x[mask]
                places = np.flatnonzero(some[:, 0] > bound) if go else np.arange(len(some))[::-1]
                np.testing.assert_array_equal(actual["places"], places)
                np.testing.assert_array_equal(actual["y"], some[places])
                np.testing.assert_allclose(actual["total"], some[places].sum(0, keepdims=True), atol=1e-5)

    def test_numbers_that_a_branch_works_out(self):
        self.assertEqual(self.compile(CHOSEN.replace("ROWS", "7")), "")
        self.check_chosen(7)

    def test_rows_of_any_number(self):
        self.assertEqual(self.compile(CHOSEN.replace("ROWS", "N")), "")
        for rows in (2, 5, 30):
            self.check_chosen(rows)

    def test_branches_in_branches_in_loops(self):
        self.compile(NESTED)
        x = floats(6)
        for goes, doubles in (([], []), ([1], [0]), ([1, 0, 1], [1, 1, 1]), ([0, 1, 1], [0, 0, 1])):
            value = x
            for go, double in zip(goes, doubles, strict=True):
                rest = value[value > 0]
                value = (np.concatenate([rest, rest]) if double else -rest) if go else value
            with self.subTest(goes=goes, doubles=doubles):
                actual = self.run_on({"x": x, "goes": np.array(goes, bool), "doubles": np.array(doubles, bool)})
                np.testing.assert_array_equal(actual["y"], value)


if __name__ == "__main__":
    unittest.main()
