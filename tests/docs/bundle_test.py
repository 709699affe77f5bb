"""Libraries that hold a model and its executor (`compile -f so|static`), as a C program uses them."""

import io
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

import numpy as np  # noqa: E402

import mill  # noqa: E402
import serving  # noqa: E402

PROGRAM = r"""
#include <stdio.h>
#include "first.h"
#include "second-net.h"

static int run(int32_t (*open)(tm_package**), tm_runtime* runtime) {
  tm_package* package = NULL;
  tm_executor* executor = NULL;
  void* image = NULL;
  tm_tensor input, output;
  if (open(&package) != 0 || tm_executor_create(runtime, package, 0, &executor) != 0 ||
      tm_executor_input_buffer(executor, 0, &image, &input) != 0) return 1;
  for (size_t i = 0; i < input.bytes / sizeof(float); ++i) ((float*)image)[i] = (float)i / 784;
  if (tm_executor_run(executor, 0, 0) != 0 || tm_executor_get_output_at(executor, 0, &output) != 0) return 1;
  for (size_t i = 0; i < output.bytes / sizeof(float); ++i) printf("%.9g ", ((const float*)output.data)[i]);
  printf("\n");
  tm_executor_destroy(executor);
  tm_package_destroy(package);
  return 0;
}

int main(void) {
  tm_runtime* runtime = NULL;
  if (tm_runtime_create(1, &runtime) != 0 || run(tm_bundle_first, runtime) != 0 ||
      run(tm_bundle_second_net, runtime) != 0) {
    fprintf(stderr, "%s\n", tm_last_error());
    return 1;
  }
  tm_runtime_destroy(runtime);
  return 0;
}
"""


# Beside a C++ library and exceptions of the program's own.
CPP_PROGRAM = r"""
#include <cstdio>
#include <stdexcept>
#include <tensormill.hpp>
#include "net.h"

int main() {
  const tensormill::Runtime runtime(1);
  tensormill::Package package(tm_bundle_net);
  tensormill::Executor executor(runtime, package);
  try {
    executor.output<float>("no such output");
  } catch (const tensormill::Error&) {
    try {
      throw std::runtime_error("caught");
    } catch (const std::runtime_error& error) {
      std::printf("%s %s\n", error.what(), package.inputs().at(0).name.c_str());
    }
  }
}
"""


class Bundles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        (cls.folder / "main.c").write_text(PROGRAM, encoding="utf-8")
        np.savez(cls.folder / "in.npz", image=(np.arange(784, dtype=np.float32) / 784).reshape(1, 1, 28, 28))
        cls.compile("-o", cls.folder / "net.tar")
        cls.words(mill.PROGRAM, "run", cls.folder / "net.tar", "-i", cls.folder / "in.npz", "-o", cls.folder / "out.npz")
        cls.expected = np.load(cls.folder / "out.npz")["logits"].ravel()

    @staticmethod
    def words(*words):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                              timeout=mill.PROGRAM_LIMIT_S)
        if done.returncode != 0:
            raise AssertionError(f"{words}\n{done.stdout}{done.stderr}")
        return done.stdout

    @classmethod
    def compile(cls, *words):
        return cls.words(mill.PROGRAM, "compile", ROOT / "tests/models/digits.onnx", "-O", "1", "--input-shapes",
                         "image:[1,1,28,28]", *words)

    def check_program(self, form, ending, *libraries):
        folder = self.folder / form
        folder.mkdir()
        names = [f"first{ending}", f"second-net{ending}"]
        for name in names:
            self.compile("-f", form, "-o", folder / name)
        self.assertIn('input "image": f32[1,1,28,28]', (folder / "first.h").read_text(encoding="utf-8"))
        self.words("cc", "-Wall", "-Wextra", "-Werror", "-I", folder, self.folder / "main.c", *(folder / name for name in names),
                   *libraries, "-o", folder / "program")
        lines = self.words(folder / "program").splitlines()
        self.assertEqual(len(lines), 2)
        for line in lines:
            np.testing.assert_array_equal(np.array(line.split(), np.float32), self.expected)
        return folder

    @staticmethod
    def needed(path):
        said = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
        return re.findall(r"NEEDED.*\[(.*)\]", said)

    def test_archives_that_two_models_of_a_program_come_from(self):
        folder = self.check_program("static", ".a", "-lm")
        self.assertLessEqual(set(self.needed(folder / "program")), {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"})

    def test_shared_objects_need_the_c_library_alone(self):
        folder = self.check_program("so", ".so", "-Wl,-rpath,$ORIGIN")
        for name in ("first.so", "second-net.so"):
            self.assertLessEqual(set(self.needed(folder / name)), {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"})
        symbols = self.words("nm", "-D", "--defined-only", folder / "first.so").split()[2::3]
        self.assertIn("tm_bundle_first", symbols)
        self.assertEqual([symbol for symbol in symbols if not symbol.startswith("tm_")], [])

    def test_a_program_in_cpp(self):
        (self.folder / "main.cc").write_text(CPP_PROGRAM, encoding="utf-8")
        self.compile("-f", "static", "-o", self.folder / "net.a")
        self.words("c++", "-std=c++17", "-I", ROOT / "runtime/capi", self.folder / "main.cc", self.folder / "net.a", "-o",
                   self.folder / "program_cc")
        self.assertEqual(self.words(self.folder / "program_cc"), "caught image\n")

    def test_a_server_makes_the_same_bytes(self):
        server = serving.make_server(self)
        server.upload("digits", (ROOT / "tests/models/digits.onnx").read_bytes())
        package = server.compile("digits", {"image": [1, 1, 28, 28]}, opt_level=1)
        for form, ending in (("static", ".a"), ("so", ".so")):
            self.compile("-f", form, "-o", self.folder / f"served{ending}")
            answer = server.request("GET", f"/v1/packages/{package}/bundle?form={form}&name=served")
            self.assertEqual(answer.status, 200, answer.body[:300])
            with tarfile.open(fileobj=io.BytesIO(answer.body)) as archive:
                self.assertEqual(archive.getnames(), [f"served{ending}", "served.h", "tensormill.h"])
                for name in archive.getnames():
                    self.assertEqual(archive.extractfile(name).read(), (self.folder / name).read_bytes(), name)
        # For a machine that this one is not: no guess, but an answer.
        foreign = server.compile("digits", {"image": [1, 1, 28, 28]}, opt_level=0, target="llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
        answer = server.request("GET", f"/v1/packages/{foreign}/bundle?form=so")
        self.assertEqual((answer.status, answer.json()["code"]), (422, "not_supported"))
        self.assertEqual(server.request("GET", "/v1/packages/sha256:" + "0" * 64 + "/bundle").status, 404)

    def refused(self, *words):
        done = subprocess.run([mill.PROGRAM, "compile", ROOT / "tests/models/digits.onnx", *map(str, words)],
                              capture_output=True, text=True, check=False, timeout=mill.PROGRAM_LIMIT_S)
        return done.returncode, done.stderr

    def test_what_cannot_be_a_bundle_is_refused(self):
        code, said = self.refused("-f", "mlf")
        self.assertEqual(code, 2, said)
        code, said = self.refused("-f", "so", "-O", "1", "--target", "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72",
                                  "--input-shapes", "image:[1,1,28,28]", "-o", self.folder / "arm.so")
        self.assertIn("a shared library for aarch64 is not made", said)
        self.assertNotEqual(code, 0)
        self.assertFalse((self.folder / "arm.so").exists())
        code, said = self.refused("-f", "so", "-o", self.folder / "tensormill.so")
        self.assertEqual(code, 2, said)


if __name__ == "__main__":
    unittest.main()
