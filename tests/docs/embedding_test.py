"""Programs that embed the runtime, as a stranger builds them: the installed headers and library, find_package, pkg-config."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

from PIL import Image  # noqa: E402

import mill  # noqa: E402

EXAMPLES = ROOT / "runtime/capi/examples"
STRICT = "-Wall -Wextra -Wpedantic -Wconversion -Werror"


class Embedding(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.prefix = cls.folder / "installed"
        cls.run_command("cmake", "--install", ROOT / "build", "--component", "dev", "--prefix", cls.prefix)
        cls.run_command("cmake", "-S", EXAMPLES, "-B", cls.folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={cls.prefix}",
                        f"-DCMAKE_CXX_FLAGS={STRICT}", f"-DCMAKE_C_FLAGS={STRICT}")
        cls.run_command("cmake", "--build", cls.folder / "build")
        for name, shapes in (("fixed", ["--input-shapes", "image:[1,1,28,28]"]), ("free", [])):
            cls.run_command(mill.PROGRAM, "compile", ROOT / "tests/models/digits.onnx", "-O", "1", "-o",
                            cls.folder / f"{name}.tar", *shapes)

    @staticmethod
    def run_command(*words, env=None):
        done = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              timeout=mill.PROGRAM_LIMIT_S, env=env)
        if done.returncode != 0:
            raise AssertionError(f"{words}\n{done.stdout}")
        return done.stdout

    def example(self, name, *words):
        return self.run_command(self.folder / "build" / name, *words)

    def test_classify(self):
        for digit, size in ((7, (28, 28)), (3, (28, 28)), (7, (56, 84))):
            picture = Image.open(ROOT / f"tests/models/pictures/{digit}.png").convert("L")
            if size != picture.size:
                # The middle of a larger picture, scaled down, is the same one.
                larger = Image.new("L", size)
                larger.paste(picture.resize((size[0], size[0])), (0, (size[1] - size[0]) // 2))
                picture = larger
            picture.save(self.folder / "picture.pgm")
            out = self.example("classify", self.folder / "fixed.tar", self.folder / "picture.pgm",
                               ROOT / "tests/models/digits.labels.txt")
            self.assertEqual(len(out.splitlines()), 5)
            self.assertEqual(out.split()[1], str(digit))

    def test_stream_of_frames_on_two_threads(self):
        lines = self.example("stream", self.folder / "fixed.tar", 40).splitlines()
        self.assertEqual([line.split()[0] for line in lines], [str(frame) for frame in range(40)])
        # The bar is where it was 28 frames before.
        self.assertEqual([line.split()[1] for line in lines[28:]], [line.split()[1] for line in lines[:12]])

    def test_free_dims_in_c(self):
        out = self.example("free_dims", self.folder / "free.tar")
        self.assertEqual(out.splitlines(), ["out logits [N,10]", "in image [N,1,28,28]"]
                         + [f"{extent}: output of {extent} 10" for extent in range(1, 5)])
        with self.assertRaisesRegex(AssertionError, "TM_ERR_NOT_FOUND: no such file"):
            self.example("free_dims", self.folder / "absent.tar")

    def test_programs_are_small_and_need_the_library_alone(self):
        for name in ("classify", "stream", "free_dims"):
            program = self.folder / "build" / name
            needed = [line.split()[0] for line in self.run_command("ldd", program).splitlines()]
            self.assertIn("libtensormill.so.0", needed)
            self.assertFalse([library for library in needed if "LLVM" in library or "crypto" in library], needed)
        library = self.folder / "stripped.so"
        self.run_command("strip", "-o", library, self.prefix / "lib/libtensormill.so.0")
        self.assertLess(library.stat().st_size + (self.folder / "build/classify").stat().st_size, 3 << 20)

    def test_pkg_config(self):
        env = {"PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig"), "PATH": "/usr/bin:/bin"}
        flags = self.run_command("pkg-config", "--cflags", "--libs", "tensormill >= 0.1", env=env).split()
        self.run_command("cc", "-o", self.folder / "by_pkg_config", EXAMPLES / "free_dims.c", *flags,
                         f"-Wl,-rpath,{self.prefix}/lib")
        self.assertIn("1: output of 1 10", self.run_command(self.folder / "by_pkg_config", self.folder / "free.tar"))


if __name__ == "__main__":
    unittest.main()
