"""Packages beside their models, evaluated node by node: here, and on a worker that is named."""

import hashlib
import unittest

import numpy as np

import mill
import serving
import workers

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}


def blob(server, data, headers=None):
    """Uploaded; its id."""
    headers = headers or {}
    upload = server.request("POST", "/v1/uploads", None, headers).headers["Location"]
    server.request("PATCH", upload, data, {"Content-Range": f"0-{len(data) - 1}", **headers})
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    done = server.request("PUT", f"{upload}?digest={digest}", None, headers)
    assert done.status == 201, done.body
    return digest


class VerifyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls, "--set", workers.LEASE)
        cls.server.upload("digits", DIGITS.read_bytes())
        cls.package = cls.server.compile("digits", SHAPES, opt_level=3)
        cls.picture = np.random.default_rng(5).random((1, 1, 28, 28), dtype=np.float32)
        cls.inputs = blob(cls.server, serving.npz({"image": cls.picture}))

    def submit(self, **more):
        return self.server.send_json("POST", "/v1/jobs", {"kind": "verify", "package": self.package, "inputs": self.inputs, **more})

    def verified(self, **more):
        answer = self.submit(**more)
        self.assertEqual(answer.status, 202, answer.body)
        return self.server.finished(answer.json()["id"])

    def worker(self, *options):
        return workers.Worker(self, f"http://127.0.0.1:{self.server.port}", *options)

    def items(self, job):
        found = self.server.request("GET", "/v1/jobs?kind=verify&limit=500").json()["items"]
        return [one for one in found if one["resolved"].get("job") == job]

    def test_a_package_is_right_here_and_wrong_beyond_a_tolerance_that_nothing_meets(self):
        done = self.verified()
        self.assertEqual(done["state"], "succeeded", done["error"])
        output, = done["result"]["outputs"]
        self.assertEqual((done["result"]["package"], output["name"], output["elements"]), (self.package, "logits", 10))
        told = serving.from_npz(self.server.run(self.package, {"image": self.picture}).body)["logits"]
        self.assertAlmostEqual(output["largest"], float(np.abs(told).max()), places=3)
        self.assertGreater(output["max_abs_error"], 0, "sums are of another order")
        wrong = self.verified(rtol=0, atol=0)
        self.assertEqual((wrong["state"], wrong["error"]["code"], wrong["error"]["verdict"]), ("failed", "wrong_answer", "wrong_answer"))
        self.assertIn("output logits", wrong["error"]["detail"])

    def test_a_worker_compares_what_the_server_computed(self):
        self.worker("--labels", "board=a", "--verbs", "verify", "--name", "rpi")
        done = self.verified(on="board=a")
        self.assertEqual(done["state"], "succeeded", done["error"])
        here = self.verified()["result"]
        self.assertEqual(done["result"], here, "the same machine")
        item, = self.items(done["id"])
        self.assertEqual((item["state"], item["resolved"]["on"]), ("succeeded", "board=a"))
        wrong = self.verified(on="board=a", rtol=0, atol=0)
        self.assertEqual((wrong["state"], wrong["error"]["verdict"]), ("failed", "wrong_answer"))
        # What the item named goes with it, the inputs stay.
        self.server.request("POST", "/v1/gc")
        there = lambda digest: self.server.request("HEAD", f"/v1/blobs/{digest}").status
        self.assertEqual(there(item["resolved"]["inputs"]), 200)

    def test_nobody_with_the_labels_is_a_time_out(self):
        # The time is that of the whole: on a busy machine the reference alone may take it, and then there is no item.
        for seconds in (1, 4, 16, 64):
            late = self.verified(on="board=none", timeout_s=seconds)
            self.assertEqual(late["state"], "failed")
            if items := self.items(late["id"]):
                break
            self.assertEqual(late["error"]["verdict"], "timed_out")
        self.assertEqual((late["error"]["code"], late["error"]["verdict"]), ("deadline_exceeded", "timed_out_in_queue"))
        self.assertIn("waited", late["error"]["detail"])
        self.assertEqual([one["state"] for one in items], ["cancelled"])

    def test_a_cancel_takes_the_item_with_it(self):
        job = self.submit(on="board=none").json()["id"]
        serving.wait_for(lambda: self.items(job), "the item")
        self.assertEqual(self.server.request("POST", f"/v1/jobs/{job}/cancel").status, 202)
        self.assertEqual(self.server.finished(job)["state"], "cancelled")
        serving.wait_for(lambda: [one["state"] for one in self.items(job)] == ["cancelled"], "the end of the item")

    def test_what_is_asked_for_is_there_and_fits(self):
        for body, pointer in (({"package": "sha256:" + 64 * "0"}, "/package"), ({"inputs": "sha256:" + 64 * "0"}, "/inputs"),
                              ({"rtol": -1}, "/rtol"), ({"on": "board"}, "/on"), ({"repeat": 3}, "/repeat")):
            answer = self.submit(**body)
            self.assertEqual((answer.status, answer.json()["errors"][0]["pointer"]), (422, pointer), answer.body)
        for data, code in ((serving.npz({"image": self.picture[..., :27]}), "invalid_tensor"),
                           (serving.npz({"picture": self.picture}), "invalid_argument"), (b"no archive", "invalid_npz")):
            done = self.verified(inputs=blob(self.server, data))
            self.assertEqual((done["state"], done["error"]["verdict"]), ("failed", "refused"), done)

    def test_the_model_must_be_here(self):
        server = serving.make_server(self)
        model = server.upload("digits", DIGITS.read_bytes()).json()["id"]
        package = server.compile("digits", SHAPES, opt_level=0)
        inputs = blob(server, serving.npz({"image": self.picture}))
        self.assertEqual(server.request("DELETE", "/v1/models/digits").status, 204)
        self.assertEqual(server.request("DELETE", f"/v1/models/{model}").status, 204)
        answer = server.send_json("POST", "/v1/jobs", {"kind": "verify", "package": package, "inputs": inputs})
        self.assertEqual((answer.status, answer.json()["errors"][0]["pointer"]), (422, "/package"), answer.body)


class HostileVerifyTest(unittest.TestCase):
    def test_ends_that_compare_nothing_are_refused(self):
        server = serving.make_server(self, "--set", "jobs.lease=10m")
        server.upload("digits", DIGITS.read_bytes())
        package = server.compile("digits", SHAPES, opt_level=0)
        inputs = blob(server, serving.npz({"image": np.zeros((1, 1, 28, 28), np.float32)}))
        job = server.send_json("POST", "/v1/jobs", {"kind": "verify", "package": package, "inputs": inputs, "on": "board=b"}).json()["id"]
        puppet = workers.Puppet(server, compiler="another")
        lease = None
        while lease is None:
            lease = puppet.lease(verbs=["verify"], labels=["board=b"], wait_s=30).json()["lease"]
        self.assertEqual((lease["verb"], lease["resolved"]["job"]), ("verify", job))
        read = lambda name: puppet.send("GET", f"/v1/workers/leases/{lease['id']}/blobs/{lease['inputs'][name]['digest']}").body
        self.assertIn("logits", serving.from_npz(read("expected")))
        self.assertEqual(list(serving.from_npz(read("inputs"))), ["image"])
        good = {"name": "logits", "elements": 10, "max_abs_error": 0.5, "largest": 1}
        for outputs in (None, [], "x", [3], [{}], [{**good, "elements": -1}], [{**good, "max_abs_error": "0"}], [{**good, "largest": -1}],
                        [{**good, "name": "n" * 5000}]):
            self.assertEqual(puppet.finish(lease["id"], "succeeded", result={"outputs": outputs}).status, 400, outputs)
        answer = puppet.finish(lease["id"], "succeeded", result={"outputs": [{**good, "more": 1}], "package": "another"})
        self.assertIn(answer.status, (200, 204), answer.body)
        done = server.finished(job)
        self.assertEqual(done["result"], {"package": package, "outputs": [good]})


if __name__ == "__main__":
    unittest.main()
