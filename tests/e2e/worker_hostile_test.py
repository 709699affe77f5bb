"""What a worker and its server do not trust each other with: workers that bring what they should not or ask for what is not
theirs, servers that hand out what no worker does."""

import hashlib
import http.server
import json
import signal
import socket
import subprocess
import threading
import unittest

import mill
import serving
import workers

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}
ID = "01890a5d-ac96-774b-bcce-b302099a8057"


def sign(archive, key, folder):
    """The archive as a store exports it with this key: the block that is behind it (server/services/store/package_signature.h)."""
    statement = folder / "statement"
    statement.write_text("tensormill package archive sha256:" + hashlib.sha256(archive).hexdigest())
    done = subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", statement], check=True,
                          capture_output=True)
    public = subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-outform", "DER"], check=True, capture_output=True)
    block = f"tensormill-signature-1\ned25519 {public.stdout[-32:].hex()}\n{done.stdout.hex()}\n".encode()
    return archive + block.ljust(512, b"\0")


class WithKeys(unittest.TestCase):
    """A server that compiles nothing itself, keys for its workers, and a model."""
    LEASE = "jobs.lease=10m"

    @classmethod
    def setUpClass(cls):
        cls.folder = workers.folder_of(cls)
        cls.key, cls.other = cls.folder / "good.pem", cls.folder / "other.pem"
        workers.make_key(cls.key)
        workers.make_key(cls.other)
        keys = cls.folder / "keys"

        def add(name, scopes):
            done = mill.run_program("keys", "--keys-file", keys, "add", name, "--scopes", scopes)
            assert done.returncode == 0, done.stderr
            return done.stdout.strip()
        cls.boss = add("boss", "admin")
        cls.compile_key = add("maker", "worker:compile,label:board=a,label:room=lab")
        cls.second_key = add("second", "worker:compile")
        cls.measure_key = add("meter", "worker:measure,label:board=b")
        cls.reader = add("reader", "read,write")
        cls.server = serving.make_server(cls, "--keys-file", str(keys), "--set", "jobs.workers=0", "--set", cls.LEASE,
                                         "--set", f"packages.trusted_keys={cls.key}.pub")
        cls.compiler = cls.ask("GET", "/v1/info").json()["compiler"]["id"]
        assert cls.ask("POST", "/v1/models?name=digits", DIGITS.read_bytes(), "application/octet-stream").status == 201

    @classmethod
    def ask(cls, method, path, body=None, kind="application/json", key=None):
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body)
        headers = {"Authorization": f"Bearer {key or cls.boss}"}
        if body is not None:
            headers["Content-Type"] = kind
        return cls.server.request(method, path, body, headers)

    def puppet(self, key=None, name="puppet"):
        return workers.Puppet(self.server, name, key or self.compile_key, self.compiler)

    def leased(self, **more):
        """A fresh job, and a lease of it."""
        body = {"kind": "compile", "model": "digits", "target": "llvm -mcpu=native", "opt_level": 0, "input_shapes": SHAPES,
                "force": True, "tuning_records": None, **more}
        answer = self.ask("POST", "/v1/jobs", body)
        self.assertEqual(answer.status, 202, answer.body)
        job = answer.json()["id"]
        puppet = self.puppet()
        lease = puppet.lease().json()["lease"]
        self.assertEqual(lease["id"].split(".")[0], job)
        self.addCleanup(self.ask, "POST", f"/v1/jobs/{job}/cancel")
        return puppet, lease, job

    def refused(self, answer, status, code, word=""):
        self.assertEqual((answer.status, answer.json()["code"]), (status, code), answer.body)
        self.assertIn(word, answer.body.decode())

    def state(self, job):
        return self.ask("GET", f"/v1/jobs/{job}").json()["state"]


class HostileWorkerTest(WithKeys):
    def test_packages_that_nobody_trusted_signed_or_that_are_of_something_else(self):
        # What an honest compile gives, to be spoilt: this machine's own program makes it.
        package = self.folder / "digits.tar"
        mill.check_program(self, "compile", DIGITS, "-O", "0", "--input-shapes", "image:[1,1,28,28]", "-o", package)
        puppet, lease, job = self.leased()
        archive = package.read_bytes()
        for what, brought, status, code in [
                ("no signature", archive, 403, "foreign_code"),
                ("another's signature", sign(archive, self.other, self.folder), 403, "foreign_code"),
                ("changed after it was signed", archive[:1000] + b"!" + sign(archive, self.key, self.folder)[1001:], 403,
                 "foreign_code"),
                ("no package", b"", 400, "invalid_request"),
                ("not an archive", sign(b"x" * 5000, self.key, self.folder), 422, "invalid_package"),
                ("half of it", sign(archive[:len(archive) // 2 // 512 * 512], self.key, self.folder), 422, "invalid_package")]:
            with self.subTest(what):
                self.refused(puppet.finish(lease["id"], "succeeded", archive=brought), status, code)
        other = self.folder / "other.tar"
        mill.check_program(self, "compile", DIGITS, "-O", "0", "--target", "llvm -mcpu=x86-64-v3", "--input-shapes",
                           "image:[1,1,28,28]", "-o", other)
        self.refused(puppet.finish(lease["id"], "succeeded", archive=sign(other.read_bytes(), self.key, self.folder)), 422,
                     "invalid_package", "the lease is about")
        self.assertEqual(self.state(job), "running", "what is refused changes nothing")
        self.assertEqual(self.ask("GET", "/v1/packages").json()["items"], [])
        self.assertEqual(puppet.finish(lease["id"], "succeeded", log=b"all well\n", archive=sign(archive, self.key, self.folder),
                                       result={"times_ms": {"all": 1, "evil": "x"}, "package": "sha256:0"}).status, 204)
        done = self.ask("GET", f"/v1/jobs/{job}").json()
        self.assertEqual((done["state"], done["result"]["times_ms"]), ("succeeded", {"all": 1}))
        self.assertEqual(self.ask("GET", f"/v1/jobs/{job}/log").body, b"all well\n")
        self.refused(puppet.finish(lease["id"], "succeeded"), 409, "conflict")

    def test_blobs_leases_and_words_that_are_not_its_own(self):
        puppet, lease, job = self.leased()
        own = lease["inputs"]["model"]["digest"]
        blob = puppet.send("GET", f"/v1/workers/leases/{lease['id']}/blobs/{own}")
        self.assertEqual((blob.status, len(blob.body)), (200, DIGITS.stat().st_size))
        for digest in ("sha256:" + "0" * 64, "x", "..%2f..%2fcatalog.db"):
            self.refused(puppet.send("GET", f"/v1/workers/leases/{lease['id']}/blobs/{digest}"), 404, "not_found")
        for path in ("/v1/blobs/" + own, "/v1/jobs", "/v1/models", "/v1/packages", "/v1/workers"):
            self.refused(puppet.send("GET", path), 403, "forbidden")
        # Another key, and a key that is no worker's.
        for key, other in ((self.second_key, "second"), (self.measure_key, "meter")):
            thief = self.puppet(key, other)
            self.refused(thief.send("GET", f"/v1/workers/leases/{lease['id']}/blobs/{own}"), 403, "forbidden")
            self.refused(thief.finish(lease["id"], "failed", error={"code": "internal_error", "message": "x"}), 403, "forbidden")
            self.refused(thief.beat(lease["id"]), 403, "forbidden")
        self.refused(self.puppet(self.reader).lease(), 403, "forbidden", "worker")
        for name in ("x", ID + ".1", lease["id"] + "0", lease["id"].split(".")[0], lease["id"].split(".")[0] + ".x"):
            self.assertIn(puppet.finish(name, "failed", error={"code": "x", "message": "x"}).status, (404, 409), name)
        for body in ({"events": [{"type": "end", "data": {}}]}, {"events": [{"type": "x", "data": 3}]}, {"progress": [1]},
                     {"log_offset": -1}, {"more": 1}, {"events": [{"type": "x", "data": {}}] * 1001}):
            self.refused(puppet.beat(lease["id"], **body), 422, "invalid_argument")
        self.assertEqual(puppet.beat(lease["id"], progress={"stage": "import", "done": 0, "total": 1}, log="one\n").json(),
                         {"held": True, "cancel": False, "log_bytes": 4})
        self.assertEqual(puppet.beat(lease["id"], log="gap", log_offset=9).json()["log_bytes"], 4, "what is missing comes first")
        for line in (b"", b"\n", b"[]\n", b"{\n", b'{"state":1}\n', b'{"state":"won"}\n', b'{"state":"failed"}\n',
                     b'{"state":"failed","error":3}\n', b'{"state":"failed","log_bytes":-1}\n',
                     b'{"state":"crashed","log_bytes":9000000}\n', b'{"state":"crashed","log_bytes":5}\nabc'):
            answer = puppet.send("POST", f"/v1/workers/leases/{lease['id']}/finish", line, "application/octet-stream")
            self.assertEqual(answer.status, 400, (line, answer.body))
        self.assertEqual(self.state(job), "running")
        self.assertEqual(self.ask("GET", f"/v1/jobs/{job}").json()["progress"]["stage"], "import")


class GoneWorkerTest(WithKeys):
    """A lease would last ten minutes: whatever a worker that has gone was given, the next one has long before."""

    def job(self, level):
        answer = self.ask("POST", "/v1/jobs", {"kind": "compile", "model": "digits", "target": "llvm -mcpu=native",
                                               "opt_level": level, "input_shapes": SHAPES, "force": True, "tuning_records": None})
        self.assertEqual(answer.status, 202, answer.body)
        self.addCleanup(self.ask, "POST", f"/v1/jobs/{answer.json()['id']}/cancel")
        return answer.json()["id"]

    def seen(self, name):
        """Waits until the server has heard of the worker, whose request waits then, or is about to."""
        serving.wait_for(lambda: self.ask("GET", f"/v1/workers/{name}").status == 200, f"the worker {name}")

    def next_has(self, job):
        puppet = self.puppet(name="next")
        found = serving.wait_for(lambda: puppet.lease().json()["lease"], "the lease of who comes next")
        self.assertEqual(found["id"].split(".")[0], job)
        self.assertEqual(puppet.finish(found["id"], "gave_back", backoff_ms=0).status, 204)

    def test_who_went_while_the_request_waited_has_nothing(self):
        for name, how in (("half", lambda s: s.shutdown(socket.SHUT_WR)), ("all", lambda s: s.close()),
                          ("reset", lambda s: (s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"), s.close()))):
            with self.subTest(name):
                body = json.dumps({"protocol": 1, "name": name, "verbs": ["compile"], "compiler": self.compiler, "wait_s": 30})
                with socket.create_connection(("127.0.0.1", self.server.port)) as client:
                    client.sendall((f"POST /v1/workers/lease HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.compile_key}"
                                    f"\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
                    self.seen(name)
                    how(client)
                    job = self.job(0)
                    self.next_has(job)
                self.ask("POST", f"/v1/jobs/{job}/cancel")

    def test_who_leaves_is_answered_and_what_it_had_is_queued_again(self):
        waiting = self.puppet(name="leaver")
        answers = []
        thread = threading.Thread(target=lambda: answers.append(waiting.lease(wait_s=30)))
        thread.start()
        self.seen("leaver")
        # Until its request waits there is nothing to be answered.
        while thread.is_alive():
            self.assertEqual(waiting.send("POST", "/v1/workers/leave", {"name": "leaver"}).status, 204)
            thread.join(0.01)
        self.assertEqual(answers[0].json()["lease"], None)
        puppet, lease, job = self.leased()
        self.assertEqual(puppet.send("POST", "/v1/workers/leave", {"name": "puppet"}).status, 204)
        self.assertEqual(self.state(job), "running", "it has not ended")
        stranger = self.puppet(self.second_key, "puppet")
        self.assertEqual(stranger.send("POST", "/v1/workers/leave", {"name": "puppet", "ended": True}).status, 204)
        self.assertEqual(self.state(job), "running", "another key's worker has ended")
        self.assertEqual(puppet.send("POST", "/v1/workers/leave", {"name": "puppet", "ended": True}).status, 204)
        self.refused(puppet.finish(lease["id"], "failed", error={"code": "x", "message": "x"}), 409, "conflict")
        self.next_has(job)
        for body in ({}, {"name": 3}, {"name": "x", "ended": 1}, {"name": "x", "more": 1}):
            self.refused(puppet.send("POST", "/v1/workers/leave", body), 422, "invalid_argument")

    def test_a_worker_that_ends_leaves_no_request_behind(self):
        key_file = self.folder / "key-of-maker"
        key_file.write_text(self.compile_key + "\n")
        for how in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how):
                name = f"w{int(how)}"
                worker = workers.Worker(self, f"http://127.0.0.1:{self.server.port}", "--name", name, "--key-file", key_file,
                                        "--signing-key", self.key, "--labels", "room=lab")
                self.seen(name)
                self.assertEqual(worker.end(how), 0 if how == signal.SIGTERM else -signal.SIGKILL, worker.log())
                job = self.job(1)
                self.next_has(job)
                self.ask("POST", f"/v1/jobs/{job}/cancel")


class LeaseTest(WithKeys):
    LEASE = workers.LEASE

    def test_labels_verbs_and_versions_that_its_key_or_the_server_does_not_have(self):
        maker, meter = self.puppet(), self.puppet(self.measure_key, "meter")
        self.refused(maker.lease(labels=["board=b"]), 403, "forbidden", "board=b")
        self.refused(meter.lease(), 403, "forbidden", "verbs")
        self.refused(maker.lease(verbs=["shell"]), 422, "not_supported")
        self.refused(maker.lease(protocol=2, later={}), 422, "not_supported", "protocol 2, this server speaks protocol 1")
        self.refused(maker.lease(protocol=3, oldest_protocol=2, later={}), 422, "not_supported",
                     "protocols 2 to 3, this server speaks protocol 1")
        self.refused(maker.lease(protocol=1, oldest_protocol=2), 422, "invalid_argument")
        # A later worker that speaks this one, too, is answered in it; what else it says is of the later one.
        later = maker.lease(protocol=2, oldest_protocol=1, later={}, wait_s=0)
        self.assertEqual((later.status, later.json()), (200, {"protocol": 1, "lease": None}), later.body)
        self.refused(maker.lease(compiler="older"), 422, "not_supported", "older")
        self.refused(maker.lease(name="../x"), 422, "invalid_argument")
        self.assertEqual(maker.lease(wait_s=0).json()["lease"], None)
        self.refused(self.puppet(self.second_key).lease(wait_s=0), 409, "name_taken", "another key")
        # A claim narrows: the lab's own job is not for one that says it is a board elsewhere.
        job = self.ask("POST", "/v1/jobs", {"kind": "compile", "model": "digits", "target": "llvm -mcpu=native", "opt_level": 2,
                                            "input_shapes": SHAPES, "on": "room=lab", "force": True}).json()["id"]
        self.assertEqual(maker.lease(labels=["board=a"], wait_s=0).json()["lease"], None)
        lease = maker.lease(wait_s=0).json()["lease"]
        self.assertEqual(lease["id"], f"{job}.1")
        # Its lease runs out: then it is another attempt's.
        serving.wait_for(lambda: self.puppet(self.second_key, "second").lease(wait_s=0) and self.state(job) == "queued",
                         "the lease runs out")
        self.assertEqual(maker.beat(lease["id"]).json()["held"], False)
        self.refused(maker.finish(lease["id"], "failed", error={"code": "x", "message": "x"}), 409, "conflict")
        self.assertEqual(maker.lease().json()["lease"]["id"], f"{job}.2")
        self.assertEqual(maker.finish(f"{job}.2", "gave_back").status, 204)
        self.assertEqual(maker.lease().json()["lease"]["id"], f"{job}.3")
        self.assertEqual(self.ask("DELETE", "/v1/workers/puppet").status, 204)
        self.assertEqual(self.state(job), "queued", "the lease of a revoked worker is over")
        self.refused(maker.lease(), 403, "forbidden", "revoked")
        self.assertEqual(self.ask("POST", "/v1/workers/puppet/resume").status, 200)
        self.assertEqual(self.ask("POST", f"/v1/jobs/{job}/cancel").status, 200)


class Hostile(http.server.BaseHTTPRequestHandler):
    """A server that answers as the test's list says; the last answer stays."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind="application/json", **headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.server.seen.append(("GET", self.path, b""))
        self.server.blob(self)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append(("POST", self.path, body))
        if self.path.endswith("/lease"):
            answers = self.server.leases
            (answers.pop(0) if len(answers) > 1 else answers[0])(self)
        elif self.path.endswith("/heartbeat"):
            self.answer(200, [1, 2])
        elif self.path.endswith("/finish"):
            self.answer(204, b"")
        else:
            self.answer(200, {"resolved": {"kind": "compile", "model": "another"}, "tuned": 3})


def lease(**more):
    value = {"id": f"{ID}.1", "verb": "compile", "inputs": {"model": {"digest": "sha256:" + "1" * 64}}, "lease_ms": 2000,
             "tuned": {"schedules": {}, "algorithms": {}},
             "resolved": {"kind": "compile", "model": "sha256:" + "2" * 64, "model_format": "onnx", "target": "llvm",
                          "opt_level": 0, "input_shapes": {}, "outputs": [], "disabled_pass": [], "verify": "sample",
                          "host_runs_target": True, "compiler": "c", "tuning_records": []}, **more}
    return lambda handler: handler.answer(200, {"protocol": 1, "lease": value})


class HostileServerTest(unittest.TestCase):
    def serve(self, leases, blob):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
        server.daemon_threads = True
        server.leases, server.blob, server.seen = leases, blob, []
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        key = workers.folder_of(self) / "key.pem"
        workers.make_key(key)
        token = key.parent / "token"
        token.write_text("tm_secret\n")
        worker = workers.Worker(self, f"http://127.0.0.1:{server.server_port}", "--signing-key", key, "--key-file", token)
        return server, worker

    def ends(self, server, count=1):
        def told():
            found = [json.loads(body.split(b"\n")[0]) for _, path, body in server.seen if path.endswith("/finish")]
            return found if len(found) >= count else None
        return serving.wait_for(told, "the end of a lease")

    def test_leases_that_no_worker_takes(self):
        outside = workers.folder_of(self) / "outside"
        idle = lambda handler: handler.answer(200, {"protocol": 1, "lease": None})
        bad = [lambda h: h.answer(200, b"{"), lambda h: h.answer(200, [1]), lambda h: h.answer(200, {"protocol": 1, "lease": 3}),
               lambda h: h.answer(200, b"<html>", "text/html"), lambda h: h.answer(500, b"<html>", "text/html"),
               lambda h: h.answer(302, b"", Location="http://127.0.0.1:1/"), lambda h: h.answer(200, b"[" * 100000),
               lease(id=f"../../{outside}.1"), lease(id=ID), lease(id=f"{ID}.-1"), lease(id=f"{ID}.99999999999"),
               lambda h: h.answer(200, {"protocol": 2, "lease": None}), lease(verb="shell"), lease(verb=["compile"]), lease(inputs=[1]), lease(inputs={"model": {"digest": "x"}}),
               lease(resolved="x"), idle]
        count = len(bad)
        server, worker = self.serve(bad, lambda handler: handler.answer(404, {}))
        serving.wait_for(lambda: sum(path.endswith("/lease") for _, path, _ in server.seen) >= count, "all were asked for")
        self.assertIsNone(worker.process.poll(), worker.log())
        self.assertFalse([one for one in server.seen if not one[1].endswith("/lease")], "it did nothing of it")
        self.assertEqual(worker.end(signal.SIGTERM), 0)
        self.assertFalse(outside.exists())
        self.assertNotIn("tm_secret", worker.log())

    def test_work_that_cannot_be_done(self):
        bodies = iter([lambda h: h.answer(200, b"other bytes", "application/octet-stream"),
                       lambda h: h.answer(403, {"code": "forbidden", "detail": "no"}),
                       lambda h: h.answer(200, b"x" * 2_000_000, "application/octet-stream")])
        junk = b"no model at all"
        right = {"model": {"digest": "sha256:" + hashlib.sha256(junk).hexdigest()}}
        server, worker = self.serve(
            [lease(), lease(id=f"{ID}.2"), lease(id=f"{ID}.3"), lease(id=f"{ID}.4", inputs=right),
             lease(id=f"{ID}.5", inputs=right, tuned=None), lease(id=f"{ID}.6", inputs={}), lease(id=f"{ID}.7", resolved={}),
             lambda handler: handler.answer(200, {"protocol": 1, "lease": None})],
            lambda handler: next(bodies, lambda h: h.answer(200, junk, "application/octet-stream"))(handler))
        ends = self.ends(server, 7)
        self.assertEqual({end["state"] for end in ends}, {"failed"}, ends)
        codes = [end["error"]["code"] for end in ends]
        self.assertEqual(codes[0], "digest_mismatch")
        self.assertIn("invalid_model", codes)
        self.assertIsNone(worker.process.poll(), worker.log())
        # What was made for the last one goes when its end is told.
        serving.wait_for(lambda: not any(path.is_file() for path in (worker.folder / "data/made/blobs").rglob("*")), "nothing of it stays")
        self.assertEqual(worker.end(signal.SIGTERM), 0)


if __name__ == "__main__":
    unittest.main()
