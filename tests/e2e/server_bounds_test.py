"""What the server as a whole may hold and start: bytes in its store, child processes of requests."""

import gzip
import random
import threading
import unittest
from pathlib import Path

import mill
import serving

DIGITS = (mill.ROOT / "tests/models/digits.onnx").read_bytes()
BINARY = {"Content-Type": "application/octet-stream"}
SHAPES = {"image": [1, 1, 28, 28]}


def pieces(data, size=8192):
    """Sent in chunks: http.client announces no length for it."""
    return (data[i:i + size] for i in range(0, len(data), size))


class StoreQuotaTest(unittest.TestCase):
    QUOTA = 400_000

    def setUp(self):
        self.server = serving.make_server(self, "--set", f"store.quota={self.QUOTA}")

    def stored(self):
        data = self.server.folder / "data"
        return sum(path.stat().st_size for part in ("blobs", "uploads", "tmp")
                   for path in Path(data / part).rglob("*") if path.is_file())

    def refused(self, answer):
        self.assertEqual((answer.status, answer.json()["code"]), (507, "disk_full"), answer.body)
        self.assertIn("store.quota", answer.json()["detail"])
        self.assertLessEqual(self.stored(), self.QUOTA)

    def test_bytes_count_as_they_are_stored_however_they_come(self):
        noise = random.Random(1).randbytes(500_000)
        models = "/v1/models?name=m"
        self.refused(self.server.request("POST", models, noise, BINARY))
        self.refused(self.server.request("POST", models, pieces(noise), BINARY))
        self.refused(self.server.request("POST", models, gzip.compress(noise), {**BINARY, "Content-Encoding": "gzip"}))
        zeros = gzip.compress(bytes(3_000_000))
        answer = self.server.request("POST", models, zeros, {**BINARY, "Content-Encoding": "gzip"})
        self.assertEqual(answer.status, 422, "they take little room at rest, and are no model")
        upload = self.server.request("POST", "/v1/uploads").json()["id"]
        self.refused(self.server.request("PATCH", f"/v1/uploads/{upload}", pieces(noise), BINARY))
        self.refused(self.server.request("PATCH", f"/v1/uploads/{upload}", zeros, {**BINARY, "Content-Encoding": "gzip"}))
        for results in (noise, pieces(noise)):
            self.refused(self.server.request("POST", "/v1/workers/results", results, BINARY))
        records = {"Content-Type": "application/x-ndjson"}
        self.refused(self.server.request("POST", "/v1/tuning-records", b"{}\n" * 150_000, records))
        self.assertEqual(self.server.upload("digits", DIGITS).status, 201, "what was refused takes no room")

    def test_a_package_that_announces_no_length_leaves_nothing(self):
        noise = random.Random(2).randbytes(500_000)
        before = serving.blobs(self.server)
        for package in (noise, pieces(noise)):
            self.refused(self.server.request("POST", "/v1/packages", package, {"Content-Type": "application/x-tar"}))
            self.assertEqual((serving.blobs(self.server), self.stored()), (before, 0))
        self.assertEqual(self.server.request("GET", "/v1/packages").json()["items"], [])
        self.assertEqual(self.server.upload("digits", DIGITS).status, 201, "what was refused takes no room")

    def test_what_jobs_make_counts(self):
        self.assertEqual(self.server.upload("digits", DIGITS).status, 201)
        job = self.server.finished(self.server.submit("digits", SHAPES).json()["id"])
        self.assertEqual((job["state"], job["error"]["code"]), ("failed", "disk_full"), job)
        self.assertIn("store.quota", str(job["error"]))
        log = self.server.request("GET", f"/v1/jobs/{job['id']}/log").body
        self.assertIn(b"store.quota", log, "the log is kept all the same")
        serving.wait_for(lambda: self.stored() <= self.QUOTA, "what the job stored goes again")
        self.assertEqual(self.server.request("GET", "/v1/packages").json()["items"], [])


class ChildrenTest(unittest.TestCase):
    def test_children_of_requests_are_counted(self):
        server = serving.make_server(self, "--set", "children.at_once=1", "--set", "children.queue=1")
        self.assertEqual(server.upload("digits", DIGITS).status, 201)
        package = server.compile("digits", SHAPES)
        answers, gate, lock = [], threading.Barrier(12), threading.Lock()

        def ask(number):
            gate.wait()
            if number % 2:
                answer = server.request("POST", f"/v1/packages/{package}/run?fill_mode=ones")
            else:
                answer = server.request("POST", f"/v1/models?name=m{number}", DIGITS + b"\x12\x04" + b"%04d" % number, BINARY)
            with lock:
                answers.append(answer)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        most = 0
        while any(thread.is_alive() for thread in threads):
            most = max(most, len(server.children()))
        self.assertEqual(most, 1)
        statuses = {answer.status for answer in answers}
        self.assertLessEqual(statuses, {200, 201, 503})
        self.assertIn(503, statuses)
        self.assertTrue(statuses & {200, 201})
        refused = next(answer for answer in answers if answer.status == 503)
        self.assertEqual(refused.json()["code"], "unavailable")
        self.assertIn("children.at_once", refused.json()["detail"])
        self.assertEqual(refused.headers["Retry-After"], "1")
        self.assertEqual(server.request("POST", f"/v1/packages/{package}/run?fill_mode=ones").status, 200)

    def test_a_job_and_a_request_run_side_by_side_whatever_their_limits(self):
        server = serving.make_server(self, "--set", "children.memory=1MiB", "--set", "children.queue=0")
        self.assertEqual(server.upload("digits", DIGITS).status, 201)
        package = server.compile("digits", SHAPES)
        self.assertEqual(server.request("POST", f"/v1/packages/{package}/run?fill_mode=ones").status, 200)
        self.assertEqual(server.request("GET", "/v1/models/digits/graph").status, 200)


if __name__ == "__main__":
    unittest.main()
