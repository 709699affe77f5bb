#!/usr/bin/env python3
"""Bodies that mean harm (hostile_bodies.py) against every endpoint of /openapi.json that takes a body.

hostile_requests.py [--seed N] [--full | --sample N] [--crowd CLIENTS] [--scale X]: starts a server of its own, sends them one
by one and prints what each costs the server in CPU time and memory, with /healthz and an inference measured beside; then
CLIENTS at once send the worst ones; then the server is told to end in the middle of one. Exit code 1 past a bar.
"""

import argparse
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import hostile_bodies
import mill
import serving

DIGITS = mill.ROOT / "tests/models/digits.onnx"
CPU_BAR_S, MEMORY_BAR, HEALTH_BAR_MS, P99_BAR = 2.0, 512 << 20, 50, 3
ANSWERED = set(range(200, 500)) | {501, 503, 504, 507}
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """Of the process alone: its children have limits of their own."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(pid, name):
    """VmRSS or VmHWM in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) << 10
    raise AssertionError(name)


def forget_peak(pid):
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def prey(folder, *options):
    """A server with a deployment "digits"; the server and what stands for the parameters of paths."""
    server = serving.Server(folder, *options)
    server.upload("digits", DIGITS.read_bytes())
    package = server.compile("digits")
    for name in ("digits", "spare"):
        answer = server.deploy(name, package)
        if answer.status not in (200, 201):
            raise AssertionError(answer.body)
    return server, {"model": "digits", "deployment": "digits", "package": package, "version": "1", "job": "none",
                    "records": "none", "blob": "none"}


def endpoints(server, names):
    """(method, path) of each operation that takes a body."""
    found = []
    for path, item in server.request("GET", "/openapi.json").json()["paths"].items():
        for method, operation in item.items():
            if isinstance(operation, dict) and "requestBody" in operation:
                # An empty body takes the deployment out of memory, or puts another in its place.
                changes = path.startswith("/v2/repository/models") or path == "/v1/deployments/{deployment}"
                for name, value in {**names, **({"model": "spare", "deployment": "spare"} if changes else {})}.items():
                    path = path.replace("{" + name + "}", value)
                query = {"/v1/models": "?name=hostile", "/v1/uploads/{upload}": "?digest=sha256:" + 64 * "0"}.get(path, "")
                found.append((method.upper(), path + (query if method != "patch" else "")))
    return sorted(found)


def pieces_of(attack):
    """The request behind its head, in pieces, and the fields that frame it."""
    body = attack.body()
    if attack.framing == "whole":
        return [body], f"Content-Length: {len(body)}\r\n"
    if attack.framing == "announced":
        return [b""], f"Content-Length: {200 << 20}\r\n"
    size = 1 if attack.framing == "bytes" else 1 << 16
    pieces = [b"%x\r\n%s\r\n" % (len(body[i:i + size]), body[i:i + size]) for i in range(0, len(body), size)]
    if attack.framing != "drip":
        pieces.append(b"0\r\n\r\n")
    return pieces, "Transfer-Encoding: chunked\r\n"


def send(server, method, path, attack, limit=300):
    """The status; None where the client goes first, as it means to."""
    if "{upload}" in path:
        upload = server.request("POST", "/v1/uploads").json()["id"]
        try:
            return send(server, method, path.replace("{upload}", upload), attack, limit)
        finally:
            server.request("DELETE", f"/v1/uploads/{upload}")
    pieces, framing = pieces_of(attack)
    coding = f"Content-Encoding: {attack.coding}\r\n" if attack.coding else ""
    media = attack.media
    if path.startswith(("/v1/jobs", "/v1/targets")) or method == "PUT" and path.startswith("/v1/deployments"):
        media = "application/json"  # to be read, and not refused for its type
    elif not path.startswith("/v2") or media != "application/json":
        media = "application/octet-stream"
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media}\r\nConnection: close\r\n{coding}{framing}\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=limit) as connection:
        try:
            connection.sendall(head.encode())
            for piece in pieces:
                if select.select([connection], [], [], 0)[0]:
                    break  # an early answer
                connection.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused while it was sent: the answer tells
        if attack.framing in ("drip", "announced") and not select.select([connection], [], [], 0.2)[0]:
            return None
        answer = b""
        while b"\r\n" not in answer:
            try:
                more = connection.recv(1 << 16)
            except ConnectionResetError:
                more = b""
            if not more:
                raise AssertionError(f"no answer to {attack.name} at {method} {path}")
            answer += more
    return int(answer.split(b" ", 2)[1])


class Cost:
    def __init__(self, attack, endpoint, status, cpu, grown):
        self.attack, self.endpoint, self.status, self.cpu, self.grown = attack, endpoint, status, cpu, grown

    def __str__(self):
        method, path = self.endpoint
        return f"{self.status!s:>5} {self.cpu:6.2f} s {self.grown >> 20:6d} MiB  {self.attack.name:45} {method} {path[:60]}"

    def is_bad(self):
        return self.cpu > CPU_BAR_S or self.grown > MEMORY_BAR or not (self.status is None or self.status in ANSWERED)


def measured(server, attack, endpoint):
    attack.body()
    pid = server.process.pid
    forget_peak(pid)
    before, cpu = memory(pid, "VmRSS"), cpu_seconds(pid)
    status = send(server, *endpoint, attack)
    return Cost(attack, endpoint, status, cpu_seconds(pid) - cpu, max(0, memory(pid, "VmHWM") - before))


def sampled(seed, made, targets, count):
    """Each attack and each endpoint at least once, and others up to `count`; all where `count` is None."""
    every = [(attack, target) for attack in made for target in targets]
    if count is None:
        return every
    rng = random.Random(seed)
    shuffled = [rng.choice(targets) for _ in made]
    chosen = list(zip(made, shuffled)) + [(rng.choice(made), target) for target in targets]
    rng.shuffle(every)
    return (chosen + every)[:max(count, len(chosen))]


def infer_once(server):
    return server.infer("digits", {"image": np.zeros((1, 1, 28, 28), np.float32)})


def beside(port):
    """Latencies in milliseconds of /healthz and of an inference, one after the other, until stdin ends."""
    server = serving.Server.__new__(serving.Server)
    server.port = port
    health, infers = [], []
    server.request("GET", "/healthz")  # reads this client's own modules
    body = serving.npz({"image": np.zeros((1, 1, 28, 28), np.float32)})
    while not select.select([sys.stdin], [], [], 0.01)[0]:
        for times, request in ((health, ("GET", "/healthz")),
                               (infers, ("POST", "/v1/deployments/digits/infer", body, {"Content-Type": "application/x-npz"}))):
            begun = time.monotonic()
            answer = server.request(*request)
            times.append(1e3 * (time.monotonic() - begun) if answer.status == 200 else 1e9)
    print(json.dumps({"health": health, "infers": infers}))


class Beside:
    def __enter__(self):
        return self

    def __init__(self, server):
        self.process = subprocess.Popen([sys.executable, __file__, "--beside", str(server.port)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.times = None

    def __exit__(self, *_):
        self.times = json.loads(self.process.communicate()[0])

    def worst_health(self):
        return max(self.times["health"])

    def p99(self):
        return float(np.percentile(self.times["infers"], 99))


def crowd(server, made, clients, rounds=2):
    """`clients` at once send the worst that there is to the endpoints that read most. Statuses, the peak of memory, and how
    many inferences beside them were answered."""
    pid = server.process.pid
    worst = [(attack, target) for attack in made
             for target in (("POST", "/v1/deployments/digits/infer"), ("POST", "/v2/models/digits/infer"),
                            ("POST", "/v1/deployments/digits/classify"), ("POST", "/v1/tuning-records"), ("POST", "/v1/jobs"))
             if attack.framing == "whole"]
    for attack, _ in worst:
        attack.body()
    statuses, lock = {}, threading.Lock()

    def client(number):
        for turn in range(rounds):
            attack, (method, path) = worst[(number * 7 + turn * 31) % len(worst)]
            status = send(server, method, path, attack)
            with lock:
                statuses[status] = statuses.get(status, 0) + 1

    forget_peak(pid)
    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    served = []
    while any(thread.is_alive() for thread in threads):
        served.append(infer_once(server).status)
    for thread in threads:
        thread.join()
    served.append(infer_once(server).status)
    return statuses, memory(pid, "VmHWM"), served


def end_within(server, attack):
    """Seconds from SIGTERM, in the middle of a request, to the end of the process."""
    thread = threading.Thread(target=lambda: suppress(send, server, "POST", "/v2/models/digits/infer", attack), daemon=True)
    thread.start()
    threading.Event().wait(0.2)
    begun = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(timeout=600)
    return time.monotonic() - begun


def suppress(call, *args):
    try:
        call(*args)
    except (AssertionError, OSError):
        pass  # the server ended first


def run_all(arguments):
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        server, names = prey(folder, "--set", "limits.memory_in_flight=2GiB")
        try:
            targets, made = endpoints(server, names), hostile_bodies.attacks(arguments.seed, arguments.scale)
            print(f"{len(made)} bodies, {len(targets)} endpoints: " + ", ".join(" ".join(target) for target in targets))
            chosen = sampled(arguments.seed, made, targets, None if arguments.full else arguments.sample)
            for attack, _ in chosen:
                attack.body()
            with Beside(server) as quiet:
                threading.Event().wait(5)
            costs = []
            with Beside(server) as disturbed:
                # The senders stand for other machines: what they take of this one's processors is left over by the rest.
                os.nice(19)
                for attack, target in chosen:
                    costs.append(measured(server, attack, target))
                    if costs[-1].is_bad() or arguments.verbose:
                        print(costs[-1], flush=True)
            for cost in sorted(costs, key=lambda cost: -cost.cpu)[:10]:
                print(cost)
            print(f"requests {len(costs)}, most CPU {max(c.cpu for c in costs):.2f} s (bar {CPU_BAR_S}), most memory "
                  f"{max(c.grown for c in costs) >> 20} MiB (bar {MEMORY_BAR >> 20})")
            print(f"/healthz at most {disturbed.worst_health():.1f} ms (bar {HEALTH_BAR_MS}; undisturbed {quiet.worst_health():.1f})")
            print(f"inference p99 {disturbed.p99():.1f} ms, undisturbed {quiet.p99():.1f} (bar {P99_BAR} times)")
            bad += [str(cost) for cost in costs if cost.is_bad()]
            bad += ["/healthz is slow"] if disturbed.worst_health() > HEALTH_BAR_MS else []
            bad += ["inference is slow"] if disturbed.p99() > P99_BAR * quiet.p99() else []
            statuses, peak, served = crowd(server, made, arguments.crowd)
            print(f"{arguments.crowd} clients at once: statuses {statuses}, peak {peak >> 20} MiB (bar 3072), inferences beside: "
                  f"{served.count(200)} of {len(served)} served")
            bad += ["memory of the crowd"] if peak > 3 << 30 else []
            bad += ["the crowd was not answered"] if not set(statuses) <= ANSWERED or served[-1] != 200 else []
            bad += ["others were not served"] if served.count(200) < len(served) / 2 else []
            seconds = end_within(server, next(attack for attack in made if attack.name == "empty objects"))
            print(f"SIGTERM to the end: {seconds:.1f} s (bar 15)")
            bad += ["the end took too long"] if seconds > 15 else []
        finally:
            server.stop(signal.SIGKILL)
    for line in bad:
        print("PAST THE BAR:", line)
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--crowd", type=int, default=64)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--beside", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.beside:
        return beside(arguments.beside)
    return run_all(arguments)


if __name__ == "__main__":
    sys.exit(main())
