"""Keras models: layers in their forms and small networks, against what Keras makes of them; by the command line, with a free batch,
over HTTP, and by way of the project's own graph files.

The models and their answers are made by tests/fixtures/keras_layers and tests/fixtures/keras (`./dev fixtures`).
"""

import json
import unittest

import mill
import numpy as np
import serving
from fixture_case import FixtureCase, arrays_of

LAYERS = mill.ROOT / "tests/fixtures/keras_layers"
NETS = mill.ROOT / "tests/fixtures/keras"


def network_values():
    """Inputs and the output of net.keras, of one sample."""
    values = json.loads((NETS / "net.json").read_text(encoding="utf-8"))
    inputs = {name: np.array(array, np.float32).reshape(1, 8, 8, 3) for name, array in zip(("one", "other"), values["inputs"])}
    return inputs, np.array(values["outputs"], np.float32).reshape(1, 5)


class Keras(FixtureCase):
    def check_family(self, file, *options):
        arrays = (LAYERS / file).with_suffix(".npz")
        self.check_all(LAYERS / file, arrays, "--input-shapes", mill.shapes_option(arrays_of(arrays)[0]), *options)

    def test_convolutions(self):
        self.check_family("convolutions.keras")

    def test_words_and_texts_of_any_number(self):
        inputs, wanted = arrays_of(LAYERS / "text.npz")
        self.compile(LAYERS / "text.keras", "-O", 1)
        for rows in ([0, 1], [1], [1, 0, 1]):
            got = self.run_on({name: array[rows] for name, array in inputs.items()})
            self.check_outputs(got, {name: array[rows] for name, array in wanted.items()})

    def test_masks(self):
        self.check_family("masks.keras", "-O", 1)

    def test_nested(self):
        self.check_family("nested.keras")

    def test_archive_and_hdf5_are_one_model(self):
        inputs, classes = network_values()
        for suffix in ("keras", "h5"):
            # Without the suffix: it is told by content.
            model = self.folder / "model"
            model.write_bytes((NETS / f"net.{suffix}").read_bytes())
            self.compile(model)
            for count in (1, 3):
                got = self.run_on({name: np.repeat(array, count, 0) for name, array in inputs.items()})["classes"]
                self.check(f"{suffix}, batch {count}", got, np.repeat(classes, count, 0))

    def test_sequential(self):
        values = json.loads((NETS / "sequential.json").read_text(encoding="utf-8"))
        for suffix in ("keras", "h5"):
            self.compile(NETS / f"sequential.{suffix}", "--model-format", "keras" if suffix == "keras" else "keras-h5")
            name = json.loads(mill.check_program(self, "--json", "show", NETS / f"sequential.{suffix}"))["inputs"][0]["name"]
            got = self.run_on({name: np.array(values["inputs"][0], np.float32).reshape(1, 4)})["second"]
            self.check(suffix, got, np.array(values["outputs"], np.float32).reshape(1, 2))

    def test_show(self):
        said = mill.check_program(self, "show", NETS / "net.keras")
        self.assertIn("format keras (Keras 3.15.1, Functional of ", said)
        self.assertIn("input one: float32[?,8,8,3]", said)
        said = json.loads(mill.check_program(self, "--json", "show", NETS / "net.h5"))
        self.assertEqual((said["format"], said["inputs"][0], said["outputs"]),
                         ("keras-h5", {"name": "one", "dtype": "float32", "shape": ["batch", 8, 8, 3]},
                          [{"name": "classes", "dtype": "float32", "shape": ["batch", 5]}]))
        said = mill.check_program(self, "show", "--graph", NETS / "net.keras")
        self.assertIn("%one: f32[batch,8,8,3]", said)

    def test_graph_file(self):
        inputs, classes = network_values()
        graph = self.folder / "net.tmg"
        mill.check_program(self, "import", NETS / "net.keras", "-o", graph)
        self.compile(graph, "--input-shapes", "one:[2,8,8,3] other:[2,8,8,3]")
        got = self.run_on({name: np.repeat(array, 2, 0) for name, array in inputs.items()})["classes"]
        self.check("classes", got, np.repeat(classes, 2, 0))

    def test_programs_are_refused_by_name(self):
        done = mill.run_program("compile", NETS / "lambda.keras", "-o", self.package)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("1 layer is not supported: layer Lambda: ", done.stderr)
        self.assertIn('first "doubled"', done.stderr)

    def test_shapes_that_do_not_fit(self):
        done = mill.run_program("compile", NETS / "net.keras", "--input-shapes", "one:[1,8,9,3]", "-o", self.package)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("the extent 9 in dim 2, the model has 8", done.stderr)

    def test_server(self):
        inputs, classes = network_values()
        server = serving.make_server(self)
        for suffix, form in (("keras", "keras"), ("h5", "keras-h5")):
            answer = server.upload(form, (NETS / f"net.{suffix}").read_bytes())
            self.assertEqual((answer.status, answer.json().get("format")), (201, form), answer.body)
            self.assertEqual(answer.json()["outputs"], [{"name": "classes", "dtype": "float32", "shape": ["batch", 5]}])
            package = server.compile(form, {name: [1, 8, 8, 3] for name in inputs})
            got = serving.from_npz(server.run(package, inputs).body)
            self.check(form, got["classes"], classes)
        answer = server.upload("lambda", (NETS / "lambda.keras").read_bytes())
        self.assertEqual((answer.status, answer.json()["code"]), (422, "operator_not_implemented"), answer.body)
        self.assertEqual([error["pointer"] for error in answer.json()["errors"]], ["doubled"])
        cut = (NETS / "net.h5").read_bytes()[:20000]
        answer = server.upload("cut", cut)
        self.assertEqual((answer.status, answer.json()["code"]), (422, "invalid_model"), answer.body)


if __name__ == "__main__":
    unittest.main()
