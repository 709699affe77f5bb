"""KServe's CUDA shared memory over HTTP and gRPC, with a stand-in for the driver (tests/api/cuda_driver) whose GPUs are shared memory objects.

On a GPU it was not run: there, tritonclient's simple_grpc_cudashm_client.py and simple_http_cudashm_client.py do the same.
"""

import base64
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from grpc_peer import grpc, service_pb2
import grpc_peer
import numpy as np

import mill
import serving
from replicas import PICTURE

DIGITS = mill.ROOT / "tests/models/digits.onnx"
DRIVER = mill.ROOT / "build/bin/tests/cuda_driver/libcuda.so.1"
INPUT, OUTPUT = 784 * 4, 40


class CudaMemoryTest(grpc_peer.GrpcCase):
    @classmethod
    def setUpClass(cls):
        with mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": str(DRIVER.parent)}):
            cls.server = grpc_peer.make_server(cls, "--set", "v2.cuda_shared_memory=true")
        cls.client, cls.stub = grpc_peer.client(cls, cls.server), grpc_peer.stub(cls, cls.server)
        cls.server.upload("digits", DIGITS.read_bytes())
        cls.server.deploy("digits", cls.server.compile("digits", {"image": [1, 1, 28, 28]}, opt_level=0))
        cls.logits = serving.from_npz(cls.server.infer("digits", PICTURE).body)["logits"].reshape(-1)

    def setUp(self):
        """What a client does on a GPU: it allocates, copies an input there and takes the handle."""
        self.key = f"/tensormill-gpu-{os.getpid()}"
        self.memory = Path("/dev/shm" + self.key)
        self.memory.write_bytes(PICTURE["image"].tobytes() + bytes(64))
        self.addCleanup(self.memory.unlink)
        self.addCleanup(self.client.unregister_cuda_shared_memory)

    def handle(self, offset=0):
        """Of what begins at that byte of the object."""
        return (self.key + (f"@{offset}" if offset else "")).encode().ljust(64, b"\0")

    def post(self, path, body):
        return self.server.send_json("POST", "/v2/" + path, body)

    def register(self, name, handle, size, device=0):
        return self.post(f"cudasharedmemory/region/{name}/register",
                         {"raw_handle": {"b64": base64.b64encode(handle).decode()}, "device_id": device, "byte_size": size})

    def output(self, offset):
        return np.frombuffer(self.memory.read_bytes()[INPUT + offset:INPUT + offset + OUTPUT], np.float32)

    @staticmethod
    def place(region, size, offset=0):
        return {"shared_memory_region": region, "shared_memory_byte_size": size, "shared_memory_offset": offset}

    def test_over_http(self):
        self.assertEqual(self.register("in", self.handle(), INPUT).status, 200)
        self.assertEqual(self.register("out", self.handle(INPUT), 64, device=1).status, 200)
        self.assertIn("libcuda.so.1", self.server.maps())
        self.assertEqual(self.server.request("GET", "/v2/cudasharedmemory/status").json(),
                         [{"name": "in", "device_id": 0, "byte_size": INPUT}, {"name": "out", "device_id": 1, "byte_size": 64}])
        self.assertEqual(self.server.request("GET", "/v2/systemsharedmemory/status").json(), [])
        self.assertIn("cuda_shared_memory", self.server.request("GET", "/v2").json()["extensions"])

        def infer(inputs, outputs):
            return self.post("models/digits/infer", {
                "inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 1, 28, 28], "parameters": inputs}],
                "outputs": [{"name": "logits", "parameters": outputs}]})
        answer = infer(self.place("in", INPUT), self.place("out", OUTPUT, 8))
        self.assertEqual(answer.status, 200, answer.body)
        self.assertNotIn("data", answer.json()["outputs"][0])
        np.testing.assert_array_equal(self.output(8), self.logits)
        for inputs, outputs in ((self.place("in", INPUT, 4), {}), (self.place("none", INPUT), {}),
                                (self.place("in", INPUT), self.place("out", OUTPUT, 32))):
            answer = infer(inputs, outputs)
            self.assertEqual(answer.status, 400, answer.body)
        self.assertEqual(self.post("cudasharedmemory/region/in/unregister", {}).status, 200)
        self.assertIn("not registered", infer(self.place("in", INPUT), {}).json()["error"])
        self.assertEqual(self.server.request("GET", "/v2/cudasharedmemory/region/in/status").status, 404)
        self.assertEqual(self.post("cudasharedmemory/unregister", {}).status, 200)
        self.assertEqual(self.server.request("GET", "/v2/cudasharedmemory/status").json(), [])
        # Whoever has forgotten its regions has none of the memory mapped any more.
        self.assertNotIn(self.key, self.server.maps())

    def test_over_grpc(self):
        # As the public client has it, and as the message is.
        self.client.register_cuda_shared_memory("in", base64.b64encode(self.handle()), 0, INPUT)
        self.stub.CudaSharedMemoryRegister(service_pb2.CudaSharedMemoryRegisterRequest(
            name="out", raw_handle=self.handle(INPUT), device_id=1, byte_size=64))
        told = self.stub.CudaSharedMemoryStatus(service_pb2.CudaSharedMemoryStatusRequest()).regions
        self.assertEqual({name: (one.name, one.device_id, one.byte_size) for name, one in told.items()},
                         {"in": ("in", 0, INPUT), "out": ("out", 1, 64)})
        told = self.client.get_cuda_shared_memory_status("out").regions
        self.assertEqual(list(told), ["out"])
        image = grpc_peer.triton.InferInput("image", [1, 1, 28, 28], "FP32")
        image.set_shared_memory("in", INPUT)
        logits = grpc_peer.triton.InferRequestedOutput("logits")
        logits.set_shared_memory("out", OUTPUT, 16)
        result = self.client.infer("digits", [image], outputs=[logits])
        self.assertEqual(result.get_output("logits").parameters["shared_memory_region"].string_param, "out")
        np.testing.assert_array_equal(self.output(16), self.logits)
        self.client.unregister_cuda_shared_memory("in")
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, self.client.infer, "digits", [image], says="not registered")
        # A client forgets the regions of the other kind first, though that one is off.
        self.client.unregister_system_shared_memory()
        self.client.unregister_cuda_shared_memory()
        self.assertEqual(len(self.client.get_cuda_shared_memory_status().regions), 0)

    def test_what_is_no_region_is_named(self):
        for handle, device, size, says in ((b"short", 0, 8, "raw_handle has 5 bytes"), (self.handle(), 2, 8, "device_id 2 is none of the 2 GPUs"),
                                           (b"x" * 64, 0, 8, "cuIpcOpenMemHandle: CUDA_ERROR_INVALID_VALUE"),
                                           (self.handle(), 0, INPUT + 65, f"is not in the {INPUT + 64} bytes"),
                                           (self.handle(), -1, 8, "device_id"), (self.handle(), 0, 0, "byte_size 0")):
            answer = self.register("r", handle, size, device)
            self.assertEqual(answer.status, 400, answer.body)
            self.assertIn(says, answer.json()["error"])
            request = service_pb2.CudaSharedMemoryRegisterRequest(name="r", raw_handle=handle, device_id=device, byte_size=size)
            self.refused(grpc.StatusCode.INVALID_ARGUMENT, self.stub.CudaSharedMemoryRegister, request, says=says)
        for request in (service_pb2.CudaSharedMemoryRegisterRequest(raw_handle=self.handle(), byte_size=8),
                        service_pb2.CudaSharedMemoryRegisterRequest(name="r", byte_size=8)):
            self.refused(grpc.StatusCode.INVALID_ARGUMENT, self.stub.CudaSharedMemoryRegister, request, says="is ")
        self.assertEqual(self.register("r", self.handle(), 8).status, 200)
        self.assertEqual(self.register("r", self.handle(), 8).status, 409)
        self.assertEqual(self.server.request("GET", "/v2/health/live").status, 200)


class WithoutTest(unittest.TestCase):
    def register(self, server):
        return server.send_json("POST", "/v2/cudasharedmemory/region/r/register",
                                {"raw_handle": {"b64": base64.b64encode(bytes(64)).decode()}, "device_id": 0, "byte_size": 8})

    def test_off_by_default_and_on_loopback_alone(self):
        server = serving.make_server(self)
        answer = self.register(server)
        self.assertEqual((answer.status, "v2.cuda_shared_memory" in answer.json()["error"]), (501, True), answer.body)
        self.assertNotIn("libcuda", server.maps())
        self.assertNotIn("cuda_shared_memory", server.request("GET", "/v2").json()["extensions"])
        keys = Path(server.folder) / "keys"
        mill.run_program("keys", "--keys-file", keys, "add", "me", "--scopes", "admin")
        done = mill.run_program("serve", "--listen", "0.0.0.0:0", "--data", Path(server.folder) / "other", "--keys-file", keys, "--set",
                                "v2.cuda_shared_memory=true")
        self.assertEqual((done.returncode, "v2.cuda_shared_memory is for this machine alone" in done.stderr), (2, True), done.stderr)

    def test_without_a_driver_its_library_is_named(self):
        # A file that is no library is found before a driver that this machine may have.
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        (Path(folder.name) / "libcuda.so.1").write_bytes(b"")
        with mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": folder.name}):
            server = serving.make_server(self, "--set", "v2.cuda_shared_memory=true")
        self.assertNotIn("libcuda", server.maps())
        answer = self.register(server)
        self.assertEqual((answer.status, "libcuda.so.1" in answer.json()["error"]), (501, True), answer.body)
        self.assertEqual(server.request("GET", "/v2/cudasharedmemory/status").json(), [])


if __name__ == "__main__":
    unittest.main()
