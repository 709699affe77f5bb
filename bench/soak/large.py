"""A replica on a catalog of 1,000,000 blobs, 100,000 packages and 10,000 deployments: how soon it answers after its start, and
what lists and leases cost.

The rows are copies of a compiled package's and of a deployment's, made by the database while no replica is there. The deployments
want a label that the replica has not, so that none is loaded: what is measured is the catalog. The older third of the packages is
as a program has left it that did not keep metadata in the catalog; a page of those is filled from blobs when it is listed first.
"""

import contextlib
import hashlib
import http.client
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from soak.common import DIGITS, ROOT, SHAPES, serving

sys.path.insert(0, str(ROOT / "tests/tools"))

import postgres_server  # noqa: E402 (found through the line above)
import s3_server  # noqa: E402
import workers  # noqa: E402

MEMBERS = 10
OLDER_PART = 1 / 3
OLDER = "100 older packages not listed before"
BAR_MS, START_BAR_S = 20.0, 3.0
CALLS = 200

FILL = """
BEGIN;
CREATE TEMPORARY TABLE made(id TEXT, number BIGINT);
COPY made FROM '{ids}';
INSERT INTO packages({columns}) SELECT {values} FROM packages, made;
INSERT INTO package_metadata(package, text)
    SELECT made.id, text || convert_to(repeat(' ', (number % 1000 + 1)::int) || repeat(chr(10), (number / 1000 + 1)::int), 'UTF8')
    FROM made, (SELECT text FROM package_metadata) AS one WHERE number >= {older};
INSERT INTO package_members(package, position, name, digest, size)
    SELECT id, place, 'member' || place, 'sha256:' || encode(sha256(convert_to(number || ' ' || place, 'UTF8')), 'hex'), 16
    FROM made, generate_series(1, {members}) AS place;
INSERT INTO blobs(digest, form, stored_bytes, touched, remover)
    SELECT digest, 0, size, 0, '' FROM package_members ON CONFLICT DO NOTHING;
INSERT INTO blobs(digest, form, stored_bytes, touched, remover)
    SELECT id, 0, archive_bytes, 0, '' FROM packages ON CONFLICT DO NOTHING;
INSERT INTO deployments(name, desired, versions, updated_ms, revision)
    SELECT 'copy' || number, desired, versions, updated_ms, revision
    FROM deployments, generate_series(1, {deployments}) AS number;
INSERT INTO deployment_packages SELECT name, package FROM deployments, (SELECT * FROM deployment_packages LIMIT 1) AS one
    ON CONFLICT DO NOTHING;
COMMIT;
ANALYZE;
"""


class Figures:
    """Milliseconds by name (median, 99th percentile), seconds from the start of the process to answers, and what was wrong."""

    def __init__(self):
        self.ms, self.start_s, self.wrong = {}, {}, []


def write_metadata(database, s3, name, packages):
    """A metadata blob for each package, as objects of the bucket; returns the file that names them."""
    root = s3.data / name / "blobs/sha256"
    [path] = [path for path in root.rglob("*") if path.is_file() and path.read_bytes()[:1] == b"{" and b'"target"' in path.read_bytes()]
    metadata, lines = path.read_bytes(), []
    for number in range(packages):
        text = metadata + b" " * (number % 1000 + 1) + b"\n" * (number // 1000 + 1)
        digest = hashlib.sha256(text).hexdigest()
        target = root / digest[:2] / digest
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(text)
        lines.append(f"sha256:{digest}\t{number}\n")
    ids = database.folder / "ids"
    ids.write_text("".join(lines))
    ids.chmod(0o644)
    return ids


def fill(database, name, ids, deployments, older):
    def sql(text):
        return database.sql(f"\\c {name}\n{text}").rsplit("\n", 1)[-1]

    columns = [c for c in sql("SELECT string_agg(column_name, ' ') FROM information_schema.columns "
                              "WHERE table_name = 'packages'").split() if c != "seq"]
    values = ["made.id" if column == "id" else f"packages.{column}" for column in columns]
    sql(FILL.format(columns=", ".join(columns), values=", ".join(values), ids=ids, members=MEMBERS, deployments=deployments,
                    older=older))
    # A server believes no text of another digest, and would read the blob of each.
    if sql("SELECT count(*) FROM package_metadata WHERE package <> 'sha256:' || encode(sha256(text), 'hex')") != "0":
        raise RuntimeError("the metadata in the catalog is not that of the packages")
    return {table: int(sql(f"SELECT count(*) FROM {table}")) for table in ("blobs", "packages", "deployments")}


def timed(figures, name, call):
    taken = []
    for number in range(CALLS + 1):
        begin = time.perf_counter()
        call(number)
        taken.append((time.perf_counter() - begin) * 1e3)
    taken = sorted(taken[1:])  # the first one is for warmth
    figures.ms[name] = (taken[len(taken) // 2], taken[int(len(taken) * 0.99) - 1])


def measure(figures, server, begun, packages):
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=serving.DEADLINE)

    def send(method, path, status=200, body=None):
        link.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
        answer = link.getresponse()
        data = answer.read()
        if answer.status != status:
            figures.wrong.append(f"{method} {path}: {answer.status} {data[:200]}")
        return data

    def ask(*request):
        return json.loads(send(*request))

    def submit():
        return ask("POST", "/v1/jobs", 202, {"kind": "compile", "model": "digits", "target": "llvm -mcpu=native",
                                             "input_shapes": SHAPES, "force": True, "tuning_records": None})

    listed = ask("GET", "/v1/packages?limit=100")
    figures.start_s["a list of packages"] = time.monotonic() - begun
    puppet = workers.Puppet(server, compiler=ask("GET", "/v1/info")["compiler"]["id"])
    submit()
    lease = puppet.lease().json()["lease"]
    figures.start_s["a lease"] = time.monotonic() - begun
    # Those are not known before the replica has seen all of them, which it says.
    serving.wait_for(lambda: server.request("GET", "/v1/deployments?limit=100").status == 200, "a list of deployments")
    figures.start_s["a list of deployments"] = time.monotonic() - begun
    server.wait_until_ready()
    figures.start_s["ready"] = time.monotonic() - begun
    failed = {"error": {"code": "not_supported", "message": "nothing is computed"}}
    puppet.finish(lease["id"], "failed", **failed)
    for _ in range(CALLS + 1):
        submit()
    leases = []
    timed(figures, "lease", lambda _: leases.append(puppet.lease().json()["lease"]))
    timed(figures, "finish", lambda number: puppet.finish(leases[number]["id"], "failed", **failed))
    timed(figures, "first 100 packages", lambda _: send("GET", "/v1/packages?limit=100"))
    cursor = listed["next_cursor"]

    def next_page(_):
        nonlocal cursor
        page = send("GET", f"/v1/packages?limit=100&cursor={cursor}")
        # To parse all of it takes longer than to answer.
        found = re.search(rb'"next_cursor" *: *"([^"]+)"', page)
        cursor = found[1].decode() if found else cursor

    timed(figures, "100 packages not listed before", next_page)
    begin = cursor
    timed(figures, "100 packages further on", lambda _: send("GET", f"/v1/packages?limit=100&cursor={begin}"))
    # To the older rows: past all others, of which the pages so far are the newest.
    for _ in range(int(packages * (1 - OLDER_PART)) // 500 - CALLS // 5):
        cursor = ask("GET", f"/v1/packages?limit=500&cursor={cursor}")["next_cursor"]
    timed(figures, OLDER, next_page)
    timed(figures, "100 packages of a model", lambda _: send("GET", "/v1/packages?limit=100&model=digits"))
    timed(figures, "100 jobs", lambda _: send("GET", "/v1/jobs?limit=100"))
    timed(figures, "100 deployments", lambda _: send("GET", "/v1/deployments?limit=100"))


def run(packages):
    """The figures."""
    figures, name = Figures(), "large"
    with contextlib.ExitStack() as ends:
        database = postgres_server.PostgresServer(durable=True)
        ends.callback(database.close)
        s3 = s3_server.S3Server()
        ends.callback(s3.close)
        os.environ.update(AWS_ACCESS_KEY_ID=s3_server.KEY, AWS_SECRET_ACCESS_KEY=s3_server.SECRET)
        database.sql(f"CREATE DATABASE {name}")
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory()))
        server = serving.Server(folder, "--catalog", database.url().replace("@/postgres?", f"@/{name}?"), "--blobs",
                                f"s3://{s3_server.BUCKET}/{name}", "--set", f"s3.endpoint=http://127.0.0.1:{s3.port}",
                                "--set", "jobs.queue=100000", "--set", "log_level=warn", "--set", "packages.require_signature=false")
        ends.callback(server.stop)
        if server.upload("digits", DIGITS.read_bytes()).status != 201:
            raise RuntimeError("upload")
        put = server.deploy("digits", server.compile("digits", SHAPES), placement={"mode": "labels", "labels": ["rack=none"]})
        if put.status not in (201, 202):
            raise RuntimeError(f"deploy: {put.status} {put.body[:300]}")
        server.stop()
        rows = fill(database, name, write_metadata(database, s3, name, packages), packages // 10,
                    int(packages * OLDER_PART))
        print(f"  rows: {', '.join(f'{count} {table}' for table, count in rows.items())}", flush=True)
        server.options = (*server.options, "--set", "jobs.workers=0")
        begun = time.monotonic()
        server.start(until_ready=False)
        measure(figures, server, begun, packages)
    return figures
