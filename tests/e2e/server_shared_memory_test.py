"""KServe's system shared memory: inputs are copied from there and outputs into it, for clients on this machine, where it is on."""

import mmap
import os
import unittest
from pathlib import Path

import numpy as np

import mill
import serving
from replicas import PICTURE

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}
INPUT, OUTPUT = 784 * 4, 40


class SharedMemoryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls, "--set", "v2.system_shared_memory=true")
        cls.server.upload("digits", DIGITS.read_bytes())
        cls.package = cls.server.compile("digits", SHAPES, opt_level=0)
        cls.server.deploy("digits", cls.package)
        cls.key = f"/tensormill-e2e-{os.getpid()}"
        cls.path = Path("/dev/shm" + cls.key)
        cls.addClassCleanup(cls.path.unlink)
        cls.path.write_bytes(PICTURE["image"].tobytes() + bytes(64))

    def post(self, path, body):
        return self.server.send_json("POST", "/v2/" + path, body)

    def register(self, name, offset, size, key=None):
        return self.post(f"systemsharedmemory/region/{name}/register",
                         {"key": key or self.key, "offset": offset, "byte_size": size})

    def infer(self, inputs, outputs):
        return self.post("models/digits/infer", {
            "inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 1, 28, 28], **inputs}],
            "outputs": [{"name": "logits", **outputs}]})

    @staticmethod
    def place(region, size, offset=0):
        return {"parameters": {"shared_memory_region": region, "shared_memory_byte_size": size, "shared_memory_offset": offset}}

    def test_inputs_and_outputs_in_shared_memory_are_those_of_the_body(self):
        self.assertEqual(self.register("in", 0, INPUT).status, 200)
        self.assertEqual(self.register("out", INPUT, 64).status, 200)
        listed = self.server.request("GET", "/v2/systemsharedmemory/status").json()
        self.assertEqual([one["name"] for one in listed], ["in", "out"])
        answer = self.infer(self.place("in", INPUT), self.place("out", OUTPUT, 8))
        self.assertEqual(answer.status, 200, answer.body)
        output = answer.json()["outputs"][0]
        self.assertNotIn("data", output)
        self.assertEqual(output["parameters"]["shared_memory_byte_size"], OUTPUT)
        with open(self.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
            logits = np.frombuffer(memory[INPUT + 8:INPUT + 8 + OUTPUT], np.float32)
        expected = serving.from_npz(self.server.infer("digits", PICTURE).body)["logits"].reshape(-1)
        np.testing.assert_array_equal(logits, expected)
        for inputs, outputs, status in ((self.place("in", INPUT - 4), {}, 400), (self.place("none", INPUT), {}, 400),
                                        (self.place("in", INPUT, 4), {}, 400), ({**self.place("in", INPUT), "data": [0] * 784}, {}, 400),
                                        (self.place("in", INPUT), self.place("out", OUTPUT - 4), 400),
                                        (self.place("in", INPUT), self.place("out", OUTPUT, 32), 400)):
            answer = self.infer(inputs, outputs)
            self.assertEqual(answer.status, status, answer.body)
        # An object that its client makes shorter is that request's error, and no end of the server.
        os.truncate(self.path, 100)
        self.assertEqual(self.infer(self.place("in", INPUT), {}).status, 400)
        self.assertEqual(self.server.request("GET", "/v2/health/live").status, 200)
        self.assertEqual(self.post("systemsharedmemory/region/in/unregister", {}).status, 200)
        self.assertEqual(self.post("systemsharedmemory/unregister", {}).status, 200)
        self.assertEqual(self.server.request("GET", "/v2/systemsharedmemory/status").json(), [])
        self.assertEqual(self.server.request("GET", "/v2/systemsharedmemory/region/in/status").status, 404)
        self.assertIn("system_shared_memory", self.server.request("GET", "/v2").json()["extensions"])
        self.assertEqual(self.register("x", 0, 8, "/other").status, 400)

    def test_off_by_default_and_on_loopback_alone(self):
        server = serving.make_server(self)
        answer = server.send_json("POST", "/v2/systemsharedmemory/region/in/register", {"key": self.key, "byte_size": 8})
        self.assertEqual(answer.status, 501, answer.body)
        self.assertNotIn("system_shared_memory", server.request("GET", "/v2").json()["extensions"])
        keys = Path(server.folder) / "keys"
        mill.run_program("keys", "--keys-file", keys, "add", "me", "--scopes", "admin")
        done = mill.run_program("serve", "--listen", "0.0.0.0:0", "--data", Path(server.folder) / "other", "--keys-file", keys, "--set",
                                "v2.system_shared_memory=true")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("loopback", done.stderr)
        on = ("--listen", "127.0.0.1:0", "--data", Path(server.folder) / "other", "--keys-file", keys, "--set",
              "v2.system_shared_memory=true", "--set")
        for more, says in (("grpc.listen=0.0.0.0:0", "grpc.listen 0.0.0.0:0 is not loopback"),
                           ("v2.shared_memory_prefixes=../x", "is the beginning of no object's name")):
            done = mill.run_program("serve", *on, more)
            self.assertEqual((done.returncode, says in done.stderr), (2, True), done.stderr)


if __name__ == "__main__":
    unittest.main()
