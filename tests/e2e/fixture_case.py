"""What tests of models share whose answers lie beside them: a package of their own, and its results beside the framework's."""

import tempfile
import unittest
from pathlib import Path

import mill
import numpy as np


def arrays_of(path):
    """Inputs and outputs by their names, of the archive beside a model."""
    arrays = mill.load_npz(path.with_suffix(".npz"))
    return [{name[len(prefix):]: array for name, array in arrays.items() if name.startswith(prefix)} for prefix in ("in.", "out.")]


class FixtureCase(unittest.TestCase):
    # Of the largest number of an output, or of LEAST: sums in another order.
    TOLERANCE, LEAST = 2e-5, 1e-6

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.package = self.folder / "module.tar"

    def compile(self, model, *options):
        mill.check_program(self, "compile", model, *options, "-o", self.package)

    def run_on(self, inputs):
        feed = self.folder / "in.npz"
        np.savez(feed, **inputs)
        return mill.run_package(self, self.package, feed, self.folder / "out.npz")

    def check(self, name, got, want, tolerance=None, quanta=0):
        """Strings are equal, integers up to `quanta`, and real numbers up to `tolerance`."""
        if want.dtype.kind == "U":
            return self.assertEqual(got.tolist(), want.tolist(), name)
        self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape), name)
        if np.issubdtype(want.dtype, np.floating):
            most = max(np.abs(want[np.isfinite(want)].astype(np.float64)).max(initial=0), self.LEAST)
            return np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=0,
                                              atol=(self.TOLERANCE if tolerance is None else tolerance) * most, err_msg=name)
        if quanta:
            return self.assertLessEqual(np.abs(got.astype(int) - want.astype(int)).max(initial=0), quanta, name)
        return self.assertEqual(got.tolist(), want.tolist(), name)

    def check_outputs(self, got, wanted, **closeness):
        self.assertEqual(set(got), set(wanted))
        for name, want in wanted.items():
            with self.subTest(output=name):
                self.check(name, got[name], want, **closeness)

    def check_all(self, model, arrays, *options, **closeness):
        """The model in those forms of a compile gives the answers of that archive."""
        with self.subTest(model=model.name, arrays=arrays.stem):
            inputs, wanted = arrays_of(arrays)
            self.compile(model, *options)
            self.check_outputs(self.run_on(inputs), wanted, **closeness)
