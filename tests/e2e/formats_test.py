"""Models of formats that are read and not imported yet: what they are is said, by content, at every door."""

import json
import shutil
import tempfile
import unittest
from pathlib import Path

import mill
import serving

FIXTURES = mill.ROOT / "tests/fixtures"
SAYS = {
    "pytorch/state_dict.pt": ("a PyTorch state dict", "load_state_dict", "torch.export.save"),
    "pytorch/module.pt": ("a pickled PyTorch module", "torch.export.save"),
}


class Formats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)

    def test_command_line(self):
        for name, words in SAYS.items():
            # Without its suffix: it is told by content.
            path = self.folder / "model"
            shutil.copyfile(FIXTURES / name, path)
            done = mill.run_program("compile", path, "-o", self.folder / "out.tar")
            self.assertEqual(done.returncode, 4, f"{name}: {done.stderr}")
            for word in words:
                self.assertIn(word, done.stderr, name)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_show(self):
        done = mill.run_program("show", FIXTURES / "tflite/net_int8.tflite")
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("format tflite (schema 3, 1 subgraph)", "input image: int8[?,8,8,3] (scale 0.0039",
                      "quantization: int8 weights and activations", "signatures: serving_default", "operator CONV_2D: 2"):
            self.assertIn(words, done.stdout)
        done = mill.run_program("show", "--ops", FIXTURES / "pytorch/net.pt2")
        self.assertIn("aten.conv2d.default 1\n", done.stdout)
        done = mill.run_program("--json", "show", FIXTURES / "tensorflow/module")
        facts = json.loads(done.stdout)
        self.assertEqual(facts["format"], "saved-model")
        self.assertEqual({value["name"] for value in facts["inputs"]}, {"x", "n"})
        done = mill.run_program("show", FIXTURES / "keras/lambda.keras")
        self.assertIn("refused: doubled: Lambda", done.stdout)

    def test_broken_files(self):
        for name in ("tflite/net_int8.tflite", "pytorch/net.pt2", "tensorflow/frozen.pb", "pytorch_script/residual_traced.pt"):
            path = self.folder / "cut"
            path.write_bytes((FIXTURES / name).read_bytes()[:3000])
            done = mill.run_program("show", path)
            self.assertEqual(done.returncode, 3, f"{name}: {done.stderr}")

    def test_uploads(self):
        store = self.folder / "store"
        store.mkdir()
        server = serving.Server(store)
        self.addCleanup(server.stop)
        before = serving.blobs(server)
        for name, words in SAYS.items():
            answer = server.upload("foreign", (FIXTURES / name).read_bytes())
            self.assertEqual((answer.status, answer.json()["code"]), (422, "not_supported"), answer.body)
            for word in words:
                self.assertIn(word, answer.json()["detail"])
        answer = server.upload("foreign", (FIXTURES / "tflite/control_flow.tflite").read_bytes())
        self.assertEqual((answer.status, answer.json()["code"]), (422, "operator_not_implemented"), answer.body)
        self.assertEqual(answer.json()["model"]["operators"]["WHILE"], 1)
        # Beside an ONNX model may lie what other formats have.
        beside = self.folder / "beside"
        beside.mkdir()
        for name in ("config.json", "metadata.json"):
            (beside / name).write_text("{}", encoding="utf-8")
        shutil.copyfile(mill.ROOT / "tests/models/digits.onnx", beside / "digits.onnx")
        archive = shutil.make_archive(str(self.folder / "packed"), "zip", beside)
        answer = server.upload("digits", Path(archive).read_bytes())
        self.assertEqual((answer.status, answer.json()["format"]), (201, "onnx-archive"), answer.body)
        before = serving.blobs(server)
        cut = (FIXTURES / "tflite/net_int8.tflite").read_bytes()[:2000]
        answer = server.upload("foreign", cut)
        self.assertEqual((answer.status, answer.json()["code"]), (422, "invalid_model"), answer.body)
        self.assertIn("TFLite model: ", answer.json()["detail"])
        self.assertEqual(serving.blobs(server), before)


if __name__ == "__main__":
    unittest.main()
