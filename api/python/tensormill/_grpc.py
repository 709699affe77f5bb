"""KServe v2 over gRPC: messages of an inference, channels, and errors as those of HTTP.

grpcio is the extra ``tensormill[grpc]`` and is imported when the first call is made. It is used by its generic calls: a message is bytes
here, made by the numbers of the public interface (``server/grpc/inference.proto``), so tensors are copied once, into the message,
and outputs are views of the answer.
"""

from __future__ import annotations

import importlib
import json
import ssl
import struct
import threading
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import httpx

from . import _v2, _wire
from ._dtypes import Array
from ._errors import ServerError, TensorMillError
from ._http import Answer, Broken, Request, error_of, is_loopback

INFER = "/inference.GRPCInferenceService/ModelInfer"

# What a call fails with where no request of HTTP stands behind it: gRPC's name of the status -> code and HTTP's status.
_CODES = {"CANCELLED": ("cancelled", 409), "INVALID_ARGUMENT": ("invalid_request", 400), "DEADLINE_EXCEEDED": ("deadline_exceeded", 504),
          "NOT_FOUND": ("not_found", 404), "PERMISSION_DENIED": ("forbidden", 403), "RESOURCE_EXHAUSTED": ("too_large", 413),
          "FAILED_PRECONDITION": ("conflict", 409), "UNIMPLEMENTED": ("not_supported", 501), "UNAUTHENTICATED": ("unauthorized", 401)}
_INTERNAL = ("internal_error", 500)


def _parameter(name: str, value: int) -> bytes:
    """An entry of the map of a request's parameters."""
    entry = _wire.text(1, name) + _wire.text(2, _wire.integer(2, value))
    return _wire.text(4, entry)


def infer_message(model: str, version: Optional[str], inputs: Mapping[str, Array], outputs: Optional[Sequence[str]],
                  parameters: Mapping[str, int]) -> bytes:
    """A ModelInferRequest."""
    pieces: List[bytes] = [_wire.text(1, model)]
    if version is not None:
        pieces.append(_wire.text(2, version))
    pieces += [_parameter(name, value) for name, value in parameters.items()]
    tensors: List[bytes] = []
    for name, array in inputs.items():
        kind, data = _v2.to_bytes(array)
        shape = b"".join(map(_wire.varint, array.shape))
        pieces.append(_wire.text(5, _wire.text(1, name) + _wire.text(2, kind) + _wire.text(3, shape)))
        tensors += [_wire.head(7, len(data)), data]
    pieces += [_wire.text(6, _wire.text(1, name)) for name in outputs or ()]
    return b"".join(pieces + tensors)


def _output(message: memoryview) -> Tuple[str, str, List[int]]:
    name, kind, shape = "", "", []
    for number, value in _wire.fields(message):
        if number == 3:
            shape += _wire.integers(value)
        elif number in (1, 2):
            text = bytes(_bytes(value)).decode()
            name, kind = (text, kind) if number == 1 else (name, text)
    return name, kind, shape


def _bytes(value: Any) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a field is a number where a text or a message is expected")
    view: memoryview = value
    return view


def read_infer_message(data: bytes) -> Dict[str, Array]:
    """Outputs by name of a ModelInferResponse."""
    try:
        outputs, tensors = [], []
        for number, value in _wire.fields(memoryview(data)):
            if number == 5:
                outputs.append(_output(_bytes(value)))
            elif number == 6:
                tensors.append(_bytes(value))
        if len(outputs) != len(tensors):
            raise ValueError(f"there are {len(outputs)} outputs and {len(tensors)} raw tensors")
        return {name: _v2.from_bytes(part, kind, shape) for (name, kind, shape), part in zip(outputs, tensors)}
    except KeyError as error:
        raise TensorMillError("invalid_tensor", f"the answer has elements of {error.args[0]!r}, which are not known here") from error
    except (ValueError, struct.error) as error:
        raise TensorMillError("invalid_tensor", f"the answer cannot be read: {error}") from error


class Address(NamedTuple):
    """``target`` as grpcio has it: host and port."""

    target: str
    is_secure: bool


def address_of(text: str, url: str) -> Address:
    """Of ``host:port``, or the URL of a server's own line. What it does not say is as in ``url``.

    >>> address_of("10.0.0.5:8081", "https://mill:8080"), address_of("http://127.0.0.1:8081", "https://mill:8080")
    (Address(target='10.0.0.5:8081', is_secure=True), Address(target='127.0.0.1:8081', is_secure=False))
    """
    whole = httpx.URL(text if "://" in text else f"{httpx.URL(url).scheme}://{text}")
    if whole.scheme not in ("http", "https") or not whole.host or whole.path not in ("", "/"):
        raise ValueError(f"the address of gRPC is {text!r}, expected host:port")
    port = whole.port or (443 if whole.scheme == "https" else 80)
    return Address(host_and_port(whole.host, port), whole.scheme == "https")


def host_and_port(host: str, port: int) -> str:
    """With brackets around an address of IPv6.

    >>> host_and_port("::1", 8081)
    '[::1]:8081'
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def load() -> Any:
    """grpcio; ImportError that says how to get it."""
    try:
        return importlib.import_module("grpc")
    except ImportError as error:
        raise ImportError("protocol='grpc' needs grpcio, which is an extra: pip install 'tensormill[grpc]'") from error


def roots_of(verify: Any) -> bytes:
    """The certificates that ``verify`` of httpx trusts, in PEM."""
    if verify is False:
        raise ValueError("gRPC always verifies a server's certificate: give verify=ssl.create_default_context(cafile=...)")
    trusted = httpx.create_ssl_context(verify=verify).get_ca_certs(binary_form=True)
    return "".join(map(ssl.DER_cert_to_PEM_cert, trusted)).encode()


def problem_of(error: Any) -> ServerError:
    """The error of a call (a grpc.RpcError): what HTTP's problem document says, which comes behind the answer of a request."""
    metadata = {str(name): value for name, value in error.trailing_metadata() or ()}
    status, text = error.code().name, str(error.details() or "")
    problem = metadata.get("problem-bin")
    if problem is None and status == "UNAVAILABLE":
        raise Broken(text)
    try:
        document = {"detail": text, **json.loads(problem or b"{}")}
    except (ValueError, TypeError):
        document = {"detail": text}
    code, number = _CODES.get(status, _INTERNAL)
    document.setdefault("code", code)
    told = document.get("status")
    return error_of(told if isinstance(told, int) else number, {name: str(value) for name, value in metadata.items()},
                    json.dumps(document).encode())


class Channel:
    """The way to a server's gRPC, opened when it is first used. Thread-safety: from any thread."""

    def __init__(self, url: str, address: Optional[str], key: Optional[str], verify: Any, timeout: float, is_async: bool) -> None:
        #: None until it is known.
        self.address = None if address is None else address_of(address, url)
        self._url, self._verify, self._timeout, self._is_async = httpx.URL(url), verify, timeout, is_async
        self._metadata = (("authorization", f"Bearer {key}"),) if key else ()
        self._lock = threading.Lock()
        self._channel: Any = None
        self._infer: Any = None

    def found(self, port: Any) -> None:
        """The port that the server tells, which is of the same machine."""
        if not isinstance(port, int):
            raise ServerError("not_supported", "the server has no listener of gRPC, which --set grpc.listen=ADDRESS:PORT gives it")
        self.address = Address(host_and_port(self._url.host, port), self._url.scheme == "https")

    def _open(self) -> Any:
        with self._lock:
            if self._infer is None:
                if self.address is None:
                    raise RuntimeError("a call before the address is known")
                grpc = load()
                make = importlib.import_module("grpc.aio") if self._is_async else grpc
                # How large a message may be is the server's to say.
                options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
                if is_loopback(httpx.URL(f"//{self.address.target}").host):
                    options.append(("grpc.enable_http_proxy", 0))
                if self.address.is_secure:
                    trusted = grpc.ssl_channel_credentials(roots_of(self._verify))
                    self._channel = make.secure_channel(self.address.target, trusted, options)
                else:
                    self._channel = make.insecure_channel(self.address.target, options)
                self._infer = self._channel.unary_unary(INFER)
            return self._infer

    def _arguments(self, request: Request) -> Dict[str, Any]:
        # The server's deadline is the request's; who waits for the answer waits a little longer.
        wait = self._timeout if request.timeout is None else max(self._timeout, request.timeout + 5.0)
        return {"metadata": self._metadata, "timeout": wait}

    def call(self, request: Request) -> Answer:
        """The message that answers; ServerError, or Broken. Not of an asynchronous one."""
        infer = self._open()
        try:
            return Answer(200, {}, infer(request.body, **self._arguments(request)))
        except load().RpcError as error:
            raise problem_of(error) from None

    async def call_async(self, request: Request) -> Answer:
        """`call` of an asynchronous one."""
        infer = self._open()
        try:
            return Answer(200, {}, await infer(request.body, **self._arguments(request)))
        except load().RpcError as error:
            raise problem_of(error) from None

    def _taken(self) -> Any:
        with self._lock:
            channel, self._channel, self._infer = self._channel, None, None
        return channel

    def close(self) -> None:
        """Ends calls in work; a later call opens it again. Not of an asynchronous one."""
        channel = self._taken()
        if channel is not None:
            channel.close()

    async def close_async(self) -> None:
        """`close` of an asynchronous one."""
        channel = self._taken()
        if channel is not None:
            await channel.close()
