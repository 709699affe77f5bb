"""Decoders with loops, as exporters write them, beside ONNX Runtime."""

import tempfile
import unittest
from pathlib import Path

import decoder_models
import mill
import numpy as np


class Decoders(unittest.TestCase):
    def check(self, name, feeds=None):
        text, constants, shapes, own = decoder_models.DECODERS[name]
        with tempfile.TemporaryDirectory() as folder:
            model, package, feed, out, expected = (Path(folder) / file for file in ("m.onnx", "m.tar", "in.npz", "out.npz", "ref.npz"))
            model.write_bytes(decoder_models.model(text, constants))
            mill.check_program(self, "compile", model, "-o", package, *(("--input-shapes", shapes) if shapes else ()))
            for i, inputs in enumerate(feeds or own):
                np.savez(feed, **inputs)
                mill.alive.ort_run(str(model), str(feed), str(expected))
                actual = mill.run_package(self, package, feed, out)
                self.assertEqual(mill.compare.compare_sets(actual, mill.load_npz(expected), 1e-4), [], (name, i))

    def refuses(self, name, inputs, text):
        """Whether a run of the model with these inputs fails and says `text`."""
        source, constants, shapes, _ = decoder_models.DECODERS[name]
        with tempfile.TemporaryDirectory() as folder:
            model, package, feed = (Path(folder) / file for file in ("m.onnx", "m.tar", "in.npz"))
            model.write_bytes(decoder_models.model(source, constants))
            mill.check_program(self, "compile", model, "-o", package, "--input-shapes", shapes)
            np.savez(feed, **inputs)
            done = mill.run_program("run", package, "-i", feed)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(text, done.stderr)

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

    def test_language_models(self):
        self.check("language_model")
        self.check("language_model_tokens")

    def test_language_models_with_caches_of_a_fixed_length(self):
        self.check("language_model_full_cache")
        self.refuses("language_model_full_cache", decoder_models.step(1, 1, 24, 30), "seqlens_k make 30 keys with 1 new ones, the cache has 24")

    def test_a_mask_says_how_many_keys_there_are(self):
        """A shorter one leaves out the last of the cache; what a longer one counts is not there."""
        inputs = decoder_models.step(1, 4, 9)
        self.check("language_model", [inputs | {"mask": inputs["mask"][:, 1:]}])
        self.refuses("language_model", inputs | {"mask": np.ones((1, 14), np.int64)},
                     "seqlens_k make 14 keys with 4 new ones, the cache has 9")


if __name__ == "__main__":
    unittest.main()
