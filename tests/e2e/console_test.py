"""The web console in a browser: from a key to a classified picture, and each view by itself."""

import subprocess
import tempfile
import unittest
from pathlib import Path

from PIL import Image

import mill
import serving

FLOWS = mill.ROOT / "tests/peer/console"


class ConsoleTest(unittest.TestCase):
    def drive(self, flow, *words):
        done = subprocess.run(["node", FLOWS / flow, *map(str, words)], capture_output=True, text=True,
                              timeout=mill.PROGRAM_LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_from_a_key_to_a_classified_picture(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        keys = Path(folder.name) / "keys"
        made = mill.run_program("keys", "--keys-file", keys, "add", "person", "--scopes", "admin")
        self.assertEqual(made.returncode, 0, made.stderr)
        server = serving.make_server(self, "--keys-file", str(keys))
        models = mill.ROOT / "tests/models"
        self.assertEqual(self.drive("flow.js", f"http://127.0.0.1:{server.port}/", made.stdout.strip(), models / "digits.onnx",
                                    models / "pictures/7.png", "7", folder.name), "the console works\n")
        # The documents' pictures of the console are made here.
        for name in ("console.png", "roofline.png"):
            with Image.open(Path(folder.name) / name) as taken, Image.open(mill.ROOT / "api/docs/pictures" / name) as shown:
                self.assertEqual(taken.width, shown.width, f"{name}: copy the one that flow.js makes")

    def test_views_with_large_hostile_and_long_answers(self):
        server = serving.make_server(self)
        self.assertEqual(self.drive("views.js", f"http://127.0.0.1:{server.port}/"), "the views work\n")


if __name__ == "__main__":
    unittest.main()
