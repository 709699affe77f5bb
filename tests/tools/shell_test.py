"""The shell scripts parse, and shellcheck finds nothing in them."""

import shutil
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ["dev", ".ci/run", "api/docs/install", "tests/docs/install", "tests/python/install", "config/package/make",
           "config/package/image", "config/package/prove", "docker/prove", "docker/image.sh"]


class Shell(unittest.TestCase):
    def run_tool(self, *command):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_scripts_parse(self):
        self.run_tool("bash", "-n", *SCRIPTS)

    def test_shellcheck(self):
        self.assertIsNotNone(shutil.which("shellcheck"), "shellcheck is not installed")
        self.run_tool("shellcheck", "-x", *SCRIPTS)

    def test_an_unknown_verb_is_refused_with_code_2(self):
        done = subprocess.run(["./dev", "frobnicate"], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: ./dev VERB", done.stderr)


if __name__ == "__main__":
    unittest.main()
