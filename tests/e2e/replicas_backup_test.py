"""`tensormill backup` of a store in PostgreSQL and S3 that servers have open and collect, and `restore` into others."""

import json
import shutil
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np

import mill
import s3_server
import serving
from replicas import ReplicaCase

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}


class GatedProxy(s3_server.Proxy):
    """Lets the first request for a blob's bytes wait until the test says so."""

    def __init__(self, port):
        self.asked, self.gate = threading.Event(), threading.Event()
        super().__init__(port)

    def answer(self, client, request, fault):
        if request.startswith(b"GET ") and b"/sha256/" in request.split(b"\r\n", 1)[0]:
            self.asked.set()
            self.gate.wait()
        return super().answer(client, request, fault)

    def close(self):
        self.gate.set()
        super().close()


class ReplicasBackup(ReplicaCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.backup = self.folder / "backup"

    def back_up(self, *options):
        return json.loads(mill.check_program(self, "backup", *(options or self.options), "-o", self.backup, "--json"))

    def elsewhere(self, name):
        """The options of an empty database and prefix."""
        self.database.sql(f"CREATE DATABASE {self.name}_{name}")
        return [text.replace(f"/{self.name}", f"/{self.name}_{name}") for text in self.options]

    def test_a_store_comes_back_elsewhere(self):
        one = self.serve()
        self.assertEqual(one.upload("digits", DIGITS.read_bytes()).status, 201)
        package = one.compile("digits", SHAPES, opt_level=1)
        self.assertEqual(one.deploy("digits", package).status, 201)
        logits = self.logits(one)
        first = self.back_up()
        self.assertEqual((first["copied"], first["blobs"] > 4), (first["blobs"], True))
        self.assertEqual(one.upload("other", DIGITS.read_bytes() + b"\x12\x041234").status, 201)
        self.assertEqual(self.back_up()["copied"], 1, "the second copies what is new")
        self.assertEqual(mill.run_program("fsck", "--data", self.backup).returncode, 0)
        self.assertFalse((self.backup / "source").exists())
        self.assertEqual(self.sql("SELECT COUNT(*) FROM blob_holds"), "0")
        # Into another database and bucket, and into a folder.
        options = self.elsewhere("b")
        restored = self.folder / "restored"
        mill.check_program(self, "restore", self.backup, "--data", restored, *options)
        again = mill.run_program("restore", self.backup, "--data", self.folder / "twice", *options)
        self.assertEqual(again.returncode, 3, again.stderr)
        two = serving.make_server(self, *options)
        np.testing.assert_array_equal(self.logits(two), logits)
        self.assertEqual({model["name"] for model in two.request("GET", "/v1/models").json()["items"]}, {"digits", "other"})
        home = self.folder / "home"
        home.mkdir()
        mill.check_program(self, "restore", self.backup, "--data", home / "data")
        alone = serving.Server(home)
        self.addCleanup(alone.stop, serving.signal.SIGKILL)
        np.testing.assert_array_equal(self.logits(alone), logits)
        half = mill.run_program("backup", *self.options[:2], "-o", self.folder / "half")
        self.assertEqual((half.returncode, "migrate" in half.stderr), (4, True), half.stderr)
        # What is restored is a store of its own: it may not collect in the other one's bucket.
        (self.folder / "mixed").mkdir()
        mixed = mill.run_program("fsck", "--data", self.folder / "mixed", *options[:2], *self.options[2:])
        self.assertEqual((mixed.returncode, "of another store" in mixed.stderr), (3, True), mixed.stderr)

    def test_a_store_moves_to_both_and_back(self):
        home = self.folder / "home"
        home.mkdir()
        signs = self.options[-2:]
        one = serving.Server(home, *signs)
        self.addCleanup(lambda: one.stop(serving.signal.SIGKILL))
        self.assertEqual(one.upload("digits", DIGITS.read_bytes()).status, 201)
        self.assertEqual(one.deploy("digits", one.compile("digits", SHAPES, opt_level=1)).status, 201)
        logits = self.logits(one)
        self.assertEqual(one.stop(), 0)
        database, bucket, more = self.options[1], self.options[3], self.options[4:]  # the last of which signs
        data = home / "data"
        for wrong in (["--from", database, "--to", database], ["--to", "file"], ["--from", bucket, "--to", "folder"],
                      ["--to", database, "--to", "file"], ["--to", "elsewhere"], ["--from", "file"]):
            self.assertEqual(mill.run_program("migrate", "--data", data, *wrong, *more).returncode, 2, wrong)

        def moved(*places):
            lines = mill.check_program(self, "migrate", "--data", data, *places, *more, "--json").splitlines()
            return {told["to"]: told for told in map(json.loads, lines)}
        done = moved("--from", "file", "--from", "folder", "--to", database, "--to", bucket)
        self.assertEqual(list(done), [bucket, database], "the file says which blobs there are")
        for part, whole in ((bucket, "blobs"), (database, "rows")):
            self.assertEqual(done[part]["copied"], done[part][whole])
        shutil.rmtree(data / "blobs")
        one.options = self.options
        one.start()
        np.testing.assert_array_equal(self.logits(one), logits)
        self.assertEqual(one.stop(), 0)
        self.assertEqual(list(moved("--from", database, "--from", bucket, "--to", "file", "--to", "folder")), ["file", "folder"])
        one.options = ()
        one.start()
        np.testing.assert_array_equal(self.logits(one), logits)

    def test_no_collection_takes_what_is_still_to_be_copied(self):
        one = self.serve()
        model = one.upload("digits", DIGITS.read_bytes()).json()["id"]
        proxy = GatedProxy(self.s3.port)
        self.addCleanup(proxy.close)
        options = [text.replace(str(self.s3.port), str(proxy.port)) for text in self.options]
        done = []
        thread = threading.Thread(target=lambda: done.append(mill.run_program("backup", *options, "-o", self.backup)))
        thread.start()
        try:
            self.assertTrue(proxy.asked.wait(serving.DEADLINE))
            for name in ("digits", model):
                self.assertEqual(one.request("DELETE", f"/v1/models/{name}").status, 204)
            self.assertEqual(one.request("POST", "/v1/gc").status, 200)
            self.assertEqual(one.request("HEAD", f"/v1/blobs/{model}").status, 200, "it is still to be copied")
        finally:
            proxy.gate.set()
            thread.join()
        self.assertEqual(done[0].returncode, 0, done[0].stderr)
        self.assertEqual(mill.run_program("fsck", "--data", self.backup).returncode, 0)
        one.request("POST", "/v1/gc")
        self.assertEqual(one.request("HEAD", f"/v1/blobs/{model}").status, 404, "and goes then")
        home = self.folder / "home"
        home.mkdir()
        mill.check_program(self, "restore", self.backup, "--data", home / "data")
        alone = serving.Server(home)
        self.addCleanup(alone.stop, serving.signal.SIGKILL)
        self.assertEqual(alone.request("GET", "/v1/models/digits").status, 200)


if __name__ == "__main__":
    unittest.main()
