"""Where deployments are loaded: on demand in a server alone; by labels among replicas, of which any passes on what another one has."""

import socket
import unittest

import public_examples  # before numpy: it brings those of the tests' virtual environment
import numpy as np

import mill
import serving
from replicas import PICTURE, ReplicaCase

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class OnDemandTest(unittest.TestCase):
    def test_what_is_idle_goes_and_comes_back(self):
        server = serving.make_server(self)
        server.upload("digits", DIGITS.read_bytes())
        package = server.compile("digits", SHAPES, opt_level=0)
        put = server.deploy("digits", package, placement={"mode": "demand", "idle_s": 1})
        self.assertEqual(put.status, 201, put.body)

        def state():
            return server.request("GET", "/v1/deployments/digits").json()["versions"]["1"]["state"]
        serving.wait_for(lambda: state() == "unloaded", "the unload of what is idle")
        self.assertEqual(server.request("GET", "/v2/models/digits").json()["inputs"][0]["name"], "image")
        answer = server.infer("digits", PICTURE)
        self.assertEqual(answer.status, 200, answer.body)
        told = server.request("GET", "/v1/deployments/digits/versions/1").json()
        self.assertEqual(told["placement"], {"mode": "demand", "idle_s": 1})
        refused = server.deploy("other", package, placement={"mode": "labels", "labels": ["zone=a"]})
        self.assertEqual((refused.status, refused.json()["errors"][0]["pointer"]), (422, "/placement/labels"))

    def test_trials_and_the_way_back(self):
        server = serving.make_server(self)
        server.upload("digits", DIGITS.read_bytes())
        package = server.compile("digits", SHAPES, opt_level=0)
        self.assertEqual(server.deploy("digits", package).status, 201)
        put = server.deploy("digits", package, version="2", keep_versions=2, weights={"1": 3, "2": 1})
        self.assertEqual((put.status, put.json()["weights"], put.json()["default_version"]), (200, {"1": 3, "2": 1}, "1"))

        def answering(requests):
            return sorted(server.infer("digits", PICTURE).headers["X-Deployment-Version"] for _ in range(requests))
        self.assertEqual(answering(8), ["1"] * 6 + ["2"] * 2)
        changed = server.send_json("PUT", "/v1/deployments/digits/weights", {"weights": {"1": 1, "2": 1}})
        self.assertEqual(changed.status, 200, changed.body)
        self.assertEqual(answering(4), ["1", "1", "2", "2"])
        back = server.request("POST", "/v1/deployments/digits/rollback")
        self.assertEqual((back.status, back.json()["default_version"]), (200, "1"))
        self.assertEqual(answering(3), ["1"] * 3)
        self.assertEqual(server.request("POST", "/v1/deployments/digits/rollback").status, 409)


class PassedOnTest(ReplicaCase):
    def place(self, *labels):
        port = free_port()
        return serving.make_server(self, *self.options, "--set", f"replica.address=http://127.0.0.1:{port}",
                                   "--set", "replica.labels=" + ",".join(labels), port=port)

    def test_any_replica_answers_what_another_one_has(self):
        one, two = self.place("zone=a"), self.place("zone=b")
        one.upload("digits", DIGITS.read_bytes())
        package = one.compile("digits", SHAPES, opt_level=0)
        put = one.deploy("digits", package, placement={"mode": "labels", "labels": ["zone=b"]})
        self.assertEqual(put.status, 201, put.body)
        self.assertEqual(sorted(state["state"] for state in put.json()["replicas"].values()), ["ready", "unloaded"])
        here, there = two.infer("digits", PICTURE), one.infer("digits", PICTURE)
        self.assertEqual((here.status, there.status), (200, 200), there.body)
        np.testing.assert_array_equal(serving.from_npz(here.body)["logits"], serving.from_npz(there.body)["logits"])
        self.assertEqual(there.headers["X-Deployment-Version"], "1")
        # By KServe's interface, too; errors are those of who answers.
        self.assertEqual(one.request("GET", "/v2/models/digits").json()["inputs"][0]["name"], "image")
        body = {"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 1, 28, 28], "data": [0] * 784}]}
        self.assertEqual(one.send_json("POST", "/v2/models/digits/infer", body).status, 200)
        self.assertEqual(one.infer("digits", {"picture": PICTURE["image"]}).status, 422)
        # Once, and no further.
        passed = one.request("POST", "/v1/deployments/digits/infer", serving.npz(PICTURE),
                             {"Content-Type": "application/x-npz", "X-Tensormill-Passed-On": "1"})
        self.assertEqual(passed.status, 503)
        two.stop()
        serving.wait_for(lambda: one.infer("digits", PICTURE).status == 503, "that nobody has it")

    def test_a_sequence_goes_on_whichever_replica_is_asked(self):
        one, two = self.place(), self.place()
        name = "simple_string_dyna_sequence"
        public_examples.serve(one, (name,))

        def send(server, value, **parameters):
            body = {"inputs": [{"name": "INPUT", "datatype": "INT32", "shape": [1, 1], "data": [value]}],
                    "parameters": {"sequence_id": "7", **parameters}}
            answer = server.send_json("POST", f"/v2/models/{name}/infer", body)
            self.assertEqual(answer.status, 200, answer.body)
            return answer.json()["outputs"][0]["data"][0]
        got = [send(one, 1, sequence_start=True)] + [send(server, value) for server, value in ((two, 2), (two, 3), (one, 4))]
        self.assertEqual(got, [1, 3, 6, 10])
        self.assertEqual(send(two, 5, sequence_end=True), 22, "its number is added to the last")


if __name__ == "__main__":
    unittest.main()
