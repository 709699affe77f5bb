#!/usr/bin/env python3
"""Bodies that mean harm (hostile_bodies.py) against every endpoint of /openapi.json that takes a body.

hostile_requests.py [--seed N] [--full | --sample N] [--crowd CLIENTS] [--scale X]: starts a server of its own, sends them one
by one and prints what each costs the server in CPU time and memory, with /healthz and an inference measured beside; then
CLIENTS at once send the worst ones; then the server is told to end in the middle of one. Exit code 1 past a bar.
"""

import argparse
import collections
import contextlib
import http.client
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
from hostile_prey import Prey, endpoints, prey

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


def head_of(server, endpoint, media, framing):
    return (f"{endpoint.method} {endpoint.path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.key}\r\n"
            f"Content-Type: {media}\r\nConnection: close\r\n{framing}\r\n").encode()


@contextlib.contextmanager
def upload_of(server, endpoint):
    """The endpoint with an upload of its own, where it is about one."""
    if "{upload}" not in endpoint.path:
        yield endpoint
        return
    upload = server.request("POST", "/v1/uploads").json()["id"]
    try:
        yield endpoint.at(upload=upload)
    finally:
        server.request("DELETE", f"/v1/uploads/{upload}")


def exchange(server, endpoint, attack, limit=300):
    """The status and the body of the answer; None and b"" where the client goes first, as it means to."""
    pieces, framing = pieces_of(attack)
    if attack.coding:
        framing += f"Content-Encoding: {attack.coding}\r\n"
    with upload_of(server, endpoint) as target, socket.create_connection(("127.0.0.1", server.port), timeout=limit) as connection:
        try:
            connection.sendall(head_of(server, target, target.media_of(attack), framing))
            for piece in pieces:
                if select.select([connection], [], [], 0)[0]:
                    break  # an early answer
                connection.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused while it was sent: the answer tells
        if attack.framing in ("drip", "announced") and not select.select([connection], [], [], 0.2)[0]:
            return None, b""
        answer = http.client.HTTPResponse(connection, method=target.method)
        try:
            answer.begin()
            return answer.status, answer.read()
        except (http.client.HTTPException, ConnectionResetError) as error:
            raise AssertionError(f"no answer to {attack.name} at {target}: {error}") from error


def send(server, endpoint, attack):
    """The status, as exchange() has it."""
    return exchange(server, endpoint, attack)[0]


class Cost:
    def __init__(self, attack, endpoint, status, cpu, grown):
        self.attack, self.endpoint, self.status, self.cpu, self.grown = attack, endpoint, status, cpu, grown

    def __str__(self):
        return f"{self.status!s:>5} {self.cpu:6.2f} s {self.grown >> 20:6d} MiB  {self.attack.name:45} {self.endpoint}"

    def is_bad(self):
        return self.cpu > CPU_BAR_S or self.grown > MEMORY_BAR or not (self.status is None or self.status in ANSWERED)


def measured(server, attack, endpoint):
    attack.body()
    pid = server.process.pid
    forget_peak(pid)
    before, cpu = memory(pid, "VmRSS"), cpu_seconds(pid)
    status = send(server, endpoint, attack)
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


def beside(port, key):
    """Latencies in milliseconds of /healthz and of an inference, one after the other, until stdin ends."""
    server = Prey.at(port, key)
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
        self.process = subprocess.Popen([sys.executable, __file__, "--beside", str(server.port), server.key], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.times = None

    def __exit__(self, *_):
        self.times = json.loads(self.process.communicate()[0])

    def worst_health(self):
        return max(self.times["health"])

    def p99(self):
        return float(np.percentile(self.times["infers"], 99))


def ordinary_requests(names):
    """What others ask meanwhile: well-formed, of each kind that reads a body, and one that only lists."""
    image = np.zeros((1, 1, 28, 28), np.float32)
    tensors, npz = serving.npz({"image": image}), {"Content-Type": "application/x-npz"}
    v2 = json.dumps({"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 1, 28, 28], "data": image.ravel().tolist()}]})
    text = {"Content-Type": "application/json"}
    picture = (mill.ROOT / "tests/models/pictures/7.png").read_bytes()
    lease = f"/v1/workers/leases/{names['lease']}/heartbeat"
    return [("POST", "/v1/deployments/digits/infer", tensors, npz), ("POST", "/v2/models/digits/infer", v2, text),
            ("POST", f"/v1/packages/{names['package']}/run", tensors, npz),
            ("POST", "/v1/deployments/digits/classify", picture, {"Content-Type": "image/png"}),
            ("POST", "/v1/targets/parse", '{"target":"llvm"}', text), ("POST", lease, "{}", text), ("GET", "/v1/models", None, {})]


def served(server, request):
    """How often a request of theirs was put off, with 503 and the time after which to ask again, before its answer 200."""
    for tries in range(serving.DEADLINE):
        answer = server.request(*request)
        if answer.status == 200:
            return tries
        if answer.status != 503 or "Retry-After" not in answer.headers:
            raise AssertionError(f"{request[0]} {request[1]}: {answer.status} {answer.body[:300]}")
        threading.Event().wait(int(answer.headers["Retry-After"]))
    raise AssertionError(f"{request[0]} {request[1]} was put off {tries + 1} times")


def crowd(server, made, targets, names, clients, rounds=2):
    """`clients` at once send the worst that there is to the endpoints that read most. Statuses, the peak of memory, and how
    often each request of others beside them was put off; one that is not served in the end is an AssertionError."""
    pid = server.process.pid
    large = [target for target in targets if target.media != ["application/json"] or target.path == "/v1/jobs"]
    worst = [(attack, target) for attack in made if attack.framing == "whole" for target in large]
    for attack, _ in worst:
        attack.body()
    statuses, lock = collections.Counter(), threading.Lock()

    def client(number):
        rng = random.Random(number)
        for _ in range(rounds):
            attack, target = rng.choice(worst)
            status = send(server, target, attack)
            with lock:
                statuses[status] += 1

    forget_peak(pid)
    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    put_off = []
    while True:
        is_last = not any(thread.is_alive() for thread in threads)
        put_off += [served(server, request) for request in ordinary_requests(names)]
        if is_last:
            break
    for thread in threads:
        thread.join()
    if sum(statuses.values()) != clients * rounds:
        raise AssertionError(f"of {clients * rounds} requests {sum(statuses.values())} were answered: {dict(statuses)}")
    return dict(statuses), memory(pid, "VmHWM"), put_off


def begin(server, targets):
    """Requests in the middle of their bodies, which the server has begun to read: a model, the part of an upload, tensors."""
    connections = []
    for path in ("/v1/models?name=hostile", "/v1/uploads/{upload}", "/v1/deployments/digits/infer"):
        target = next(one for one in targets if one.path == path and one.method != "PUT")
        if "{upload}" in path:
            target = target.at(upload=server.request("POST", "/v1/uploads").json()["id"])
        connections.append(socket.create_connection(("127.0.0.1", server.port)))
        connections[-1].sendall(head_of(server, target, target.media[-1], "Content-Length: 100000000\r\n") + bytes(100_000))
    return connections


def drip(connections, ended):
    while not ended.wait(0.05):
        for connection in connections:
            with contextlib.suppress(OSError):  # the server ended first
                connection.sendall(b"x")


def end_within(server, targets):
    """Seconds from SIGTERM, in the middle of requests whose bodies come byte by byte, to the end of the process, and its exit code."""
    known, ended = serving.blobs(server)[1], threading.Event()
    connections = begin(server, targets)
    thread = threading.Thread(target=drip, args=(connections, ended))
    thread.start()
    try:
        # The model and the upload are files by now.
        serving.wait_for(lambda: len(serving.blobs(server)[1]) >= len(known) + 2, "bodies that are being written")
        if select.select(connections, [], [], 0)[0]:
            raise AssertionError("a request was answered before its body was there")
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        return server.process.wait(timeout=600), time.monotonic() - begun
    finally:
        ended.set()
        thread.join()
        for connection in connections:
            connection.close()


def run_all(arguments):
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        server, names = prey(folder, "--set", "limits.memory_in_flight=2GiB")
        try:
            targets, made = endpoints(server, names), hostile_bodies.attacks(arguments.seed, arguments.scale)
            print(f"{len(made)} bodies, {len(targets)} endpoints: " + ", ".join(map(str, targets)))
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
            statuses, peak, put_off = crowd(server, made, targets, names, arguments.crowd)
            print(f"{arguments.crowd} clients at once: statuses {statuses}, peak {peak >> 20} MiB (bar 3072), requests of others beside: "
                  f"all {len(put_off)} served, {sum(map(bool, put_off))} of them when asked again")
            bad += ["memory of the crowd"] if peak > 3 << 30 else []
            bad += ["the crowd was not answered"] if not set(statuses) <= ANSWERED else []
            code, seconds = end_within(server, targets)
            print(f"SIGTERM in the middle of uploads to the end: {seconds:.1f} s (bar 15), exit code {code}")
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
    parser.add_argument("--beside", nargs=2, metavar=("PORT", "KEY"))
    arguments = parser.parse_args()
    if arguments.beside:
        return beside(int(arguments.beside[0]), arguments.beside[1])
    return run_all(arguments)


if __name__ == "__main__":
    sys.exit(main())
