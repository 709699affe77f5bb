#!/usr/bin/python3
"""Workers that speak the protocol and compute nothing, against a server that gives them jobs: how many leases a second come to
their end, and what a job costs the server's CPU. One JSON line.

  bench/worker_load.py --workers 64 --hold 1 --seconds 30
  bench/worker_load.py --workers 8 --hold 0 --queued 4000   # from lease to finish alone: all are submitted before
  bench/worker_load.py --parts                              # what a worker costs that has nothing to do, or nothing to say
"""

import argparse
import json
import os
import queue
import re
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/e2e"))

import mill  # noqa: E402
import serving  # noqa: E402

DIGITS = mill.ROOT / "tests/models/digits.onnx"


class Link:
    """A connection that stays. As little of a client as there can be: what it takes, the server lacks on the same cores."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, path, body, kind="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n"
        self.socket.sendall(head.encode() + data)
        text = b""
        while b"\r\n\r\n" not in text:
            text += self.more()
        head, _, text = text.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        while len(text) < int(length[1] if length else 0):
            text += self.more()
        if head[9:10] != b"2":
            raise RuntimeError(f"{path}: {head[:80]} {text[:300]}")
        return json.loads(text) if text else None

    def more(self):
        data = self.socket.recv(65536)
        if not data:
            raise RuntimeError("the server has closed the connection")
        return data


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def work(port, name, compiler, hold, stop, done):
    link = Link(port)
    offer = {"protocol": 1, "name": name, "verbs": ["compile"], "compiler": compiler, "wait_s": 5}
    end = json.dumps({"state": "failed", "error": {"code": "not_supported", "message": "nothing is computed"}}).encode() + b"\n"
    while not stop.is_set():
        lease = link.post("/v1/workers/lease", offer)["lease"]
        if lease is None:
            continue
        if hold > 0:
            stop.wait(hold)
            link.post(f"/v1/workers/leases/{lease['id']}/heartbeat", {"progress": {"stage": "hold", "done": 1, "total": 1}})
        link.post(f"/v1/workers/leases/{lease['id']}/finish", end, "application/octet-stream")
        done.put(time.monotonic())


def submit(port, jobs, stop, once=False):
    """Keeps the queue filled, or fills it once."""
    link = Link(port)
    while not stop.is_set():
        if not jobs.acquire(timeout=0.2):
            if once:
                return
            continue
        link.post("/v1/jobs", JOB)


def measured(server, options, room, done):
    """How many ended in how many seconds, and the CPU that the server took for them."""
    done.get()
    room.release()
    begun, before, count = time.monotonic(), cpu_seconds(server.process.pid), 0
    while count < options.queued - 1 if options.queued else time.monotonic() - begun < options.seconds:
        try:
            done.get(timeout=0.5)
        except queue.Empty:
            continue
        room.release()
        count += 1
    return count, time.monotonic() - begun, cpu_seconds(server.process.pid) - before


JOB = {"kind": "compile", "model": "digits", "target": "llvm -mcpu=native", "input_shapes": {"image": [1, 1, 28, 28]},
       "force": True, "tuning_records": None}


def parts(server, compiler):
    """What the server spends on a poll without work, on a heartbeat without news, and keeps for a worker that waits."""
    rounds, waiting = 3000, 200

    def spent_ms(call):
        before = cpu_seconds(server.process.pid)
        for _ in range(rounds):
            call()
        return round(1e3 * (cpu_seconds(server.process.pid) - before) / rounds, 3)

    def offer(name, wait_s):
        return {"protocol": 1, "name": name, "verbs": ["compile"], "compiler": compiler, "wait_s": wait_s}
    link = Link(server.port)
    link.post("/v1/workers/lease", offer("w", 0))
    found = {"poll_cpu_ms": spent_ms(lambda: link.post("/v1/workers/lease", offer("w", 0)))}
    link.post("/v1/jobs", JOB)
    lease = link.post("/v1/workers/lease", offer("w", 5))["lease"]["id"]
    beat = {"status": {"load": 1.0, "cache_bytes": 0}}
    found["heartbeat_cpu_ms"] = spent_ms(lambda: link.post(f"/v1/workers/leases/{lease}/heartbeat", beat))

    def resident_kib():
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{server.process.pid}/status").read_text())[1])
    before, threads = resident_kib(), []
    for number in range(waiting):
        threads.append(threading.Thread(target=lambda name: Link(server.port).post("/v1/workers/lease", offer(name, 20)),
                                        args=(f"idle{number}",), daemon=True))
        threads[-1].start()
    serving.wait_for(lambda: len(server.request("GET", "/v1/workers?limit=500").json()["items"]) > waiting, "all of them wait")
    found["waiting_kib"] = round((resident_kib() - before) / waiting, 1)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--hold", type=float, default=1.0, help="seconds that an item is held")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--queued", type=int, default=0, help="jobs that are submitted before, in place of a time")
    parser.add_argument("--parts", action="store_true", help="measure what each message costs instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = serving.Server(folder, "--set", "jobs.workers=0", "--set", "jobs.queue=100000")
        try:
            assert server.upload("digits", DIGITS.read_bytes()).status == 201
            compiler = server.request("GET", "/v1/info").json()["compiler"]["id"]
            if options.parts:
                print(json.dumps(parts(server, compiler)))
                return
            stop, done, room = threading.Event(), queue.Queue(), threading.Semaphore(options.queued or 4 * options.workers)
            submitters = [threading.Thread(target=submit, args=(server.port, room, stop, bool(options.queued))) for _ in range(4)]
            for thread in submitters:
                thread.start()
            for thread in submitters if options.queued else []:
                thread.join()
            threads = [threading.Thread(target=work, args=(server.port, f"w{i}", compiler, options.hold, stop, done))
                       for i in range(options.workers)]
            for thread in threads:
                thread.start()
            count, elapsed, spent = measured(server, options, room, done)
            stop.set()
            for thread in threads + submitters:
                thread.join()
            print(json.dumps({"workers": options.workers, "hold_s": options.hold, "jobs_per_s": round(count / elapsed, 2),
                              "of_ideal": round(count / elapsed / (options.workers / options.hold), 3) if options.hold else None,
                              "server_cpu_ms_per_job": round(1e3 * spent / max(count, 1), 3)}))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
