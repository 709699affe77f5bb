"""Jobs over HTTP: idempotency keys, replayed events, duplicates and their submitters, cancel."""

import unittest

import mill
import serving

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}


class JobsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls)
        cls.server.upload("digits", DIGITS.read_bytes())

    def compile_with(self, key=None, **more):
        body = {"kind": "compile", "model": "digits", "target": "llvm -mcpu=native", "input_shapes": SHAPES, **more}
        return self.server.send_json("POST", "/v1/jobs", body, {"Idempotency-Key": key} if key else {})

    def test_an_idempotency_key_makes_one_job(self):
        first = self.compile_with("k1", force=True)
        self.assertEqual(first.status, 202, first.body)
        job = first.json()["id"]
        self.assertEqual(self.compile_with("k1", force=True).json()["id"], job)
        self.server.finished(job)
        self.assertEqual(self.compile_with("k1", force=True).json()["id"], job, "over its end too")
        self.assertNotEqual(self.compile_with("k2", force=True).json()["id"], job)
        self.assertEqual(self.compile_with("k1", opt_level=1).status, 422, "another body")
        self.assertEqual(self.compile_with("k" * 129).status, 400)

    def test_events_are_replayed_from_where_a_client_left(self):
        job = self.server.finished(self.compile_with(force=True).json()["id"])
        path = f"/v1/jobs/{job['id']}/events"
        events = self.events(path)
        ids = [int(block.split("\n")[0][4:]) for block in events]
        self.assertEqual(ids, list(range(1, len(ids) + 1)))
        self.assertIn("event: end", events[-1])
        self.assertEqual(self.events(path, {"Last-Event-ID": str(ids[1])}), events[2:])
        self.assertEqual(self.events(path, {"Last-Event-ID": str(ids[-1])}), [])
        self.assertEqual(self.server.request("GET", path, headers={"Last-Event-ID": "x"}).status, 400)
        self.assertEqual(self.server.request("GET", "/v1/jobs/nothing/events").status, 404)

    def events(self, path, headers=None):
        """The events of an ended job; the stream ends by itself."""
        text = self.server.request("GET", path, headers=headers).body.decode()
        return [block for block in text.split("\n\n") if block.startswith("id: ")]

    def test_a_duplicate_has_two_submitters_and_the_last_one_stops_it(self):
        # Wide enough to run for a while at the highest level.
        model = mill.generated("squeezenet11").read_bytes()
        self.assertIn(self.server.upload("slow", model).status, (200, 201))
        submit = lambda: self.server.submit("slow", {"data": [1, 3, 224, 224]})
        first = submit()
        self.assertEqual(first.status, 202, first.body)
        job = first.json()["id"]
        self.assertEqual(submit().json()["id"], job)
        serving.wait_for(lambda: self.server.request("GET", f"/v1/jobs/{job}").json()["state"] == "running", "the job")
        self.assertEqual(self.server.request("POST", f"/v1/jobs/{job}/cancel").status, 202, "one still wants it")
        self.assertEqual(self.server.request("GET", f"/v1/jobs/{job}").json()["state"], "running")
        self.assertIn(self.server.request("POST", f"/v1/jobs/{job}/cancel").status, (200, 202))
        ended = self.server.finished(job)
        self.assertEqual((ended["state"], self.server.children()), ("cancelled", []))


if __name__ == "__main__":
    unittest.main()
