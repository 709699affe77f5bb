"""Short forms of `./dev soak`: a minute of mixed load and a hundred loads of a deployment; the kills are in
server_kill_test.py. How quick the inference is beside the rest is the long form's business."""

import sys
import unittest

import mill

sys.path.insert(0, str(mill.ROOT / "bench"))

from soak import cycles, mixed  # noqa: E402  (found through the line above)

SECONDS = 60
CYCLES = 100


class SoakTest(unittest.TestCase):
    def test_mixed_load(self):
        done = mixed.run(SECONDS)
        self.assertEqual(done.problems, [])
        self.assertEqual(len(done.ratios), mixed.PAIRS)
        self.assertGreater(done.counts["fast infer"], 100)

    def test_memory_comes_back_after_unloading(self):
        done = cycles.run(CYCLES)
        self.assertEqual(done.wrong, [])
        self.assertLessEqual(done.growth, cycles.GROWTH_BAR, f"{done.before} KiB before, {done.after} KiB after")


if __name__ == "__main__":
    unittest.main()
