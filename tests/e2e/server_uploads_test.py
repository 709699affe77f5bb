"""Resumable uploads, blobs, garbage collection, storage, quota and `tensormill fsck`."""

import hashlib
import json
import os
import signal
import subprocess
import unittest

import mill
import serving

DIGITS = (mill.ROOT / "tests/models/digits.onnx").read_bytes()


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class UploadsTest(unittest.TestCase):
    def setUp(self):
        self.server = serving.make_server(self)

    def begin(self):
        answer = self.server.request("POST", "/v1/uploads")
        self.assertEqual(answer.status, 201, answer.body)
        return answer.headers["Location"]

    def append(self, upload, data, first):
        return self.server.request("PATCH", upload, data, {"Content-Range": f"{first}-{first + len(data) - 1}"})

    def fsck(self):
        command = [str(mill.PROGRAM), "fsck", "--data", str(self.server.folder / "data"), "--json"]
        ended = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=serving.DEADLINE)
        return ended.returncode, json.loads(ended.stdout) if ended.stdout else ended.stderr

    def test_an_upload_goes_on_after_a_kill_and_becomes_a_model(self):
        upload = self.begin()
        half = len(DIGITS) // 2
        self.assertEqual(self.append(upload, DIGITS[:half], 0).status, 202)
        self.server.stop(signal.SIGKILL)
        self.server.start()
        self.assertEqual(self.server.request("GET", upload).headers["Range"], f"0-{half - 1}")
        self.assertEqual(self.append(upload, DIGITS[half:], half + 1).status, 416)
        self.assertEqual(self.append(upload, DIGITS[half:], half).status, 202)
        name = upload.rsplit("/", 1)[1]
        early = self.server.request("POST", f"/v1/models?name=digits&upload={name}")
        self.assertEqual((early.status, early.json()["code"]), (409, "conflict"))
        wrong = self.server.request("PUT", f"{upload}?digest={digest_of(b'x')}")
        self.assertEqual((wrong.status, wrong.json()["code"]), (400, "digest_mismatch"))
        done = self.server.request("PUT", f"{upload}?digest={digest_of(DIGITS)}")
        self.assertEqual(done.status, 201, done.body)
        self.server.stop(signal.SIGKILL)
        self.server.start()
        blob = self.server.request("GET", done.headers["Location"])
        self.assertEqual(blob.body, DIGITS, "a finished upload is kept though nothing names it")
        part = self.server.request("GET", done.headers["Location"], headers={"Range": "bytes=5-14"})
        self.assertEqual((part.status, part.body), (206, DIGITS[5:15]))
        model = self.server.request("POST", f"/v1/models?name=digits&upload={name}")
        self.assertEqual((model.status, model.json()["id"]), (201, digest_of(DIGITS)), model.body)
        self.assertEqual(self.server.request("DELETE", upload).status, 204)
        self.assertEqual(self.server.request("GET", done.headers["Location"]).status, 200, "the model names it now")

    def finish(self, data):
        upload = self.begin()
        self.assertEqual(self.append(upload, data, 0).status, 202)
        done = self.server.request("PUT", f"{upload}?digest={digest_of(data)}")
        self.assertEqual(done.status, 201, done.body)
        return done.headers["Location"]

    def test_finished_uploads_stay_whatever_becomes_of_jobs(self):
        self.assertEqual(self.server.upload("digits", DIGITS).status, 201)
        blob = self.finish(b"acknowledged")
        # An extent that the network does not take: the job fails in its child.
        failing = self.server.submit("digits", {"image": [1, 1, 3, 3]}).json()["id"]
        self.assertEqual(self.server.finished(failing)["state"], "failed")
        self.assertEqual(self.server.request("GET", blob).body, b"acknowledged")
        again = self.finish(b"acknowledged, too")
        for key in ("1", "2"):
            cancelled = self.server.submit("digits", {"image": [1, 1, 28, 28]}).json()["id"]
            self.server.request("POST", f"/v1/jobs/{cancelled}/cancel", headers={"Idempotency-Key": key})
            self.assertIn(self.server.finished(cancelled)["state"], ("cancelled", "succeeded"))
        self.assertEqual(self.server.request("POST", "/v1/gc").status, 200)
        self.assertEqual(self.server.request("GET", blob).body, b"acknowledged")
        self.assertEqual(self.server.request("GET", again).body, b"acknowledged, too")

    def test_garbage_is_told_and_goes(self):
        upload = self.begin()
        self.append(upload, b"stray", 0)
        self.assertEqual(self.server.request("PUT", f"{upload}?digest={digest_of(b'stray')}").status, 201)
        held = self.server.request("POST", "/v1/gc?dry_run=1").json()
        self.assertEqual((held["removed"]["blobs"], held["held"]["referenced"]), (0, 1))
        storage = self.server.request("GET", "/v1/storage").json()
        self.assertEqual((storage["blobs"]["count"], storage["uploads"]["count"]), (1, 1))
        self.assertEqual(self.server.request("DELETE", upload).status, 204)
        self.assertEqual(self.server.request("GET", f"/v1/blobs/{digest_of(b'stray')}").status, 404)
        self.assertEqual(self.server.request("POST", "/v1/gc").json()["removed"]["blobs"], 0)

    def test_fsck_finds_what_is_damaged_and_what_is_missing(self):
        self.assertEqual(self.server.upload("digits", DIGITS).status, 201)
        code, answer = self.fsck()
        self.assertEqual((code, answer["error"]["code"]), (3, "in_use"), "the server has the store")
        self.server.stop()
        code, report = self.fsck()
        self.assertEqual((code, report["problems"], report["unreferenced"]), (0, [], 0))
        stored = [path for path in (self.server.folder / "data/blobs").rglob("*") if path.is_file()]
        with open(stored[0], "r+b") as file:
            file.seek(os.path.getsize(stored[0]) // 2)
            file.write(b"damage")
        code, report = self.fsck()
        self.assertEqual((code, len(report["problems"])), (3, 1))
        stored[0].unlink()
        code, report = self.fsck()
        self.assertEqual(code, 3)
        self.assertIn("missing", report["problems"][0])

    def test_a_quota_is_507_and_room_comes_back(self):
        self.server.stop()
        self.server.options = ("--set", "store.quota=64KiB")
        self.server.start()
        refused = self.server.upload("digits", DIGITS) if len(DIGITS) > 65536 else None
        if refused is not None:
            self.assertEqual((refused.status, refused.json()["code"]), (507, "disk_full"))
        upload = self.begin()
        self.assertEqual(self.append(upload, bytes(70000), 0).status, 507)
        self.assertEqual(self.append(upload, bytes(1000), 0).status, 202)
        self.assertEqual(serving.blobs(self.server), ([], []))


if __name__ == "__main__":
    unittest.main()
