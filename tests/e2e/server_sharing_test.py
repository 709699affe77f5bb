"""Packages that go from one store to another: signed exports, trusted keys, what is refused. Events of all jobs."""

import http.client
import json
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

import mill
import serving

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}
PICTURE = {"image": np.ones((1, 1, 28, 28), np.float32)}
BLOCK = 512


def openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)


def key_pair(folder, name):
    """Paths of a private and a public key."""
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    openssl("genpkey", "-algorithm", "ed25519", "-out", private)
    openssl("pkey", "-in", private, "-pubout", "-out", public)
    return private, public


class SharingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        private, public = key_pair(cls.folder, "maker")
        _, other = key_pair(cls.folder, "other")
        cls.maker = serving.make_server(cls, "--set", f"packages.signing_key={private}")
        cls.taker = serving.make_server(cls, "--set", f"packages.trusted_keys={other},{public}")
        cls.stranger = serving.make_server(cls, "--set", f"packages.trusted_keys={other}")
        assert cls.maker.upload("digits", DIGITS.read_bytes()).status == 201
        cls.package = cls.maker.compile("digits", SHAPES, opt_level=1)
        cls.plain = cls.maker.request("GET", f"/v1/packages/{cls.package}/archive").body
        cls.signed = cls.maker.request("GET", f"/v1/packages/{cls.package}/archive?signed=1").body

    def give(self, server, data):
        return server.request("POST", "/v1/packages", data, {"Content-Type": "application/x-tar"})

    def refused(self, server, data, status=403, code="foreign_code"):
        before = serving.blobs(server)
        answer = self.give(server, data)
        self.assertEqual((answer.status, answer.json()["code"]), (status, code), answer.body)
        self.assertEqual(serving.blobs(server), before)

    def test_a_trusted_store_s_package_serves_elsewhere(self):
        self.assertEqual(self.signed[:-BLOCK], self.plain)
        answer = self.give(self.taker, self.signed)
        self.assertEqual(answer.status, 201, answer.body)
        self.assertEqual(answer.json()["id"], self.package)
        self.assertEqual(answer.headers["Location"], f"/v1/packages/{self.package}")
        self.assertEqual(self.give(self.taker, self.signed).status, 200)
        self.assertEqual(self.taker.request("GET", f"/v1/packages/{self.package}/archive").body, self.plain)
        self.assertEqual(self.taker.deploy("digits", self.package).status, 201)
        here, there = self.maker.run(self.package, PICTURE), self.taker.infer("digits", PICTURE)
        np.testing.assert_array_equal(serving.from_npz(there.body)["logits"], serving.from_npz(here.body)["logits"])
        self.assertEqual(self.taker.stop(), 0)
        self.taker.start()
        self.assertEqual(self.taker.infer("digits", PICTURE).status, 200)

    def test_what_no_trusted_store_signed_is_refused(self):
        self.refused(self.taker, self.plain)
        self.refused(self.stranger, self.signed)
        self.refused(self.maker, self.signed)
        self.refused(self.taker, b"")
        for place in (100, len(self.plain) // 2, len(self.plain) - 1, len(self.plain) + 40, len(self.signed) - 400):
            changed = bytearray(self.signed)
            changed[place] ^= 1
            with self.subTest(place=place):
                self.refused(self.taker, bytes(changed))
        self.refused(self.taker, self.signed[:-1])
        self.refused(self.taker, self.signed + bytes(BLOCK))

    def test_keys_are_checked_at_start(self):
        for setting in ("packages.signing_key=/nowhere", f"packages.trusted_keys={DIGITS}"):
            done = mill.run_program("serve", "--listen", "127.0.0.1:0", "--data", self.folder / "data", "--set", setting)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(setting.split("=")[0], done.stderr)

    def events(self, last):
        """Events after `last` from /v1/events, one by one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.maker.port, timeout=serving.DEADLINE)
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/events", headers={"Last-Event-ID": str(last)})
        answer = connection.getresponse()
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "text/event-stream"))
        event = {}
        for line in answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "data":
                event[name] = json.loads(value)
            elif name:
                event[name] = value
            else:
                if "id" in event:
                    yield event
                event = {}

    def test_events_of_all_jobs(self):
        first = self.maker.submit("digits", {"image": [1, 1, 28, 28], "nothing": [1]})
        self.assertEqual(first.status, 422)
        seen, ended = [], None
        job = self.maker.submit("digits", {"image": [1, 1, 2, 2]}, opt_level=0).json()["id"]
        for event in self.events(0):
            seen.append(int(event["id"]))
            if event["event"] == "end" and event["data"]["job"] == job:
                ended = event
                break
        self.assertEqual(ended["data"]["data"]["state"], "failed")
        self.assertEqual(seen, sorted(set(seen)))
        again = next(self.events(seen[-2]))
        self.assertEqual(again, ended)


if __name__ == "__main__":
    unittest.main()
