"""tensormill detect: boxes of a package's outputs, in pixels of the picture, in words, as JSON and drawn."""

import json
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import mill

BOXES = np.array([[[8, 8, 24, 24, 0.9, 1], [0, 0, 4, 4, 0.1, 0]]], np.float32)


def detector():
    """Boxes that are the same for every picture, but for a score that is the largest of its bytes."""
    nodes = [helper.make_node("ReduceMax", ["image"], ["most"], keepdims=0), helper.make_node("Mul", ["boxes", "most"], ["scaled"]),
             helper.make_node("Where", ["is_score", "scaled", "boxes"], ["out"])]
    is_score = np.zeros(BOXES.shape, bool)
    is_score[..., 4] = True
    graph = helper.make_graph(nodes, "detector", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 32, 32])],
                              [helper.make_tensor_value_info("out", TensorProto.FLOAT, list(BOXES.shape))],
                              [numpy_helper.from_array(BOXES, "boxes"), numpy_helper.from_array(is_score, "is_score")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Detect(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        model, cls.package = cls.folder / "detector.onnx", cls.folder / "detector.tar"
        onnx.save(detector(), model)
        done = mill.run_program("compile", model, "-o", cls.package)
        assert done.returncode == 0, done.stderr
        # 64 by 32 pixels of white: 32 by 16 in the input, 8 below its top.
        cls.picture = cls.folder / "white.ppm"
        cls.picture.write_bytes(b"P6 64 32 255\n" + b"\xff" * (64 * 32 * 3))
        cls.labels = cls.folder / "labels.txt"
        cls.labels.write_text("cat\n\x1b[31mdog\n")

    def test_boxes_are_those_of_the_picture(self):
        report = json.loads(mill.check_program(self, "detect", self.package, self.picture, "--labels", self.labels, "--json"))
        row, = report["pictures"]
        box, = row["boxes"]
        self.assertEqual((row["width"], row["height"], box["class"], box["label"]), (64, 32, 1, "\x1b[31mdog"))
        np.testing.assert_allclose(box["box"], [16, 0, 48, 32], atol=1e-3)
        self.assertAlmostEqual(box["score"], 0.9, 5)
        row, = json.loads(mill.check_program(self, "detect", self.package, self.picture, "--fit", "stretch", "--threshold", 0.05,
                                             "--json"))["pictures"]
        np.testing.assert_allclose([one["box"] for one in row["boxes"]], [[16, 8, 48, 24], [0, 0, 8, 4]], atol=1e-3)
        text = mill.check_program(self, "detect", self.package, self.picture, "--labels", self.labels)
        self.assertRegex(text, r"white\.ppm: 1 box\n +90\.00 %  \[16\.0, 0\.0, 48\.0, 32\.0\]  \?\[31mdog\n")

    def test_boxes_are_drawn(self):
        drawn = self.folder / "drawn.png"
        mill.check_program(self, "detect", self.package, self.picture, "-o", drawn)
        self.assertEqual(drawn.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        # The drawing is a picture again.
        row, = json.loads(mill.check_program(self, "detect", self.package, drawn, "--json"))["pictures"]
        self.assertEqual((row["width"], row["height"]), (64, 32))
        folder = self.folder / "drawings"
        folder.mkdir()
        mill.check_program(self, "detect", self.package, self.picture, drawn, "-o", folder)
        self.assertEqual(sorted(path.name for path in folder.iterdir()), ["drawn.boxes.png", "white.boxes.png"])

    def test_what_is_refused(self):
        for code, words, args in ((2, "folder", [self.picture, self.picture, "-o", self.folder / "x.png"]), (2, "--form", [self.picture, "--form", "circles"]),
                                  (3, "form of boxes", [self.picture, "--form", "tensors"]), (3, "none.png", ["none.png"]),
                                  (2, "--threshold", [self.picture, "--threshold", "2"])):
            done = mill.run_program("detect", self.package, *args)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
