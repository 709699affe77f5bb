"""Packages for other x86 CPUs than this one, run here: each vector width gives ONNX Runtime's answers."""

import os
import tempfile
import unittest
from pathlib import Path

import mill
import small_models

# 4, 8 and 16 lanes; the last differs from the one before in its caches and its further instructions.
CPUS = ["x86-64-v2", "core-avx2", "skylake-avx512", "sapphirerapids"]


@unittest.skipUnless(os.uname().machine == "x86_64", "needs an x86-64 machine")
class Targets(unittest.TestCase):
    def check(self, cpu, name, path):
        inputs = small_models.inputs_of(path)
        feed, expected = small_models.expected(name, path, inputs)
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder) / "module.tar"
            mill.check_program(self, "compile", path, "--target", f"llvm -mcpu={cpu} -num-cores=2", "--input-shapes",
                               mill.shapes_option(inputs), "-o", package)
            done = mill.run_program("run", package, "-i", feed, "-o", f"{folder}/out.npz")
            if done.returncode != 0 and "CPU features that this machine lacks" in done.stderr:
                self.skipTest(done.stderr.strip())
            self.assertEqual(done.returncode, 0, done.stderr)
            actual = mill.load_npz(f"{folder}/out.npz")
        self.assertEqual(mill.compare.compare_sets(actual, expected, mill.tolerance(3)), [])


def add_tests():
    for cpu in CPUS:
        for name, path in small_models.small_models().items():
            label = f"test_{cpu.replace('-', '_')}_{name}"
            setattr(Targets, label, lambda self, c=cpu, n=name, p=path: self.check(c, n, p))


add_tests()

if __name__ == "__main__":
    unittest.main()
