"""Workers of a test's server: `tensormill worker`, and one of the test's own that speaks the protocol as it likes."""

import http.client
import json
import signal
import subprocess
import tempfile
from pathlib import Path

import mill
import serving

LEASE = "jobs.lease=2s"


def make_key(path):
    """An Ed25519 key, and its public half beside it."""
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", path], check=True, capture_output=True)
    subprocess.run(["openssl", "pkey", "-in", path, "-pubout", "-out", f"{path}.pub"], check=True, capture_output=True)


def folder_of(test):
    add = test.addClassCleanup if isinstance(test, type) else test.addCleanup
    folder = tempfile.TemporaryDirectory()
    add(folder.cleanup)
    return Path(folder.name)


class Worker:
    """`tensormill worker` with a folder of its own."""

    def __init__(self, test, url, *options, folder=None):
        self.folder = folder or folder_of(test)
        self.path = self.folder / "worker.log"
        with open(self.path, "ab") as log:
            self.process = subprocess.Popen(
                [str(mill.PROGRAM), "worker", "--server", url, "--data", str(self.folder / "data"), *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        test.addCleanup(self.end)

    def log(self):
        return self.path.read_text()

    def end(self, how=signal.SIGKILL):
        """Returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(timeout=serving.DEADLINE)


class Puppet:
    """A worker whose words are the test's."""

    def __init__(self, server, name="puppet", key=None, compiler=None):
        self.server, self.name, self.key = server, name, key
        self.compiler = compiler

    def send(self, method, path, body=None, kind="application/json"):
        headers = {"Content-Type": kind} if body is not None else {}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body)
        return self.server.request(method, path, body, headers)

    def lease(self, **more):
        return self.send("POST", "/v1/workers/lease", {"protocol": 1, "name": self.name, "verbs": ["compile"],
                                                       "compiler": self.compiler, "wait_s": 5, **more})

    def beat(self, lease, **more):
        return self.send("POST", f"/v1/workers/leases/{lease}/heartbeat", more)

    def finish(self, lease, state, log=b"", code=b"", archive=b"", announced=None, **more):
        line = {"state": state, "log_bytes": len(log), "code_bytes": len(code), "archive_bytes": len(archive), **more,
                **(announced or {})}
        return self.send("POST", f"/v1/workers/leases/{lease}/finish", json.dumps(line).encode() + b"\n" + log + code + archive,
                         "application/octet-stream")


def cut_connection(server, path, body, headers=None):
    """Sends a request and goes before the answer comes."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=serving.DEADLINE)
    connection.request("POST", path, body=json.dumps(body), headers={"Content-Type": "application/json", **(headers or {})})
    connection.close()
