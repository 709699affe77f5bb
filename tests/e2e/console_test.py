"""The web console in a browser: from a key to a classified picture."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import mill
import serving


class ConsoleTest(unittest.TestCase):
    def test_from_a_key_to_a_classified_picture(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        keys = Path(folder.name) / "keys"
        made = mill.run_program("keys", "--keys-file", keys, "add", "person", "--scopes", "admin")
        self.assertEqual(made.returncode, 0, made.stderr)
        server = serving.make_server(self, "--keys-file", str(keys))
        models = mill.ROOT / "tests/models"
        done = subprocess.run(["node", mill.ROOT / "tests/peer/console.js", f"http://127.0.0.1:{server.port}/",
                               made.stdout.strip(), models / "digits.onnx", models / "pictures/7.png", "7"],
                              capture_output=True, text=True, timeout=mill.PROGRAM_LIMIT_S, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "the console works\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
