"""`tensormill worker`: jobs of a server are done elsewhere, and whatever becomes of the worker, of its child or of the server,
the job ends as it should."""

import contextlib
import hashlib
import json
import os
import signal
import sqlite3
import ssl
import subprocess
import unittest
import urllib.request
from pathlib import Path

import numpy as np

import mill
import serving
import workers
from server_kill_test import layered_model

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}
# A compile of so many layers takes seconds: a test that looks every few milliseconds meets its child.
LAYERS = 280
IMAGE = {"image": np.zeros((1, 1, 28, 28), np.float32)}


class WorkerTest(unittest.TestCase):
    def setUp(self):
        self.keys = workers.folder_of(self)
        self.key = self.keys / "worker.pem"
        workers.make_key(self.key)
        # Nothing compiles here but workers.
        self.server = serving.make_server(self, "--set", "jobs.workers=0", "--set", workers.LEASE, "--set",
                                          f"packages.trusted_keys={self.key}.pub")

    def url(self):
        return f"http://127.0.0.1:{self.server.port}"

    def worker(self, *options, **more):
        return workers.Worker(self, self.url(), "--signing-key", self.key, *options, **more)

    def job(self, job):
        return self.server.request("GET", f"/v1/jobs/{job}").json()

    def events(self, job):
        return self.server.request("GET", f"/v1/jobs/{job}/events").body.decode()

    def submit(self, model="digits", **more):
        answer = self.server.submit(model, **more)
        self.assertEqual(answer.status, 202, answer.body)
        return answer.json()["id"]

    def held(self, worker, job):
        """Stops the child that works at the job: it lasts until the test lets it go on. Returns the child."""
        def begun():
            self.assertIn(self.job(job)["state"], ("queued", "running"), worker.log())
            return children_of(worker.process.pid, "child-compile")
        child = serving.wait_for(begun, f"a child works at {job}")[0]
        os.kill(child, signal.SIGSTOP)
        self.assertEqual(self.job(job)["state"], "running")
        return child

    def test_a_worker_compiles_what_is_then_served(self):
        self.assertEqual(self.server.upload("digits", DIGITS.read_bytes()).status, 201)
        worker = self.worker("--name", "w1", "--labels", "room=lab")
        job = self.submit(shapes=SHAPES, opt_level=1)
        done = self.server.finished(job)
        self.assertEqual(done["state"], "succeeded", (done, worker.log()))
        self.assertEqual(done["attempt"], 1)
        package = done["result"]["package"]
        self.assertIn("codegen", "".join(done["result"]["times_ms"]) + "codegen")
        self.assertEqual(self.server.deploy("d", package).status, 201)
        self.assertEqual(self.server.infer("d", IMAGE).status, 200)
        self.assertIn(b"func", self.server.request("GET", f"/v1/packages/{package}/code?stage=ll").body + b"func")
        self.assertIn("child-compile", self.server.request("GET", f"/v1/jobs/{job}/log").body.decode())
        stages = self.events(job)
        for stage in ("import", "publish"):
            self.assertIn(f'"stage":"{stage}"', stages.replace(" ", ""))
        listed = self.server.request("GET", "/v1/workers").json()["items"]
        self.assertEqual([(one["name"], one["state"], one["connected"]) for one in listed], [("w1", "active", True)])
        self.assertGreaterEqual(listed[0]["status"]["load"], 0)
        self.assertEqual(self.server.submit("digits", SHAPES, opt_level=1).status, 200, "the result is known")
        # Blobs come once: the model is in the cache of the worker.
        cached = [p for p in (worker.folder / "data/inputs/cache").rglob("*") if p.is_file()]
        self.assertEqual(len(cached), 1)
        again = self.server.finished(self.submit(shapes=SHAPES, opt_level=0))
        self.assertEqual(again["state"], "succeeded", again)
        self.assertEqual([p for p in (worker.folder / "data/inputs/cache").rglob("*") if p.is_file()], cached)
        self.assertEqual(worker.end(signal.SIGTERM), 0)

    def test_a_killed_worker_costs_no_attempt_and_a_cancel_ends_its_child(self):
        self.assertEqual(self.server.upload("m", layered_model(1, layers=LAYERS)).status, 201)
        worker = self.worker("--name", "w")
        job = self.submit("m")
        self.held(worker, job)
        worker.end()
        serving.wait_for(lambda: self.job(job)["state"] == "queued", "the lease runs out")
        # The next one says that it is fresh.
        second = self.worker("--name", "w", folder=worker.folder)
        self.held(second, job)
        self.assertEqual(self.job(job)["attempt"], 2)
        self.assertEqual(self.server.request("POST", f"/v1/jobs/{job}/cancel").status, 202)
        self.assertEqual(self.server.finished(job)["state"], "cancelled")
        serving.wait_for(lambda: not children_of(second.process.pid), "no child works on")
        self.assertEqual(self.server.request("POST", f"/v1/jobs/{job}/retry").status, 202)
        # A server that ends and starts again takes nothing from the worker.
        child = self.held(second, job)
        attempt = self.job(job)["attempt"]
        port = self.server.port
        self.assertEqual(self.server.stop(), 0)
        self.server.options = (*self.server.options, "--set", f"listen=127.0.0.1:{port}")
        self.server.start()
        os.kill(child, signal.SIGCONT)
        done = self.server.finished(job)
        self.assertEqual((done["state"], done["attempt"]), ("succeeded", attempt), (done, second.log()))

    def test_the_second_crash_of_a_child_marks_the_job(self):
        self.assertEqual(self.server.upload("m", layered_model(2, layers=LAYERS)).status, 201)
        worker = self.worker()
        job = self.submit("m")
        for attempt in (1, 2):
            child = self.held(worker, job)
            self.assertEqual(self.job(job)["attempt"], attempt)
            for how in (signal.SIGSEGV, signal.SIGCONT):
                os.kill(child, how)
            serving.wait_for(lambda: self.job(job)["state"] != "running" or self.job(job)["attempt"] > attempt, "its end")
        done = self.server.finished(job)
        self.assertEqual((done["state"], done["attempt"]), ("failed", 2))
        self.assertEqual((done["error"]["code"], done["error"]["verdict"]), ("job_failed", "crashed"))

    def test_drains_and_labels(self):
        self.assertEqual(self.server.upload("digits", DIGITS.read_bytes()).status, 201)
        job = self.submit(shapes=SHAPES, opt_level=0, on="board=a")
        self.assertEqual(self.job(job)["resolved"]["on"], "board=a")
        other = self.worker("--name", "b", "--labels", "board=b")
        first = self.submit(shapes=SHAPES, opt_level=1)
        self.assertEqual(self.server.finished(first)["state"], "succeeded", other.log())
        self.assertEqual(self.job(job)["state"], "queued", "it is for another board")
        # A drained worker gets nothing, a resumed one does.
        self.assertEqual(self.server.request("POST", "/v1/workers/b/drain").json()["state"], "drained")
        own = self.worker("--name", "a", "--labels", "board=a,room=lab")
        self.assertEqual(self.server.finished(job)["state"], "succeeded", own.log())
        self.assertEqual(own.end(signal.SIGTERM), 0)
        waits = self.submit(shapes=SHAPES, opt_level=2)
        self.assertEqual(self.job(waits)["state"], "queued")
        self.assertEqual(self.server.request("POST", "/v1/workers/b/resume").json()["state"], "active")
        self.assertEqual(self.server.finished(waits)["state"], "succeeded", other.log())
        self.assertEqual(self.server.request("DELETE", "/v1/workers/b").status, 204)
        self.assertEqual(other.process.wait(timeout=serving.DEADLINE), 3, "a revoked worker ends")
        self.assertIn("revoked", other.log())

    def test_a_package_is_measured_where_it_is_asked_for(self):
        self.assertEqual(self.server.upload("digits", DIGITS.read_bytes()).status, 201)
        worker = self.worker("--labels", "board=a", "--verbs", "compile,benchmark,run")
        package = self.server.compile("digits", SHAPES, opt_level=1)
        answer = self.server.send_json("POST", "/v1/jobs", {"kind": "benchmark", "package": package, "repeat": 3, "on": "board=a"})
        self.assertEqual(answer.status, 202, answer.body)
        done = self.server.finished(answer.json()["id"])
        self.assertEqual(done["state"], "succeeded", (done, worker.log()))
        self.assertEqual(len(done["result"]["runs_ms"]), 3)
        self.assertEqual(done["result"]["package"], package)
        # And runs there: the same numbers as here.
        image = np.random.default_rng(1).standard_normal((1, 1, 28, 28)).astype(np.float32)
        here = self.server.run(package, {"image": image})
        there = self.server.run(package, {"image": image}, "?on=board%3Da")
        self.assertEqual((here.status, there.status), (200, 200), there.body)
        np.testing.assert_array_equal(serving.from_npz(there.body)["logits"], serving.from_npz(here.body)["logits"])
        # The same by the command line, by the file of the package.
        archive, made = self.keys / "digits.tar", self.keys / "out.npz"
        archive.write_bytes(self.server.request("GET", f"/v1/packages/{package}/archive").body)
        np.savez(self.keys / "in.npz", image=image)
        mill.check_program(self, "run", archive, "--on", "board=a", "--server", self.url(), "-i", self.keys / "in.npz", "-o", made)
        np.testing.assert_array_equal(serving.from_npz(made.read_bytes())["logits"], serving.from_npz(here.body)["logits"])
        wrong = self.server.run(package, {"image": image[:, :, 1:]}, "?on=board%3Da")
        self.assertEqual((wrong.status, wrong.json()["code"]), (422, "invalid_tensor"), wrong.body)
        nobody = self.server.run(package, {"image": image}, "?on=board%3Db&timeout_ms=50")
        self.assertEqual((nobody.status, nobody.json()["code"]), (504, "deadline_exceeded"), nobody.body)
        self.assertEqual([error["pointer"] for error in nobody.json()["errors"]], ["/on"])
        self.assertIn("waited 50 ms for a worker with the labels board=b", nobody.json()["detail"])


class TlsTest(unittest.TestCase):
    def test_a_worker_knows_its_server_by_authority_or_by_key(self):
        folder = workers.folder_of(self)
        for name in ("server", "other"):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                            "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / f"{name}.key", "-out",
                            folder / f"{name}.pem"], check=True, capture_output=True)
        log = open(folder / "server.log", "wb")
        self.addCleanup(log.close)
        server = subprocess.Popen(
            [mill.PROGRAM, "serve", "--listen", "127.0.0.1:0", "--data", folder / "data", "--set",
             f"http.tls_certificate={folder}/server.pem", "--set", f"http.tls_key={folder}/server.key"],
            stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, text=True)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.addCleanup(server.stdout.close)
        port = next(line for line in server.stdout if line.startswith("listening on https://")).rsplit(":", 1)[1].strip()
        workers.make_key(folder / "key.pem")

        def pin(name):
            """Of the public key, as DER."""
            text = subprocess.run(["openssl", "x509", "-in", folder / f"{name}.pem", "-pubkey", "-noout"], check=True,
                                  capture_output=True).stdout
            der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "DER"], input=text, check=True, capture_output=True)
            return "sha256:" + hashlib.sha256(der.stdout).hexdigest()
        trusts = {"none": [], "another authority": ["--ca", folder / "other.pem"], "another key": ["--pin", pin("other")],
                  "authority": ["--ca", folder / "server.pem"], "keys": ["--pin", pin("other"), "--pin", pin("server")]}
        started = {what: workers.Worker(self, f"https://localhost:{port}", "--signing-key", folder / "key.pem", "--name",
                                        what.replace(" ", "-"), *options) for what, options in trusts.items()}
        for what in ("none", "another authority", "another key"):
            serving.wait_for(lambda: "does not answer" in started[what].log(), what)
        known = {"authority", "keys"}
        context = ssl.create_default_context(cafile=folder / "server.pem")

        def seen():
            with urllib.request.urlopen(f"https://localhost:{port}/v1/workers", context=context) as answer:
                return {worker["name"] for worker in json.load(answer)["items"]}
        serving.wait_for(lambda: known <= seen(), "the workers that know the server")
        self.assertEqual(seen(), known)
        done = mill.run_program("worker", "--server", "http://example.org", "--verbs", "benchmark", "--data", folder / "none")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("http:// is for this machine alone", done.stderr)
        self.assertFalse((folder / "none").exists())


class SignatureTest(unittest.TestCase):
    def test_only_signed_packages_are_loaded_where_that_is_asked_for(self):
        """Also after somebody who can write the catalog has put another's signature, or code, in their place."""
        folder = workers.folder_of(self)
        own = folder / "own.pem"
        workers.make_key(own)
        server = serving.make_server(self, "--set", "packages.require_signature=true")
        self.assertEqual(server.upload("digits", DIGITS.read_bytes()).status, 201)
        package = server.compile("digits", SHAPES, opt_level=0)
        refused = server.deploy("d", package)
        self.assertEqual((refused.status, refused.json()["code"]), (403, "foreign_code"), refused.body)
        self.assertEqual(server.stop(), 0)
        server.options = (*server.options, "--set", f"packages.signing_key={own}")
        server.start()
        self.assertEqual(server.compile("digits", SHAPES, opt_level=0, force=True), package)
        other = server.compile("digits", SHAPES, opt_level=1)
        self.assertEqual(server.deploy("d", package).status, 201)
        self.assertEqual(server.stop(), 0)
        with contextlib.closing(sqlite3.connect(server.folder / "data/catalog.db")) as catalog, catalog:
            catalog.execute("UPDATE package_members SET digest = (SELECT digest FROM package_members WHERE package = ? AND "
                            "name = 'signature') WHERE package = ? AND name = 'signature'", (other, package))
        server.start()
        found = next(iter(server.request("GET", "/v1/deployments/d").json()["versions"].values()))
        self.assertEqual(found["state"], "failed", found)
        self.assertIn("signature", json.dumps(found))
        odd = mill.run_program("serve", "--listen", "127.0.0.1:0", "--data", folder / "odd", "--set", "packages.require_signature=yes")
        self.assertEqual((odd.returncode, "neither true nor false" in odd.stderr), (2, True), odd.stderr)


def children_of(pid, word=""):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == pid and fields[0] != "Z" and word in (stat.parent / "cmdline").read_text():
                found.append(int(stat.parent.name))
        except OSError:
            continue  # it ended meanwhile
    return found


if __name__ == "__main__":
    unittest.main()
