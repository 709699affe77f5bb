"""The client of a server, for asyncio."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Any, AsyncIterator, Callable, Dict, Generator, List, Mapping, Optional, Sequence, Type, TypeVar, Union

import httpx

from . import _calls, _grpc
from ._calls import FINAL, Bytes, Call, Inputs, Json
from ._client_base import (BROKEN, Compiled, JobBase, answer_of, check_digest, connection_error, http_arguments,
                           http_options)
from ._errors import ServerError
from ._http import Answer, Event, EventReader, Request, Retries, error_of, path_of
from ._package import Package, Result
from ._program import PathLike

T = TypeVar("T")


class AsyncJob(JobBase):
    """A compile, tune, benchmark, verify or report job; awaiting it gives its result."""

    def __init__(self, client: "AsyncClient", document: Json) -> None:
        super().__init__(document)
        self._client = client

    async def refresh(self) -> "AsyncJob":
        """Asks for the job as it is now."""
        self.document = await self._client._do(_calls.get("v1", "jobs", self.id))
        return self

    def events(self) -> AsyncIterator[Event]:
        """What happens, as it happens, from the job's begin to its end; a broken connection is made anew."""
        return self._client._events(path_of("v1", "jobs", self.id, "events"), until_end=True)

    async def wait(self, on_event: Optional[Callable[[Event], None]] = None) -> "AsyncJob":
        """Waits for the job's end, whatever it is."""
        if self.state not in FINAL:
            async for event in self.events():
                if on_event is not None:
                    on_event(event)
            await self.refresh()
        return self

    async def result(self, on_event: Optional[Callable[[Event], None]] = None) -> Json:
        """Waits, and returns the result: ``package``, ``records`` ... Raises JobError."""
        return _calls.result_of((await self.wait(on_event)).document)

    def __await__(self) -> Generator[Any, None, Json]:
        return self.result().__await__()

    async def cancel(self) -> "AsyncJob":
        """Withdraws from the job; the last submitter stops it."""
        self.document = await self._client._do(_calls.post("v1", "jobs", self.id, "cancel"))
        return self

    async def retry(self) -> "AsyncJob":
        """Runs a job again that failed or was cancelled."""
        self.document = await self._client._do(_calls.post("v1", "jobs", self.id, "retry"))
        return self

    async def log(self) -> str:
        """The log so far."""
        return (await self._client._do(_calls.get_bytes("v1", "jobs", self.id, "log"))).decode("utf-8", "replace")

    async def report(self) -> Json:
        """What a report job has found so far: ``configurations``, one by one."""
        return await self._client._do(_calls.get("v1", "jobs", self.id, "report"))

    async def report_page(self) -> str:
        """The same as one HTML page that loads nothing."""
        return (await self._client._do(_calls.get_bytes("v1", "jobs", self.id, "report", format="html"))).decode()


class AsyncClient:
    """`Client` for asyncio: the same calls, awaited. Jobs are awaitables."""

    def __init__(self, url: str = "http://127.0.0.1:8080", key: Optional[str] = None, *, timeout: float = 120.0,
                 retries: Optional[Retries] = None, verify: Any = True,
                 transport: Optional[httpx.AsyncBaseTransport] = None, grpc: Optional[str] = None) -> None:
        self.url = url
        self._timeout = timeout
        self._retries = retries if retries is not None else Retries()
        self._http = httpx.AsyncClient(transport=transport, **http_options(url, key, timeout, verify))
        self._grpc = _grpc.Channel(url, grpc, key, verify, timeout, is_async=True)

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()
        await self._grpc.close_async()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self.close()

    # --- how calls are made ---

    async def request(self, request: Request) -> Answer:
        """Sends a request, again where ``retries`` says so. For what has no method of its own."""
        attempt = 0
        while True:
            try:
                if request.is_rpc:
                    return await self._grpc.call_async(request)
                return answer_of(await self._http.request(request.method, request.path, **http_arguments(request, self._timeout)))
            except ServerError as error:
                wait, cause = self._retries.wait(attempt, request, error), error
            except BROKEN as error:
                wait, cause = self._retries.wait(attempt, request, None), connection_error(error)
            if wait is None:
                raise cause
            await asyncio.sleep(wait)
            attempt += 1

    async def _do(self, call: Call[T]) -> T:
        try:
            request = next(call)
            while True:
                try:
                    answer = await self.request(request)
                except ServerError as error:
                    request = call.throw(error)
                else:
                    request = call.send(answer)
        except StopIteration as end:
            value: T = end.value
            return value

    async def _events(self, path: str, until_end: bool) -> AsyncIterator[Event]:
        reader, broken = EventReader(), 0
        while True:
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": reader.last_id} if reader.last_id else {})}
            reader.restart()
            try:
                # The server says something every 15 s.
                async with self._http.stream("GET", path, headers=headers, timeout=httpx.Timeout(60.0, connect=10.0)) as response:
                    if response.status_code >= 400:
                        await response.aread()
                        raise error_of(response.status_code, response.headers, response.content)
                    async for data in response.aiter_bytes():
                        for event in reader.feed(data):
                            broken = 0
                            yield event
                            if until_end and event.kind == "end":
                                return
            except httpx.TransportError as error:
                if broken >= self._retries.most:
                    raise connection_error(error) from error
            except ServerError as error:
                if error.status not in (429, 502, 503, 504) or broken >= self._retries.most:
                    raise
            broken += 1
            await asyncio.sleep(min(reader.retry, self._retries.longest))

    # --- the server ---

    async def info(self) -> Json:
        """Versions, limits, the host's CPU, known formats."""
        return await self._do(_calls.get("v1", "info"))

    async def ready(self) -> bool:
        """Whether requests are welcome."""
        return await self._do(_calls.ready())

    async def targets(self) -> List[Json]:
        """Known targets."""
        return (await self._do(_calls.get_page("v1", "targets"))).items

    def events(self) -> AsyncIterator[Event]:
        """Events of all jobs from now on."""
        return self._events("/v1/events", until_end=False)

    # --- models ---

    async def upload(self, source: Any, *, resume: Optional[str] = None, chunk: int = _calls.CHUNK) -> str:
        """Uploads bytes or a file in chunks, hashed as they go, and returns their digest. ``resume``: an upload's id."""
        file = _calls.open_source(source)
        try:
            return await self._do(_calls.Upload(file, resume, chunk).call())
        finally:
            if file is not source:
                file.close()

    async def upload_model(self, name: str, source: Any, *, replace: bool = False, model_format: Optional[str] = None,
                     chunk: int = _calls.CHUNK) -> Json:
        """Uploads and imports a model."""
        return await self._do(_calls.import_model(name, source, replace, model_format, chunk))

    async def upload_models(self, sources: Mapping[str, Any], *, replace: bool = False, parallel: int = 4) -> Dict[str, Json]:
        """Several models by their names, so many at once."""
        room = asyncio.Semaphore(parallel)

        async def one(name: str, source: Any) -> Json:
            async with room:
                return await self.upload_model(name, source, replace=replace)

        found = await asyncio.gather(*(one(name, source) for name, source in sources.items()))
        return dict(zip(sources, found))

    async def models(self) -> List[Json]:
        """All models, newest first."""
        return await self._do(_calls.get_all("v1", "models"))

    async def model(self, model: str) -> Json:
        """A model by name or id."""
        return await self._do(_calls.get("v1", "models", model))

    async def delete_model(self, model: str) -> None:
        """By name: removes the pointer; by id: the model."""
        await self._do(_calls.delete("v1", "models", model))

    # --- jobs ---

    async def compile(self, model: str, target: Any = "llvm -mcpu=native", *, key: Optional[str] = None, **options: Any) -> AsyncJob:
        """Starts a compile; ``options`` are the members of the request: ``input_shapes``, ``opt_level`` ..."""
        return AsyncJob(self, await self._do(_calls.submit("compile", {"model": model, "target": target, **options}, key)))

    async def tune(self, model: str, target: Any = "llvm -mcpu=native", *, key: Optional[str] = None, **options: Any) -> AsyncJob:
        """Starts tuning; ``options`` as of `compile`, and ``trials``, ``time_budget_s``, ``tuner``, ``extents`` ..."""
        return AsyncJob(self, await self._do(_calls.submit("tune", {"model": model, "target": target, **options}, key)))

    async def benchmark(self, package: str, *, key: Optional[str] = None, **options: Any) -> AsyncJob:
        """Starts a measurement: ``repeat``, ``number``, ``threads``."""
        return AsyncJob(self, await self._do(_calls.submit("benchmark", {"package": package, **options}, key)))

    async def verify(self, package: str, inputs: str, *, key: Optional[str] = None, **options: Any) -> AsyncJob:
        """Starts a comparison of a package with its model, evaluated node by node, on inputs: the digest that `upload` returned for
        an NPZ. ``options``: ``on`` (a worker's labels), ``rtol``, ``atol``, ``timeout_s``."""
        return AsyncJob(self, await self._do(_calls.submit("verify", {"package": package, "inputs": inputs, **options}, key)))

    async def report(self, models: Sequence[str], inputs: str, *, key: Optional[str] = None, **options: Any) -> AsyncJob:
        """Starts a comparison of models, targets and opt levels on a set of inputs: the digest that `upload` returned for an
        NPZ. ``options``: ``targets``, ``opt_levels``, ``input_shapes``, ``labels`` (a digest too), ``classes``, ``repeat`` ..."""
        body = {"models": list(models), "inputs": inputs, **options}
        return AsyncJob(self, await self._do(_calls.submit("report", body, key)))

    async def job(self, job: str) -> AsyncJob:
        """A job by its id."""
        return AsyncJob(self, await self._do(_calls.get("v1", "jobs", job)))

    async def jobs(self, *, state: Optional[str] = None, kind: Optional[str] = None, model: Optional[str] = None) -> List[AsyncJob]:
        """Jobs, newest first."""
        found = await self._do(_calls.get_all("v1", "jobs", state=state, kind=kind, model=model))
        return [AsyncJob(self, one) for one in found]

    # --- packages ---

    async def packages(self, *, model: Optional[str] = None, target: Optional[str] = None) -> List[Json]:
        """Packages, newest first."""
        return await self._do(_calls.get_all("v1", "packages", model=model, target=target))

    async def package(self, package: str) -> Json:
        """What a package is."""
        return await self._do(_calls.get("v1", "packages", package))

    async def package_archive(self, package: str) -> bytes:
        """The package's archive, whose digest is checked."""
        digest = (await self.package(package))["archive"]["digest"]
        return check_digest(await self._do(_calls.get_bytes("v1", "packages", package, "archive")), digest)

    async def package_bundle(self, package: str, *, form: str = "static", name: str = "model") -> bytes:
        """The package with its executor as one library, ``form`` "so" or "static", and its headers, in a tar."""
        return await self._do(_calls.get_bytes("v1", "packages", package, "bundle", form=form, name=name))

    async def load_package(self, package: str) -> Package:
        """The package, to run in this process: it is machine code of the server's."""
        return Package.from_bytes(await self.package_archive(package))

    async def delete_package(self, package: str) -> None:
        """Removes a package that is not deployed."""
        await self._do(_calls.delete("v1", "packages", package))

    async def run(self, package: str, inputs: Optional[Inputs] = None, *, compress: bool = False, timeout: Optional[float] = None,
            fill_mode: Optional[str] = None, seed: Optional[int] = None) -> Result:
        """Runs a package on the server, once."""
        path = path_of("v1", "packages", package, "run")
        return await self._do(_calls.run_npz(path, inputs, compress, timeout, fill_mode=fill_mode, seed=seed))

    # --- deployments ---

    async def deploy(self, name: str, package: Compiled, *, wait: float = 300.0, **options: Any) -> Json:
        """Serves a package under a name, and waits until it does; ``package`` is an id or a compile's result."""
        package_id = package if isinstance(package, str) else str(package["package"])
        found = await self._do(_calls.deploy(name, package_id, options))
        end = time.monotonic() + wait
        while not _calls.is_loaded(found, package_id, options.get("version")):
            if time.monotonic() > end:
                raise ServerError("deadline_exceeded", f"the deployment {name} is not ready after {wait:g} s", problem=found)
            await asyncio.sleep(0.2)
            found = await self.deployment(name)
        return found

    async def deployments(self) -> List[Json]:
        """Deployments by name."""
        return await self._do(_calls.get_all("v1", "deployments"))

    async def deployment(self, name: str) -> Json:
        """Versions of a deployment and their states."""
        return await self._do(_calls.get("v1", "deployments", name))

    async def set_weights(self, name: str, weights: Mapping[str, int]) -> Json:
        """Spreads the requests that name no version over versions that are loaded, ``{"1": 9, "2": 1}``."""
        return await self._do(_calls.set_weights(name, weights))

    async def rollback(self, name: str) -> Json:
        """Gives all requests to the version that had them before; it may still be loading."""
        return await self._do(_calls.post("v1", "deployments", name, "rollback"))

    async def undeploy(self, name: str, version: Optional[str] = None) -> None:
        """Stops serving a deployment, or one version of it."""
        more = () if version is None else ("versions", version)
        await self._do(_calls.delete("v1", "deployments", name, *more))

    async def infer(self, name: str, inputs: Inputs, *, outputs: Optional[Sequence[str]] = None, protocol: str = "v2",
              version: Optional[str] = None, timeout: Optional[float] = None, priority: Optional[int] = None) -> Result:
        """Inference by a deployment. ``protocol``: ``v2`` (KServe v2, binary tensors), ``v2-json``, ``grpc`` (KServe v2 over gRPC, with
        the extra ``tensormill[grpc]``) or ``npz``."""
        return await self._do(_calls.infer(self._grpc, name, inputs, protocol, outputs, version, timeout, priority))

    async def classify(self, name: str, picture: Union[PathLike, Bytes], top: int = 5) -> List[Json]:
        """The most probable labels of a JPEG or PNG."""
        found: List[Json] = (await self._do(_calls.classify(name, picture, top)))["top"]
        return found

    # --- the store ---

    async def storage(self) -> Json:
        """What the store holds and what is free (admin)."""
        return await self._do(_calls.get("v1", "storage"))

    async def collect_garbage(self, dry_run: bool = False) -> Json:
        """Removes what nothing names any more (admin)."""
        return await self._do(_calls.post("v1", "gc", dry_run=dry_run or None))

    async def tuning_records(self, records: Optional[str] = None, *, model: Optional[str] = None) -> bytes:
        """Tuning records, a JSON line each: all, those of a model, or a set by its id."""
        if records is not None:
            return await self._do(_calls.get_bytes("v1", "tuning-records", records))
        return await self._do(_calls.get_bytes("v1", "tuning-records", model=model))
