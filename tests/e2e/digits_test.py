"""The trained digits model on all 10,000 real MNIST test pictures, at every opt level, against ONNX Runtime."""

import tempfile
import unittest
from pathlib import Path

import numpy as np

import mill
import mnist_npz

BATCH, COUNT = 1000, 10000
MODEL = mill.ROOT / "tests/models/digits.onnx"
MIN_ACCURACY = 0.985


class Digits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.feeds, cls.labels = mnist_npz.write_batches(str(cls.folder), BATCH, COUNT)
        cls.expected = []
        for feed in cls.feeds:
            answer = f"{feed}.ref.npz"
            mill.alive.ort_run(str(MODEL), feed, answer)
            cls.expected.append(mill.load_npz(answer))
        cls.reference_right = cls.count_right(cls.expected)

    @classmethod
    def count_right(cls, batches):
        return int((np.concatenate([b["logits"].argmax(axis=1) for b in batches]) == cls.labels).sum())

    def check(self, level):
        package = self.folder / f"digits{level}.tar"
        mill.compile_model(self, MODEL, package, level, mill.load_npz(self.feeds[0]))
        self.assertEqual(mill.host_steps(self, package), 0)
        actual = [mill.run_package(self, package, feed, self.folder / "out.npz") for feed in self.feeds]
        for a, e in zip(actual, self.expected):
            self.assertEqual(mill.compare.compare_sets(a, e, mill.tolerance(level)), [])
        self.assertEqual(self.count_right(actual), self.reference_right)

    def test_the_reference_is_accurate_on_all_pictures(self):
        self.assertEqual(len(self.labels), COUNT)
        self.assertGreaterEqual(self.reference_right / COUNT, MIN_ACCURACY)

    def test_level_0(self):
        self.check(0)

    def test_level_1(self):
        self.check(1)

    def test_level_2(self):
        self.check(2)

    def test_level_3(self):
        self.check(3)

    def test_level_4(self):
        self.check(4)


if __name__ == "__main__":
    unittest.main()
