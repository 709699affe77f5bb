"""Caffe2 networks on the command line and over HTTP: operators (tests/fixtures/caffe2_ops) and small networks (caffe2_nets) give the numbers of
Caffe2's own operators."""

import json
import unittest
import zipfile

import mill
import numpy as np
import serving
from fixture_case import FixtureCase, arrays_of

OPS = mill.ROOT / "tests/fixtures/caffe2_ops"
NETS = mill.ROOT / "tests/fixtures/caffe2_nets"


def quantum_of(reals):
    """Of real numbers that stand for integers of one scale, a little more than the scale, of the largest one."""
    most = max(np.abs(reals).max(initial=0), 1e-6)
    return 1.001 * np.diff(np.unique(reals.astype(np.float64))).min(initial=most) / most


class Caffe2(FixtureCase):
    def check(self, name, got, want, is_int8=False):
        # Integers that stand for real numbers may differ by one.
        super().check(name, got, want, quantum_of(want) if is_int8 else None)

    def test_operators(self):
        families = sorted(OPS.glob("*.npz"))
        self.assertGreater(len(families), 9)
        for arrays in families:
            self.check_all(arrays.with_suffix(".zip"), arrays, "-O", 3, is_int8=arrays.stem == "int8")

    def test_operators_without_passes(self):
        for family in ("conv", "norms", "pools"):
            self.check_all(OPS / f"{family}.zip", OPS / f"{family}.npz", "-O", 0)

    def test_networks(self):
        self.check_all(NETS / "squeeze.zip", NETS / "squeeze.npz")
        self.check_all(NETS / "squeeze.zip", NETS / "squeeze.npz", "--input-shapes", "data:[2,3,27,27]")
        self.check_all(NETS / "residual.zip", NETS / "residual.npz", "--input-shapes", "data:[2,3,10,10]")

    def unpacked(self, name):
        with zipfile.ZipFile(NETS / f"{name}.zip") as archive:
            archive.extractall(self.folder)
        return self.folder / name

    def test_folders_and_files(self):
        folder = self.unpacked("squeeze")
        for model in (folder, folder / "predict_net.pb"):
            said = mill.check_program(self, "show", model)
            self.assertIn("format caffe2 (", said)
            self.assertIn("operator Conv: ", said)
        for model in (folder, folder / "predict_net.pb"):
            self.check_all(model, NETS / "squeeze.npz")
        facts = json.loads(mill.check_program(self, "--json", "show", NETS / "squeeze.zip"))
        self.assertEqual((facts["format"], facts["inputs"]), ("caffe2", [{"name": "data", "dtype": "float32", "shape": [-1, 3, 27, 27]}]))

    def test_a_free_batch(self):
        inputs, wanted = arrays_of(NETS / "squeeze.npz")
        self.compile(NETS / "squeeze.zip")
        got = self.run_on({"data": np.repeat(inputs["data"], 3, 0)})["softmaxout"]
        self.check("softmaxout", got, np.repeat(wanted["softmaxout"], 3, 0))

    def test_shapes_that_nobody_says(self):
        done = mill.run_program("compile", NETS / "residual.zip", "-o", self.package)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('data', done.stderr)

    def test_a_net_alone(self):
        path = self.unpacked("squeeze")
        (path / "init_net.pb").unlink()
        done = mill.run_program("compile", path / "predict_net.pb", "-o", self.package)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("there is no init_net.pb", done.stderr)

    def test_graph_files(self):
        graph = self.folder / "net.tmg"
        mill.check_program(self, "import", NETS / "squeeze.zip", "-o", graph)
        self.check_all(graph, NETS / "squeeze.npz")

    def test_over_http(self):
        inputs, wanted = arrays_of(NETS / "residual.npz")
        server = serving.make_server(self)
        self.assertEqual(server.upload("residual", (NETS / "residual.zip").read_bytes()).status, 201)
        package = server.compile("residual", {"data": [2, 3, 10, 10]})
        self.check("softmax", serving.from_npz(server.run(package, inputs).body)["softmax"], wanted["softmax"])
        with zipfile.ZipFile(NETS / "residual.zip") as archive:
            answer = server.upload("alone", archive.read("residual/predict_net.pb"))
        self.assertEqual((answer.status, answer.json()["code"]), (422, "invalid_model"), answer.body)
        self.assertIn("init_net.pb", answer.json()["detail"])


if __name__ == "__main__":
    unittest.main()
