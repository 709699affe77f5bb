"""KServe v2 over gRPC: messages against those of the public interface, and both clients with a peer that answers as it is told."""

import asyncio
import json
import random
import signal
import ssl
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import httpx
import ml_dtypes
import numpy as np
import pytest
from tritonclient.grpc import service_pb2

import tensormill as tm
from tensormill import _grpc, _wire

PICTURE = np.arange(6, dtype=np.float32).reshape(2, 3)
ARRAYS = {"f": PICTURE, "turned": PICTURE.T, "swapped": PICTURE.astype(">f4"), "scalar": np.array(7, np.int64),
          "none": np.zeros((0, 4), np.uint16), "flags": np.array([True, False]), "half": np.ones(3, np.float16)}
BF16 = np.array([1.5, -2], ml_dtypes.bfloat16)


def response(**arrays):
    made = service_pb2.ModelInferResponse(model_name="net", model_version="1", id="x")
    for name, (kind, array) in arrays.items():
        made.outputs.add(name=name, datatype=kind, shape=array.shape)
        made.raw_output_contents.append(array.tobytes())
    return made


ANSWER = response(y=("FP32", PICTURE), n=("INT64", np.array(-5))).SerializeToString()


def test_requests_are_those_of_the_public_interface():
    data = _grpc.infer_message("net/ä", "3", {**ARRAYS, "bf16": BF16, "texts": np.array([["a", "ü"]])}, ["y"], {"timeout": 5, "priority": 2})
    request = service_pb2.ModelInferRequest.FromString(data)
    assert (request.model_name, request.model_version, [one.name for one in request.outputs]) == ("net/ä", "3", ["y"])
    assert {name: one.int64_param for name, one in request.parameters.items()} == {"timeout": 5, "priority": 2}
    found = {one.name: (one.datatype, list(one.shape), raw) for one, raw in zip(request.inputs, request.raw_input_contents)}
    assert len(found) == len(request.raw_input_contents) == len(ARRAYS) + 2
    kinds = {"scalar": "INT64", "none": "UINT16", "flags": "BOOL", "half": "FP16"}
    for name, array in ARRAYS.items():
        little = array.astype(array.dtype.newbyteorder("<"))
        assert found[name] == (kinds.get(name, "FP32"), list(array.shape), little.tobytes())
    assert found["bf16"] == ("BF16", [2], BF16.tobytes())
    assert found["texts"] == ("BYTES", [1, 2], b"\1\0\0\0a\2\0\0\0\xc3\xbc")
    # What was written is what is read: no field is lost that the message's own writer would have written.
    assert service_pb2.ModelInferRequest.FromString(request.SerializeToString()) == request


def test_answers_are_those_of_the_public_interface():
    made = response(y=("FP32", PICTURE), none=("INT8", np.zeros((3, 0), np.int8)), bits=("BF16", BF16), n=("INT64", np.array(-5)))
    made.outputs.add(name="t", datatype="BYTES", shape=[2])
    made.raw_output_contents.append(b"\1\0\0\0a\0\0\0\0")
    made.parameters["triton_final_response"].bool_param = True
    data = made.SerializeToString()
    got = _grpc.read_infer_message(data)
    assert list(got) == ["y", "none", "bits", "n", "t"]
    assert got["y"].tobytes() == PICTURE.tobytes() and got["y"].shape == (2, 3)
    assert (got["none"].shape, got["none"].dtype, got["n"].item(), list(got["t"])) == ((3, 0), np.int8, -5, ["a", ""])
    assert np.array_equal(got["bits"], BF16.view(np.uint16))
    # A view of the message, where it was received.
    start = np.frombuffer(data, np.uint8).ctypes.data
    assert start <= got["y"].ctypes.data < start + len(data)


def test_shapes_come_packed_or_not():
    loose = _wire.text(1, "y") + _wire.text(2, "INT8") + _wire.integer(3, 2) + _wire.integer(3, 1)
    got = _grpc.read_infer_message(_wire.text(5, loose) + _wire.text(6, b"ab"))
    assert got["y"].tolist() == [[97], [98]]


def test_broken_answers_are_errors():
    made = random.Random(4)
    seen = 0
    for _ in range(4000):
        data = bytearray(ANSWER[:made.randrange(len(ANSWER) + 1)] if made.random() < 0.5 else ANSWER)
        for _ in range(made.randrange(4)):
            if data:
                data[made.randrange(len(data))] = made.randrange(256)
        try:
            _grpc.read_infer_message(bytes(data))
        except tm.TensorMillError as error:
            assert error.code == "invalid_tensor"
            seen += 1
    assert seen > 400
    for data in (b"\x0b", b"\xff" * 11, _wire.integer(5, 1), _wire.text(6, b"a"), response(y=("FP8", PICTURE)).SerializeToString()):
        with pytest.raises(tm.TensorMillError):
            _grpc.read_infer_message(data)


class Peer:
    """A server that gives `answers` in turn: a message, or what to do with the call's context. Calls are noted."""

    def __init__(self, *answers):
        self.answers, self.requests, self.metadata, self.remaining = list(answers), [], [], []
        self.server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
        handler = grpc.unary_unary_rpc_method_handler(self.answer)
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("inference.GRPCInferenceService",
                                                                                   {"ModelInfer": handler})])
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def answer(self, message, context):
        self.requests.append(service_pb2.ModelInferRequest.FromString(message))
        self.metadata.append(dict(context.invocation_metadata()))
        self.remaining.append(context.time_remaining())
        answer = self.answers.pop(0)
        return answer(context) if callable(answer) else answer


def fails(code, text, problem=None, **fields):
    def fail(context):
        metadata = [(name.replace("_", "-"), value) for name, value in fields.items()]
        if problem is not None:
            metadata.append(("problem-bin", problem if isinstance(problem, bytes) else json.dumps(problem).encode()))
        context.set_trailing_metadata(metadata)
        context.abort(code, text)
    return fail


@pytest.fixture
def peer():
    made = []

    def make(*answers):
        made.append(Peer(*answers))
        return made[-1]

    yield make
    for one in made:
        one.server.stop(None).wait()


def infer_by(kind, address, **options):
    """The outputs that a client without asyncio, or one with it, gets of a peer."""
    client_options = {"grpc": address, "retries": tm.client.Retries(first=0.0), **options.pop("client", {})}
    if kind == "sync":
        with tm.Client("http://tm.test", **client_options) as client:
            return client.infer("net", {"x": PICTURE}, protocol="grpc", **options)

    async def run():
        async with tm.AsyncClient("http://tm.test", **client_options) as client:
            return await client.infer("net", {"x": PICTURE}, protocol="grpc", **options)

    return asyncio.run(run())


both = pytest.mark.parametrize("kind", ["sync", "async"])
UNAVAILABLE, INVALID = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INVALID_ARGUMENT


@both
def test_a_call_has_key_deadline_and_parameters(kind, peer):
    one = peer(ANSWER, ANSWER)
    got = infer_by(kind, one.address, version="2", outputs=["y"], timeout=200.0, priority=3, client={"key": "tm_secret"})
    assert np.array_equal(got["y"], PICTURE) and got["n"] == -5
    assert one.metadata[0]["authorization"] == "Bearer tm_secret"
    # Five seconds more than the server's. gRPC sends three digits of a time, rounded up.
    assert 200 < one.remaining[0] <= 206
    assert (one.requests[0].model_version, one.requests[0].parameters["timeout"].int64_param) == ("2", 200_000_000)
    assert one.requests[0].raw_input_contents[0] == PICTURE.tobytes()
    infer_by(kind, f"http://{one.address}", client={"timeout": 50.0})
    assert "authorization" not in one.metadata[1] and 0 < one.remaining[1] <= 50.1


@both
def test_errors_are_those_of_http(kind, peer):
    problem = {"code": "invalid_tensor", "status": 400, "request_id": "r7", "errors": [{"pointer": "/inputs/0/shape", "detail": "long"}]}
    with pytest.raises(tm.ServerError) as caught:
        infer_by(kind, peer(fails(INVALID, "of shape [2,3]", problem, x_request_id="r7")).address)
    error = caught.value
    assert (error.code, error.detail, error.status, error.request_id) == ("invalid_tensor", "of shape [2,3]", 400, "r7")
    assert error.pointer == "/inputs/0/shape"
    for broken in (b"no JSON", b"[1]", None):
        with pytest.raises(tm.ServerError) as caught:
            infer_by(kind, peer(fails(grpc.StatusCode.NOT_FOUND, "no net", broken)).address)
        assert (caught.value.code, caught.value.detail, caught.value.status) == ("not_found", "no net", 404)
    with pytest.raises(tm.ServerError) as caught:
        infer_by(kind, peer(fails(grpc.StatusCode.DATA_LOSS, "bits")).address)
    assert (caught.value.code, caught.value.status) == ("internal_error", 500)


@both
def test_busy_servers_and_broken_connections_are_asked_again(kind, peer):
    busy = {"code": "unavailable", "status": 503}
    one = peer(fails(UNAVAILABLE, "full", busy, retry_after="0"), fails(UNAVAILABLE, "the server ends"), ANSWER)
    assert np.array_equal(infer_by(kind, one.address)["y"], PICTURE)
    assert len(one.requests) == 3
    one = peer(fails(UNAVAILABLE, "full", busy, retry_after="3600"))
    with pytest.raises(tm.ServerError) as caught:
        infer_by(kind, one.address)
    assert (caught.value.retry_after, caught.value.status, len(one.requests)) == (3600, 503, 1)
    one.server.stop(None).wait()
    with pytest.raises(tm.ServerError) as caught:
        infer_by(kind, one.address, client={"retries": tm.client.Retries(most=1, first=0.0)})
    assert (caught.value.code, caught.value.status) == ("unavailable", 0)


@both
def test_a_server_that_says_nothing_has_a_deadline(kind, peer):
    one = peer(lambda context: context.is_active() and waits(context))
    with pytest.raises(tm.ServerError) as caught:
        infer_by(kind, one.address, client={"timeout": 0.2})
    assert (caught.value.code, caught.value.status) == ("deadline_exceeded", 504)


def waits(context):
    """Until the call is over."""
    over = threading.Event()
    if context.add_callback(over.set):
        over.wait()
    return b""


@both
def test_the_server_tells_its_port(kind, peer):
    one = peer(ANSWER, ANSWER)
    asked = []

    def info(request):
        asked.append(request.url.path)
        return httpx.Response(200, json={"grpc_port": int(one.address.split(":")[1])})

    with tm.Client("http://127.0.0.1:1", transport=httpx.MockTransport(info)) as client:
        for _ in range(2):
            assert client.infer("net", {"x": PICTURE}, protocol="grpc")["n"] == -5
    assert asked == ["/v1/info"]
    without = {"transport": httpx.MockTransport(lambda _: httpx.Response(200, json={"version": "1"}))}
    with pytest.raises(tm.ServerError, match="grpc.listen") as caught:
        infer_by(kind, None, client=without)
    assert caught.value.code == "not_supported"


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """The address of a server with a certificate and keys, the certificate, and a key for the deployment `net` alone."""
    folder = tmp_path_factory.mktemp("secured")
    certificate, secret = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(secret), "-out",
                    str(certificate)], check=True, capture_output=True)
    keys = ["keys", "--keys-file", str(folder / "keys"), "add", "one", "--scopes", "read,infer:net"]
    key = subprocess.run([str(tm.program_path()), *keys], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    command = [str(tm.program_path()), "serve", "--listen", "127.0.0.1:0", "--data", str(folder / "data"), "--keys-file",
               str(folder / "keys"), "--set", "grpc.listen=127.0.0.1:0", "--set", f"http.tls_certificate={certificate}",
               "--set", f"http.tls_key={secret}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        line = next(line for line in process.stdout if line.startswith("listening on "))
        yield f"https://localhost:{line.strip().rsplit(':', 1)[1]}", certificate, key
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
    assert process.returncode == 0


def test_certificates_and_keys_of_a_server(secured):
    address, certificate, key = secured
    trusted = ssl.create_default_context(cafile=certificate)
    with tm.Client(address, key, verify=trusted) as client:
        for name, code, status in (("net", "not_found", 404), ("other", "forbidden", 403)):
            with pytest.raises(tm.ServerError) as caught:
                client.infer(name, {"x": PICTURE}, protocol="grpc")
            assert (caught.value.code, caught.value.status) == (code, status) and caught.value.request_id
        found = f"https://localhost:{client.info()['grpc_port']}"
    refused = {"retries": tm.client.Retries(most=0)}
    with tm.Client(address, "tm_wrong", verify=trusted, grpc=found, **refused) as client, pytest.raises(tm.ServerError) as caught:
        client.infer("net", {"x": PICTURE}, protocol="grpc")
    assert (caught.value.code, caught.value.status) == ("unauthorized", 401)
    # By the authorities that everybody trusts, the server is a stranger.
    with tm.Client(address, key, grpc=found, **refused) as client, pytest.raises(tm.ServerError) as caught:
        client.infer("net", {"x": PICTURE}, protocol="grpc")
    assert (caught.value.code, caught.value.status) == ("unavailable", 0)


@both
def test_certificates_are_always_checked(kind):
    with pytest.raises(ValueError, match="always verifies"):
        infer_by(kind, "https://127.0.0.1:1", client={"verify": False})


def test_addresses():
    for wrong in ("grpc://a:1", "http://a:1/path", "http://"):
        with pytest.raises(ValueError, match="expected host:port"):
            tm.Client(grpc=wrong)
    assert _grpc.address_of("[::1]:9", "http://a") == ("[::1]:9", False)
    assert _grpc.address_of("https://mill", "http://a") == ("mill:443", True)


def test_grpcio_is_an_extra():
    code = """
import sys, numpy as np, tensormill as tm
client = tm.Client(grpc="127.0.0.1:1")
print("grpc" in sys.modules)
sys.modules["grpc"] = None
try:
    client.infer("net", {"x": np.zeros(1)}, protocol="grpc")
except ImportError as error:
    print(error)
"""
    out = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    assert out[0] == "False" and "pip install 'tensormill[grpc]'" in out[1]
