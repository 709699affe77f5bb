"""What tests of PyTorch's formats share: a package of their own, and its results beside torch's."""

import tempfile
import unittest
from pathlib import Path

import mill
import numpy as np

TOLERANCE = 1e-4


def values_of(path):
    """Inputs and outputs by their names, of the archive beside a program."""
    arrays = mill.load_npz(path.with_suffix(".npz"))
    return ({name[3:]: array for name, array in arrays.items() if name.startswith("in.")},
            {name[4:]: array for name, array in arrays.items() if name.startswith("out.")})


class TorchCase(unittest.TestCase):
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

    def check(self, got, wanted):
        self.assertEqual(set(got), set(wanted))
        for name, want in wanted.items():
            self.assertEqual((got[name].dtype, got[name].shape), (want.dtype, want.shape), name)
            bound = TOLERANCE * max(float(np.abs(want.astype(float)).max(initial=0)), 1e-3)
            np.testing.assert_allclose(got[name].astype(float), want.astype(float), rtol=0, atol=bound, err_msg=name)
