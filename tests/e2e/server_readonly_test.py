"""`serve --read-only --models DIR`: packages of a folder, and nothing that changes anything."""

import shutil
import tempfile
import unittest
from pathlib import Path

import numpy as np

import mill
import serving

DIGITS = mill.ROOT / "tests/models/digits.onnx"
PICTURE = {"image": np.ones((1, 1, 28, 28), np.float32)}


class ReadOnlyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.models = cls.folder / "models"
        cls.models.mkdir()
        done = mill.run_program("compile", DIGITS, "--opt-level", 1, "--input-shapes", "image:[1,1,28,28]", "-o",
                                cls.models / "digits.tar")
        assert done.returncode == 0, done.stderr
        shutil.copy(cls.models / "digits.tar", cls.models / "same.tar")

    def serve(self, models):
        return mill.run_program("serve", "--listen", "127.0.0.1:0", "--read-only", "--models", models)

    def test_it_serves_and_changes_nothing(self):
        server = serving.make_server(self, "--read-only", "--models", str(self.models))
        self.assertEqual(sorted(d["name"] for d in server.request("GET", "/v1/deployments").json()["items"]),
                         ["digits", "same"])
        answers = [serving.from_npz(server.infer(name, PICTURE).body)["logits"] for name in ("digits", "same")]
        np.testing.assert_array_equal(*answers)
        self.assertEqual(server.request("GET", "/v2/models/digits/ready").status, 200)
        for method, path in (("POST", "/v1/models?name=m"), ("POST", "/v1/uploads"), ("POST", "/v1/jobs"), ("POST", "/v1/gc"),
                             ("DELETE", "/v1/deployments/digits"), ("PUT", "/v1/deployments/digits"),
                             ("POST", "/v1/packages"), ("POST", "/v2/repository/models/digits/unload")):
            with self.subTest(path=path):
                answer = server.request(method, path, "{}", {"Content-Type": "application/json"})
                self.assertEqual((answer.status, answer.json()["code"]), (403, "forbidden"), answer.body)
        self.assertEqual(server.infer("digits", PICTURE).status, 200)
        self.assertFalse((server.folder / "data").exists())
        self.assertEqual(server.stop(), 0)

    def test_what_cannot_be_served_ends_the_start(self):
        empty = self.folder / "empty"
        empty.mkdir(exist_ok=True)
        self.assertEqual(self.serve(empty).returncode, 2)
        self.assertEqual(self.serve(self.folder / "nowhere").returncode, 2)
        self.assertEqual(mill.run_program("serve", "--read-only").returncode, 2)
        (empty / "broken.tar").write_bytes((self.models / "digits.tar").read_bytes()[:-2000])
        broken = self.serve(empty)
        self.assertEqual(broken.returncode, 3)
        self.assertIn("broken.tar", broken.stderr)


if __name__ == "__main__":
    unittest.main()
