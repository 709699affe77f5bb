"""What tests of packages of small models written as text share."""

import tempfile
import unittest
from pathlib import Path

import mill
import numpy as np
import onnx.parser

HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'


def write(folder, text):
    path = Path(folder) / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(HEADER + text).SerializeToString())
    return path


def floats(*shape):
    return np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


class PackageTest(unittest.TestCase):
    """A folder for the test, and a package in it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.package = self.folder / "module.tar"

    def compile(self, text, *options):
        """What compiling the model says on stderr."""
        done = mill.run_program("compile", write(self.folder, text), *options, "-o", self.package)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def run_on(self, inputs):
        feed = self.folder / "in.npz"
        np.savez(feed, **inputs)
        return mill.run_package(self, self.package, feed, self.folder / "out.npz")

    def refused(self, inputs):
        """What a run says on stderr that ends for its inputs."""
        feed = self.folder / "in.npz"
        np.savez(feed, **inputs)
        return self.refused_with("-i", feed)

    def refused_with(self, *options):
        done = mill.run_program("run", self.package, *options)
        self.assertEqual(done.returncode, 3, done.stderr)
        return done.stderr
