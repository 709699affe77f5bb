"""CNTK models on the command line and over HTTP: functions in their forms (tests/fixtures/cntk_ops) and small networks (cntk_nets) give the numbers of
CNTK 2.7."""

import json
import unittest

import mill
import numpy as np
import serving
from fixture_case import FixtureCase, arrays_of

OPS = mill.ROOT / "tests/fixtures/cntk_ops"
NETS = mill.ROOT / "tests/fixtures/cntk_nets"


class Cntk(FixtureCase):
    def test_functions(self):
        families = sorted(OPS.glob("*.npz"))
        self.assertGreater(len(families), 9)
        for arrays in families:
            self.check_all(arrays.with_suffix(".model"), arrays, "-O", 3)

    def test_functions_without_passes(self):
        for family in ("convolutions", "norms", "pools"):
            self.check_all(OPS / f"{family}.model", OPS / f"{family}.npz", "-O", 0)

    def test_networks(self):
        for arrays in sorted(NETS.glob("*.npz")):
            self.check_all(arrays.with_suffix(".model"), arrays)

    def test_a_network_of_one_shape(self):
        self.check_all(NETS / "inception.model", NETS / "inception.npz", "--input-shapes", "features:[2,3,13,13]")

    def test_a_free_batch(self):
        inputs, wanted = arrays_of(NETS / "mlp.npz")
        self.compile(NETS / "mlp.model")
        got = self.run_on({"pictures": np.repeat(inputs["pictures"], 3, 0)})["classes"]
        self.check("classes", got, np.repeat(wanted["classes"], 3, 0))

    def test_what_a_file_says(self):
        said = mill.check_program(self, "show", NETS / "residual.model")
        self.assertIn("format cntk (28 operators)", said)
        self.assertIn("operator Convolution: ", said)
        facts = json.loads(mill.check_program(self, "--json", "show", NETS / "mlp.model"))
        self.assertEqual((facts["format"], facts["inputs"]), ("cntk", [{"name": "pictures", "dtype": "float32", "shape": ["N", 1, 6, 6]}]))

    def test_a_model_of_version_1(self):
        old = self.folder / "old.dnn"
        old.write_bytes("BCN\0BVersion\0".encode("utf-16-le"))
        done = mill.run_program("compile", old, "-o", self.package)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("CNTK model of version 1", done.stderr)
        self.assertIn("load it in CNTK 2", done.stderr)

    def test_graph_files(self):
        graph = self.folder / "net.tmg"
        mill.check_program(self, "import", NETS / "mlp.model", "-o", graph)
        self.check_all(graph, NETS / "mlp.npz")

    def test_over_http(self):
        inputs, wanted = arrays_of(NETS / "inception.npz")
        server = serving.make_server(self)
        self.assertEqual(server.upload("inception", (NETS / "inception.model").read_bytes()).status, 201)
        package = server.compile("inception", {"features": [2, 3, 13, 13]})
        self.check("log", serving.from_npz(server.run(package, inputs).body)["log"], wanted["log"])


if __name__ == "__main__":
    unittest.main()
