"""Packages for 64-bit ARM, cross-compiled here and run under qemu-user by a cross-compiled runtime."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

import mill
import small_models

BUILD = mill.ROOT / "build-aarch64"
TARGETS = {"generic": "llvm -mtriple=aarch64-linux-gnu -mcpu=generic -num-cores=2",
           "cortex_a72": "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"}
# A target whose package needs features of newer processors, the emulated one that has them, and one that lacks some.
NEWER = [("neoverse-n1", "neoverse-n1", "cortex-a72", "dotprod, fullfp16, lse"),
         ("neoverse-v1", "max", "neoverse-n1", "bf16, i8mm, sve"),
         ("neoverse-n2", "max", "a64fx", "bf16, dotprod, i8mm, sve2"),
         ("neoverse-v2", "max", "neoverse-n1", "bf16, i8mm, sve, sve2")]
# tm_dtype of runtime/capi/tensormill.h.
DTYPE_NUMBERS = {"float32": 0, "float64": 1, "float16": 2, "int8": 4, "int16": 5, "int32": 6, "int64": 7, "uint8": 8,
                 "uint16": 9, "uint32": 10, "uint64": 11, "bool": 12}
NUMBER_DTYPES = {number: np.dtype(name) for name, number in DTYPE_NUMBERS.items()}


BUNDLE_PROGRAM = r"""
#include <stdio.h>
#include "net.h"

int main(void) {
  tm_runtime* runtime = NULL;
  tm_package* package = NULL;
  tm_executor* executor = NULL;
  void* image = NULL;
  tm_tensor input, output;
  if (tm_runtime_create(1, &runtime) != 0 || tm_bundle_net(&package) != 0 ||
      tm_executor_create(runtime, package, 0, &executor) != 0 ||
      tm_executor_input_buffer(executor, 0, &image, &input) != 0) {
    fprintf(stderr, "%s\n", tm_last_error());
    return 1;
  }
  for (size_t i = 0; i < input.bytes / sizeof(float); ++i) ((float*)image)[i] = (float)i / 784;
  if (tm_executor_run(executor, 0, 0) != 0 || tm_executor_get_output_at(executor, 0, &output) != 0) return 1;
  for (size_t i = 0; i < output.bytes / sizeof(float); ++i) printf("%.9g ", ((const float*)output.data)[i]);
  printf("\n");
  return 0;
}
"""


def emulator():
    return shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")


def build_runner():
    """The runtime for ARM; raises with the compiler's words."""
    for command in (["cmake", "--preset", "aarch64"], ["cmake", "--build", str(BUILD), "--target", "run_package"]):
        done = subprocess.run(command, cwd=mill.ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return BUILD / "bin/run_package"


class Aarch64(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if emulator() is None:
            raise unittest.SkipTest("NOT TESTED on ARM: no emulator, qemu-user is not installed")
        cls.runner = build_runner()

    def start_emulated(self, package, inputs, folder, threads, processor):
        command = [emulator(), "-cpu", processor, self.runner, package, folder, str(threads)]
        for i, (name, array) in enumerate(inputs.items()):
            file = Path(folder) / f"input{i}.raw"
            file.write_bytes(np.ascontiguousarray(array).tobytes())
            extents = "x".join(map(str, array.shape)) or "-"
            command.append(f"{name}={DTYPE_NUMBERS[array.dtype.name]}:{extents}:{file}")
        return subprocess.run(command, capture_output=True, text=True, timeout=mill.PROGRAM_LIMIT_S, check=False)

    def run_emulated(self, package, inputs, folder, threads, processor="max"):
        """Outputs by name."""
        done = self.start_emulated(package, inputs, folder, threads, processor)
        self.assertEqual(done.returncode, 0, done.stderr)
        outputs = {}
        for i, line in enumerate(done.stdout.splitlines()):
            number, extents, name = line.split(" ", 2)
            shape = [] if extents == "-" else [int(e) for e in extents.split("x")]
            outputs[name] = np.fromfile(Path(folder) / f"{i}.bin", NUMBER_DTYPES[int(number)]).reshape(shape)
        return outputs

    def check(self, target, name, path):
        inputs = small_models.inputs_of(path)
        _, expected = small_models.expected(name, path, inputs)
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder) / "module.tar"
            mill.check_program(self, "compile", path, "--target", target, "--input-shapes",
                               mill.shapes_option(inputs), "-o", package)
            one = self.run_emulated(package, inputs, folder, 1)
            two = self.run_emulated(package, inputs, folder, 2)
        self.assertEqual(mill.compare.compare_sets(one, expected, mill.tolerance(3)), [])
        self.assertEqual({n: a.tobytes() for n, a in two.items()}, {n: a.tobytes() for n, a in one.items()})

    def test_newer_processors_run_their_packages_and_others_say_what_they_lack(self):
        path = small_models.small_models()["mlp"]
        inputs = small_models.inputs_of(path)
        _, expected = small_models.expected("mlp", path, inputs)
        for cpu, newer, older, missing in NEWER:
            with self.subTest(cpu=cpu), tempfile.TemporaryDirectory() as folder:
                package = Path(folder) / "module.tar"
                mill.check_program(self, "compile", path, "--target", f"llvm -mtriple=aarch64-linux-gnu -mcpu={cpu}",
                                   "--input-shapes", mill.shapes_option(inputs), "-o", package)
                outputs = self.run_emulated(package, inputs, folder, 2, newer)
                self.assertEqual(mill.compare.compare_sets(outputs, expected, mill.tolerance(3)), [])
                done = self.start_emulated(package, inputs, folder, 1, older)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"CPU features that this machine lacks: {missing}\n", done.stderr)

    def test_this_machine_refuses_the_package(self):
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder) / "module.tar"
            model = small_models.small_models()["mlp"]
            mill.check_program(self, "compile", model, "--target", TARGETS["generic"], "--input-shapes",
                               "input:[1,1,28,28]", "-o", package)
            done = mill.run_program("run", package)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("aarch64", done.stderr)


    def bundling_program(self, folder):
        """The program with the runtime for ARM beside it, as an installation has them."""
        done = subprocess.run(["cmake", "--build", str(BUILD), "--target", "runtime_object"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        program = folder / "tensormill"
        for part in (mill.PROGRAM, *mill.PROGRAM.parent.glob("tensormill-*.so")):
            os.link(part.resolve(), folder / part.name)
        shutil.copy(BUILD / "bin/tensormill-runtime-aarch64.o", folder)
        return program

    def test_an_archive_with_the_model_in_it(self):
        with tempfile.TemporaryDirectory(dir=BUILD) as name:
            folder = Path(name)
            image = (np.arange(784, dtype=np.float32) / 784).reshape(1, 1, 28, 28)
            words = ["compile", mill.ROOT / "tests/models/digits.onnx", "--target", TARGETS["generic"], "-O", "1", "--input-shapes",
                     "image:[1,1,28,28]"]
            refused = mill.run_program(*words, "-f", "static", "-o", folder / "net.a")
            self.assertEqual(refused.returncode, 4, refused.stderr)
            self.assertIn("the runtime for aarch64 is not installed", refused.stderr)
            program = self.bundling_program(folder)
            for ending, form in (("tar", "tar"), ("a", "static")):
                done = subprocess.run([program, *map(str, words), "-f", form, "-o", str(folder / f"net.{ending}")], capture_output=True,
                                      text=True, timeout=mill.PROGRAM_LIMIT_S, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
            (folder / "main.c").write_text(BUNDLE_PROGRAM, encoding="utf-8")
            done = subprocess.run(["aarch64-linux-gnu-gcc", "-Wall", "-Werror", "-static", "-I", name, folder / "main.c", folder / "net.a", "-lm",
                                   "-o", folder / "main"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            done = subprocess.run([emulator(), "-cpu", "max", folder / "main"], capture_output=True, text=True,
                                  timeout=mill.PROGRAM_LIMIT_S, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            expected = self.run_emulated(folder / "net.tar", {"image": image}, name, 1)["logits"].ravel()
            np.testing.assert_array_equal(np.array(done.stdout.split(), np.float32), expected)


def add_tests():
    for label, target in TARGETS.items():
        for name, path in small_models.small_models().items():
            setattr(Aarch64, f"test_{label}_{name}", lambda self, t=target, n=name, p=path: self.check(t, n, p))


add_tests()

if __name__ == "__main__":
    unittest.main()
