"""Sequences and optional values that data decides about, as outputs behind HTTP: in NPZ and in KServe v2."""

import json
import sqlite3
import unittest

import numpy as np
import sequence_models
import serving

X = np.array([[-1, 2], [0.5, 3], [4, 5], [0.25, 6], [-2, 7]], np.float32)
BOUNDS = np.array([0, 0.4, 9], np.float32)
KINDS = {"float32": "FP32", "int64": "INT64"}


def expected(m, limit):
    parts = [X[X[:, 0] < bound] for bound in BOUNDS[:m]]
    padded = np.zeros((m, max(len(part) for part in parts), 2), np.float32)
    for row, part in zip(padded, parts, strict=True):
        row[:len(part)] = part
    found = X.max() < limit
    return {"l_parts": padded, "l_parts.extents": np.array([part.shape for part in parts]), "l_known/0": X[:2, 0], "l_known/1": X[2:, 0],
            "o_row": X[0] if found else np.zeros(2, np.float32), "o_row.present": np.bool_(found), "l_rows": X[:m]}


class SequencesBehindHttp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls)
        assert cls.server.upload("lists", sequence_models.model(sequence_models.RESULTS, 18)).status == 201
        answer = cls.server.deploy("lists", cls.server.compile("lists", {}), version="1")
        assert answer.status == 201, answer.body

    def inputs(self, m, limit):
        return {"x": X, "bounds": BOUNDS, "limit": np.float32(limit), "m": np.int64(m)}

    def test_arrays(self):
        for m, limit in ((3, 9), (1, -9), (2, 9)):
            answer = self.server.infer("lists", self.inputs(m, limit))
            self.assertEqual(answer.status, 200, answer.body)
            actual, wanted = serving.from_npz(answer.body), expected(m, limit)
            self.assertEqual(set(actual), set(wanted))
            for name, value in wanted.items():
                np.testing.assert_array_equal(actual[name], value, name)

    def test_kserve(self):
        names = [output["name"] for output in self.server.request("GET", "/v2/models/lists").json()["outputs"]]
        self.assertEqual(names, list(expected(1, 9)))
        tensors = [{"name": name, "datatype": KINDS[str(value.dtype)], "shape": list(value.shape), "data": value.ravel().tolist()}
                   for name, value in ((name, np.asarray(value)) for name, value in self.inputs(2, -9).items())]
        answer = self.server.send_json("POST", "/v2/models/lists/infer", {"inputs": tensors})
        self.assertEqual(answer.status, 200, answer.body)
        wanted = expected(2, -9)
        outputs = {output["name"]: output for output in answer.json()["outputs"]}
        self.assertEqual(set(outputs), set(wanted))
        for name, value in wanted.items():
            self.assertEqual(outputs[name]["shape"], list(value.shape), name)
            np.testing.assert_array_equal(np.array(outputs[name]["data"]).reshape(value.shape), value, name)


class InputsThatAreNoTensors(unittest.TestCase):
    SHAPES = {"l_x/0": [2], "l_x/1": [3]}
    FEED = {"l_x/0": X[0], "l_x/1": BOUNDS, "place": np.int64(-1)}

    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls)
        answer = cls.server.upload("taken", sequence_models.model(sequence_models.TAKEN, 18))
        assert answer.status == 201, answer.body
        cls.inputs = answer.json()["inputs"]

    def results(self, package, feed):
        answer = self.server.run(package, feed)
        self.assertEqual(answer.status, 200, answer.body)
        return serving.from_npz(answer.body)

    def test_kinds_are_told(self):
        kinds = {each["name"]: each.get("kind") for each in self.inputs}
        self.assertEqual(kinds, {"l_x": "sequence", "o_y": "optional", "place": None, "scale": None})

    def test_elements_and_values(self):
        for held, values in ((False, {"o_y": None}), (True, {})):
            shapes = {**self.SHAPES, **({"o_y/0": [2]} if held else {})}
            package = self.server.compile("taken", shapes, input_values={"scale": 2.5, **values})
            actual = self.results(package, {**self.FEED, **({"o_y/0": X[1]} if held else {})})
            np.testing.assert_array_equal(actual["joined"], np.concatenate([X[0], BOUNDS]))
            np.testing.assert_allclose(actual["at"], BOUNDS * np.float32(2.5), rtol=1e-6)
            self.assertEqual(bool(actual["holds"]), held)

    def test_what_is_wrong_is_named(self):
        for members, pointer in ((({"scale": [1, 2]}, {}), None), (({"what": 1}, {}), "/input_values/what"), (({"l_x": 3}, {}), "/input_values/l_x"),
                                 (({"place": 1.5}, {}), "/input_values/place"), (({}, {"scale/0": [1]}), "/input_shapes/scale~10")):
            values, shapes = members
            answer = self.server.submit("taken", {**self.SHAPES, **shapes}, input_values={"o_y": None, **values})
            if pointer:
                self.assertEqual((answer.status, answer.json()["errors"][0]["pointer"]), (422, pointer), answer.body)
            else:
                job = self.server.finished(answer.json()["id"])
                self.assertIn('input_values give "scale" f32[2]', job["error"]["detail"])
        job = self.server.finished(self.server.submit("taken", {"l_x/1": [3]}, input_values={"o_y": None}).json()["id"])
        self.assertIn('name "l_x/1", and not "l_x/0" before it', job["error"]["detail"])
        job = self.server.finished(self.server.submit("taken", self.SHAPES).json()["id"])
        self.assertIn('"o_y/0"', job["error"]["detail"])


class ModelsOfOlderVersions(unittest.TestCase):
    def test_elements_of_inputs_whose_kinds_nobody_noted(self):
        server = serving.make_server(self)
        self.assertEqual(server.upload("taken", sequence_models.model(sequence_models.TAKEN, 18)).status, 201)
        self.assertEqual(server.stop(), 0)
        catalog = server.folder / "data" / "catalog.db"
        with sqlite3.connect(catalog) as rows:
            facts = json.loads(rows.execute("SELECT facts FROM models").fetchone()[0])
            del facts["version"]
            for each in facts["inputs"]:
                each.pop("kind", None)
            self.assertEqual(rows.execute("UPDATE models SET facts = ?", [json.dumps(facts)]).rowcount, 1)
        rows.close()
        server.start()
        inputs = server.request("GET", "/v1/models/taken").json()["inputs"]
        self.assertEqual({each["name"]: each.get("kind") for each in inputs}, dict.fromkeys(("l_x", "o_y", "place", "scale")))
        package = server.compile("taken", InputsThatAreNoTensors.SHAPES, input_values={"scale": 2.5, "o_y": None})
        answer = server.run(package, InputsThatAreNoTensors.FEED)
        self.assertEqual(answer.status, 200, answer.body)
        np.testing.assert_array_equal(serving.from_npz(answer.body)["joined"], np.concatenate([X[0], BOUNDS]))
        answer = server.submit("taken", {"what/0": [1]})
        self.assertEqual((answer.status, answer.json()["errors"][0]["pointer"]), (422, "/input_shapes/what~10"))


if __name__ == "__main__":
    unittest.main()
