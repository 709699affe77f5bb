"""Work that is carried by hand: an item into a file, done where no server is reached, and its signed result brought back."""

import json
import unittest

import mill
import serving
import workers

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}


class CarryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = workers.folder_of(cls)
        for name in ("own", "other"):
            workers.make_key(cls.folder / f"{name}.pem")
        # What is carried is away for longer than any lease.
        cls.server = serving.make_server(cls, "--set", workers.LEASE, "--set", f"packages.trusted_keys={cls.folder}/own.pem.pub")
        assert cls.server.upload("digits", DIGITS.read_bytes()).status == 201
        cls.package = cls.server.compile("digits", SHAPES, opt_level=0)

    def url(self):
        return f"http://127.0.0.1:{self.server.port}"

    def submit(self):
        answer = self.server.send_json("POST", "/v1/jobs", {"kind": "benchmark", "package": self.package, "repeat": 3,
                                                            "force": True, "on": "room=lab"})
        self.assertEqual(answer.status, 202, answer.body)
        job = answer.json()["id"]
        self.addCleanup(self.server.request, "POST", f"/v1/jobs/{job}/cancel")
        return job

    def take(self, name):
        item = self.folder / f"{name}.item"
        mill.check_program(self, "worker", "--server", self.url(), "--name", name, "--labels", "room=lab", "--take", item,
                           "--hold", "3600")
        return item

    def do(self, item, key="own"):
        result = item.with_suffix(f".{key}.result")
        done = mill.run_program("worker", "--batch", item, "--result", result, "--signing-key", self.folder / f"{key}.pem",
                                "--data", self.folder / "away")
        self.assertEqual(done.returncode, 0, done.stderr)
        return result

    def bring(self, result):
        return mill.run_program("import-results", result, "--server", self.url())

    def state(self, job):
        return self.server.request("GET", f"/v1/jobs/{job}").json()

    def test_there_and_back(self):
        job = self.submit()
        item = self.take("carrier")
        self.assertEqual((self.state(job)["state"], self.state(job)["attempt"]), ("running", 1))
        result = self.do(item)
        whole = result.read_bytes()
        spoilt = self.folder / "spoilt"
        for what, bytes_ in (("changed", whole.replace(b'"succeeded"', b'"succeedet"', 1)), ("cut", whole[:-600]), ("short", b"x"),
                             ("unsigned", whole[:-512]), ("another's", self.do(item, "other").read_bytes())):
            with self.subTest(what):
                spoilt.write_bytes(bytes_)
                refused = self.bring(spoilt)
                self.assertNotEqual(refused.returncode, 0)
                self.assertEqual(self.state(job)["state"], "running", "what is refused changes nothing")
        done = self.bring(result)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = self.state(job)
        self.assertEqual((found["state"], len(found["result"]["runs_ms"]), found["result"]["package"]),
                         ("succeeded", 3, self.package), found)
        again = self.bring(result)
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("is over", again.stderr)

    def test_files_that_are_no_items(self):
        self.submit()
        item = self.take("spoiler")
        whole = item.read_bytes()
        line, rest = whole.split(b"\n", 1)
        head = json.loads(line)
        away = self.folder / "wrong.item"
        self.assertEqual(set(head), {"format", "server", "lease", "blobs"})

        def with_head(**more):
            return json.dumps({**head, **more}).encode() + b"\n" + rest
        for what, bytes_, word in (
                ("nothing", b"", "no first line"), ("words", b"hello\n", "JSON"), ("another format", with_head(format="x"),
                                                                                       "first line"),
                ("cut", whole[:-1], "within a blob"), ("longer", whole + b"x", "follows"),
                ("damaged", whole[:-1] + bytes([whole[-1] ^ 1]), "damaged"), ("no lease", with_head(lease=3), ""),
                ("another verb", with_head(lease={**head["lease"], "verb": "shell"}), "shell"),
                ("a path", with_head(lease={**head["lease"], "id": "../../x.1"}), "no name of a job")):
            with self.subTest(what):
                away.write_bytes(bytes_)
                done = mill.run_program("worker", "--batch", away, "--result", self.folder / "none", "--signing-key",
                                        self.folder / "own.pem", "--data", self.folder / "wrong")
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(word, done.stderr)
                self.assertFalse((self.folder / "none").exists())

    def test_nothing_to_carry(self):
        done = mill.run_program("worker", "--server", self.url(), "--labels", "room=attic", "--take", self.folder / "x", "--verbs",
                                "compile")
        self.assertEqual(done.returncode, 2)
        self.assertFalse((self.folder / "x").exists())


if __name__ == "__main__":
    unittest.main()
