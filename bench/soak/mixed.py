#!/usr/bin/env python3
"""Load on a server of its own for a while: soak.py [SECONDS]

Clients infer with the digits model, send broken requests, compile again and again, and redeploy. Every answer must be
right or a refusal that was asked for. At the end the server must be as it was after the first tenth of the time: as many
open files, no children, and at most 32 MiB more memory. Stops with 1 when anything was wrong.
"""

import random
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))

import mill  # noqa: E402
import serving  # noqa: E402

MODEL = ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}
INFERRING_CLIENTS = 3
ALLOWED_GROWTH_KIB = 32 * 1024


class Soak:
    def __init__(self, server, seconds):
        self.server, self.seconds, self.end = server, seconds, 0.0
        self.counts, self.problems, self.lock = {}, [], threading.Lock()
        rng = np.random.default_rng(1)
        self.images = [rng.random((1, 1, 28, 28), dtype=np.float32) for _ in range(16)]
        if server.upload("digits", MODEL.read_bytes()).status not in (200, 201):
            raise RuntimeError("the model was not accepted")
        self.deploy(server.compile("digits", SHAPES))
        self.expected = [self.infer(image) for image in self.images]

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def problem(self, what):
        with self.lock:
            self.problems.append(what)

    def deploy(self, package):
        answer = self.server.deploy("digits", package, version="1")
        if answer.status >= 300:
            raise RuntimeError(f"deploy: {answer.status} {answer.body[:200]}")

    def infer(self, image):
        answer = self.server.infer("digits", {"image": image})
        if answer.status != 200:
            raise RuntimeError(f"infer: {answer.status} {answer.body[:200]}")
        return serving.from_npz(answer.body)["logits"]

    def infer_step(self, rng):
        index = rng.randrange(len(self.images))
        if not np.array_equal(self.infer(self.images[index]), self.expected[index]):
            self.problem(f"another answer for image {index}")

    def broken_step(self, rng):
        data = bytearray(serving.npz({"image": self.images[0]}))
        if rng.random() < 0.5:
            del data[rng.randrange(1, len(data)):]  # an empty body would mean inputs filled by the server
            answer = self.server.request("POST", "/v1/deployments/digits/infer", bytes(data),
                                         {"Content-Type": "application/x-npz"})
        else:
            answer = self.server.infer("digits", {"image": np.zeros((1, 1, 28, rng.randrange(1, 28)), np.float32)})
        if not 400 <= answer.status < 500:
            self.problem(f"a broken request was answered with {answer.status}")

    def compile_step(self, rng):
        # Another opt level and core count is another package: the compiler runs, the store grows and is read again.
        self.server.compile("digits", SHAPES, opt_level=rng.randrange(5),
                            target=f"llvm -mcpu=native -num-cores={rng.randrange(1, 9)}")

    def redeploy_step(self, _):
        self.deploy(self.server.compile("digits", SHAPES))
        threading.Event().wait(1)

    def client(self, name, step, seed):
        rng = random.Random(seed)
        while time.monotonic() < self.end:
            try:
                step(rng)
                self.count(name)
            except Exception as error:  # whatever it is belongs in the report, and the other clients go on
                self.problem(f"{name}: {error}")
                return

    def run(self):
        steps = [("infer", self.infer_step)] * INFERRING_CLIENTS
        steps += [("broken", self.broken_step), ("compile", self.compile_step), ("redeploy", self.redeploy_step)]
        self.end = time.monotonic() + self.seconds
        threads = [threading.Thread(target=self.client, args=(*step, seed)) for seed, step in enumerate(steps)]
        for thread in threads:
            thread.start()
        return threads


def resident_kib(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(l for l in lines if l.startswith("VmRSS:")).split()[1])


def state(server):
    pid = server.process.pid
    return {"kib": resident_kib(pid), "files": len(list(Path(f"/proc/{pid}/fd").iterdir()))}


def settled(server):
    serving.wait_for(lambda: not server.children(), "the children's end")
    return state(server)


def main(argv):
    seconds = float(argv[0]) if argv else 300.0
    with tempfile.TemporaryDirectory() as folder:
        server = serving.Server(folder)
        try:
            soak = Soak(server, seconds)
            threads = soak.run()
            threading.Event().wait(seconds / 10)
            before = state(server)
            for thread in threads:
                thread.join()
            after = settled(server)
        finally:
            code = server.stop()
    if after["kib"] > before["kib"] + ALLOWED_GROWTH_KIB:
        soak.problem(f"memory grew from {before['kib']} to {after['kib']} KiB")
    if after["files"] > before["files"]:
        soak.problem(f"open files grew from {before['files']} to {after['files']}")
    for name in ("infer", "broken", "compile", "redeploy"):
        if not soak.counts.get(name):
            soak.problem(f"no {name} was finished")
    if code != 0:
        soak.problem(f"the server ended with {code}")
    print(", ".join(f"{count} × {name}" for name, count in sorted(soak.counts.items())))
    print(f"memory {before['kib']} KiB after a tenth, {after['kib']} KiB at the end; files {before['files']}, "
          f"{after['files']}")
    for what in soak.problems:
        print(f"problem: {what}")
    print("passed" if not soak.problems else f"{len(soak.problems)} problems")
    return 1 if soak.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
