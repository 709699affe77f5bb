"""Free dims: one package for all shapes, from the command line and through the server."""

import json
import tempfile
import unittest
from pathlib import Path

import mill
import numpy as np


class Dynamic(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.package = self.folder / "module.tar"

    def check(self, path, inputs, stem):
        feed, expected = mill.reference(path, inputs, stem)
        actual = mill.run_package(self, self.package, feed, self.folder / "out.npz")
        self.assertEqual(mill.compare.compare_sets(actual, expected, mill.tolerance(3)), [])

    def test_every_batch_of_a_network(self):
        path = mill.generated("mlp")
        model = mill.alive.onnx.load(str(path))
        inputs = mill.alive.random_inputs(model, seed=1, batch=1)
        name, row = next(iter(inputs.items()))
        free = ",".join(["N", *map(str, row.shape[1:])])
        mill.check_program(self, "compile", path, "--input-shapes", f"{name}:[{free}]", "--shape-buckets", "N=1,4",
                           "-o", self.package)
        shown = json.loads(mill.check_program(self, "show", self.package, "--json"))
        self.assertEqual(shown["inputs"][0]["shape"][0], "N")
        for batch in (1, 3, 4, 7):
            with self.subTest(batch=batch):
                self.check(path, mill.alive.random_inputs(model, seed=1, batch=batch), f"mlp.batch{batch}")

    def test_mistakes_on_the_command_line(self):
        path = mill.generated("mlp")
        for buckets, words in (("Q=1,2", "no free dim"), ("N=2,1", "not ascending"), ("N", "DIM=EXTENTS")):
            done = mill.run_program("compile", path, "--shape-buckets", buckets, "-o", self.package)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)

    def test_a_shape_that_the_model_does_not_take(self):
        path = mill.generated("mlp")
        inputs = mill.alive.random_inputs(mill.alive.onnx.load(str(path)), seed=1, batch=1)
        name, row = next(iter(inputs.items()))
        free = ",".join(["N", *map(str, row.shape[1:])])
        mill.check_program(self, "compile", path, "--input-shapes", f"{name}:[{free}]", "--shape-buckets", "N=2",
                           "--opt-level", 1, "-o", self.package)
        np.savez(self.folder / "in.npz", **{name: np.zeros((2, 3), np.float32)})
        done = mill.run_program("run", self.package, "-i", self.folder / "in.npz")
        self.assertEqual(done.returncode, 3)
        self.assertIn("N", done.stderr)


if __name__ == "__main__":
    unittest.main()
