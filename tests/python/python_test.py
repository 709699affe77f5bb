"""The Python package in its virtual environment: pytest by file, doctests, mypy."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/tools"))

PYTHON = ROOT / "tests/python/venv/bin/python"
PACKAGE = ROOT / "api/python"
# What nothing here takes, on a busy machine neither.
LIMIT_S = 1200

sys.path.insert(0, str(ROOT / "tests/python"))


def environment():
    return {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1",
            "TM_PROGRAM": str(ROOT / "build/bin/tensormill"), "no_proxy": "*"}


class PythonPackage(unittest.TestCase):
    def run_python(self, *words, folder=ROOT):
        done = subprocess.run([str(PYTHON), *words], cwd=folder, env=environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-8000:])
        return done.stdout

    def check_file(self, name):
        out = self.run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/python/suite/{name}")
        self.assertRegex(out, r"\d+ passed")

    def test_run(self):
        self.check_file("test_run.py")

    def test_program(self):
        self.check_file("test_program.py")

    def test_http(self):
        self.check_file("test_http.py")

    def test_client(self):
        self.check_file("test_client.py")

    def test_grpc(self):
        self.check_file("test_grpc.py")

    def test_html(self):
        self.check_file("test_html.py")

    def test_wheel(self):
        self.check_file("test_wheel.py")

    def test_docs(self):
        self.check_file("test_docs.py")

    def test_every_file_of_the_suite_is_run(self):
        files = {path.stem for path in (ROOT / "tests/python/suite").glob("test_*.py")}
        self.assertEqual(files, {name for name in dir(self) if name in files})

    def test_doctests(self):
        out = self.run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", "--doctest-modules",
                              "--rootdir=tests/python/suite", "-c", "tests/python/suite/pytest.ini", "-p", "doctest_names",
                              "api/python/tensormill")
        self.assertRegex(out, r"\d+ passed")

    def test_types(self):
        """As the oldest Python that mypy knows sees them: what newer ones added to their library is an error."""
        out = self.run_python("-m", "mypy", "--strict", "--python-version", "3.10", "--no-incremental", "--cache-dir=/dev/null", "tensormill", folder=PACKAGE)
        self.assertIn("Success: no issues found", out)


if __name__ == "__main__":
    unittest.main()
