"""Loops whose iterations decide about extents: what is made of their numbers has kernels, and is bound anew in each."""

import unittest

import numpy as np
from packages import PackageTest, floats, ints

# A box's part of its map, enlarged and put at its place on an empty canvas: what torchvision does with masks.
PASTE = """paste (float[M, 6, 7] maps, int64[M, 5] boxes, float[H, W] canvas) => (float[K, H, W] y) {
  size = Shape(canvas)
  zeros = Constant<value_ints = [0]>()
  none = Concat<axis = 0>(zeros, size)
  start = ConstantOfShape<value = float[1] {0}>(none)
  start_f = Cast<to = 1>(start)
  trips_1 = Shape<start = 0, end = 1>(maps)
  trips = Squeeze(trips_1, zeros)
  y = Loop(trips, , start_f) <body = one (int64 i, bool c, float[k, H, W] done) => (bool d, float[k1, H, W] more) {
    d = Identity(c)
    box = Gather<axis = 0>(boxes, i)
    map = Gather<axis = 0>(maps, i)
    zero = Constant<value_ints = [0]>()
    one = Constant<value_ints = [1]>()
    two = Constant<value_ints = [2]>()
    four = Constant<value_ints = [4]>()
    place = Slice(box, zero, two)
    size_of = Slice(box, two, four)
    factor = Slice(box, four, five)
    five = Constant<value_ints = [5]>()
    both = Constant<value_ints = [0, 1]>()
    none_of = Constant<value_ints = [0, 0]>()
    cut = Slice(map, none_of, size_of, both)
    large = Mul(size_of, factor)
    cut_4 = Unsqueeze(cut, both)
    ones = Constant<value_ints = [1, 1]>()
    sizes = Concat<axis = 0>(ones, large)
    resized_4 = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(cut_4, , , sizes)
    resized = Squeeze(resized_4, both)
    left = Sub(size, place)
    behind = Sub(left, large)
    pads = Concat<axis = 0>(place, behind)
    placed = Pad(resized, pads)
    same = Cast<to = 1>(done)
    part = Unsqueeze(placed, zero)
    more = Concat<axis = 0>(same, part) }>
}""".replace("""    factor = Slice(box, four, five)
    five = Constant<value_ints = [5]>()
""", """    five = Constant<value_ints = [5]>()
    factor = Slice(box, four, five)
""")

# What is handed on keeps its shape, in an inner loop as well; a number of an iteration says how much is summed.
SUMS = """sums (float[N, M] x, int64[T] ends, int64 trips) => (float[M] last, float[T1, M] all) {
  zero = Constant<value_ints = [0]>()
  one = Constant<value_ints = [1]>()
  row = Slice(x, zero, one, zero)
  shape = Shape<start = 1>(x)
  first = Expand(none, shape)
  none = Constant<value = float[1] {0}>()
  last, all = Loop(trips, , first) <body = outer (int64 i, bool c, float[M] v) => (bool d, float[M] w, float[M] kept) {
    d = Identity(c)
    axis = Constant<value_ints = [0]>()
    end_0 = Gather<axis = 0>(ends, i)
    end = Unsqueeze(end_0, axis)
    start = Constant<value_ints = [0]>()
    rows = Slice(x, start, end, axis)
    doubled = Add(rows, rows)
    total = ReduceSum<keepdims = 0>(doubled, axis)
    few = Min(end, limit)
    limit = Constant<value_ints = [3]>()
    few_0 = Squeeze(few, axis)
    w = Loop(few_0, , total) <body = inner (int64 j, bool e, float[M] a) => (bool f, float[M] b) {
      f = Identity(e)
      inner_axis = Constant<value_ints = [0]>()
      j_1 = Unsqueeze(j, inner_axis)
      from = Constant<value_ints = [0]>()
      begun = Slice(rows, from, j_1, inner_axis)
      squares = Mul(begun, begun)
      sum = ReduceSum<keepdims = 0>(squares, inner_axis)
      b = Add(a, sum) }>
    kept = Add(w, v) }>
}""".replace("""  first = Expand(none, shape)
  none = Constant<value = float[1] {0}>()
""", """  none = Constant<value = float[1] {0}>()
  first = Expand(none, shape)
""").replace("""    few = Min(end, limit)
    limit = Constant<value_ints = [3]>()
""", """    limit = Constant<value_ints = [3]>()
    few = Min(end, limit)
""")


def pasted(maps, boxes, canvas):
    result = np.zeros((len(boxes), *canvas.shape), np.float32)
    for out, one, (y, x, height, width, factor) in zip(result, maps, boxes):
        large = one[:height, :width].repeat(factor, 0).repeat(factor, 1)
        out[y:y + large.shape[0], x:x + large.shape[1]] = large
    return result


class LoopExtents(PackageTest):
    def check_paste(self, boxes, shape):
        boxes = np.array(boxes, np.int64).reshape(-1, 5)
        inputs = {"maps": floats(len(boxes), 6, 7), "boxes": boxes, "canvas": floats(*shape)}
        with self.subTest(boxes=boxes.tolist(), shape=shape):
            np.testing.assert_array_equal(self.run_on(inputs)["y"], pasted(inputs["maps"], boxes, inputs["canvas"]))

    def test_parts_of_other_extents_in_each_iteration(self):
        self.assertEqual(self.compile(PASTE, "--input-shapes", "maps:[M,6,7] boxes:[M,5] canvas:[H,W]"), "")
        several = [(0, 0, 6, 7, 2), (3, 5, 1, 1, 1), (2, 1, 3, 4, 3), (0, 0, 2, 2, 2), (0, 0, 2, 2, 2)]
        self.check_paste(several, (20, 24))
        self.check_paste([(0, 0, 1, 7, 1)], (1, 7))
        self.check_paste([], (9, 4))
        self.check_paste(several[::-1], (13, 17))
        self.check_paste(several[1:3], (40, 33))
        self.check_paste([(0, 0, 1, 1, 1)] * 3, (1, 1))

    def test_what_no_iteration_may_have(self):
        """A box that does not fit leaves the run without a result, and the next one is as before."""
        self.compile(PASTE, "--input-shapes", "maps:[M,6,7] boxes:[M,5] canvas:[H,W]")
        huge = {"maps": floats(2, 6, 7), "boxes": np.array([(0, 0, 6, 7, 1), (0, 0, 6, 7, 1 << 40)], np.int64), "canvas": floats(9, 9)}
        self.refused(huge)
        self.check_paste([(0, 0, 6, 7, 1)], (9, 9))

    def test_what_is_appended_has_the_extents_of_what_it_is_put_behind(self):
        """That is told in each iteration: here boxes have to end where the canvas does."""
        text = PASTE.replace("pads = Concat<axis = 0>(place, behind)", "pads = Concat<axis = 0>(place, none_of)")
        self.assertEqual(self.compile(text, "--input-shapes", "maps:[M,6,7] boxes:[M,5] canvas:[H,W]"), "")
        self.check_paste([(2, 1, 4, 5, 2), (7, 8, 3, 3, 1), (9, 10, 1, 1, 1)], (10, 11))
        inputs = {"maps": floats(2, 6, 7), "boxes": np.array([(2, 1, 4, 5, 2), (7, 8, 3, 2, 1)], np.int64), "canvas": floats(10, 11)}
        self.assertIn("Loop", self.refused(inputs))
        self.check_paste([(7, 8, 3, 3, 1)], (10, 11))

    def test_loops_in_loops(self):
        self.assertEqual(self.compile(SUMS, "--input-shapes", "x:[N,M] ends:[T]"), "")
        for rows, columns, ends in ((5, 4, (2, 5, 1, 0)), (9, 1, (9,) * 7), (4, 2, (0, 1, 4))):
            with self.subTest(rows=rows, ends=ends):
                x = floats(rows, columns)
                value, kept = np.zeros(columns), []
                for end in ends:
                    own = x[:end].astype(np.float64)
                    sums = 2 * own.sum(0) + sum(((own[:j] ** 2).sum(0) for j in range(min(end, 3))), np.zeros(columns))
                    kept.append(sums + value)
                    value = sums
                actual = self.run_on({"x": x, "ends": ints(*ends), "trips": np.int64(len(ends))})
                np.testing.assert_allclose(actual["last"], value, rtol=1e-5, atol=1e-5)
                np.testing.assert_allclose(actual["all"], np.array(kept).reshape(len(ends), columns), rtol=1e-5, atol=1e-5)
        none = self.run_on({"x": floats(3, 2), "ends": ints(1, 2), "trips": np.int64(0)})
        np.testing.assert_array_equal(none["last"], np.zeros(2))
        self.assertEqual(none["all"].shape, (0, 2))
        for trips, said in ((1 << 40, "would have the shape"), (3, "outside its axis")):
            self.assertIn(said, self.refused({"x": floats(2, 2), "ends": ints(1, 2), "trips": np.int64(trips)}))


if __name__ == "__main__":
    unittest.main()
