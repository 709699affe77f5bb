"""The server that hostile_requests.py attacks, and each of its endpoints that takes a body, so that the body is read: with a key,
with the names of things that there are, with a type that the endpoint takes."""

import re
import urllib.request
from pathlib import Path

import mill
import serving
import workers

DIGITS = mill.ROOT / "tests/models/digits.onnx"
# What queries may say, where an operation knows them.
QUERY = {"name": "hostile", "digest": "sha256:" + 64 * "0"}


class Prey(serving.Server):
    """A server that wants keys, has shared memory and trusts somebody; its requests show a key that may do all."""

    def __init__(self, folder, *options):
        folder = Path(folder)
        keys, trusted = folder / "keys", folder / "trusted.pem"
        self.key = mill.run_program("keys", "--keys-file", keys, "add", "boss", "--scopes", "admin").stdout.strip()
        workers.make_key(trusted)
        super().__init__(folder, "--keys-file", str(keys), "--ops-listen", "127.0.0.1:0", "--set", "jobs.lease=1h", "--set",
                         "v2.system_shared_memory=true", "--set", "v2.cuda_shared_memory=true", "--set", f"packages.trusted_keys={trusted}.pub", *options)

    @classmethod
    def at(cls, port, key):
        """One that another process has started."""
        server = cls.__new__(cls)
        server.port, server.key = port, key
        return server

    def request(self, method, path, body=None, headers=None, timeout=serving.DEADLINE):
        return super().request(method, path, body, {**(headers or {}), "Authorization": f"Bearer {self.key}"}, timeout)

    def metrics(self):
        line = next(line for line in self.settings if line.startswith("metrics on "))
        with urllib.request.urlopen(line.split(" ")[2]) as answer:
            return answer.read().decode()


def prey(folder, *options):
    """A server with a deployment "digits"; the server and what stands for the parameters of paths."""
    server = Prey(folder, *options)
    server.upload("digits", DIGITS.read_bytes())
    package = server.compile("digits")
    for name in ("digits", "spare"):
        answer = server.deploy(name, package)
        if answer.status not in (200, 201):
            raise AssertionError(answer.body)
    return server, {"model": "digits", "deployment": "digits", "package": package, "version": "1", "region": "hostile",
                    "lease": lease_of(server), "upload": "{upload}"}


def lease_of(server):
    """What a worker has of a compile job that nobody else may do; it never finishes."""
    label = "board=puppet"
    job = server.submit("digits", opt_level=0, force=True, on=label)
    if job.status != 202:
        raise AssertionError(job.body)
    puppet = workers.Puppet(server, compiler=server.request("GET", "/v1/info").json()["compiler"]["id"])
    return puppet.lease(labels=[label]).json()["lease"]["id"]


class Endpoint:
    """An operation with a body: its row of the description, a path with names in it, the types that it takes."""

    def __init__(self, method, template, path, media):
        self.method, self.template, self.path, self.media = method, template, path, media

    def __str__(self):
        return f"{self.method} {self.template}"

    def at(self, **names):
        """The same with names for parameters that were left open."""
        return Endpoint(self.method, self.template, self.path.format(**names), self.media)

    def media_of(self, attack):
        """The body's own type where it is taken, else one that is, so that what is wrong is the body."""
        return attack.media if attack.media in self.media else self.media[-1]


def endpoints(server, names):
    """All operations of /openapi.json that take a body. A parameter that has no name here is a KeyError."""
    found = []
    for template, item in server.request("GET", "/openapi.json").json()["paths"].items():
        # An empty body takes the deployment out of memory, or puts another in its place.
        changes = template.startswith(("/v2/repository/models", "/v1/deployments/{deployment}"))
        for method, operation in item.items():
            if "requestBody" not in operation:
                continue
            spare = {"model": "spare", "deployment": "spare"} if changes and operation["x-scope"] == "write" else {}
            path = re.sub(r"\{(\w+)\}", lambda word, known={**names, **spare}: known[word[1]], template)
            query = [f"{one['name']}={QUERY[one['name']]}" for one in operation["parameters"]
                     if one["in"] == "query" and one["name"] in QUERY]
            found.append(Endpoint(method.upper(), template, "?".join(filter(None, (path, "&".join(query)))),
                                  list(operation["requestBody"]["content"])))
    return sorted(found, key=str)
