"""A short run of random models beside ONNX Runtime, the same ones each time; a sweep draws more."""

import unittest

import numpy as np
import sweep
import scope  # (sweep adds its folder)
from builder import Builder

MODELS, SECONDS = (700, 55) if scope.is_sweep() else (200, 30)


class Differential(unittest.TestCase):
    def test_random_models_give_the_peers_answers(self):
        counts, found = sweep.run_many(sweep.jobs_of(1, MODELS), seconds=SECONDS)
        print("differential:", ", ".join(f"{number} {what}" for what, number in sorted(counts.items())))
        self.assertEqual(found, [])
        self.assertGreater(counts["equal"], MODELS // 10, "models are to be compared")

    def test_a_difference_is_seen(self):
        builder, ones = Builder(np.random.default_rng(1), 17), np.ones((2, 3), np.float32)
        self.assertEqual(sweep.difference(ones * np.float32(1.00001), ones, builder), "")
        for other in (ones * 2, ones.astype(np.float64), ones[:1], ones * np.float32(np.nan), ones * np.float32(np.inf)):
            self.assertNotEqual(sweep.difference(other, ones, builder), "")
        self.assertNotEqual(sweep.difference(np.array([3]), np.array([4]), builder), "")

    def test_a_model_is_its_name_and_seed(self):
        first, second = (sweep.draw("graph.Convolutions", 5)[0].model().SerializeToString() for _ in range(2))
        self.assertEqual(first, second)


if __name__ == "__main__":
    unittest.main()
