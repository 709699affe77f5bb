"""ML Programs of Core ML: operations in their forms and small networks, against what coremltools and torch make of them; by the command
line, with a free batch, over HTTP, and by way of the project's own graph files.

The models and their answers are made by tests/fixtures/coreml_ops and tests/fixtures/coreml_nets (`./dev fixtures`).
"""

import io
import json
import unittest
import zipfile

import mill
import numpy as np
import serving
from fixture_case import FixtureCase, arrays_of

OPS = mill.ROOT / "tests/fixtures/coreml_ops"
NETS = mill.ROOT / "tests/fixtures/coreml_nets"
# Of the largest number of an output: what is rounded to float16 between operations.
TOLERANCE_OF_HALVES = 1e-2


class CoreMl(FixtureCase):
    def test_operations(self):
        families = sorted(OPS.glob("*.npz"))
        self.assertGreater(len(families), 20)
        for arrays in families:
            self.check_all(arrays.with_suffix(".zip"), arrays, "-O", 3, tolerance=TOLERANCE_OF_HALVES if "hal" in arrays.stem else None)

    def test_operations_without_passes(self):
        for family in ("conv", "reductions", "shapes"):
            self.check_all(OPS / f"{family}.zip", OPS / f"{family}.npz", "-O", 0)

    def test_networks(self):
        self.check_all(NETS / "mobile.zip", NETS / "mobile.npz")
        self.check_all(NETS / "mobile.zip", NETS / "mobile.npz", "--input-shapes", "picture:[2,3,16,16]")
        self.check_all(NETS / "mobile_bytes.zip", NETS / "mobile.npz", tolerance=5e-2)
        self.check_all(NETS / "block.zip", NETS / "block.npz")
        self.check_all(NETS / "step.zip", NETS / "step.npz", tolerance=TOLERANCE_OF_HALVES)
        self.compile(NETS / "mobile_half.zip")
        inputs, wanted = [{name: array.astype(np.float16) for name, array in each.items()} for each in arrays_of(NETS / "mobile.npz")]
        self.check_outputs(self.run_on(inputs), wanted, tolerance=TOLERANCE_OF_HALVES)

    def test_states_are_handed_on(self):
        inputs, _ = arrays_of(NETS / "step.npz")
        self.compile(NETS / "step.zip")
        states = {name: np.zeros_like(inputs[name]) for name in ("keys", "count")}
        for step in range(1, 4):
            got = self.run_on({"x": inputs["x"], **states})
            states = {name: got[f"{name}_out"] for name in states}
            self.assertEqual(states["count"].tolist(), [step])

    def unpacked(self, name="mobile"):
        with zipfile.ZipFile(NETS / f"{name}.zip") as archive:
            archive.extractall(self.folder)
        return next(self.folder.glob("*.mlpackage"))

    def test_folders_and_files(self):
        package = self.unpacked()
        said = mill.check_program(self, "show", package)
        self.assertIn("format mlpackage (specification ", said)
        self.assertIn("operator conv: ", said)
        self.check_all(package, NETS / "mobile.npz")
        self.check_all(package / "Data/com.apple.CoreML/model.mlmodel", NETS / "mobile.npz")
        facts = json.loads(mill.check_program(self, "--json", "show", NETS / "mobile.zip"))
        self.assertEqual((facts["format"], facts["inputs"]), ("mlpackage", [{"name": "picture", "dtype": "float32", "shape": [-1, 3, 16, 16]}]))

    def test_ranges_of_free_dims(self):
        self.compile(NETS / "mobile.zip")
        pictures = arrays_of(NETS / "mobile.npz")[0]["picture"]
        whole = self.run_on({"picture": np.repeat(pictures, 4, 0)})["classes"]
        self.assertEqual(whole.shape, (8, 5))
        done = mill.run_program("compile", NETS / "mobile.zip", "--input-shapes", "picture:[9,3,16,16]", "-o", self.package)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("the model takes 1 to 8", done.stderr)

    def test_graph_files(self):
        graph = self.folder / "net.tmg"
        mill.check_program(self, "import", NETS / "mobile.zip", "-o", graph)
        self.check_all(graph, NETS / "mobile.npz")

    def test_over_http(self):
        inputs, wanted = arrays_of(NETS / "mobile.npz")
        server = serving.make_server(self)
        self.assertEqual(server.upload("mobile", (NETS / "mobile.zip").read_bytes()).status, 201)
        package = server.compile("mobile", {"picture": [2, 3, 16, 16]})
        self.check("classes", serving.from_npz(server.run(package, inputs).body)["classes"], wanted["classes"])

    def test_a_sequence_keeps_the_states(self):
        """What a deployment hands from request to request is what a caller of the package hands on, for each sequence."""
        server = serving.make_server(self)
        self.assertEqual(server.upload("step", (NETS / "step.zip").read_bytes()).status, 201)
        package, states = server.compile("step", {}), {"keys": "keys_out", "count": "count_out"}
        put = server.deploy("step", package, sequence={"states": states})
        self.assertEqual(put.status, 201, put.body)
        told = server.request("GET", "/v2/models/step").json()
        self.assertEqual([[each["name"] for each in told[side]] for side in ("inputs", "outputs")], [["x"], ["y"]])
        given, _ = arrays_of(NETS / "step.npz")
        held = {number: {name: np.zeros_like(given[name]) for name in states} for number in (7, 8)}

        def send(number, x, **parameters):
            tensor = {"name": "x", "datatype": "FP16", "shape": list(x.shape), "data": x.ravel().tolist()}
            return server.send_json("POST", "/v2/models/step/infer", {"inputs": [tensor], "parameters": {"sequence_id": number, **parameters}})

        for step in range(3):
            for number in held:
                x = (given["x"] * (number + step) / 8).astype(given["x"].dtype)
                wanted = serving.from_npz(server.run(package, {"x": x, **held[number]}).body)
                held[number] = {name: wanted[behind] for name, behind in states.items()}
                self.assertEqual(held[number]["count"].tolist(), [step + 1])
                answer = send(number, x, sequence_start=step == 0, sequence_end=step == 2)
                self.assertEqual(answer.status, 200, answer.body)
                (output,) = answer.json()["outputs"]
                self.assertEqual((output["name"], output["shape"]), ("y", list(wanted["y"].shape)))
                np.testing.assert_array_equal(np.array(output["data"], wanted["y"].dtype).reshape(wanted["y"].shape), wanted["y"])
        self.assertEqual(send(7, given["x"]).status, 400, "it is over")

    def test_models_of_other_kinds(self):
        # specificationVersion 4, a description, and a neural network.
        network = bytes([8, 4, 18, 0]) + b"\xa2\x1f\x00"
        path = self.folder / "old.mlmodel"
        path.write_bytes(network)
        done = mill.run_program("compile", path, "-o", self.package)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("this is a neural network, and ML Programs alone are imported", done.stderr)
        answer = serving.make_server(self).upload("old", network)
        self.assertEqual((answer.status, answer.json()["code"]), (422, "not_supported"), answer.body)
        self.assertIn('convert_to="mlprogram"', answer.json()["detail"])

    def test_broken_packages(self):
        with zipfile.ZipFile(NETS / "mobile.zip") as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        weights = next(name for name in members if name.endswith("weight.bin"))
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data[:-8] if name == weights else data)
        path = self.folder / "cut.zip"
        path.write_bytes(packed.getvalue())
        done = mill.run_program("compile", path, "-o", self.package)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("weights/weight.bin", done.stderr)


if __name__ == "__main__":
    unittest.main()
