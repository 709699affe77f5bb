"""Operators that draw random numbers: types, shapes, moments, and that a seed gives the same numbers again."""

import unittest

import numpy as np
from onnx import helper

from contrib_ops_test import PeerCase, info

FLOAT, FLOAT16, DOUBLE, INT32 = 1, 10, 11, 6


class RandomOps(PeerCase):
    def draw(self, op, feed=None, outputs=1, initializers=(), inputs=(), **attributes):
        """The outputs of one node; `inputs` names its operands, those of feed when empty."""
        feed = feed or {"unused": np.zeros(1, np.float32)}
        names = list(inputs) or [name for name in feed if name != "unused"]
        wanted = [f"y{i}" for i in range(outputs)]
        graph = helper.make_graph([helper.make_node(op, names, wanted, **attributes)], "random",
                                  [info(name, array) for name, array in feed.items()],
                                  [helper.make_empty_tensor_value_info(name) for name in wanted], list(initializers))
        return self.run_own(graph, feed, 17)

    def assert_moments(self, x, mean, deviation):
        x = x.astype(np.float64)
        self.assertAlmostEqual(x.mean(), mean, delta=5 * deviation / np.sqrt(x.size))
        self.assertAlmostEqual(x.std(), deviation, delta=0.05 * deviation)

    def test_uniform_and_normal_numbers(self):
        (uniform,) = self.draw("RandomUniform", shape=[50, 80], low=-1.0, high=3.0, seed=2.0)
        self.assertEqual((uniform.dtype, uniform.shape), (np.float32, (50, 80)))
        self.assertTrue(uniform.min() >= -1 and uniform.max() < 3)
        self.assert_moments(uniform, 1, 4 / np.sqrt(12))
        (normal,) = self.draw("RandomNormal", shape=[4000], mean=0.5, scale=2.0, dtype=DOUBLE, seed=2.0)
        self.assertEqual(normal.dtype, np.float64)
        self.assert_moments(normal, 0.5, 2)
        x = np.zeros((30, 40), np.float32)
        (like,) = self.draw("RandomNormalLike", {"x": x}, dtype=FLOAT16)
        self.assertEqual((like.dtype, like.shape), (np.float16, (30, 40)))
        (like,) = self.draw("RandomUniformLike", {"x": x})
        self.assert_moments(like, 0.5, 1 / np.sqrt(12))

    def test_a_seed_gives_the_same_numbers(self):
        one, again, other = (self.draw("RandomUniform", shape=[64], seed=seed)[0] for seed in (1.0, 1.0, 2.0))
        np.testing.assert_array_equal(one, again)
        self.assertFalse(np.array_equal(one, other))
        free, same = (self.draw("RandomUniform", shape=[64])[0] for _ in range(2))
        np.testing.assert_array_equal(free, same)

    def test_bernoulli(self):
        x = np.repeat(np.array([0, 0.25, 1], np.float32), 2000)
        (y,) = self.draw("Bernoulli", {"x": x}, seed=1.0, dtype=INT32)
        self.assertEqual(y.dtype, np.int32)
        self.assertEqual((y[:2000].max(), y[4000:].min()), (0, 1))
        self.assertAlmostEqual(y[2000:4000].mean(), 0.25, delta=5 * np.sqrt(0.25 * 0.75 / 2000))

    def test_multinomial(self):
        x = np.log(np.array([[0.5, 0.25, 0.25], [0, 1, 0]], np.float32) + 1e-30)
        (y,) = self.draw("Multinomial", {"x": x}, sample_size=2000, seed=3.0)
        self.assertEqual((y.dtype, y.shape), (np.int32, (2, 2000)))
        self.assertTrue((y[1] == 1).all())
        self.assertAlmostEqual((y[0] == 0).mean(), 0.5, delta=5 * np.sqrt(0.25 / 2000))
        self.assertEqual(set(y[0].tolist()), {0, 1, 2})

    def test_dropout(self):
        x = np.ones((40, 50), np.float32)
        constants = [helper.make_tensor("ratio", FLOAT, [], [0.75]), helper.make_tensor("training", 9, [], [True])]
        y, mask = self.draw("Dropout", {"x": x}, 2, constants, ["x", "ratio", "training"], seed=5)
        self.assertEqual(mask.dtype, np.bool_)
        np.testing.assert_array_equal(y, np.where(mask, np.float32(4), np.float32(0)))
        self.assertAlmostEqual(mask.mean(), 0.25, delta=5 * np.sqrt(0.25 * 0.75 / mask.size))
        _, other = self.draw("Dropout", {"x": x}, 2, constants, ["x", "ratio", "training"], seed=6)
        self.assertFalse(np.array_equal(mask, other))
        y, mask = self.draw("Dropout", {"x": x}, 2)
        np.testing.assert_array_equal(y, x)
        self.assertTrue(mask.all())


if __name__ == "__main__":
    unittest.main()
