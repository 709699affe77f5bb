"""What the soak makes of samples of a server's memory, without a server."""

import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from soak import memory, mixed  # noqa: E402

SIZE_KIB = 90_000
EVERY_S = 4.0


def series(size_at, count=16):
    return [(EVERY_S * number, size_at(number)) for number in range(count)]


def is_growth(samples):
    return memory.growth_kib(samples) > mixed.tolerated_kib(samples[-1][1])


class Growth(unittest.TestCase):
    def test_a_leak_is_growth(self):
        """6 MiB over the second half, 7 samples apart, on what free memory the allocator keeps."""
        rng = random.Random(1)
        leaking = series(lambda number: SIZE_KIB + 6 * 1024 * number / 7 + rng.uniform(0, 1024))
        self.assertTrue(is_growth(leaking))
        self.assertAlmostEqual(memory.growth_kib(leaking), 6 * 1024, delta=1024)

    def test_a_leak_after_a_long_steady_time_is_growth(self):
        self.assertTrue(is_growth(series(lambda number: SIZE_KIB + max(0, number - 8) * 1024)))

    def test_what_fills_at_first_is_no_growth(self):
        self.assertFalse(is_growth(series(lambda number: SIZE_KIB + 4096 * min(number, 7))))
        self.assertEqual(memory.growth_kib(series(lambda number: SIZE_KIB + 4096 * min(number, 7))), 0)

    def test_a_sample_that_is_off_is_no_growth(self):
        for off in range(16):
            self.assertFalse(is_growth(series(lambda number, off=off: SIZE_KIB + 20_000 * (number == off))), off)

    def test_what_comes_and_goes_is_no_growth(self):
        for seed in range(200):
            rng = random.Random(seed)
            self.assertFalse(is_growth(series(lambda _, rng=rng: SIZE_KIB + rng.uniform(0, 4096))), seed)

    def test_a_line_through_three_samples_is_their_rise(self):
        self.assertEqual(memory.growth_kib([(0, 7), (1, 5), (2, 8), (3, 9), (4, 10)]), 2)

    def test_a_single_sample_does_not_grow(self):
        self.assertEqual(memory.growth_kib([(0, SIZE_KIB)]), 0)
        self.assertEqual(memory.growth_kib([]), 0)


if __name__ == "__main__":
    unittest.main()
