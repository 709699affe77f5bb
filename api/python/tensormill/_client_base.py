"""What both clients share: options of the HTTP library, errors of its own, a job's document."""

from __future__ import annotations

import hashlib
from typing import Any, Dict, Mapping, Optional, Union

import httpx

from . import _html
from ._calls import Json
from ._errors import ServerError
from ._http import Answer, Broken, Request, error_of, is_loopback

Compiled = Union[str, Mapping[str, Any]]
#: What is known of a request only when a connection breaks: whether the server has seen it is not.
BROKEN = (httpx.TransportError, Broken)

def http_options(url: str, key: Optional[str], timeout: float, verify: Any) -> Dict[str, Any]:
    """Options of an httpx client."""
    headers = {"Accept": "application/json, */*", "User-Agent": "tensormill-python"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return {"base_url": url.rstrip("/"), "headers": headers, "timeout": httpx.Timeout(timeout, connect=10.0),
            "verify": verify, "trust_env": not is_loopback(httpx.URL(url).host)}


def http_arguments(request: Request, timeout: float) -> Dict[str, Any]:
    """Arguments of its request."""
    more: Dict[str, Any] = {}
    if request.timeout is not None:
        # The server's deadline is the request's; who waits for the answer waits a little longer.
        more["timeout"] = httpx.Timeout(max(timeout, request.timeout + 5.0), connect=10.0)
    return {"content": bytes(request.body) if request.body is not None else None, "headers": request.headers,
            "params": request.query or None, **more}


def answer_of(response: httpx.Response) -> Answer:
    """A success, or its ServerError."""
    if response.status_code >= 400:
        raise error_of(response.status_code, response.headers, response.content)
    return Answer(response.status_code, response.headers, response.content)


def connection_error(error: Exception) -> ServerError:
    """A connection that broke, as an error of the client's."""
    return ServerError("unavailable", str(error) if isinstance(error, Broken) else f"the connection broke: {error or type(error).__name__}")


def check_digest(data: bytes, digest: str) -> bytes:
    """The archive, if it is the one that was asked for."""
    found = "sha256:" + hashlib.sha256(data).hexdigest()
    if found != digest:
        raise ServerError("digest_mismatch", f"the archive is {found}, the server says {digest}")
    return data


class JobBase:
    """A job's document as it was seen last."""

    def __init__(self, document: Json) -> None:
        self.document = document

    @property
    def id(self) -> str:
        """The job's id."""
        return str(self.document["id"])

    @property
    def state(self) -> str:
        """queued, running, succeeded, failed or cancelled, when it was seen last."""
        return str(self.document["state"])

    @property
    def cached(self) -> bool:
        """Whether an earlier job had the result already."""
        return bool(self.document.get("cached", False))

    def __repr__(self) -> str:
        return f"<tensormill.{type(self).__name__} {self.document['kind']} {self.id}: {self.state}>"

    def _repr_html_(self) -> str:
        facts = [(name, self.document.get(name)) for name in ("id", "state", "attempt", "created_at", "finished_at")]
        facts += list((self.document.get("result") or self.document.get("error") or {}).items())[:8]
        return _html.card("Job", self.document["kind"], facts, [])
