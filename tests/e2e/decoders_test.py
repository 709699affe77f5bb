"""Decoders with loops, as exporters write them, beside ONNX Runtime."""

import tempfile
import unittest
from pathlib import Path

import decoder_models
import mill
import numpy as np


class Decoders(unittest.TestCase):
    def check(self, name):
        text, constants, shapes, feeds = decoder_models.DECODERS[name]
        with tempfile.TemporaryDirectory() as folder:
            model, package, feed, out, expected = (Path(folder) / file for file in ("m.onnx", "m.tar", "in.npz", "out.npz", "ref.npz"))
            model.write_bytes(decoder_models.model(text, constants))
            mill.check_program(self, "compile", model, "-o", package, *(("--input-shapes", shapes) if shapes else ()))
            for i, inputs in enumerate(feeds):
                np.savez(feed, **inputs)
                mill.alive.ort_run(str(model), str(feed), str(expected))
                actual = mill.run_package(self, package, feed, out)
                self.assertEqual(mill.compare.compare_sets(actual, mill.load_npz(expected), 1e-4), [], (name, i))

    def test_greedy_until_the_last_token(self):
        self.check("greedy_eos")

    def test_beams(self):
        self.check("beam")

    def test_transducers(self):
        self.check("rnnt")

    def test_collapsed_labels(self):
        self.check("ctc")

    def test_caches_of_keys_and_values(self):
        self.check("kv_decode")


if __name__ == "__main__":
    unittest.main()
