"""tritonclient of the tests' virtual environment, and servers that listen for it. Import this before numpy."""

import sys
import unittest
from pathlib import Path

sys.path[:0] = [str(path) for path in (Path(__file__).resolve().parents[1] / "python/venv/lib").glob("python3*/site-packages")]

import grpc  # noqa: E402
import numpy as np  # noqa: E402
import tritonclient.grpc as triton  # noqa: E402
import tritonclient.grpc.aio as triton_aio  # noqa: E402
from tritonclient.utils import InferenceServerException  # noqa: E402
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc  # noqa: E402

import serving  # noqa: E402

__all__ = ["InferenceServerException", "grpc", "model_config_pb2", "service_pb2", "service_pb2_grpc", "triton", "triton_aio"]

LISTEN = ("--set", "grpc.listen=127.0.0.1:0")


def address(settings):
    """Of a server's own lines."""
    line = next(line for line in settings if line.startswith("gRPC on "))
    return line.split("//")[1]


def make_server(test, *options):
    server = serving.make_server(test, *LISTEN, *options)
    server.grpc = address(server.settings)
    return server


def client(test, server):
    add = test.addClassCleanup if isinstance(test, type) else test.addCleanup
    made = triton.InferenceServerClient(server.grpc)
    add(made.close)
    return made


def stub(test, server):
    """The generated methods, for messages that tritonclient would not send."""
    add = test.addClassCleanup if isinstance(test, type) else test.addCleanup
    channel = grpc.insecure_channel(server.grpc, options=[("grpc.max_send_message_length", -1)])
    add(channel.close)
    return service_pb2_grpc.GRPCInferenceServiceStub(channel)


DATATYPES = {"f": "FP32", "O": "BYTES", "i": "INT64"}


def tensor(name, array):
    made = triton.InferInput(name, list(array.shape), DATATYPES[array.dtype.kind])
    made.set_data_from_numpy(array)
    return made


def raw_request(name, array, **more):
    """A ModelInferRequest with one FP32 input in raw form."""
    request = service_pb2.ModelInferRequest(model_name=name, **more)
    request.inputs.add(name="image", datatype="FP32", shape=array.shape)
    request.raw_input_contents.append(np.ascontiguousarray(array).tobytes())
    return request


class GrpcCase(unittest.TestCase):
    def refused(self, code, call, *words, says=""):
        """Of a stub's call or of tritonclient's."""
        with self.assertRaises((grpc.RpcError, InferenceServerException)) as caught:
            call(*words)
        error = caught.exception
        got = error.code() if isinstance(error, grpc.RpcError) else error.status()
        self.assertIn(code.name, str(got))
        text = error.details() if isinstance(error, grpc.RpcError) else error.message()
        self.assertTrue(text)
        self.assertIn(says, text)
