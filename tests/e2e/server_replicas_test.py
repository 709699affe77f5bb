"""Replicas: several servers on one PostgreSQL database and one S3 bucket. Any of them answers any request, and what one had
begun when it was killed another one ends."""

import hashlib
import json
import os
import signal
import tempfile
import unittest

import numpy as np

import mill
import serving
from replicas import PICTURE, ReplicaCase

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}


class Replicas(ReplicaCase):
    def test_any_of_two_answers_any_request(self):
        one, two = self.serve(), self.serve()
        self.assertEqual(one.upload("digits", DIGITS.read_bytes()).status, 201)
        package = two.compile("digits", SHAPES, opt_level=1)
        self.assertEqual(one.submit("digits", SHAPES, opt_level=1).status, 200, "the same work is done once")
        put = one.deploy("digits", package)
        self.assertEqual(put.status, 201, put.body)
        told = put.json()["replicas"]
        self.assertEqual([state["state"] for state in told.values()], ["ready", "ready"], told)
        logits = self.logits(one)
        np.testing.assert_array_equal(self.logits(two), logits)
        self.assertEqual(two.request("GET", "/v1/deployments/digits").json()["replicas"], told)
        # Another version, by way of the other one.
        put = two.deploy("digits", package, version="2")
        self.assertEqual(put.status, 200, put.body)
        for server in (one, two):
            found = server.request("GET", "/v1/deployments/digits").json()
            self.assertEqual((found["default_version"], list(found["versions"])), ("2", ["2"]))
        # A new one has it before it says that it is ready.
        three = self.serve()
        np.testing.assert_array_equal(self.logits(three), logits)
        self.assertEqual(three.request("DELETE", "/v1/deployments/digits").status, 204)
        serving.wait_for(lambda: one.infer("digits", PICTURE).status == 404, "the removal")
        self.upload_in_chunks(one, two)
        self.collects_nothing_that_is_named(one, two, package)

    def upload_in_chunks(self, one, two):
        data = DIGITS.read_bytes() + b"\x12\x041234"
        half = len(data) // 2
        key = {"Idempotency-Key": "k1"}
        upload = one.request("POST", "/v1/uploads", headers=key).json()["id"]
        self.assertEqual(two.request("POST", "/v1/uploads", headers=key).json()["id"], upload)
        for server, begin, end in ((one, 0, half), (two, half, len(data))):
            answer = server.request("PATCH", f"/v1/uploads/{upload}", data[begin:end],
                                    {"Content-Range": f"{begin}-{end - 1}"})
            self.assertEqual(answer.status, 202, answer.body)
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        done = one.request("PUT", f"/v1/uploads/{upload}?digest={digest}")
        self.assertEqual(done.status, 201, done.body)
        model = two.request("POST", f"/v1/models?name=other&upload={upload}")
        self.assertEqual(model.status, 201, model.body)
        self.assertEqual(one.request("DELETE", f"/v1/uploads/{upload}").status, 204)

    def collects_nothing_that_is_named(self, one, two, package):
        for server in (one, two):
            self.assertEqual(server.request("POST", "/v1/gc").status, 200)
        self.assertEqual(one.run(package, PICTURE).status, 200)
        self.assertEqual(two.request("DELETE", f"/v1/packages/{package}").status, 204)
        for name in ("digits", "other"):
            model = one.request("GET", f"/v1/models/{name}").json()["id"]
            self.assertEqual(one.request("DELETE", f"/v1/models/{name}").status, 204)
            self.assertEqual(two.request("DELETE", f"/v1/models/{model}").status, 204)
        self.sql("DELETE FROM jobs")
        self.assertEqual(one.request("POST", "/v1/gc").status, 200)
        self.assertEqual(self.s3.objects(f"{self.prefix}/blobs"), [])
        self.assertEqual(self.sql("SELECT COUNT(*) FROM blobs"), "0")

    def test_what_a_lost_one_ran_another_one_finishes(self):
        one = self.serve()
        one.upload("digits", DIGITS.read_bytes())
        job = one.submit("digits", SHAPES, opt_level=3).json()["id"]
        serving.wait_for(one.children, "the job's child")
        for child in one.children():
            os.kill(child, signal.SIGSTOP)
        self.assertEqual(one.request("GET", f"/v1/jobs/{job}").json()["state"], "running")
        two = self.serve()
        self.assertEqual(self.sql(f"SELECT attempt FROM jobs WHERE id = '{job}'"), "1", "it is not taken up")
        one.stop(signal.SIGKILL)
        self.assertEqual(two.finished(job)["state"], "succeeded")
        self.assertEqual(self.sql(f"SELECT attempt, max_attempts FROM jobs WHERE id = '{job}'"), "2|3",
                         "the attempt of the lost one does not count")
        package = two.request("GET", f"/v1/jobs/{job}").json()["result"]["package"]
        self.assertEqual(two.deploy("digits", package).status, 201)
        self.logits(two)

    def test_what_nobody_signed_is_not_run_whoever_wrote_it_into_the_database(self):
        unsigned = self.options[:-2]
        with tempfile.TemporaryDirectory() as folder:
            refused = mill.run_program("serve", "--listen", "127.0.0.1:0", "--data", folder, *unsigned)
        self.assertEqual((refused.returncode, "packages.signing_key" in refused.stderr), (2, True), refused.stderr)
        careless = serving.make_server(self, *unsigned, "--set", "packages.require_signature=false")
        careless.upload("digits", DIGITS.read_bytes())
        self.assertEqual(careless.deploy("digits", careless.compile("digits", SHAPES, opt_level=0)).status, 201)
        one = self.serve()
        told = one.request("GET", "/v1/deployments/digits").json()
        self.assertEqual({state["state"] for state in told["replicas"].values()}, {"ready", "failed"}, told)
        self.assertIn("is not signed", json.dumps(told))

    def test_loaded_models_serve_while_both_stores_are_away(self):
        one, two = self.serve(), self.serve()
        one.upload("digits", DIGITS.read_bytes())
        self.assertEqual(one.deploy("digits", one.compile("digits", SHAPES, opt_level=1)).status, 201)
        logits = self.logits(one)
        self.database.stop()
        self.s3.kill()
        try:
            for server in (one, two):
                np.testing.assert_array_equal(self.logits(server), logits)
                self.assertEqual(server.request("GET", "/readyz").status, 200)
                self.assertEqual(server.submit("digits", SHAPES, opt_level=2).status, 503)
        finally:
            self.s3.start()
            self.database.start()
        self.assertTrue(two.compile("digits", SHAPES, opt_level=0))


if __name__ == "__main__":
    unittest.main()
