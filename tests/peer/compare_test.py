"""Unit tests of compare.py: what must count as equal, and what must not."""

import os
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare  # noqa: E402

NAN, INF = np.nan, np.inf


def f32(*values):
    return np.array(values, dtype=np.float32)


class CompareTensors(unittest.TestCase):
    def check(self, a, b, equal, rtol=1e-4, says=None):
        found = compare.compare_tensors(np.asarray(a), np.asarray(b), rtol)
        self.assertEqual(found is None, equal, found)
        if says:
            self.assertIn(says, found)

    def test_tolerance_is_relative_to_the_largest_expected(self):
        self.check(f32(100.0, 0.009), f32(100.0, 0.0), True)
        self.check(f32(100.0, 0.011), f32(100.0, 0.0), False, says="at [1]")

    def test_all_zero_reference_needs_exact_zero(self):
        self.check(f32(0, 0), f32(0, 0), True)
        self.check(f32(0, 1e-30), f32(0, 0), False)

    def test_nan_and_infinity_must_be_on_both_sides(self):
        self.check(f32(NAN, 1), f32(NAN, 1), True)
        self.check(f32(NAN, 1), f32(1, 1), False, says="nan")
        self.check(f32(1, 1), f32(NAN, 1), False, says="nan")
        self.check(f32(INF, 1), f32(INF, 1), True)
        self.check(f32(INF, 1), f32(-INF, 1), False, says="inf")
        self.check(f32(3e38, 1), f32(INF, 1), False, says="inf")
        self.check(f32(NAN), f32(NAN), True)

    def test_difference_next_to_nan_is_seen_at_its_own_place(self):
        self.check(f32(NAN, 1, 2), f32(NAN, 1, 1), False, says="at [2]")

    def test_dtype_and_shape(self):
        self.check(f32(1), np.array([1.0]), False, says="dtype")
        self.check(np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32), False, says="shape")
        self.check(np.zeros((1,), np.float32), np.zeros((), np.float32), False, says="shape")
        self.check(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), True)

    def test_integers_and_bools_are_exact(self):
        self.check(np.array([2**62 + 1]), np.array([2**62]), False, says="1 of 1")
        self.check(np.array([True, False]), np.array([True, False]), True)


class CompareFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name, **tensors):
        path = os.path.join(self.folder, name)
        np.savez(path, **tensors)
        return path

    def test_exit_codes(self):
        one = self.path("one.npz", y=f32(1, 2))
        self.assertEqual(compare.main([one, one]), 0)
        self.assertEqual(compare.main([one, self.path("two.npz", y=f32(1, 3))]), 1)
        self.assertEqual(compare.main([one, self.path("named.npz", z=f32(1, 2))]), 1)
        self.assertEqual(compare.main([one, self.path("named.npz", z=f32(1, 2)), "--by-position"]), 0)
        self.assertEqual(compare.main([one, self.path("more.npz", y=f32(1, 2), z=f32(0))]), 1)
        self.assertEqual(compare.main([one, os.path.join(self.folder, "absent.npz")]), 2)

    def test_a_looser_tolerance_is_taken_from_the_command_line(self):
        one, two = self.path("one.npz", y=f32(1.0005)), self.path("two.npz", y=f32(1))
        self.assertEqual(compare.main([one, two]), 1)
        self.assertEqual(compare.main([one, two, "--rtol", "1e-3"]), 0)


if __name__ == "__main__":
    unittest.main()
