"""Which version of a deployment answers: by weights, and back to the one before."""

import unittest

import mill
import serving
from replicas import PICTURE

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}


class TrafficTest(unittest.TestCase):
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


if __name__ == "__main__":
    unittest.main()
