"""Models of MXNet: operators in their forms and small networks, against what MXNet makes of them; by the command line, with a free batch,
over HTTP, and by way of the project's own graph files.

The models and their answers are made by tests/fixtures/mxnet_ops and tests/fixtures/mxnet_nets (`./dev fixtures`).
"""

import json
import unittest
import zipfile

import mill
import serving
from fixture_case import FixtureCase, arrays_of

OPS = mill.ROOT / "tests/fixtures/mxnet_ops"
NETS = mill.ROOT / "tests/fixtures/mxnet_nets"


class Mxnet(FixtureCase):
    def test_operators(self):
        families = sorted(OPS.glob("*.npz"))
        self.assertGreater(len(families), 15)
        for arrays in families:
            self.check_all(arrays.with_suffix(".zip"), arrays, "-O", 3)

    def test_operators_without_passes(self):
        for family in ("conv", "pools", "shapes"):
            self.check_all(OPS / f"{family}.zip", OPS / f"{family}.npz", "-O", 0)

    def test_networks(self):
        self.check_all(NETS / "resmobile.zip", NETS / "resmobile.npz", "--input-shapes", "data:[2,3,24,24]")
        self.check_all(NETS / "letters.zip", NETS / "letters.npz", "--input-shapes", "data:[2,1,16,16]")
        self.check_all(NETS / "resmobile.zip", NETS / "resmobile.npz", "--input-shapes", "data:[N,3,24,24]")
        for extents in ("2,3,24,24", "N,3,24,24"):
            self.check_all(NETS / "detector.zip", NETS / "detector.npz", "--input-shapes", f"data:[{extents}]")

    def unpacked(self, name="resmobile"):
        with zipfile.ZipFile(NETS / f"{name}.zip") as archive:
            archive.extractall(self.folder / name)
        return self.folder / name

    def test_folders_and_files(self):
        folder = self.unpacked()
        said = mill.check_program(self, "show", folder)
        self.assertIn("format mxnet (1.9.1", said)
        self.assertIn("operator Convolution: 9", said)
        self.check_all(folder, NETS / "resmobile.npz", "--input-shapes", "data:[2,3,24,24]")
        self.check_all(folder / "resmobile-symbol.json", NETS / "resmobile.npz", "--input-shapes", "data:[2,3,24,24]")
        facts = json.loads(mill.check_program(self, "--json", "show", NETS / "resmobile.zip"))
        self.assertEqual((facts["format"], facts["inputs"]), ("mxnet", [{"name": "data", "dtype": "float32", "shape": [-1, 3, -1, -1]}]))

    def test_graph_files(self):
        graph = self.folder / "net.tmg"
        mill.check_program(self, "import", NETS / "letters.zip", "--input-shapes", "data:[2,1,16,16]", "-o", graph)
        self.check_all(graph, NETS / "letters.npz")

    def test_over_http(self):
        inputs, wanted = arrays_of(NETS / "resmobile.npz")
        server = serving.make_server(self)
        self.assertEqual(server.upload("resmobile", (NETS / "resmobile.zip").read_bytes()).status, 201)
        package = server.compile("resmobile", {"data": [2, 3, 24, 24]})
        self.check_outputs(serving.from_npz(server.run(package, inputs).body), wanted)

    def test_a_symbol_without_parameters_and_parameters_without_a_symbol(self):
        folder = self.unpacked()
        symbol, parameters = folder / "resmobile-symbol.json", folder / "resmobile-0000.params"
        done = mill.run_program("compile", parameters, "-o", self.package)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("it has weights alone: give NAME-symbol.json", done.stderr)
        answer = serving.make_server(self).upload("alone", symbol.read_bytes())
        self.assertEqual(answer.status, 422, answer.body)
        self.assertIn("a tar or zip of both files", answer.json()["detail"])
        parameters.unlink()
        done = mill.run_program("compile", symbol, "-o", self.package)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("there is no file of its parameters", done.stderr)


if __name__ == "__main__":
    unittest.main()
