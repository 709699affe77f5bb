"""Replicas under chaos: three servers on one PostgreSQL database and one S3 bucket, of which any process is killed again and
again while clients upload, compile, deploy and infer. Nothing that was acknowledged may be lost, no job may fail, no answer be
wrong, and what is refused is refused with 502, 503 or 504, or has no answer.

    replicas_chaos.py [--seconds 60] [--every 10] [--seed 1]

Prints a JSON line; exits with 1 and says what is wrong otherwise."""

import argparse
import http.client
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import mill
import s3_server
import serving

sys.path.insert(0, str(mill.ROOT / "tests/tools"))

import postgres_server  # noqa: E402

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}
PICTURE = {"image": np.linspace(0, 1, 784, dtype=np.float32).reshape(1, 1, 28, 28)}
REFUSED = (502, 503, 504)
GONE = (ConnectionError, http.client.HTTPException, TimeoutError)
PATIENCE = 300


def another_model(number):
    """The digits model as other bytes: an unknown field of four bytes behind it."""
    return DIGITS.read_bytes() + b"\x12\x04" + f"{number:04d}".encode()


class Chaos:
    def __init__(self, folder, seed):
        self.folder, self.random = Path(folder), random.Random(seed)
        self.database = postgres_server.PostgresServer(durable=True)
        self.s3 = s3_server.S3Server()
        os.environ.update(AWS_ACCESS_KEY_ID=s3_server.KEY, AWS_SECRET_ACCESS_KEY=s3_server.SECRET)
        self.options = ["--catalog", self.database.url(), "--blobs", f"s3://{s3_server.BUCKET}/chaos",
                        "--set", f"s3.endpoint=http://127.0.0.1:{self.s3.port}", "--set", "jobs.lease=2s",
                        "--set", "s3.stall_timeout=2s"]
        self.wrong, self.lock, self.ending = [], threading.Lock(), threading.Event()
        self.models, self.jobs, self.deployed = {}, {}, 0
        self.counts = {"inferences": 0, "refused": 0, "uploads": 0, "jobs": 0, "deployments": 0, "faults": 0}
        self.servers = []
        for name in ("one", "two", "three"):
            (self.folder / name).mkdir()
            self.servers.append(serving.Server(self.folder / name, *self.options))

    def close(self):
        for server in self.servers:
            server.stop(signal.SIGKILL)
        self.s3.close()
        self.database.close()

    def blame(self, what):
        with self.lock:
            self.wrong.append(what)

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def ask(self, call):
        """The answer of any server, or None where it is refused as it may be."""
        server = random.choice(self.servers)
        try:
            answer = call(server)
        except GONE:
            answer = None
        except AssertionError as error:  # not what /openapi.json says
            self.blame(str(error)[:300])
            return None
        if answer is None or answer.status in REFUSED:
            self.count("refused")
            return None
        if answer.status >= 500:
            self.blame(f"{answer.status}: {answer.body[:300]}")
            return None
        return answer

    # What clients do, each on a thread, until the end.

    def uploads(self):
        number = 0
        while not self.ending.wait(0.5):
            number += 1
            data = another_model(number)
            answer = self.ask(lambda server: server.upload(f"m{number}", data))
            if answer is None:
                continue
            if answer.status not in (200, 201):
                self.blame(f"upload: {answer.status} {answer.body[:300]}")
                continue
            self.models[f"m{number}"] = answer.json()["id"]
            self.count("uploads")

    def submissions(self):
        while not self.ending.wait(0.7):
            if not self.models:
                continue
            model = random.choice(sorted(self.models))
            answer = self.ask(lambda server: server.submit(model, SHAPES, opt_level=0))
            if answer is None:
                continue
            if answer.status not in (200, 202):
                self.blame(f"job: {answer.status} {answer.body[:300]}")
                continue
            self.jobs[answer.json()["id"]] = model
            self.count("jobs")

    def deployments(self, package):
        version = 1
        while not self.ending.wait(2):
            version += 1
            answer = self.ask(lambda server: server.deploy("digits", package, version=str(version), keep_versions=2))
            if answer is None or answer.status == 409:
                continue
            if answer.status not in (200, 201, 202):
                self.blame(f"deployment: {answer.status} {answer.body[:300]}")
                continue
            self.deployed = version
            self.count("deployments")

    def inferences(self, expected):
        while not self.ending.wait(0.05):
            answer = self.ask(lambda server: server.infer("digits", PICTURE))
            if answer is None:
                continue
            if answer.status != 200 or not np.array_equal(serving.from_npz(answer.body)["logits"], expected):
                self.blame(f"inference: {answer.status} {answer.body[:300]}")
            self.count("inferences")

    # What happens to the processes.

    def hurt_a_server(self):
        server = self.random.choice(self.servers)
        server.stop(signal.SIGKILL)
        self.ending.wait(self.random.uniform(0, 3))
        server.start()

    def hurt_the_database(self):
        self.database.stop()
        self.ending.wait(self.random.uniform(0, 3))
        self.database.start()

    def hurt_s3(self):
        self.s3.kill()
        self.ending.wait(self.random.uniform(0, 3))
        self.s3.start()

    def run(self, seconds, every):
        first = self.servers[0]
        first.upload("digits", DIGITS.read_bytes())
        package = first.compile("digits", SHAPES, opt_level=1)
        put = first.deploy("digits", package)
        if put.status != 201:
            raise AssertionError(put.body)
        self.deployed = 1
        expected = serving.from_npz(first.infer("digits", PICTURE).body)["logits"]
        clients = [threading.Thread(target=target, args=arguments) for target, arguments in (
            (self.uploads, ()), (self.submissions, ()), (self.deployments, (package,)), (self.inferences, (expected,)))]
        for client in clients:
            client.start()
        try:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                self.ending.wait(every)
                self.random.choice((self.hurt_a_server, self.hurt_a_server, self.hurt_the_database, self.hurt_s3))()
                self.count("faults")
        finally:
            self.ending.set()
            for client in clients:
                client.join()
        self.check(expected)

    def check(self, expected):
        """Now that all are well again."""
        server = self.servers[-1]
        for job, model in self.jobs.items():
            state = server.finished(job, PATIENCE)
            if state["state"] != "succeeded":
                self.blame(f"job {job} of {model} {state['state']}: {state.get('error')}")
        for name, digest in self.models.items():
            answer = server.request("GET", f"/v1/models/{name}")
            if answer.status != 200 or answer.json()["id"] != digest:
                self.blame(f"model {name} is lost: {answer.status}")
        for one in self.servers:
            serving.wait_for(lambda: one.request("GET", "/v1/deployments/digits").json()["default_version"] is not None and
                             int(one.request("GET", "/v1/deployments/digits").json()["default_version"]) >= self.deployed,
                             f"version {self.deployed}", PATIENCE)
            if not np.array_equal(serving.from_npz(one.infer("digits", PICTURE).body)["logits"], expected):
                self.blame("a wrong inference at the end")
        twice = self.database.sql("SELECT COUNT(*) FROM (SELECT action_key FROM jobs WHERE state = 'succeeded' "
                                  "GROUP BY action_key HAVING COUNT(*) > 1) AS twice")
        if twice != "0":
            self.blame(f"{twice} jobs were run twice to two results")
        if server.request("POST", "/v1/gc").status != 200:
            self.blame("the store cannot be collected")
        for one in self.servers:
            if one.stop() != 0:
                self.blame("a server did not end well: " + one.log_tail())
        checked = mill.run_program("fsck", "--data", self.servers[0].folder / "data", *self.options, "--json")
        if checked.returncode != 0:
            self.blame(f"fsck: {checked.stdout} {checked.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--every", type=float, default=10, help="seconds between faults")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chaos = Chaos(folder, arguments.seed)
        try:
            chaos.run(arguments.seconds, arguments.every)
        finally:
            chaos.close()
    print(json.dumps({**chaos.counts, "wrong": chaos.wrong}))
    return 1 if chaos.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
