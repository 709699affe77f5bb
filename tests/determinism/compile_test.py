"""A compile is a pure function: repeated, and with another number of threads, it gives the same bytes."""

import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "bin" / "tensormill"
MODEL = ROOT / "tests" / "models" / "digits.onnx"


def compile_bytes(folder, level, threads):
    package = Path(folder) / "package.tar"
    subprocess.run([PROGRAM, "compile", MODEL, "--input-shapes", "image:[1,1,28,28]", "--opt-level", str(level),
                    "--threads", str(threads), "-o", package], check=True, capture_output=True)
    return package.read_bytes()


class Determinism(unittest.TestCase):
    def test_same_bytes_for_every_number_of_threads(self):
        with tempfile.TemporaryDirectory() as folder:
            for level in range(5):
                with self.subTest(level=level):
                    first = compile_bytes(folder, level, 1)
                    self.assertEqual(first, compile_bytes(folder, level, 1))
                    self.assertEqual(first, compile_bytes(folder, level, 3))


if __name__ == "__main__":
    unittest.main()
