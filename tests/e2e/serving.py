"""A server of the test's own on a free port, and HTTP requests to it, whose answers are held against /openapi.json."""

import http.client
import io
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import mill
import openapi

# Met early, it costs nothing: a job runs at the lowest priority, and gets little of a machine that is busy with more.
DEADLINE = 600


def wait_for(condition, what, seconds=DEADLINE):
    """Polls until condition() is true; returns its value."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        threading.Event().wait(0.02)


def npz(tensors):
    buffer = io.BytesIO()
    np.savez(buffer, **tensors)
    return buffer.getvalue()


def from_npz(body):
    with np.load(io.BytesIO(body), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def cpu_ticks(pid):
    """What the process has computed so far, in hundredths of a second; 0 once it has gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11])
    except OSError:
        return 0


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


class Server:
    """`tensormill serve` on 127.0.0.1 with its own store."""

    def __init__(self, folder, *options, port=0):
        self.folder = Path(folder)
        self.wanted_port = port
        self.options = options
        self.process = None
        self.start()

    def start(self, until_ready=True):
        """Returns when it listens and, unless told otherwise, has loaded what is deployed."""
        self.log = open(self.folder / "server.log", "ab")
        command = [str(mill.PROGRAM), "serve", "--listen", f"127.0.0.1:{self.wanted_port}", "--data", str(self.folder / "data")]
        self.process = subprocess.Popen(command + list(self.options), stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        stdin=subprocess.DEVNULL)
        self.settings = []
        for line in self.process.stdout:
            self.settings.append(line.strip())
            if line.startswith("listening on http://"):
                self.port = int(line.rsplit(":", 1)[1])
                if until_ready:
                    self.wait_until_ready()
                return
        raise AssertionError(f"the server ended with {self.process.wait()}: {self.log_tail()}")

    def wait_until_ready(self):
        wait_for(lambda: self.request("GET", "/readyz").status == 200, "the deployments of the store")

    def log_tail(self):
        return (self.folder / "server.log").read_text()[-2000:]

    def last_words(self):
        """What it has logged since it was last told to end."""
        lines = [json.loads(line) for line in (self.folder / "server.log").read_text().splitlines() if line.startswith("{")]
        last = max(at for at, line in enumerate(lines) if line["msg"] == "draining")
        return lines[last + 1:]

    def stop(self, how=signal.SIGTERM):
        """Returns the exit code."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(timeout=DEADLINE)
        self.process.stdout.close()
        self.log.close()
        self.process = None
        return code

    def children(self):
        """Pids of the children that are there now."""
        pids = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue  # it ended meanwhile
            if parent == self.process.pid:
                pids.append(int(stat.parent.name))
        return pids

    def maps(self):
        """Names of the libraries that the server has loaded, among others."""
        return Path(f"/proc/{self.process.pid}/maps").read_text(encoding="utf-8")

    def request(self, method, path, body=None, headers=None, timeout=DEADLINE):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            data = answer.read()
            openapi.check(method, path, answer.status, answer.headers, data)
            return Answer(answer.status, answer.headers, data)
        finally:
            connection.close()

    def send_json(self, method, path, value, headers=None):
        text = value if isinstance(value, str) else json.dumps(value)
        return self.request(method, path, text, {"Content-Type": "application/json", **(headers or {})})

    def upload(self, name, data, query=""):
        return self.request("POST", f"/v1/models?name={name}{query}", data, {"Content-Type": "application/octet-stream"})

    def submit(self, model, shapes=None, **more):
        body = {"kind": "compile", "model": model, "target": "llvm -mcpu=native", "opt_level": 3,
                "input_shapes": shapes or {}, **more}
        return self.send_json("POST", "/v1/jobs", body)

    def finished(self, job, seconds=DEADLINE):
        """The job once it is final."""
        def final():
            found = self.request("GET", f"/v1/jobs/{job}").json()
            return found if found["state"] in ("succeeded", "failed", "cancelled") else None
        return wait_for(final, f"job {job}", seconds)

    def compile(self, model, shapes=None, **more):
        """The package's id."""
        answer = self.submit(model, shapes, **more)
        if answer.status not in (200, 202):
            raise AssertionError(answer.body)
        job = self.finished(answer.json()["id"])
        if job["state"] != "succeeded":
            raise AssertionError(job["error"])
        return job["result"]["package"]

    def run(self, package, inputs, query=""):
        return self.request("POST", f"/v1/packages/{package}/run{query}", npz(inputs), {"Content-Type": "application/x-npz"})

    def deploy(self, name, package, **more):
        return self.send_json("PUT", f"/v1/deployments/{name}", {"package": package, **more})

    def infer(self, name, inputs):
        return self.request("POST", f"/v1/deployments/{name}/infer", npz(inputs), {"Content-Type": "application/x-npz"})


def make_server(test, *options, port=0):
    """A server for a test or, given a class, for all of its tests."""
    add = test.addClassCleanup if isinstance(test, type) else test.addCleanup
    folder = tempfile.TemporaryDirectory()
    add(folder.cleanup)
    server = Server(folder.name, *options, port=port)
    add(server.stop, signal.SIGKILL)
    return server


def blobs(server):
    """Names of all blobs, and of unfinished writes."""
    data = server.folder / "data"
    found = sorted(str(p.relative_to(data)) for p in (data / "blobs").rglob("*") if p.is_file())
    return found, sorted(os.listdir(data / "tmp"))
