"""The client of a server, for programs without asyncio."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Type, TypeVar, Union

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


class Job(JobBase):
    """A compile, tune, benchmark, verify or report job."""

    def __init__(self, client: "Client", document: Json) -> None:
        super().__init__(document)
        self._client = client

    def refresh(self) -> "Job":
        """Asks for the job as it is now."""
        self.document = self._client._do(_calls.get("v1", "jobs", self.id))
        return self

    def events(self) -> Iterator[Event]:
        """What happens, as it happens, from the job's begin to its end; a broken connection is made anew."""
        return self._client._events(path_of("v1", "jobs", self.id, "events"), until_end=True)

    def wait(self, on_event: Optional[Callable[[Event], None]] = None) -> "Job":
        """Waits for the job's end, whatever it is."""
        if self.state not in FINAL:
            for event in self.events():
                if on_event is not None:
                    on_event(event)
            self.refresh()
        return self

    def result(self, on_event: Optional[Callable[[Event], None]] = None) -> Json:
        """Waits, and returns the result: ``package``, ``records`` ... Raises JobError."""
        return _calls.result_of(self.wait(on_event).document)

    def cancel(self) -> "Job":
        """Withdraws from the job; the last submitter stops it."""
        self.document = self._client._do(_calls.post("v1", "jobs", self.id, "cancel"))
        return self

    def retry(self) -> "Job":
        """Runs a job again that failed or was cancelled."""
        self.document = self._client._do(_calls.post("v1", "jobs", self.id, "retry"))
        return self

    def log(self) -> str:
        """The log so far."""
        return self._client._do(_calls.get_bytes("v1", "jobs", self.id, "log")).decode("utf-8", "replace")

    def report(self) -> Json:
        """What a report job has found so far: ``configurations``, one by one."""
        return self._client._do(_calls.get("v1", "jobs", self.id, "report"))

    def report_page(self) -> str:
        """The same as one HTML page that loads nothing."""
        return self._client._do(_calls.get_bytes("v1", "jobs", self.id, "report", format="html")).decode()


class Client:
    """A server, from any thread. Errors are `ServerError` with the server's code; ``retries`` says when a request is sent
    again. ``key``: an API key. ``verify``: as httpx has it, for TLS. ``grpc``: host and port of the server's gRPC, of which
    ``protocol="grpc"`` is; without it the port that the server tells."""

    def __init__(self, url: str = "http://127.0.0.1:8080", key: Optional[str] = None, *, timeout: float = 120.0,
                 retries: Optional[Retries] = None, verify: Any = True,
                 transport: Optional[httpx.BaseTransport] = None, grpc: Optional[str] = None) -> None:
        self.url = url
        self._timeout = timeout
        self._retries = retries if retries is not None else Retries()
        self._http = httpx.Client(transport=transport, **http_options(url, key, timeout, verify))
        self._grpc = _grpc.Channel(url, grpc, key, verify, timeout, is_async=False)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()
        self._grpc.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    # --- how calls are made ---

    def request(self, request: Request) -> Answer:
        """Sends a request, again where ``retries`` says so. For what has no method of its own."""
        attempt = 0
        while True:
            try:
                if request.is_rpc:
                    return self._grpc.call(request)
                return answer_of(self._http.request(request.method, request.path, **http_arguments(request, self._timeout)))
            except ServerError as error:
                wait, cause = self._retries.wait(attempt, request, error), error
            except BROKEN as error:
                wait, cause = self._retries.wait(attempt, request, None), connection_error(error)
            if wait is None:
                raise cause
            time.sleep(wait)
            attempt += 1

    def _do(self, call: Call[T]) -> T:
        try:
            request = next(call)
            while True:
                try:
                    answer = self.request(request)
                except ServerError as error:
                    request = call.throw(error)
                else:
                    request = call.send(answer)
        except StopIteration as end:
            value: T = end.value
            return value

    def _events(self, path: str, until_end: bool) -> Iterator[Event]:
        reader, broken = EventReader(), 0
        while True:
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": reader.last_id} if reader.last_id else {})}
            reader.restart()
            try:
                # The server says something every 15 s.
                with self._http.stream("GET", path, headers=headers, timeout=httpx.Timeout(60.0, connect=10.0)) as response:
                    if response.status_code >= 400:
                        response.read()
                        raise error_of(response.status_code, response.headers, response.content)
                    for data in response.iter_bytes():
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
            time.sleep(min(reader.retry, self._retries.longest))

    # --- the server ---

    def info(self) -> Json:
        """Versions, limits, the host's CPU, known formats."""
        return self._do(_calls.get("v1", "info"))

    def ready(self) -> bool:
        """Whether requests are welcome."""
        return self._do(_calls.ready())

    def targets(self) -> List[Json]:
        """Known targets."""
        return self._do(_calls.get_page("v1", "targets")).items

    def events(self) -> Iterator[Event]:
        """Events of all jobs from now on."""
        return self._events("/v1/events", until_end=False)

    # --- models ---

    def upload(self, source: Any, *, resume: Optional[str] = None, chunk: int = _calls.CHUNK) -> str:
        """Uploads bytes or a file in chunks, hashed as they go, and returns their digest. ``resume``: an upload's id."""
        file = _calls.open_source(source)
        try:
            return self._do(_calls.Upload(file, resume, chunk).call())
        finally:
            if file is not source:
                file.close()

    def upload_model(self, name: str, source: Any, *, replace: bool = False, model_format: Optional[str] = None,
                     chunk: int = _calls.CHUNK) -> Json:
        """Uploads and imports a model."""
        return self._do(_calls.import_model(name, source, replace, model_format, chunk))

    def upload_models(self, sources: Mapping[str, Any], *, replace: bool = False, parallel: int = 4) -> Dict[str, Json]:
        """Several models by their names, so many at once."""
        with ThreadPoolExecutor(max_workers=parallel) as pool:
            found = {name: pool.submit(self.upload_model, name, source, replace=replace) for name, source in sources.items()}
            return {name: one.result() for name, one in found.items()}

    def models(self) -> List[Json]:
        """All models, newest first."""
        return self._do(_calls.get_all("v1", "models"))

    def model(self, model: str) -> Json:
        """A model by name or id."""
        return self._do(_calls.get("v1", "models", model))

    def delete_model(self, model: str) -> None:
        """By name: removes the pointer; by id: the model."""
        self._do(_calls.delete("v1", "models", model))

    # --- jobs ---

    def compile(self, model: str, target: Any = "llvm -mcpu=native", *, key: Optional[str] = None, **options: Any) -> Job:
        """Starts a compile; ``options`` are the members of the request: ``input_shapes``, ``opt_level`` ..."""
        return Job(self, self._do(_calls.submit("compile", {"model": model, "target": target, **options}, key)))

    def tune(self, model: str, target: Any = "llvm -mcpu=native", *, key: Optional[str] = None, **options: Any) -> Job:
        """Starts tuning; ``options`` as of `compile`, and ``trials``, ``time_budget_s``, ``tuner``, ``extents`` ..."""
        return Job(self, self._do(_calls.submit("tune", {"model": model, "target": target, **options}, key)))

    def benchmark(self, package: str, *, key: Optional[str] = None, **options: Any) -> Job:
        """Starts a measurement: ``repeat``, ``number``, ``threads``."""
        return Job(self, self._do(_calls.submit("benchmark", {"package": package, **options}, key)))

    def verify(self, package: str, inputs: str, *, key: Optional[str] = None, **options: Any) -> Job:
        """Starts a comparison of a package with its model, evaluated node by node, on inputs: the digest that `upload` returned for
        an NPZ. ``options``: ``on`` (a worker's labels), ``rtol``, ``atol``, ``timeout_s``."""
        return Job(self, self._do(_calls.submit("verify", {"package": package, "inputs": inputs, **options}, key)))

    def report(self, models: Sequence[str], inputs: str, *, key: Optional[str] = None, **options: Any) -> Job:
        """Starts a comparison of models, targets and opt levels on a set of inputs: the digest that `upload` returned for an
        NPZ. ``options``: ``targets``, ``opt_levels``, ``input_shapes``, ``labels`` (a digest too), ``classes``, ``repeat`` ..."""
        body = {"models": list(models), "inputs": inputs, **options}
        return Job(self, self._do(_calls.submit("report", body, key)))

    def job(self, job: str) -> Job:
        """A job by its id."""
        return Job(self, self._do(_calls.get("v1", "jobs", job)))

    def jobs(self, *, state: Optional[str] = None, kind: Optional[str] = None, model: Optional[str] = None) -> List[Job]:
        """Jobs, newest first."""
        found = self._do(_calls.get_all("v1", "jobs", state=state, kind=kind, model=model))
        return [Job(self, one) for one in found]

    # --- packages ---

    def packages(self, *, model: Optional[str] = None, target: Optional[str] = None) -> List[Json]:
        """Packages, newest first."""
        return self._do(_calls.get_all("v1", "packages", model=model, target=target))

    def package(self, package: str) -> Json:
        """What a package is."""
        return self._do(_calls.get("v1", "packages", package))

    def package_archive(self, package: str) -> bytes:
        """The package's archive, whose digest is checked."""
        digest = self.package(package)["archive"]["digest"]
        return check_digest(self._do(_calls.get_bytes("v1", "packages", package, "archive")), digest)

    def package_bundle(self, package: str, *, form: str = "static", name: str = "model") -> bytes:
        """The package with its executor as one library, ``form`` "so" or "static", and its headers, in a tar."""
        return self._do(_calls.get_bytes("v1", "packages", package, "bundle", form=form, name=name))

    def load_package(self, package: str) -> Package:
        """The package, to run in this process: it is machine code of the server's."""
        return Package.from_bytes(self.package_archive(package))

    def delete_package(self, package: str) -> None:
        """Removes a package that is not deployed."""
        self._do(_calls.delete("v1", "packages", package))

    def run(self, package: str, inputs: Optional[Inputs] = None, *, compress: bool = False, timeout: Optional[float] = None,
            fill_mode: Optional[str] = None, seed: Optional[int] = None) -> Result:
        """Runs a package on the server, once."""
        path = path_of("v1", "packages", package, "run")
        return self._do(_calls.run_npz(path, inputs, compress, timeout, fill_mode=fill_mode, seed=seed))

    # --- deployments ---

    def deploy(self, name: str, package: Compiled, *, wait: float = 300.0, **options: Any) -> Json:
        """Serves a package under a name, and waits until it does; ``package`` is an id or a compile's result."""
        package_id = package if isinstance(package, str) else str(package["package"])
        found = self._do(_calls.deploy(name, package_id, options))
        end = time.monotonic() + wait
        while not _calls.is_loaded(found, package_id, options.get("version")):
            if time.monotonic() > end:
                raise ServerError("deadline_exceeded", f"the deployment {name} is not ready after {wait:g} s", problem=found)
            time.sleep(0.2)
            found = self.deployment(name)
        return found

    def deployments(self) -> List[Json]:
        """Deployments by name."""
        return self._do(_calls.get_all("v1", "deployments"))

    def deployment(self, name: str) -> Json:
        """Versions of a deployment and their states."""
        return self._do(_calls.get("v1", "deployments", name))

    def set_weights(self, name: str, weights: Mapping[str, int]) -> Json:
        """Spreads the requests that name no version over versions that are loaded, ``{"1": 9, "2": 1}``."""
        return self._do(_calls.set_weights(name, weights))

    def rollback(self, name: str) -> Json:
        """Gives all requests to the version that had them before; it may still be loading."""
        return self._do(_calls.post("v1", "deployments", name, "rollback"))

    def undeploy(self, name: str, version: Optional[str] = None) -> None:
        """Stops serving a deployment, or one version of it."""
        more = () if version is None else ("versions", version)
        self._do(_calls.delete("v1", "deployments", name, *more))

    def infer(self, name: str, inputs: Inputs, *, outputs: Optional[Sequence[str]] = None, protocol: str = "v2",
              version: Optional[str] = None, timeout: Optional[float] = None, priority: Optional[int] = None) -> Result:
        """Inference by a deployment. ``protocol``: ``v2`` (KServe v2, binary tensors), ``v2-json``, ``grpc`` (KServe v2 over gRPC, with
        the extra ``tensormill[grpc]``) or ``npz``."""
        return self._do(_calls.infer(self._grpc, name, inputs, protocol, outputs, version, timeout, priority))

    def classify(self, name: str, picture: Union[PathLike, Bytes], top: int = 5) -> List[Json]:
        """The most probable labels of a JPEG or PNG."""
        found: List[Json] = self._do(_calls.classify(name, picture, top))["top"]
        return found

    # --- the store ---

    def storage(self) -> Json:
        """What the store holds and what is free (admin)."""
        return self._do(_calls.get("v1", "storage"))

    def collect_garbage(self, dry_run: bool = False) -> Json:
        """Removes what nothing names any more (admin)."""
        return self._do(_calls.post("v1", "gc", dry_run=dry_run or None))

    def tuning_records(self, records: Optional[str] = None, *, model: Optional[str] = None) -> bytes:
        """Tuning records, a JSON line each: all, those of a model, or a set by its id."""
        if records is not None:
            return self._do(_calls.get_bytes("v1", "tuning-records", records))
        return self._do(_calls.get_bytes("v1", "tuning-records", model=model))
