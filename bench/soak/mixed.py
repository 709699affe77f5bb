"""Mixed load of 16 clients on a server of its own: inference from all sides, and beside it uploads, compiles, cancels and
broken requests.

Five clients are keep-alive connections of bench_load, whose latencies count; the others are threads of this process. Every
answer is checked: tensors against what the package gave before the load, everything else against the one status that it
must have. In five pairs of windows the inference runs without the others and then with them. The memory is looked at while
all of them rest: what is in flight comes and goes by several MiB."""

import hashlib
import json
import os
import random
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from onnx import TensorProto

from soak import memory
from soak.common import DIGITS, LOAD, SHAPES, made_models, mill, serving

FAST_CLIENTS = 5
PAIRS = 5
CLIENT_NICE = 10
NET = "squeezenet11"
WINDOW_S = 10.0
SAMPLE_EVERY_S = 5.0
# What free memory the allocator keeps differs by some MiB from sample to sample: few are no trend.
SAMPLES_PER_PAIR = 3
RATIO_BAR = 3.0
# bench_load compares so many bytes of an answer's end: more than there are.
WHOLE = 1 << 20
# A process of 60 MiB may grow by its buffers; a bigger one by 2 %.
GROWTH_BAR_KIB, GROWTH_BAR = 4 * 1024, 0.02


# The catalog opens its reading connections when they are needed: four of two files each; and some files of jobs that run.
OPEN_FILES = 4 * 2 + 4


def tolerated_kib(kib):
    return max(GROWTH_BAR * kib, GROWTH_BAR_KIB)


def adding(value):
    """A model of one node: y = x + value."""
    return made_models.one_node_model("Add", [("x", TensorProto.FLOAT, [4])], ("y", TensorProto.FLOAT, [4]),
                                      [("c", np.full(4, value, np.float32))])


class Mixed:
    """One run. `problems` are what no answer may be; the figures are filled in by run()."""

    def __init__(self, server, folder, seconds):
        self.server, self.folder, self.seconds = server, Path(folder), seconds
        self.window = min(WINDOW_S, seconds / (4 * PAIRS))
        self.counts, self.problems, self.refused = {}, [], 0
        self.samples, self.ratios, self.cancel_s = [], [], []
        self.lock, self.stop, self.paused = threading.Lock(), threading.Event(), threading.Event()
        self.clients = self.resting = 0
        rng = np.random.default_rng(1)
        self.images = [rng.random((1, 1, 28, 28), dtype=np.float32) for _ in range(8)]
        self.require(server.upload("digits", DIGITS.read_bytes()), 200, 201)
        self.package = server.compile("digits", SHAPES)
        self.require(server.deploy("digits", self.package, version="1"), 201)
        self.expected = [self.logits(server.run(self.package, {"image": image})) for image in self.images]
        self.deploy_net()

    def deploy_net(self):
        """What the fast clients ask: a network whose run takes milliseconds, with pictures of 600 KB."""
        path = mill.generated(NET)
        inputs = mill.alive.random_inputs(mill.alive.onnx.load(str(path)), seed=1)
        self.require(self.server.upload("net", path.read_bytes()), 200, 201)
        package = self.server.compile("net", {name: list(value.shape) for name, value in inputs.items()})
        self.require(self.server.deploy("net", package), 201)
        (self.folder / "picture.npz").write_bytes(serving.npz(inputs))

    def require(self, answer, *statuses):
        if answer.status not in statuses:
            raise RuntimeError(f"answered {answer.status}, expected {statuses}: {answer.body[:300]}")
        return answer

    def logits(self, answer):
        return serving.from_npz(self.require(answer, 200).body)["logits"]

    def problem(self, what):
        with self.lock:
            self.problems.append(what)

    # --- the clients -------------------------------------------------------------------------------------------------

    def infer_step(self, rng, _):
        index = rng.randrange(len(self.images))
        answer = self.server.infer("digits", {"image": self.images[index]})
        if not np.array_equal(self.logits(answer), self.expected[index]):
            self.problem(f"another answer for image {index}")

    def upload_step(self, rng, name):
        value = rng.randrange(1 << 24)
        data = adding(value)
        made = self.require(self.server.upload(name, data), 201).json()
        digest = hashlib.sha256(data).hexdigest()
        if made["id"] != f"sha256:{digest}":
            self.problem(f"a model of another digest: {made['id']}")
        blob = self.require(self.server.request("GET", f"/v1/blobs/{made['id']}"), 200)
        if blob.body != data:
            self.problem("another blob than was uploaded")
        self.require(self.server.request("DELETE", f"/v1/models/{name}"), 204)
        self.require(self.server.request("DELETE", f"/v1/models/{made['id']}"), 204, 404)

    def compile_step(self, rng, name):
        """A model of its own, compiled, run, deployed, asked and taken away again."""
        value = float(rng.randrange(1, 1 << 16))
        model = self.require(self.server.upload(name, adding(value)), 201).json()["id"]
        package = self.server.compile(name, {"x": [4]}, opt_level=rng.randrange(5))
        x = np.arange(4, dtype=np.float32)
        for answer in (self.server.run(package, {"x": x}), self.deployed(name, package, x)):
            if not np.array_equal(serving.from_npz(self.require(answer, 200).body)["y"], x + np.float32(value)):
                self.problem(f"x + {value} is something else")
        self.require(self.server.request("DELETE", f"/v1/deployments/{name}"), 204)
        for path in (f"packages/{package}", f"models/{name}", f"models/{model}"):
            self.require(self.server.request("DELETE", f"/v1/{path}"), 204, 404)

    def deployed(self, name, package, x):
        self.require(self.server.deploy(name, package, version="1"), 201)
        return self.server.infer(name, {"x": x})

    def cancel_step(self, rng, _):
        """Another core count each time: no other client's job is the same, which a cancel would only leave."""
        answer = self.server.submit("digits", SHAPES, force=True, opt_level=rng.randrange(5),
                                    target=f"llvm -mcpu=native -num-cores={rng.randrange(1, 1025)}")
        job = self.require(answer, 202).json()["id"]
        threading.Event().wait(rng.random() * 0.5)
        self.require(self.server.request("POST", f"/v1/jobs/{job}/cancel"), 200, 202, 409)
        asked = time.monotonic()
        state = self.server.finished(job)["state"]
        if state == "cancelled":
            self.cancel_s.append(time.monotonic() - asked)
        elif state != "succeeded":
            self.problem(f"a cancelled job {state}")

    def broken_step(self, rng, name):
        whole = serving.npz({"image": self.images[0]})
        npz = {"Content-Type": "application/x-npz"}
        kind = rng.randrange(7)
        if kind == 0:
            answer, wanted = self.server.request("POST", "/v1/deployments/digits/infer",
                                                 whole[:rng.randrange(1, len(whole))], npz), (400, 422)
        elif kind == 1:
            image = np.zeros((1, 1, 28, rng.randrange(1, 28)), np.float32)
            answer, wanted = self.server.infer("digits", {"image": image}), (400, 422)
        elif kind == 2:
            answer, wanted = self.server.send_json("POST", "/v1/jobs", '{"kind": "compile", "model"'), (400,)
        elif kind == 3:
            answer, wanted = self.server.infer(f"nothing-{name}", {"image": self.images[0]}), (404,)
        elif kind == 4:
            answer, wanted = self.server.upload(name, rng.randbytes(rng.randrange(1, 4096))), (422,)
        elif kind == 5:
            answer, wanted = self.server.request("PATCH", "/v1/models"), (405,)
        else:
            answer, wanted = self.server.request("GET", "/v1/jobs?limit=many"), (400,)
        if answer.status not in wanted:
            self.problem(f"a broken request of kind {kind} was answered with {answer.status}: {answer.body[:200]}")

    # --- the run -----------------------------------------------------------------------------------------------------

    def client(self, name, step, seed):
        # The clients of a server have cores of their own; these give way to it.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), CLIENT_NICE)
        rng = random.Random(seed)
        while not self.stop.is_set():
            if self.paused.is_set():
                with self.lock:
                    self.resting += 1
                serving.wait_for(lambda: not self.paused.is_set() or self.stop.is_set(), "the end of the pause")
                with self.lock:
                    self.resting -= 1
                continue
            try:
                step(rng, f"{name}{seed}")
                with self.lock:
                    self.counts[name] = self.counts.get(name, 0) + 1
            except Exception as error:  # whatever it is belongs in the report, and the other clients go on
                self.problem(f"{name}: {error}")
                return

    def fast_window(self, seconds):
        """p99 in milliseconds of bench_load's clients."""
        command = [LOAD, str(self.server.port), "/v1/deployments/net/infer", str(self.folder / "picture.npz"),
                   str(FAST_CLIENTS), str(seconds), str(WHOLE), "Content-Type: application/x-npz"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.problem(f"bench_load: {done.stdout}{done.stderr}")
            return None
        result = json.loads(done.stdout)
        with self.lock:
            self.counts["fast infer"] = self.counts.get("fast infer", 0) + result["requests"]
        return result["latency_ms"]["p99"]

    def rest(self):
        """Lets nothing be in flight any more: the other clients pause, and the children end. What is there now stays."""
        self.paused.set()
        serving.wait_for(lambda: self.problems or self.resting == self.clients, "the other clients' pause")
        serving.wait_for(lambda: not self.server.children(), "the end of the children")

    def resume(self):
        self.paused.clear()
        serving.wait_for(lambda: self.problems or self.resting == 0, "the end of the pause")

    def pair(self):
        """One window without the others and one with them."""
        self.rest()
        alone = self.fast_window(self.window)
        self.resume()
        beside = self.fast_window(self.window)
        if alone and beside:
            self.ratios.append(beside / alone)

    def sample(self):
        self.rest()
        self.samples.append((time.monotonic(), memory.trimmed_kib(self.server)))

    def load_and_sample(self, end):
        """All sixteen run on until then, with a rest now and then, in which the memory is looked at."""
        self.sample()
        samples = 1
        while not self.problems and (samples < SAMPLES_PER_PAIR or time.monotonic() < end):
            self.resume()
            self.fast_window(min(SAMPLE_EVERY_S, self.seconds / (10 * PAIRS)))
            self.sample()
            samples += 1

    def run(self):
        steps = [("infer", self.infer_step)] + [("upload", self.upload_step)] * 2
        steps += [("compile", self.compile_step)] * 3 + [("cancel", self.cancel_step)] * 2
        steps += [("broken", self.broken_step)] * 3
        started = time.monotonic()
        threads = [threading.Thread(target=self.client, args=(*step, seed)) for seed, step in enumerate(steps)]
        self.clients = len(threads)
        for thread in threads:
            thread.start()
        try:
            for number in range(PAIRS):
                self.pair()
                self.load_and_sample(started + self.seconds * (number + 1) / PAIRS)
                if self.problems:
                    break
        finally:
            self.stop.set()
            self.paused.clear()
            for thread in threads:
                thread.join()
        self.judge([step for step, _ in steps])

    def judge(self, names):
        self.growth_kib, self.kib = memory.growth_kib(self.samples), self.samples[-1][1] if self.samples else 0
        self.ratio = statistics.median(self.ratios) if self.ratios else 0.0
        for name in sorted(set(names) - set(self.counts)):
            self.problem(f"no {name} was finished")
        if self.growth_kib > tolerated_kib(self.kib):
            self.problem(f"memory grows: by {self.growth_kib:.0f} KiB to {self.kib} KiB over the second half")


def run(seconds):
    """The finished run."""
    with tempfile.TemporaryDirectory() as folder:
        server = serving.Server(folder, "--set", "log_level=warn")
        try:
            mixed = Mixed(server, folder, seconds)
            before = memory.open_files(server.process.pid)
            mixed.run()
            after = memory.open_files(server.process.pid)
            if after > before + OPEN_FILES:
                mixed.problem(f"open files grew from {before} to {after}")
        finally:
            code = server.stop()
        if code != 0:
            mixed.problem(f"the server ended with {code}")
        return mixed
