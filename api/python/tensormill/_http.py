"""What both clients say over HTTP, without sockets: requests and answers as values, errors, when to try again, and
server-sent events."""

from __future__ import annotations

import codecs
import email.utils
import json
import random
import time
import uuid
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Union
from urllib.parse import quote

from ._errors import ServerError, details_of

Body = Union[bytes, bytearray, memoryview, None]


@dataclass
class Request:
    """``repeatable``: it may be sent again when it is not known whether the server has seen it. ``is_rpc``: ``body`` is a message of
    gRPC's ModelInfer, and the request goes there."""

    method: str
    path: str
    body: Body = None
    headers: Dict[str, str] = field(default_factory=dict)
    query: Dict[str, str] = field(default_factory=dict)
    timeout: Optional[float] = None
    repeatable: bool = True
    is_rpc: bool = False


@dataclass
class Answer:
    """A success; what is none is a ServerError."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Broken(Exception):
    """A connection that broke, or was none."""


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, to which no proxy of the environment leads."""
    return host in ("127.0.0.1", "localhost", "::1")


def path_of(*parts: str) -> str:
    """A path of names, each of which may have any character.

    >>> path_of("v1", "models", "a/b")
    '/v1/models/a%2Fb'
    """
    return "/" + "/".join(quote(part, safe="") for part in parts)


def query_of(**values: Any) -> Dict[str, str]:
    """Query parameters; None is left out.

    >>> query_of(limit=5, dry_run=True, cursor=None)
    {'limit': '5', 'dry_run': '1'}
    """
    return {name: ("1" if value else "0") if isinstance(value, bool) else str(value)
            for name, value in values.items() if value is not None}


def json_request(method: str, path: str, value: Any, **more: Any) -> Request:
    """A request with a JSON body."""
    request = Request(method, path, json.dumps(value).encode(), **more)
    request.headers["Content-Type"] = "application/json"
    return request


def once(request: Request, key: Optional[str] = None) -> Request:
    """A POST that may be sent again: the server does what the key names once, within 24 hours."""
    request.headers["Idempotency-Key"] = key or uuid.uuid4().hex
    return request


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> ServerError:
    """The problem document of an answer, or, from a proxy, what it says."""
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {}
    text = str(problem.get("detail") or problem.get("error") or body[:200].decode("utf-8", "replace") or f"HTTP {status}")
    return ServerError(str(problem.get("code", "unavailable" if status in (502, 503, 504) else "internal_error")), text,
                       details_of(problem.get("errors")), status=status,
                       request_id=str(problem.get("request_id") or headers.get("x-request-id", "")),
                       retry_after=retry_after(headers.get("retry-after")), problem=problem)


def retry_after(text: Optional[str]) -> Optional[float]:
    """Seconds of a Retry-After field, which has them or a date.

    >>> retry_after("2"), retry_after(None), retry_after("soon")
    (2.0, None, None)
    """
    if not text:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


class Retries:
    """When a request is sent again: 429, 503 and a repeat that met its first sending, after what the server asks for; a
    connection that broke, and a proxy's 502 and 504, after a time that doubles. ``longest`` bounds one wait."""

    def __init__(self, most: int = 4, longest: float = 30.0, first: float = 0.2) -> None:
        self.most, self.longest, self.first = most, longest, first

    def wait(self, attempt: int, request: Request, error: Optional[ServerError]) -> Optional[float]:
        """Seconds before the next sending, or None: no more. ``error`` is None where the connection broke."""
        if attempt >= self.most:
            return None
        if error is None or (error.status in (502, 504) and error.code not in ("deadline_exceeded",)):
            return self._backoff(attempt) if request.repeatable else None
        in_work = error.status == 409 and attempt > 0 and "Idempotency-Key" in request.headers
        if error.status not in (429, 503) and not in_work:
            return None
        asked = self._backoff(attempt) if error.retry_after is None else error.retry_after
        return asked if asked <= self.longest else None

    def _backoff(self, attempt: int) -> float:
        return min(self.longest, self.first * float(2 ** attempt) * random.uniform(0.5, 1.0))


class Event(NamedTuple):
    """A server-sent event: ``kind`` is state, progress, trial, log or end."""

    id: str
    kind: str
    data: Any


class EventReader:
    """Events of the bytes of a stream, however they are cut.

    >>> r = EventReader()
    >>> list(r.feed(b'id: 1\\nevent: log\\nda')), list(r.feed(b'ta: {"text":"a"}\\n\\n'))
    ([], [Event(id='1', kind='log', data={'text': 'a'})])
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._fields: List[str] = []
        self.last_id = ""
        self.retry = 3.0

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events that these bytes end."""
        # What a line ends with may be in two pieces: a carriage return waits for what follows it.
        self._text += self._decoder.decode(data)
        lines = self._text.replace("\r\n", "\n").split("\n")
        self._text = lines.pop()
        for line in lines:
            if line:
                self._fields.append(line)
                continue
            event = self._event()
            if event is not None:
                yield event

    def restart(self) -> None:
        """A new connection: what the last one left of an event is gone."""
        self._text, self._fields = "", []

    def _event(self) -> Optional[Event]:
        kind, data = "message", []
        for line in self._fields:
            name, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name == "id":
                self.last_id = value
            elif name == "event":
                kind = value
            elif name == "data":
                data.append(value)
            elif name == "retry" and value.isdecimal():
                self.retry = int(value) / 1000
        self._fields = []
        return Event(self.last_id, kind, json.loads("\n".join(data))) if data else None
