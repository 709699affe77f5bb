"""Layers models of TensorFlow.js, against what it computes with them: from a folder, its model.json and archives, by the command line and
over HTTP. Models and answers are made by tests/fixtures/tfjs_layers."""

import json
import shutil
import unittest
from pathlib import Path

import mill
import numpy as np
import serving
from fixture_case import FixtureCase

NETS = mill.ROOT / "tests/fixtures/tfjs_layers"
TOLERANCE = 2e-5


def values_of(name):
    """Inputs by name, and the outputs in their order."""
    said = json.loads((NETS / f"{name}.json").read_text(encoding="utf-8"))
    arrays = {port: np.array(value["values"], np.float32).reshape(value["shape"]) for port, value in said["inputs"].items()}
    return arrays, [np.array(value["values"], np.float32).reshape(value["shape"]) for value in said["outputs"]]


class TfjsLayers(FixtureCase):
    def copy(self, name, change=lambda json: None):
        """The model's folder with its JSON as `change` leaves it."""
        to = self.folder / name
        shutil.copytree(NETS / name, to, dirs_exist_ok=True)
        model = json.loads((to / "model.json").read_text(encoding="utf-8"))
        change(model)
        (to / "model.json").write_text(json.dumps(model), encoding="utf-8")
        return to

    def check_answers(self, model, name, tolerance=TOLERANCE):
        """The model with a free batch, at the batch of the answers and at one row."""
        inputs, outputs = values_of(name)
        ports = json.loads(mill.check_program(self, "--json", "show", model))
        self.assertEqual(ports["format"], "tfjs-layers")
        self.compile(model)
        for rows in (slice(0, 2), slice(1, 2)):
            got = self.run_on({of["name"]: inputs[of["name"]][rows].astype(of["dtype"]) for of in ports["inputs"]})
            for port, want in zip(ports["outputs"], outputs):
                self.assertEqual(got[port["name"]].shape, want[rows].shape)
                bound = tolerance * max(np.abs(want).max(), 1e-6)
                self.assertLessEqual(np.abs(got[port["name"]] - want[rows]).max(), bound, f"{name}: {port['name']}")

    def test_networks(self):
        for name in ("pictures", "branches", "words"):
            with self.subTest(network=name):
                self.check_answers(NETS / name, name)

    def test_forms(self):
        """Its JSON, archives, and the topology as Keras' converter writes it."""
        folder = self.copy("branches")
        self.check_answers(folder / "model.json", "branches")
        for kind in ("zip", "tar"):
            self.check_answers(shutil.make_archive(str(self.folder / kind), kind, self.folder, "branches"), "branches")

        def converted(model):
            topology = model["modelTopology"]
            model["modelTopology"] = {"keras_version": "2.15.0", "backend": "tensorflow", "model_config": {key: topology[key] for key in ("class_name", "config")}}
            del model["format"]

        self.check_answers(self.copy("branches", converted), "branches")

    def test_weights_in_fewer_bits(self):
        """Halves, in a file of their own."""
        def halved(model):
            group = model["weightsManifest"][0]
            for weight in group["weights"]:
                weight["quantization"] = {"dtype": "float16"}
            group["paths"] = ["halves.bin"]

        folder = self.copy("branches", halved)
        np.fromfile(folder / "weights.bin", "<f4").astype("<f2").tofile(folder / "halves.bin")
        self.check_answers(folder, "branches", 2e-3)

    def test_server(self):
        inputs, outputs = values_of("pictures")
        server = serving.make_server(self)
        packed = Path(shutil.make_archive(str(self.folder / "packed"), "zip", NETS / "pictures"))
        answer = server.upload("net", packed.read_bytes())
        self.assertEqual((answer.status, answer.json()["format"]), (201, "tfjs-layers"), answer.body)
        name = answer.json()["outputs"][0]["name"]
        package = server.compile("net", {port: list(array.shape) for port, array in inputs.items()})
        got = serving.from_npz(server.run(package, inputs).body)[name]
        self.assertLessEqual(np.abs(got - outputs[0]).max(), TOLERANCE)

    def refusal(self, model, code):
        done = mill.run_program("compile", model, "-o", self.package)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def test_what_is_wrong_is_named(self):
        def other_name(model):
            model["weightsManifest"][0]["weights"][0]["name"] = "nobody/kernel"

        def other_class(model):
            model["modelTopology"]["config"]["layers"][2]["class_name"] = "Fancy"

        def other_shape(model):
            model["weightsManifest"][0]["weights"][0]["shape"] = [8, 6]

        self.assertIn('weight "nobody/kernel" is of no layer', self.refusal(self.copy("branches", other_name), 3))
        self.assertIn("layer Fancy", self.refusal(self.copy("branches", other_class), 4))
        self.assertIn("shared", self.refusal(self.copy("branches", other_shape), 3))
        folder = self.copy("words")
        (folder / "weights.bin").unlink()
        self.assertIn("weights.bin", self.refusal(folder, 3))


if __name__ == "__main__":
    unittest.main()
