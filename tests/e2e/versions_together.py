"""Two programs, this one and another build of it, as replicas of one store and as each other's workers.

    versions_together.py --other PROGRAM

By hand, with the program of the version before: what the protocols and the tables promise to it is tested piece by piece in
storage/postgres_test.cc and worker_hostile_test.py."""

import argparse
import contextlib
import sys
import unittest
from pathlib import Path

import numpy as np

import mill
import s3_server
import serving
import workers
from replicas import ReplicaCase

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}
OWN, OTHER = mill.PROGRAM, None


@contextlib.contextmanager
def program(path):
    """What is started meanwhile is of this program."""
    mill.PROGRAM = path
    try:
        yield
    finally:
        mill.PROGRAM = OWN


class VersionsTest(ReplicaCase):
    def start(self, path, *more):
        with program(path):
            return self.serve(*more)

    def test_replicas_of_both_serve_one_store_in_either_order(self):
        for number, (first, second) in enumerate(((OTHER, OWN), (OWN, OTHER))):
            with self.subTest(f"{first} first"):
                self.other_store(number)
                one, two = self.start(first), self.start(second)
                self.share(one, two)

    def other_store(self, number):
        self.database.sql(f"CREATE DATABASE {self.name}_{number}")
        self.options[1] = self.database.url().replace("@/postgres?", f"@/{self.name}_{number}?")
        self.options[3] = f"s3://{s3_server.BUCKET}/{self.prefix}{number}"

    def share(self, one, two):
        self.assertEqual(one.upload("digits", DIGITS.read_bytes()).status, 201)
        package = two.compile("digits", SHAPES, opt_level=1)
        put = one.deploy("digits", package)
        self.assertEqual((put.status, {state["state"] for state in put.json()["replicas"].values()}), (201, {"ready"}), put.body)
        logits = self.logits(one)
        np.testing.assert_array_equal(self.logits(two), logits)
        put = two.deploy("digits", package, version="2", keep_versions=2, weights={"1": 1, "2": 1})
        self.assertEqual(put.status, 200, put.body)
        for server in (one, two):
            np.testing.assert_array_equal(self.logits(server), logits)
            self.assertEqual(server.request("GET", "/v1/deployments").status, 200)
            self.assertEqual(server.finished(server.submit("digits", SHAPES, opt_level=0, force=True).json()["id"])["state"], "succeeded")
        # Either of them ends, and the other one has all of it.
        one.stop(serving.signal.SIGKILL)
        np.testing.assert_array_equal(self.logits(two), logits)
        self.assertTrue(two.compile("digits", SHAPES, opt_level=2))
        two.stop()

    def test_each_works_for_the_other(self):
        for of_server, of_worker in ((OTHER, OWN), (OWN, OTHER)):
            with self.subTest(f"server {of_server}"):
                with program(of_server):
                    server = serving.make_server(self, "--set", f"packages.trusted_keys={self.key}.pub")
                self.assertEqual(server.upload("digits", DIGITS.read_bytes()).status, 201)
                package = server.compile("digits", SHAPES, opt_level=1)
                url = f"http://127.0.0.1:{server.port}"
                with program(of_worker):
                    worker = workers.Worker(self, url, "--name", "w", "--labels", "board=a", "--verbs", "benchmark,run")
                    compiles = workers.Worker(self, url, "--name", "c", "--labels", "board=c", "--verbs", "compile", "--signing-key", self.key)
                job = server.send_json("POST", "/v1/jobs", {"kind": "benchmark", "package": package, "repeat": 3, "on": "board=a"})
                self.assertEqual(job.status, 202, job.body)
                done = server.finished(job.json()["id"])
                self.assertEqual(done["state"], "succeeded", (done, worker.log()))
                # What another compiler makes is not what this one would: its worker ends, and says both.
                made = server.submit("digits", SHAPES, opt_level=0, on="board=c", force=True).json()["id"]

                def outcome():
                    compiled = server.request("GET", f"/v1/jobs/{made}").json()["state"] == "succeeded"
                    return compiled or compiles.process.poll() is not None
                serving.wait_for(outcome, "what becomes of the compile")
                if compiles.process.poll() is not None:
                    self.assertIn("the worker's compiler is", compiles.log())
                    self.assertIn("this server's is", compiles.log())
                server.stop()


def main():
    global OTHER
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", type=Path, required=True)
    arguments, rest = parser.parse_known_args()
    OTHER = arguments.other.resolve()
    unittest.main(argv=["versions_together.py", *rest], verbosity=2)


if __name__ == "__main__":
    sys.exit(main())
