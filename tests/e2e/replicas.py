"""Servers that are replicas of each other: one PostgreSQL database and one S3 bucket of the test's own."""

import hashlib
import os
import sys
import unittest

import numpy as np

import mill
import s3_server
import serving
import workers

sys.path.insert(0, str(mill.ROOT / "tests/tools"))

import postgres_server  # noqa: E402

PICTURE = {"image": np.linspace(0, 1, 784, dtype=np.float32).reshape(1, 1, 28, 28)}


class ReplicaCase(unittest.TestCase):
    """One database server and one S3 server for all tests; a database and a prefix for each."""

    @classmethod
    def setUpClass(cls):
        cls.database = postgres_server.PostgresServer()
        cls.addClassCleanup(cls.database.close)
        cls.s3 = s3_server.S3Server()
        cls.addClassCleanup(cls.s3.close)
        cls.key = workers.folder_of(cls) / "signing.pem"
        workers.make_key(cls.key)
        for name, value in (("AWS_ACCESS_KEY_ID", s3_server.KEY), ("AWS_SECRET_ACCESS_KEY", s3_server.SECRET)):
            before = os.environ.get(name)
            os.environ[name] = value
            cls.addClassCleanup(
                lambda name=name, before=before: os.environ.pop(name) if before is None else os.environ.update({name: before}))

    def setUp(self):
        self.name = "t" + hashlib.sha256(self.id().encode()).hexdigest()[:12]
        self.database.sql(f"CREATE DATABASE {self.name}")
        self.prefix = self.name
        self.options = ["--catalog", self.database.url().replace("@/postgres?", f"@/{self.name}?"),
                        "--blobs", f"s3://{s3_server.BUCKET}/{self.prefix}",
                        "--set", f"s3.endpoint=http://127.0.0.1:{self.s3.port}", "--set", "jobs.lease=2s",
                        "--set", f"packages.signing_key={self.key}"]

    def serve(self, *more):
        return serving.make_server(self, *self.options, *more)

    def sql(self, text):
        return self.database.sql(f"\\c {self.name}\n{text}").rsplit("\n", 1)[-1]

    def logits(self, server, name="digits"):
        answer = server.infer(name, PICTURE)
        self.assertEqual(answer.status, 200, answer.body)
        return serving.from_npz(answer.body)["logits"]
