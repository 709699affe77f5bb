#!/usr/bin/python3
"""Two programs, or one with and without what is loaded on demand, as one process that serves: start, memory after it, inference.

    bench/paired.py --before PROGRAM [--rounds N]   # another build's bin/tensormill: ratios now ÷ before, and of a second copy of now
    bench/paired.py --modules [--rounds N]          # gRPC on, PostgreSQL on, ÷ neither

In each round every side is started anew on a store of its own, all of them answer inferences in turns, block by block, and are ended. The
table has medians over the rounds, and medians of the rounds' ratios. Processor time counts all threads of the server; that of a
start is what the process has used when it says that it is ready. The second copy of a program is the ruler: what it differs by is chance."""

import argparse
import contextlib
import http.client
import io
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
for folder in ("tests/e2e", "tests/tools"):
    sys.path.insert(0, str(ROOT / folder))

import mill  # noqa: E402 (after its folder is known)
import postgres_server  # noqa: E402

PATIENCE_S, PAUSE_S = 300, 0.002
WARM, BLOCK, BLOCKS = 30, 40, 5
BAR = 0.05
# What is served: name, bytes, shape of its input. A run of digits takes 60 us, so that the server's own part shows.
INPUT = np.linspace(0, 1, 784, dtype=np.float32).reshape(1, 1, 28, 28)
FIGURES = (("start, ms", "start_ms"), ("start, processor ms", "start_cpu_ms"), ("resident after the start, MB", "resident_mb"),
           ("inference, us", "infer_us"), ("inference, processor us of the server", "infer_cpu_us"),
           ("resident after the inferences, MB", "served_mb"))


def npz(tensors):
    buffer = io.BytesIO()
    np.savez(buffer, **tensors)
    return buffer.getvalue()


def processor_s(pid):
    """What all threads that are there have used."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def resident_mb(pid):
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 / 1e6


class Side:
    """A program with options, and a folder with its store."""

    def __init__(self, name, program, folder, *options):
        self.name, self.program, self.options = name, program, options
        self.folder = Path(folder) / name.replace(" ", "-")
        self.folder.mkdir()
        self.figures = {key: [] for _, key in FIGURES}
        self.process = None

    def start(self):
        """Returns seconds until it was ready."""
        with open(self.folder / "log", "ab") as log:
            begun = time.perf_counter()
            self.process = subprocess.Popen([str(self.program), "serve", "--listen", "127.0.0.1:0", "--data", str(self.folder / "data"),
                                             "--set", "log_level=warn", *self.options],
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
        line = next(line for line in self.process.stdout if line.startswith("listening on http://"))
        self.link = http.client.HTTPConnection("127.0.0.1", int(line.rsplit(":", 1)[1]), timeout=PATIENCE_S)
        while self.send("GET", "/readyz")[0] != 200:
            time.sleep(PAUSE_S)
        return time.perf_counter() - begun

    def stop(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()
            self.process.stdout.close()
            self.link.close()
            self.process = None

    def send(self, method, path, body=None, kind="application/json"):
        self.link.request(method, path, body, {"Content-Type": kind})
        answer = self.link.getresponse()
        return answer.status, answer.read()

    def ask(self, *request):
        status, body = self.send(*request)
        if status >= 300:
            raise SystemExit(f"{self.name}: {request[:2]}: {status} {body[:300]}")
        return json.loads(body)

    def fill(self):
        self.start()
        self.ask("POST", "/v1/models?name=digits", (ROOT / "tests/models/digits.onnx").read_bytes(), "application/octet-stream")
        job = self.ask("POST", "/v1/jobs", json.dumps({"kind": "compile", "model": "digits", "target": "llvm -mcpu=native",
                                                       "opt_level": 3, "input_shapes": {"image": list(INPUT.shape)}}))["id"]
        end = time.monotonic() + PATIENCE_S
        while (found := self.ask("GET", f"/v1/jobs/{job}"))["state"] in ("queued", "running") and time.monotonic() < end:
            time.sleep(PAUSE_S)
        if found["state"] != "succeeded":
            raise SystemExit(f"{self.name}: {found}")
        self.ask("PUT", "/v1/deployments/digits", json.dumps({"package": found["result"]["package"]}))
        self.stop()

    def measure_start(self):
        seconds = self.start()
        self.note("start_ms", seconds * 1e3)
        self.note("start_cpu_ms", processor_s(self.process.pid) * 1e3)
        self.note("resident_mb", resident_mb(self.process.pid))

    def infer(self, body, count):
        """Seconds of each."""
        taken = []
        for _ in range(count):
            begun = time.perf_counter()
            status, _ = self.send("POST", "/v1/deployments/digits/infer", body, "application/x-npz")
            taken.append(time.perf_counter() - begun)
            if status != 200:
                raise SystemExit(f"{self.name}: {status}")
        return taken

    def note(self, key, value):
        self.figures[key].append(value)


def measure_inference(sides):
    body = npz({"image": INPUT})
    taken, spent = {side: [] for side in sides}, dict.fromkeys(sides, 0)
    for side in sides:
        side.infer(body, WARM)
    for _ in range(BLOCKS):
        for side in sides:
            before = processor_s(side.process.pid)
            taken[side] += side.infer(body, BLOCK)
            spent[side] += processor_s(side.process.pid) - before
    for side in sides:
        side.note("infer_us", statistics.median(taken[side]) * 1e6)
        side.note("infer_cpu_us", spent[side] / (BLOCKS * BLOCK) * 1e6)
        side.note("served_mb", resident_mb(side.process.pid))


def measure(sides, rounds):
    for side in sides:
        side.fill()
    for number in range(rounds):
        # Nobody is always the first.
        turn = sides[number % len(sides):] + sides[:number % len(sides)]
        for side in turn:
            side.measure_start()
        measure_inference(turn)
        for side in turn:
            side.stop()


def tell(sides):
    """Prints the table; returns the figures of the second side that are worse than the first's by more than the bar."""
    base, worse = sides[0], []
    print(f"| | {' | '.join(side.name for side in sides)} | {' | '.join(f'{side.name} ÷ {base.name}' for side in sides[1:])} |")
    print("|---" * (2 * len(sides)) + "|")
    for what, key in FIGURES:
        ratios = [statistics.median(own / other for own, other in zip(side.figures[key], base.figures[key])) for side in sides[1:]]
        print(f"| {what} | {' | '.join(f'{statistics.median(side.figures[key]):.1f}' for side in sides)} | "
              f"{' | '.join(f'{ratio:.3f}' for ratio in ratios)} |")
        if ratios[0] > 1 + BAR:
            worse.append(what)
    return worse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--before", type=Path, help="the program to compare with")
    what.add_argument("--modules", action="store_true", help="what gRPC and PostgreSQL cost where they are on")
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    with contextlib.ExitStack() as ends:
        folder = ends.enter_context(tempfile.TemporaryDirectory())
        if arguments.before:
            sides = [Side("before", arguments.before, folder), Side("now", mill.PROGRAM, folder), Side("now again", mill.PROGRAM, folder)]
        else:
            database = ends.enter_context(postgres_server.PostgresServer())
            sides = [Side("neither", mill.PROGRAM, folder),
                     Side("gRPC", mill.PROGRAM, folder, "--set", "grpc.listen=127.0.0.1:0"),
                     Side("PostgreSQL", mill.PROGRAM, folder, "--catalog", database.url()), Side("neither again", mill.PROGRAM, folder)]
        for side in sides:
            ends.callback(side.stop)
        print(f"load {os.getloadavg()[0]:.1f}, {arguments.rounds} rounds")
        measure(sides, arguments.rounds)
        worse = tell(sides)
        print(f"load {os.getloadavg()[0]:.1f}")
    if arguments.before and worse:
        print(f"more than {BAR:.0%} above before: {', '.join(worse)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
