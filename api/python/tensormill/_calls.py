"""Every call of the clients, once: generators that yield requests and are sent answers. `Client` and `AsyncClient` drive
them, each in its own way."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import Any, BinaryIO, Dict, Generator, List, Mapping, NamedTuple, Optional, Sequence, TypeVar, Union

from . import _grpc, _npz, _v2
from ._dtypes import Array
from ._errors import JobError, ServerError, details_of
from ._http import Answer, Request, json_request, once, path_of, query_of
from ._memory import as_array
from ._package import Result
from ._program import PathLike

T = TypeVar("T")
#: What a call is: it ends with its value.
Call = Generator[Request, Answer, T]
Json = Dict[str, Any]
Bytes = Union[bytes, bytearray, memoryview]

CHUNK = 8 << 20
FINAL = ("succeeded", "failed", "cancelled")


class Page(NamedTuple):
    """Items of a list, and where the next ones begin; None at the end."""

    items: List[Json]
    next_cursor: Optional[str]


def get(*parts: str, **query: Any) -> Call[Json]:
    """The JSON at a path."""
    answer = yield Request("GET", path_of(*parts), query=query_of(**query))
    value: Json = answer.json()
    return value


def get_page(*parts: str, **query: Any) -> Call[Page]:
    """A page of a list."""
    value = yield from get(*parts, **query)
    return Page(value["items"], value.get("next_cursor"))


def get_all(*parts: str, **query: Any) -> Call[List[Json]]:
    """A whole list, page by page."""
    items: List[Json] = []
    cursor: Optional[str] = None
    while True:
        page = yield from get_page(*parts, limit=500, cursor=cursor, **query)
        items += page.items
        cursor = page.next_cursor
        if cursor is None:
            return items


def get_bytes(*parts: str, **query: Any) -> Call[bytes]:
    """The bytes at a path."""
    answer = yield Request("GET", path_of(*parts), query=query_of(**query))
    return answer.body


def post(*parts: str, body: Optional[Mapping[str, Any]] = None, **query: Any) -> Call[Json]:
    """A POST that may be sent again."""
    if body is None:
        request = Request("POST", path_of(*parts), query=query_of(**query))
    else:
        request = json_request("POST", path_of(*parts), body, query=query_of(**query))
    answer = yield once(request)
    value: Json = answer.json()
    return value


def delete(*parts: str) -> Call[None]:
    """A DELETE; what an earlier sending has deleted is no error of a later one."""
    yield Request("DELETE", path_of(*parts))


def ready() -> Call[bool]:
    """Whether requests are welcome."""
    try:
        yield Request("GET", "/readyz", repeatable=False)
    except ServerError as error:
        if error.status == 503:
            return False
        raise
    return True


# --- uploads ----------------------------------------------------------------------------------------------------------


def open_source(source: Union[PathLike, Bytes, BinaryIO]) -> BinaryIO:
    """A file to read from."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return io.BytesIO(source)
    if isinstance(source, (str, os.PathLike)):
        return open(Path(os.fspath(source)), "rb")
    return source


def _kept(answer: Answer) -> int:
    return int(answer.headers.get("upload-offset", "0"))


class Upload:
    """An upload in chunks: what the server has is asked for, never guessed, when a chunk may not have come through."""

    def __init__(self, file: BinaryIO, upload: Optional[str], chunk: int) -> None:
        self.file, self.id, self.chunk = file, upload, chunk
        self.hash = hashlib.sha256()
        self.hashed = 0

    def _read(self, offset: int) -> bytes:
        """The chunk at an offset; all bytes before its end are hashed then, each once."""
        while self.hashed < offset:
            self.file.seek(self.hashed)
            part = self.file.read(min(self.chunk, offset - self.hashed))
            if not part:
                raise ServerError("digest_mismatch", f"the upload has {offset} bytes, the file {self.hashed}: another file?")
            self._add(part)
        self.file.seek(offset)
        part = self.file.read(self.chunk)
        self._add(part[self.hashed - offset:])
        return part

    def _add(self, part: bytes) -> None:
        self.hash.update(part)
        self.hashed += len(part)

    def call(self) -> Call[str]:
        """Sends what is missing; the value is the digest."""
        offset = 0
        if self.id is None:
            answer = yield once(Request("POST", "/v1/uploads"))
            self.id = str(answer.json()["id"])
        else:
            offset = _kept((yield Request("GET", path_of("v1", "uploads", self.id))))
        broken = 0
        while True:
            part = self._read(offset)
            if not part:
                break
            headers = {"Content-Range": f"{offset}-{offset + len(part) - 1}", "Content-Type": "application/octet-stream"}
            request = Request("PATCH", path_of("v1", "uploads", self.id), part, headers, repeatable=False)
            try:
                offset = _kept((yield request))
                broken = 0
            except ServerError as error:
                # A chunk that came through but for its answer is a chunk out of order now.
                if (error.status not in (0, 408, 416, 502, 503, 504)) or broken >= 5:
                    raise
                broken += 1
                offset = _kept((yield Request("GET", path_of("v1", "uploads", self.id))))
        digest = "sha256:" + self.hash.hexdigest()
        yield Request("PUT", path_of("v1", "uploads", self.id), query={"digest": digest})
        return digest


def import_model(name: str, source: Union[PathLike, Bytes, BinaryIO], replace: bool, model_format: Optional[str],
                 chunk: int) -> Call[Json]:
    """Uploads a model in chunks, and imports it."""
    file = open_source(source)
    upload = Upload(file, None, chunk)
    try:
        yield from upload.call()
    finally:
        if file is not source:
            file.close()
    query = query_of(name=name, format=model_format, upload=upload.id, replace=replace or None)
    answer = yield once(Request("POST", "/v1/models", query=query))
    value: Json = answer.json()
    return value


# --- jobs -------------------------------------------------------------------------------------------------------------


def submit(kind: str, body: Mapping[str, Any], key: Optional[str]) -> Call[Json]:
    """Submits a job; None among the members is left out."""
    wanted = {"kind": kind, **{name: value for name, value in body.items() if value is not None}}
    answer = yield once(json_request("POST", "/v1/jobs", wanted), key)
    value: Json = answer.json()
    return value


def result_of(job: Mapping[str, Any]) -> Json:
    """The result of a job that has ended; raises JobError where there is none."""
    if job["state"] == "succeeded":
        result: Json = job["result"]
        return result
    error = job.get("error") or {}
    raise JobError(str(error.get("code", "cancelled")), str(error.get("detail", f"the job is {job['state']}")),
                   details_of(error.get("errors")), job)


# --- inference --------------------------------------------------------------------------------------------------------

Inputs = Mapping[str, Any]


def arrays_of(inputs: Inputs) -> Dict[str, Array]:
    """Inputs as arrays."""
    return {name: as_array(value) for name, value in inputs.items()}


def run_npz(path: str, inputs: Optional[Inputs], compress: bool, timeout: Optional[float], **query: Any) -> Call[Result]:
    """A run of NPZ in and out. It changes nothing: it may be sent again."""
    body = None if inputs is None else _npz.dumps(arrays_of(inputs), compress)
    request = Request("POST", path, body, {"Accept": _npz.CONTENT_TYPE}, timeout=timeout,
                      query=query_of(timeout_ms=None if timeout is None else int(timeout * 1000), **query))
    if body is not None:
        request.headers["Content-Type"] = _npz.CONTENT_TYPE
    answer = yield request
    return Result(_npz.loads(answer.body))


def v2_parameters(timeout: Optional[float], priority: Optional[int]) -> Dict[str, int]:
    """Parameters of a request of KServe v2."""
    parameters = {"timeout": None if timeout is None else int(timeout * 1e6), "priority": priority}
    return {key: value for key, value in parameters.items() if value is not None}


def infer_v2(name: str, version: Optional[str], inputs: Inputs, outputs: Optional[Sequence[str]], binary: bool,
             timeout: Optional[float], priority: Optional[int]) -> Call[Result]:
    """An inference by KServe v2."""
    body, headers = _v2.request_body(arrays_of(inputs), outputs, binary, v2_parameters(timeout, priority))
    place = ("v2", "models", name, "infer") if version is None else ("v2", "models", name, "versions", version, "infer")
    answer = yield Request("POST", path_of(*place), body, headers, timeout=timeout)
    return Result(_v2.read_answer(answer.body, answer.headers))


def infer_grpc(channel: _grpc.Channel, name: str, version: Optional[str], inputs: Inputs, outputs: Optional[Sequence[str]],
               timeout: Optional[float], priority: Optional[int]) -> Call[Result]:
    """The same over gRPC, whose port the server tells where the caller has not named it."""
    message = _grpc.infer_message(name, version, arrays_of(inputs), outputs, v2_parameters(timeout, priority))
    if channel.address is None:
        channel.found((yield from get("v1", "info")).get("grpc_port"))
    answer = yield Request("POST", _grpc.INFER, message, timeout=timeout, is_rpc=True)
    return Result(_grpc.read_infer_message(answer.body))


def infer(channel: _grpc.Channel, name: str, inputs: Inputs, protocol: str, outputs: Optional[Sequence[str]],
          version: Optional[str], timeout: Optional[float], priority: Optional[int]) -> Call[Result]:
    """An inference by ``protocol``: ``v2`` (binary), ``v2-json``, ``grpc`` or ``npz``."""
    if protocol not in ("v2", "v2-json", "grpc", "npz"):
        raise ValueError(f"protocol is {protocol!r}, expected 'v2', 'v2-json', 'grpc' or 'npz'")
    if protocol == "grpc":
        return (yield from infer_grpc(channel, name, version, inputs, outputs, timeout, priority))
    if protocol != "npz":
        return (yield from infer_v2(name, version, inputs, outputs, protocol == "v2", timeout, priority))
    if version is not None or priority is not None:
        raise ValueError("version and priority are of the protocol v2")
    result = yield from run_npz(path_of("v1", "deployments", name, "infer"), inputs, False, timeout)
    return result if outputs is None else Result({one: result[one] for one in outputs})


def classify(name: str, picture: Union[PathLike, Bytes], top: int) -> Call[Json]:
    """The most probable labels of a JPEG or PNG."""
    data = picture if isinstance(picture, (bytes, bytearray, memoryview)) else Path(os.fspath(picture)).read_bytes()
    kind = "image/png" if bytes(data[:8]) == b"\x89PNG\r\n\x1a\n" else "image/jpeg"
    answer = yield Request("POST", path_of("v1", "deployments", name, "classify"), data, {"Content-Type": kind},
                           query_of(top=top))
    value: Json = answer.json()
    return value


# --- deployments ------------------------------------------------------------------------------------------------------


def deploy(name: str, package: str, options: Mapping[str, Any]) -> Call[Json]:
    """Asks for a deployment; the answer may say that it is loading."""
    body = {"package": package, **{key: value for key, value in options.items() if value is not None}}
    answer = yield json_request("PUT", path_of("v1", "deployments", name), body)
    value: Json = answer.json()
    return value


def set_weights(name: str, weights: Mapping[str, int]) -> Call[Json]:
    """Spreads the requests that name no version."""
    answer = yield json_request("PUT", path_of("v1", "deployments", name, "weights"), {"weights": dict(weights)})
    value: Json = answer.json()
    return value


def is_loaded(deployment: Mapping[str, Any], package: str, version: Optional[str]) -> bool:
    """Whether the version that was asked for serves; raises ServerError where it has failed."""
    versions: Mapping[str, Any] = deployment["versions"]
    wanted = [one for number, one in versions.items()
              if (number == version if version is not None else one["package"] == package)]
    failed = next((one for one in wanted if one["state"] == "failed"), None)
    if failed is not None:
        raise ServerError("unavailable", f"the deployment failed: {failed['reason']}", status=200, problem=deployment)
    return any(one["state"] == "ready" for one in wanted)
