"""Every architecture at every opt level: compile, run, and the same answer as ONNX Runtime.

One test for each architecture and level (`./dev test resnet50_level_3` runs one), one for each that its model is alive,
and the opset probes. Models and reference answers are kept under build/models.
"""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import mill

ARCHITECTURES = ["mlp", "squeezenet11", "mobilenetv2", "shufflenetv2", "resnet18", "resnet50", "resnet50v2", "minilm6"]
FREE_BATCH = {"mlp": 5, "resnet18": 2, "minilm6": 2}
PROBE_LEVELS = [0, 3]
COMPILE_BYTES = 1_500_000_000


class Models(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def model_and_inputs(self, name, batch=1):
        path = mill.generated(name)
        return path, mill.alive.random_inputs(mill.alive.onnx.load(str(path)), seed=1, batch=batch)

    def check(self, name, level, batch=1, model=None):
        path, inputs = self.model_and_inputs(name, batch)
        feed, expected = mill.reference(path, inputs, f"{name}.batch{batch}")
        package = self.folder / "module.tar"
        mill.compile_model(self, model or path, package, level, inputs)
        actual = mill.run_package(self, package, feed, self.folder / "out.npz")
        self.assertEqual(mill.compare.compare_sets(actual, expected, mill.tolerance(level)), [])
        self.assertEqual(mill.host_steps(self, package), 0)

    def test_the_memory_of_a_large_compile(self):
        path, inputs = self.model_and_inputs("resnet50")
        command = [mill.PROGRAM, "compile", path, "--opt-level", "3", "--input-shapes", mill.shapes_option(inputs),
                   "--dump-code", "relay,te,tir,ll,asm", "-o", self.folder / "module.tar"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        self.assertLess(usage.ru_maxrss * 1024, COMPILE_BYTES)

    def test_external_weights_give_the_same_answer(self):
        self.check("squeezenet11", 3, model=mill.generated("squeezenet11", external=True))


def add_tests():
    def add(name, method):
        setattr(Models, f"test_{name}", method)

    for arch in ARCHITECTURES:
        add(f"{arch}_is_alive", lambda self, a=arch: self.assertEqual(mill.alive.check(str(mill.generated(a))), []))
        for level in mill.LEVELS:
            add(f"{arch}_level_{level}", lambda self, a=arch, l=level: self.check(a, l))
    for arch, batch in FREE_BATCH.items():
        add(f"{arch}_batch_of_{batch}", lambda self, a=arch, b=batch: self.check(a, 3, b))
    for opset in range(7, 23):
        for level in PROBE_LEVELS:
            add(f"probe_opset_{opset}_level_{level}", lambda self, o=opset, l=level: self.check(f"probe_opset{o}", l))


add_tests()

if __name__ == "__main__":
    unittest.main()
