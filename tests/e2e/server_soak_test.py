"""Short forms of `./dev soak`: some seconds of mixed load and of loads of a deployment; the kills are in
server_kill_test.py. How quick the inference is beside the rest is the long form's business."""

import sys
import unittest

import mill
import scope

sys.path.insert(0, str(mill.ROOT / "bench"))

from soak import cycles, mixed  # noqa: E402  (found through the line above)

SECONDS, CYCLES = (60, 100) if scope.is_sweep() else (8, 25)
# A deployment that stayed after its unloading would be 5 MiB each time, 125 in 25. What the allocator's arenas keep, one
# or two for each thread, comes and goes by a few MiB.
ALLOWED_GROWTH_KIB = 10 * 1024


class SoakTest(unittest.TestCase):
    def test_mixed_load(self):
        done = mixed.run(SECONDS)
        self.assertEqual(done.problems, [])
        self.assertEqual(len(done.ratios), mixed.PAIRS)
        self.assertGreaterEqual(len(done.samples), mixed.PAIRS * mixed.SAMPLES_PER_PAIR)
        self.assertGreater(done.counts["fast infer"], mixed.PAIRS * mixed.FAST_CLIENTS)

    def test_memory_comes_back_after_unloading(self):
        done = cycles.run(CYCLES)
        self.assertEqual(done.wrong, [])
        self.assertLess(done.after - done.before, ALLOWED_GROWTH_KIB)


if __name__ == "__main__":
    unittest.main()
