"""Clients of a TensorMill server: `Client`, and `AsyncClient` for asyncio.

The HTTP library is httpx: one library with the same requests, answers and errors for both, server-sent events and
cancellation in asyncio without threads. (urllib3 is smaller, and has no asyncio.)
"""

from __future__ import annotations

from ._async_client import AsyncClient, AsyncJob
from ._calls import Page
from ._http import Answer, Event, Request, Retries
from ._sync_client import Client, Job

__all__ = ["Answer", "AsyncClient", "AsyncJob", "Client", "Event", "Job", "Page", "Request", "Retries"]
