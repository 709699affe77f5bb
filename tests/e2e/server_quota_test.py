"""What one API key may have: live jobs, and bytes of models and uploads; creating requests that are sent again."""

import json
import signal
import tempfile
import unittest
from pathlib import Path

import mill
import serving

DIGITS = (mill.ROOT / "tests/models/digits.onnx").read_bytes()


class Caller:
    """Requests with one key."""

    def __init__(self, server, token):
        self.server = server
        self.head = {"Authorization": f"Bearer {token}"} if token else {}

    def __call__(self, method, path, body=None, **fields):
        head = {name.replace("_", "-"): value for name, value in fields.items()}
        return self.server.request(method, path, body, {**self.head, **head})

    def compile(self, model, shapes, **more):
        body = {"kind": "compile", "model": model, "target": "llvm -mcpu=native", "input_shapes": shapes, **more}
        return self("POST", "/v1/jobs", json.dumps(body), Content_Type="application/json")


class QuotaTest(unittest.TestCase):
    def callers(self, *settings):
        """Alice and Bob, who may do everything, and one server."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        keys, self.audit = Path(folder.name) / "keys", Path(folder.name) / "audit"
        tokens = [mill.run_program("keys", "--keys-file", keys, "add", name, "--scopes", "admin").stdout.strip()
                  for name in ("alice", "bob")]
        options = ["--keys-file", str(keys), "--ops-listen", "127.0.0.1:0"]
        for setting in (f"audit_log={self.audit}", *settings):
            options += ["--set", setting]
        self.server = serving.make_server(self, *options)
        return [Caller(self.server, token) for token in tokens]

    def refused(self, answer, setting):
        self.assertEqual((answer.status, answer.json()["code"]), (429, "quota_exceeded"), answer.body)
        self.assertIn(setting, answer.json()["detail"])
        self.assertIn("alice", answer.json()["detail"])
        self.assertEqual(answer.headers["Retry-After"], "1")

    def test_live_jobs_of_a_key_are_bounded(self):
        alice, bob = self.callers("limits.jobs_per_key=1", "jobs.queue=2")
        slow, shapes = mill.generated("squeezenet11").read_bytes(), {"data": [1, 3, 224, 224]}
        self.assertEqual(alice("POST", "/v1/models?name=slow", slow).status, 201)
        first = alice.compile("slow", shapes)
        self.assertEqual(first.status, 202, first.body)
        self.refused(alice.compile("slow", shapes, opt_level=1), "limit for one caller is 1")
        self.assertEqual(alice.compile("slow", shapes).json()["id"], first.json()["id"], "a duplicate makes no work")
        second = bob.compile("slow", shapes, opt_level=2)
        self.assertEqual(second.status, 202, second.body)
        held = {row["caller"]: row for row in alice("GET", "/v1/storage").json()["callers"]}
        self.assertEqual((held["alice"]["live_jobs"], held["bob"]["live_jobs"]), (1, 1))
        self.assertEqual((held["alice"]["bytes"], held["bob"]["bytes"]), (len(slow), 0))
        for job in (first, first, second):  # the first has two submitters
            bob("POST", f"/v1/jobs/{job.json()['id']}/cancel")
        serving.wait_for(lambda: alice("GET", f"/v1/jobs/{first.json()['id']}").json()["state"] == "cancelled", "the end")
        again = alice("POST", f"/v1/jobs/{first.json()['id']}/retry")
        self.assertEqual(again.status, 202, again.body)
        self.refused(alice.compile("slow", shapes, opt_level=1), "limit for one caller is 1")
        self.assertEqual(alice("POST", f"/v1/jobs/{first.json()['id']}/cancel").status // 100, 2)
        lines = [json.loads(line) for line in self.audit.read_text().splitlines()]
        self.assertEqual([line["caller"] for line in lines if line["status"] == 429], ["alice", "alice"])

    def test_bytes_of_a_key_are_bounded(self):
        bound = len(DIGITS) + 5000
        alice, bob = self.callers(f"limits.bytes_per_key={bound}")
        model = alice("POST", "/v1/models?name=digits", DIGITS)
        self.assertEqual(model.status, 201, model.body)
        self.refused(alice("POST", "/v1/models?name=other", DIGITS + b"\x12\x04name"), "limits.bytes_per_key")
        unannounced = alice("POST", "/v1/models?name=other", iter([DIGITS, b"\x12\x04name"]))
        self.refused(unannounced, "limits.bytes_per_key")
        upload = alice("POST", "/v1/uploads")
        path = upload.headers["Location"]
        self.assertEqual(alice("PATCH", path, b"u" * 4000).status, 202)
        self.refused(alice("PATCH", path, b"u" * 4000), "limits.bytes_per_key")
        self.assertEqual(bob("POST", "/v1/models?name=other", DIGITS + b"\x12\x04name").status, 201)
        self.server.stop(signal.SIGKILL)
        self.server.start()
        self.refused(alice("PATCH", path, b"u" * 4000), "limits.bytes_per_key")
        held = {row["caller"]: row["bytes"] for row in alice("GET", "/v1/storage").json()["callers"]}
        self.assertEqual(held, {"alice": len(DIGITS) + 4000, "bob": len(DIGITS) + 6})
        self.assertEqual(alice("DELETE", path).status, 204)
        self.assertEqual(alice("DELETE", "/v1/models/digits").status, 204)
        self.assertEqual(alice("DELETE", f"/v1/models/{model.json()['id']}").status, 204)
        self.assertEqual(alice("POST", "/v1/models?name=more", DIGITS + b"\x12\x04more").status, 201)


class RepeatsTest(unittest.TestCase):
    def test_a_creating_request_that_is_sent_again_after_a_crash(self):
        server = serving.make_server(self)
        ask = Caller(server, None)
        requests = {
            "model": lambda: ask("POST", "/v1/models?name=digits", DIGITS, Idempotency_Key="model"),
            "upload": lambda: ask("POST", "/v1/uploads", Idempotency_Key="upload"),
            "collection": lambda: ask("POST", "/v1/gc", Idempotency_Key="collection"),
        }
        first = {name: request() for name, request in requests.items()}
        server.stop(signal.SIGKILL)
        server.start()
        for name, request in requests.items():
            again = request()
            self.assertEqual((again.status, again.body), (first[name].status, first[name].body), name)
            self.assertEqual(again.headers["Idempotency-Replayed"], "true", name)
            self.assertEqual(again.headers.get("Location"), first[name].headers.get("Location"), name)
        self.assertEqual([answer.status for answer in first.values()], [201, 201, 200])
        self.assertEqual(ask("GET", "/v1/storage").json()["uploads"]["count"], 1)
        other = ask("POST", "/v1/models?name=digits", DIGITS + b"\x12\x04name", Idempotency_Key="model")
        self.assertEqual((other.status, other.json()["code"]), (422, "invalid_argument"))
        self.assertEqual(ask("DELETE", "/v1/models/digits").status, 204)
        self.assertEqual(requests["model"]().status, 201, "the answer of the request, not of now")
        self.assertEqual(ask("GET", "/v1/models/digits").status, 404)


if __name__ == "__main__":
    unittest.main()
