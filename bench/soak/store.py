"""A store of 100,000 blobs and 10,000 packages: what the metrics, lists, deletions and an inference beside a collection cost.

The packages are copies of a compiled one, each with a metadata blob of its own (padded with spaces, so that its digest is
another) and small members; they are written into the store's folders and catalog while no server has them open.
"""

import hashlib
import http.client
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from soak.common import DIGITS, SHAPES, serving

MEMBERS = 9
LIST_BAR_MS, SCRAPE_BAR_MS, RATIO_BAR = 20.0, 10.0, 1.5
CALLS = 100
INFER_SECONDS = 4.0

# Runs in a process of its own, so that the interpreter's lock does not count: "PORT PATH SECONDS FILE" -> milliseconds.
INFER = """
import http.client, sys, time
port, path, seconds, body = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), open(sys.argv[4], "rb").read()
link, end = http.client.HTTPConnection("127.0.0.1", port), time.perf_counter() + float(seconds)
while time.perf_counter() < end:
    begin = time.perf_counter()
    link.request("POST", path, body, {"Content-Type": "application/x-npz"})
    answer = link.getresponse()
    answer.read()
    assert answer.status == 200, answer.status
    print((time.perf_counter() - begin) * 1e3)
"""


class Store:
    """The outcome: milliseconds by name (median, 99th percentile), and what was wrong."""

    def __init__(self):
        self.ms, self.wrong, self.infer_ms, self.start_s = {}, [], {}, 0.0

    @property
    def ratio(self):
        return self.infer_ms["during collections"] / self.infer_ms["alone"]


def digest_of(data):
    return hashlib.sha256(data).hexdigest()


def put(root, data):
    name = digest_of(data)
    path = root / "blobs/sha256" / name[:2] / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return f"sha256:{name}"


def fill(root, packages):
    """Copies of the store's only package."""
    base = sqlite3.connect(root / "catalog.db", isolation_level=None)
    base.execute("BEGIN")
    names = [row[1] for row in base.execute("PRAGMA table_info(packages)")]
    row = dict(zip(names, base.execute("SELECT * FROM packages").fetchone()))
    hex_id = row["id"].split(":")[1]
    metadata = (root / "blobs/sha256" / hex_id[:2] / hex_id).read_bytes()
    del row["seq"]
    for number in range(packages):
        text = metadata + b" " * (number % 1000 + 1) + b"\n" * (number // 1000 + 1)
        row["id"] = put(root, text)
        base.execute(f"INSERT INTO packages({', '.join(row)}) VALUES({', '.join('?' * len(row))})", list(row.values()))
        members = [("metadata.json", row["id"], len(text))]
        members += [(f"member{i}", put(root, b"%d of %d" % (i, number)), 16) for i in range(MEMBERS)]
        base.executemany("INSERT INTO package_members(package, position, name, digest, size) VALUES(?, ?, ?, ?, ?)",
                         [(row["id"], place, *member) for place, member in enumerate(members)])
    base.execute("COMMIT")
    base.close()


def timed(store, name, call):
    """Calls it once for warmth, then again and again."""
    call(0)
    taken = []
    for number in range(1, CALLS + 1):
        begin = time.perf_counter()
        call(number)
        taken.append((time.perf_counter() - begin) * 1e3)
    store.ms[name] = (statistics.median(taken), sorted(taken)[int(len(taken) * 0.99) - 1])


class Link:
    """A connection that stays open; every answer must be of this status."""

    def __init__(self, port, wrong):
        self.link, self.wrong = http.client.HTTPConnection("127.0.0.1", port, timeout=serving.DEADLINE), wrong

    def __call__(self, method, path, status=200):
        self.link.request(method, path)
        answer = self.link.getresponse()
        data = answer.read()
        if answer.status != status:
            self.wrong.append(f"{method} {path}: {answer.status} {data[:200]}")
        return data


def infer_p99(server, folder):
    done = subprocess.run([sys.executable, "-c", INFER, str(server.port), "/v1/deployments/digits/infer", str(INFER_SECONDS),
                           str(folder / "image.npz")], capture_output=True, text=True, check=True)
    taken = sorted(float(line) for line in done.stdout.split())
    return taken[int(len(taken) * 0.99)]


def measure(store, server, folder, packages):
    ops = int(next(line for line in server.settings if line.startswith("metrics on ")).rsplit(":", 1)[1].split("/")[0])
    scrape, ask = Link(ops, store.wrong), Link(server.port, store.wrong)
    objects = next(line for line in scrape("GET", "/metrics").decode().splitlines() if "store_objects " in line and line[0] != "#")
    if float(objects.split()[1]) < packages * (MEMBERS + 1):
        store.wrong.append(f"the store has too few blobs: {objects}")
    timed(store, "metrics scrape", lambda _: scrape("GET", "/metrics"))
    timed(store, "first 100 packages", lambda _: ask("GET", "/v1/packages?limit=100"))
    cursors = [json.loads(ask("GET", "/v1/packages?limit=500"))["next_cursor"]]
    while len(cursors) < packages // 1000:
        cursors.append(json.loads(ask("GET", f"/v1/packages?limit=500&cursor={cursors[-1]}"))["next_cursor"])
    timed(store, "100 packages in the middle", lambda _: ask("GET", f"/v1/packages?limit=100&cursor={cursors[-1]}"))
    timed(store, "100 packages of a model", lambda _: ask("GET", "/v1/packages?limit=100&model=digits"))
    (folder / "image.npz").write_bytes(serving.npz({"image": np.zeros((1, 1, 28, 28), np.float32)}))
    rows = sqlite3.connect(folder / "rows.db")
    ids = [row[0] for row in rows.execute("SELECT id FROM packages ORDER BY seq DESC")][:packages // 2]
    rows.close()
    timed(store, "delete a package", lambda number: ask("DELETE", f"/v1/packages/{ids[number]}", 204))
    infer_p99(server, folder)
    store.infer_ms["alone"] = infer_p99(server, folder)
    collect = ("import http.client, sys\nlink = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))\n"
               "while True:\n  link.request('POST', '/v1/gc')\n  link.getresponse().read()\n")
    with subprocess.Popen([sys.executable, "-c", collect, str(server.port)]) as beside:
        store.infer_ms["during collections"] = infer_p99(server, folder)
        beside.kill()
    timed(store, "collection", lambda _: ask("POST", "/v1/gc"))


def run(packages):
    """The figures."""
    store = Store()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = serving.Server(folder, "--set", "log_level=warn", "--ops-listen", "127.0.0.1:0")
        try:
            if server.upload("digits", DIGITS.read_bytes()).status != 201:
                raise RuntimeError("upload")
            package = server.compile("digits", SHAPES)
            if server.deploy("digits", package).status != 201:
                raise RuntimeError("deploy")
            server.stop()
            fill(folder / "data", packages)
            (folder / "rows.db").write_bytes((folder / "data/catalog.db").read_bytes())
            os.sync()
            begin = time.monotonic()
            server.start()
            store.start_s = time.monotonic() - begin
            measure(store, server, folder, packages)
        finally:
            server.stop()
    return store
