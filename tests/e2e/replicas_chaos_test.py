"""A minute of what replicas_chaos.py does for half an hour."""

import tempfile
import unittest

import replicas_chaos

SECONDS = 60


class ChaosTest(unittest.TestCase):
    def test_nothing_is_lost_and_nothing_is_wrong(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        chaos = replicas_chaos.Chaos(folder.name, seed=1)
        self.addCleanup(chaos.close)
        chaos.run(SECONDS, every=0.5)
        self.assertEqual(chaos.wrong, [])
        self.assertGreater(sum(chaos.faults.values()), 0)
        for what in ("inferences", "uploads", "jobs", "deployments", "records"):
            self.assertGreater(chaos.counts[what], 0, what)


if __name__ == "__main__":
    unittest.main()
