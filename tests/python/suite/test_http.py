"""What the clients do when a server or the way to it misbehaves; no server is there."""

import asyncio
import hashlib
import io
import json

import httpx
import numpy as np
import pytest

import tensormill as tm
from tensormill import _async_client, _npz, _sync_client, _v2
from tensormill._http import EventReader, Retries, error_of


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """Waits take no time here, and are noted."""
    noted = []

    async def rest(seconds):
        noted.append(seconds)

    monkeypatch.setattr(_sync_client.time, "sleep", noted.append)
    monkeypatch.setattr(_async_client.asyncio, "sleep", rest)
    return noted


class Server:
    """Answers with what stands in `answers`, in turn: a response, or an error to raise."""

    def __init__(self, *answers):
        self.answers, self.requests = list(answers), []

    def __call__(self, request):
        request.read()
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    def client(self, **options):
        return tm.Client("http://tm.test", transport=httpx.MockTransport(self), **options)

    def fields(self, name):
        return [request.headers.get(name) for request in self.requests]


def problem(status, code, headers=None, **more):
    return httpx.Response(status, json={"code": code, "detail": "said", "request_id": "r1", **more}, headers=headers)


JOB = {"id": "j", "kind": "compile", "state": "queued"}
BROKEN = httpx.ReadError("reset")


def both(server, call):
    """The result by the client without asyncio, and by the other one, of two servers that answer alike."""
    async def run(other):
        async with tm.AsyncClient("http://tm.test", transport=httpx.MockTransport(other)) as client:
            return await call(client)

    other = Server(*server.answers)
    with server.client() as client:
        first = call(client)
    second = asyncio.run(run(other))
    assert [str(one.url) for one in other.requests] == [str(one.url) for one in server.requests]
    return first, second


def test_retry_after_is_respected(waits):
    # Made anew for each client: the body of an answer is read once.
    server = Server(lambda _: problem(503, "unavailable", {"Retry-After": "7"}),
                    lambda _: problem(429, "quota_exceeded", {"Retry-After": "2"}),
                    lambda _: httpx.Response(200, json={"version": "1"}))
    assert both(server, lambda client: client.info()) == ({"version": "1"}, {"version": "1"})
    assert waits == [7.0, 2.0, 7.0, 2.0]


def test_longer_waits_than_allowed_are_the_callers(waits):
    server = Server(problem(503, "unavailable", {"Retry-After": "3600"}))
    with server.client() as client, pytest.raises(tm.ServerError) as caught:
        client.info()
    assert caught.value.retry_after == 3600 and waits == []


def test_a_repeated_post_has_its_first_key(waits):
    server = Server(BROKEN, problem(409, "conflict"), httpx.Response(202, json=JOB))
    with server.client() as client:
        assert client.compile("m").id == "j"
    keys = server.fields("Idempotency-Key")
    assert len(keys) == 3 and len(set(keys)) == 1 and keys[0]
    assert len({request.content for request in server.requests}) == 1
    with Server(httpx.Response(202, json=JOB)).client() as client:
        assert client.compile("m", key="mine").state == "queued"


def test_a_conflict_of_a_first_request_is_an_error():
    with Server(problem(409, "name_taken")).client() as client, pytest.raises(tm.ServerError) as caught:
        client.request(tm.client.Request("POST", "/v1/models"))
    assert caught.value.code == "name_taken"


def test_a_broken_connection_ends_after_so_many_tries(waits):
    server = Server(*[BROKEN] * 9)
    with server.client(retries=Retries(most=2)) as client, pytest.raises(tm.ServerError) as caught:
        client.info()
    assert caught.value.code == "unavailable" and "reset" in caught.value.detail and len(server.requests) == 3
    assert 0 < waits[0] <= 0.2 and 0 < waits[1] <= 0.4


def test_errors_carry_code_pointer_and_request():
    server = Server(problem(422, "invalid_argument", errors=[{"pointer": "/opt_level", "detail": "is 9"}], extra=1))
    with server.client() as client, pytest.raises(tm.ServerError) as caught:
        client.compile("m", opt_level=9)
    error = caught.value
    assert (error.status, error.code, error.pointer, error.request_id) == (422, "invalid_argument", "/opt_level", "r1")
    assert error.errors[0].detail == "is 9" and error.problem["extra"] == 1


@pytest.mark.parametrize("body", [b"", b"<html>bad gateway</html>", b"[1]", b'{"errors": 5, "detail": null}', b"\xff\xfe"])
def test_answers_that_are_no_problem_documents(body):
    error = error_of(502, {}, body)
    assert error.status == 502 and error.code == "unavailable" and error.errors == () and error.detail


def test_a_key_is_sent_and_shown_nowhere():
    server = Server(problem(401, "unauthorized"))
    with server.client(key="secret-key") as client:
        with pytest.raises(tm.ServerError) as caught:
            client.info()
        assert server.fields("Authorization") == ["Bearer secret-key"]
        assert "secret-key" not in repr(caught.value) + repr(client) + str(vars(caught.value))


class Uploads:
    """The server's side of an upload, which loses what `lose` says: the request, or only its answer."""

    def __init__(self, lose):
        self.lose, self.kept, self.done = dict(lose), b"", None

    def __call__(self, request):
        body = request.read()
        offset = {"Upload-Offset": str(len(self.kept))}
        if request.method == "POST":
            return httpx.Response(201, json={"id": "u"})
        if request.method == "GET":
            return httpx.Response(204, headers=offset)
        if request.method == "PUT":
            self.done = request.url.params["digest"]
            return httpx.Response(201, json={})
        first = int(request.headers["Content-Range"].split("-")[0])
        what = self.lose.pop(first, None)
        if what == "request":
            raise BROKEN
        if first != len(self.kept):
            return problem(416, "range_not_satisfiable")
        self.kept += body
        if what == "answer":
            raise BROKEN
        return httpx.Response(202, headers={"Upload-Offset": str(len(self.kept))}, json={})


@pytest.mark.parametrize("lose", [{}, {0: "request"}, {10: "answer"}, {10: "request", 20: "answer", 30: "answer"}])
def test_uploads_survive_broken_connections(lose):
    data = bytes(range(256))[:95]
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    server = Uploads(lose)
    with tm.Client("http://tm.test", transport=httpx.MockTransport(server)) as client:
        assert client.upload(data, chunk=10) == digest
    assert server.kept == data and server.done == digest

    async def run():
        async with tm.AsyncClient("http://tm.test", transport=httpx.MockTransport(Uploads(lose))) as client:
            return await client.upload(data, chunk=10)

    assert asyncio.run(run()) == digest


def test_an_upload_goes_on_in_another_process(tmp_path):
    data = bytes(range(200))
    (tmp_path / "file").write_bytes(data)
    server = Uploads({})
    server.kept = data[:70]
    with tm.Client("http://tm.test", transport=httpx.MockTransport(server)) as client:
        digest = client.upload(tmp_path / "file", resume="u", chunk=32)
        assert server.kept == data and server.done == digest == "sha256:" + hashlib.sha256(data).hexdigest()
        with pytest.raises(tm.ServerError) as caught:
            client.upload(data[:50], resume="u")
    assert caught.value.code == "digest_mismatch"


def events(*frames):
    return httpx.Response(200, content=b"".join(frames), headers={"Content-Type": "text/event-stream"})


def frame(number, kind, **data):
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n".encode()


def test_events_go_on_where_a_stream_broke(waits):
    server = Server(httpx.Response(200, json=JOB), events(b"retry: 250\n\n", frame(1, "state"), frame(2, "progress")[:-9]),
                    events(b":\n\n", frame(2, "progress"), frame(3, "end"), frame(4, "state")))
    with server.client() as client:
        seen = list(client.job("j").events())
    assert [(event.id, event.kind) for event in seen] == [("1", "state"), ("2", "progress"), ("3", "end")]
    assert server.fields("Last-Event-ID") == [None, None, "1"] and waits == [0.25]


def test_events_in_pieces_of_any_size():
    text = b"retry: 10\r\n\r\n" + frame(1, "log", text="\u00e4\u20ac") + b": heart\n\n" + frame(2, "end") + b"data: x"
    for size in (1, 2, 3, 7, len(text)):
        reader = EventReader()
        seen = [one for at in range(0, len(text), size) for one in reader.feed(text[at:at + size])]
        assert [(one.id, one.kind, one.data) for one in seen] == [("1", "log", {"text": "\u00e4\u20ac"}), ("2", "end", {})]


def test_awaiting_a_job_that_failed():
    failed = {**JOB, "state": "failed", "error": {"code": "invalid_model", "detail": "node 3",
                                                  "errors": [{"pointer": "/nodes/3", "detail": "Foo"}]}}
    answers = (httpx.Response(202, json=JOB), events(frame(1, "end")), httpx.Response(200, json=failed))

    async def run():
        async with tm.AsyncClient("http://tm.test", transport=httpx.MockTransport(Server(*answers))) as client:
            return await (await client.compile("m"))

    with pytest.raises(tm.JobError) as caught:
        asyncio.run(run())
    assert caught.value.code == "invalid_model" and caught.value.pointer == "/nodes/3" and caught.value.job["id"] == "j"


def test_an_archive_with_another_digest_is_refused():
    server = Server(httpx.Response(200, json={"archive": {"digest": "sha256:" + "0" * 64}}), httpx.Response(200, content=b"x"))
    with server.client() as client, pytest.raises(tm.ServerError) as caught:
        client.load_package("p")
    assert caught.value.code == "digest_mismatch"


def test_names_are_names_whatever_is_in_them():
    server = Server(httpx.Response(200, json={}))
    with server.client() as client:
        client.model("../a b/\u00e4?x=1#y")
    assert server.requests[0].url.raw_path == b"/v1/models/..%2Fa%20b%2F%C3%A4%3Fx%3D1%23y"


@pytest.mark.parametrize("binary", [True, False])
def test_v2_bodies(binary):
    inputs = {"x": np.array([[1.5, -2.0]], ">f4"), "n": np.array(3, np.int64), "s": np.array(["a", "\u00e4\u00f6"]),
              "b": np.array([True, False])}
    body, headers = _v2.request_body(inputs, ["y"], binary, {"timeout": 5})
    size = int(headers.get(_v2.LENGTH, len(body)))
    head = json.loads(body[:size])
    assert [(one["datatype"], one["shape"]) for one in head["inputs"]] == [
        ("FP32", [1, 2]), ("INT64", []), ("BYTES", [2]), ("BOOL", [2])]
    assert head["parameters"]["timeout"] == 5
    # An answer has the same form, but for its name.
    head["outputs"] = head.pop("inputs")
    text = json.dumps(head).encode()
    read = _v2.read_answer(text + body[size:], {_v2.LENGTH.lower(): str(len(text))} if binary else {})
    for name, array in inputs.items():
        assert read[name].tolist() == array.tolist() and read[name].shape == array.shape


def test_v2_answers_that_end_early():
    head = {"outputs": [{"name": "y", "datatype": "FP32", "shape": [4], "parameters": {"binary_data_size": 16}}]}
    text = json.dumps(head).encode()
    with pytest.raises(tm.TensorMillError, match="ends before its 16 bytes"):
        _v2.read_answer(text + b"1234", {_v2.LENGTH.lower(): str(len(text))})


def test_npz_of_names_that_numpy_takes_for_its_own():
    tensors = {"file": np.ones(2), "allow_pickle": np.array([[1]], np.int8), "a/b": np.asfortranarray(np.eye(3))}
    for compress in (False, True):
        read = _npz.loads(_npz.dumps(tensors, compress))
        assert {name: array.tolist() for name, array in read.items()} == {n: a.tolist() for n, a in tensors.items()}
    pickled = io.BytesIO()
    np.savez(pickled, x=np.array([{}], object))
    with pytest.raises(ValueError, match="pickle"):
        _npz.loads(pickled.getvalue())
