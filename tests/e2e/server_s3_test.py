"""`tensormill serve --blobs s3://…`: the whole life of a model with its blobs in a real S3 server, also when the network
between fails, when the S3 server dies, and when the server does."""

import json
import os
import shutil
import signal
import unittest

import numpy as np

import mill
import s3_server
import serving

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}
PICTURE = {"image": np.linspace(0, 1, 784, dtype=np.float32).reshape(1, 1, 28, 28)}
URL = f"s3://{s3_server.BUCKET}/store"


class S3Test(unittest.TestCase):
    def setUp(self):
        self.s3 = s3_server.S3Server()
        self.addCleanup(self.s3.close)
        self.proxy = s3_server.Proxy(self.s3.port)
        self.addCleanup(self.proxy.close)
        for name, value in (("AWS_ACCESS_KEY_ID", s3_server.KEY), ("AWS_SECRET_ACCESS_KEY", s3_server.SECRET)):
            self.set_environment(name, value)
        self.options = ["--blobs", URL, "--set", f"s3.endpoint=http://127.0.0.1:{self.proxy.port}"]

    def set_environment(self, name, value):
        before = os.environ.get(name)
        os.environ[name] = value
        self.addCleanup(lambda: os.environ.pop(name) if before is None else os.environ.update({name: before}))

    def serve(self, *more):
        return serving.make_server(self, *self.options, *more)

    def digits(self, server, **more):
        answer = server.upload("digits", DIGITS.read_bytes())
        self.assertEqual(answer.status, 201, answer.body)
        return server.compile("digits", SHAPES, opt_level=1, **more)

    def logits(self, server):
        answer = server.infer("digits", PICTURE)
        self.assertEqual(answer.status, 200, answer.body)
        return serving.from_npz(answer.body)["logits"]

    def test_a_model_lives_and_dies_in_s3(self):
        server = self.serve()
        package = self.digits(server)
        self.assertEqual(server.deploy("digits", package).status, 201)
        logits = self.logits(server)
        self.assertFalse((server.folder / "data/blobs").exists())
        stored = server.request("GET", "/v1/storage").json()
        self.assertEqual(len(self.s3.objects("store/blobs")), stored["blobs"]["count"])
        self.assertEqual(self.s3.objects("store/staging"), [])
        config = server.request("GET", "/v1/config").body.decode() if self.has_config(server) else ""
        for text in (config, "\n".join(server.settings), server.log_tail(),
                     (server.folder / "data/blobs.json").read_text()):
            self.assertNotIn(s3_server.SECRET, text)
        with open(f"/proc/{server.process.pid}/cmdline", encoding="ascii") as arguments:
            self.assertNotIn(s3_server.SECRET, arguments.read())

        # The same machine again, and one that has nothing but the catalog.
        self.assertEqual(server.stop(), 0)
        for folder in ("cache", "tmp"):
            for path in (server.folder / "data" / folder).rglob("*"):
                if path.is_file():
                    path.unlink()
        server.start()
        np.testing.assert_array_equal(self.logits(server), logits)

        # While S3 is away, what is loaded serves; what needs it is 503, and nothing breaks.
        self.s3.kill()
        np.testing.assert_array_equal(self.logits(server), logits)
        self.assertEqual(server.request("GET", "/readyz").status, 200)
        refused = server.upload("other", DIGITS.read_bytes() + b"\x12\x041234")
        self.assertEqual(refused.status, 503, refused.body)
        self.s3.start()
        self.assertEqual(server.upload("other", DIGITS.read_bytes() + b"\x12\x041234").status, 201)

        self.assertEqual(server.request("DELETE", "/v1/deployments/digits").status, 204)
        for path in (f"/v1/packages/{package}", "/v1/models/digits", "/v1/models/other"):
            self.assertIn(server.request("DELETE", path).status, (200, 204))
        self.assertEqual(server.request("POST", "/v1/gc").status, 200)
        left = server.request("GET", "/v1/storage").json()["blobs"]["count"]
        self.assertEqual(len(self.s3.objects("store/blobs")), left)
        self.assertLess(left, stored["blobs"]["count"])
        self.assertEqual(server.stop(), 0)
        checked = mill.run_program("fsck", "--data", server.folder / "data", *self.options, "--json")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    @staticmethod
    def modules(server):
        """What a server loads for S3 alone."""
        return [name for name in ("tensormill-s3",) if name in server.maps()]

    @staticmethod
    def has_config(server):
        return "/v1/config" in server.request("GET", "/openapi.json").json()["paths"]

    def test_faults_of_the_network_lose_nothing(self):
        server = self.serve("--set", "s3.stall_timeout=1s")
        names = []
        for number, faults in enumerate((["reset", "reset"], ["cut"], ["busy", "broken", "busy"], ["freeze"],
                                         ["late", "reset"], ["broken", "cut", "reset"])):
            data = DIGITS.read_bytes() + bytes([0x12, 0x04]) + f"{number:04d}".encode()
            self.proxy.plan(faults)
            answer = server.upload(f"m{number}", data)
            self.assertEqual(answer.status, 201, answer.body)
            self.assertEqual(self.proxy.faults, [], f"{faults}: not all happened")
            names.append(f"m{number}")
        self.proxy.plan(["reset", "busy", "cut", None, "reset"] * 3)
        package = server.compile("m0", SHAPES, opt_level=1)
        self.assertEqual(server.deploy("digits", package).status, 201)
        logits = self.logits(server)
        self.assertEqual(server.stop(signal.SIGKILL), -signal.SIGKILL)
        server.start()
        self.assertEqual(sorted(m["name"] for m in server.request("GET", "/v1/models").json()["items"]), names)
        np.testing.assert_array_equal(self.logits(server), logits)
        self.assertEqual(server.stop(), 0)
        checked = mill.run_program("fsck", "--data", server.folder / "data", *self.options, "--json")
        self.assertEqual((checked.returncode, json.loads(checked.stdout)["problems"]), (0, []), checked.stderr)

    def test_a_place_belongs_to_one_store(self):
        server = self.serve()
        self.assertEqual(server.stop(), 0)
        data = server.folder / "data"
        serve = ("serve", "--listen", "127.0.0.1:0", "--data")
        other = mill.run_program(*serve, server.folder / "other", *self.options)
        self.assertEqual(other.returncode, 3, other.stderr)
        self.assertIn("another store", other.stderr)
        plain = mill.run_program(*serve, data)
        self.assertEqual(plain.returncode, 2, plain.stderr)
        self.assertIn(URL, plain.stderr)
        backup = mill.run_program("backup", "--data", data, "-o", server.folder / "copy")
        self.assertIn(URL, backup.stderr)
        endpoint = self.options[2:]
        for wrong, word in (([*endpoint, "--blobs", "s3://Bad"], "bucket"),
                            (["--blobs", URL, "--set", "s3.endpoint=http://s3.example.com"], "https"),
                            ([*self.options, "--read-only", "--models", "."], "read-only"),
                            ([*self.options, "--set", "s3.addressing=odd"], "addressing")):
            answer = mill.run_program(*serve, data, *wrong)
            self.assertEqual(answer.returncode, 2, answer.stderr)
            self.assertIn(word, answer.stderr)

    def test_a_store_moves_to_s3_and_back(self):
        server = serving.make_server(self)
        package = self.digits(server)
        self.assertEqual(server.deploy("digits", package).status, 201)
        logits = self.logits(server)
        names = serving.blobs(server)[0]
        data = server.folder / "data"
        self.assertEqual(self.modules(server), [])
        endpoint = ("--set", f"s3.endpoint=http://127.0.0.1:{self.proxy.port}")
        busy = mill.run_program("migrate", "--data", data, "--to", URL, *endpoint)
        self.assertEqual(busy.returncode, 3, busy.stderr)
        self.assertEqual(server.stop(), 0)

        # The first run dies on the way, and the second takes up what it did.
        self.proxy.plan([None] * 12 + ["busy"] * 1000)
        cut = mill.run_program("migrate", "--data", data, "--to", URL, *endpoint, "--set", "s3.attempts=1")
        self.assertEqual(cut.returncode, 5, cut.stderr)
        self.proxy.plan([])
        begun = len(self.s3.objects("store/blobs"))
        self.assertGreater(begun, 0)
        done = json.loads(mill.check_program(self, "migrate", "--data", data, "--to", URL, *endpoint, "--json"))
        self.assertEqual((done["blobs"], done["copied"]), (len(names), len(names) - begun))
        self.assertEqual([key.removeprefix("store/") for key in self.s3.objects("store/blobs")], names)
        shutil.rmtree(data / "blobs")
        server.options = self.options
        server.start()
        self.assertEqual(self.modules(server), ["tensormill-s3"])
        np.testing.assert_array_equal(self.logits(server), logits)
        self.assertEqual(server.stop(), 0)

        done = json.loads(mill.check_program(self, "migrate", "--data", data, "--to", "folder", *endpoint, "--json"))
        self.assertEqual(done["copied"], done["blobs"])
        server.options = ()
        server.start()
        np.testing.assert_array_equal(self.logits(server), logits)
        self.assertEqual(serving.blobs(server)[0], names)


if __name__ == "__main__":
    unittest.main()
