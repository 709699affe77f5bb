"""Everything that is measured of one network."""

import json
import statistics
import subprocess
import sys
import tarfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from . import variants
from .sessions import ROOT, Pace, Session, alternate

for folder in ("tests/e2e", "tests/peer"):
    sys.path.insert(0, str(ROOT / folder))

import mill  # noqa: E402

THREADS = (1, 2)
MEMORY_RUNS = 20
CHAIN_COPIES = 8


def compile_package(model, inputs, package):
    """Compiles with a cold process; returns the seconds."""
    started = time.monotonic()
    subprocess.run([mill.PROGRAM, "compile", model, "--input-shapes", mill.shapes_option(inputs), "-o", package],
                   check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    return time.monotonic() - started


def params_bytes(package):
    with tarfile.open(package) as archive:
        return archive.getmember("mod.params").size


def largest_ratio(actual, expected):
    """max|a-b| / max|b| over all float outputs, by position."""
    worst = 0.0
    for a, b in zip(actual.values(), expected.values(), strict=True):
        a, b = a.astype(np.float64), b.astype(np.float64)
        if a.shape != b.shape:
            raise RuntimeError(f"an output has shape {a.shape}, expected {b.shape}")
        worst = max(worst, float(np.abs(a - b).max() / np.abs(b).max())) if a.size else worst
    return worst


class Net:
    """A network with its files in `folder`: the model, its inputs, its package, and the identity model beside it."""

    def __init__(self, name, folder, model=None, batch=1):
        self.name, self.folder = name, Path(folder)
        self.proto = model or mill.alive.onnx.load(str(mill.generated(name)))
        self.model = self.file("onnx")
        self.model.write_bytes(self.proto.SerializeToString())
        self.arrays = mill.alive.random_inputs(self.proto, seed=1, batch=batch)
        self.inputs = self.file("in.npz")
        np.savez(self.inputs, **self.arrays)
        self.package = self.file("tar")
        self.compile_s = compile_package(self.model, self.arrays, self.package)

    def file(self, ending):
        return self.folder / f"{self.name}.{ending}"

    def ours(self, threads):
        return Session.ours(self.package, self.inputs, threads)

    def peer(self, threads):
        return Session.peer(self.model, self.inputs, threads)

    def answers(self):
        """Outputs of both, by name: (ours, the peer's)."""
        results = []
        for side, session in (("ours", self.ours(1)), ("peer", self.peer(1))):
            with session:
                session.ask("run 1 0 0")
                session.ask(f"write {self.file(f'{side}.npz')}")
            results.append(mill.load_npz(self.file(f"{side}.npz")))
        return results

    def identity(self, outputs):
        """The Net of the same inputs and outputs that does nothing."""
        return Net(f"{self.name}.identity", self.folder, variants.identity(self.arrays, outputs))


def accuracy(net, ours, peer):
    done = subprocess.run([ROOT / "build/bin/bench_reference", net.model, net.inputs, net.file("reference.npz")],
                          check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{net.name}: the reference run failed: {done.stderr.strip()}")
    exact = mill.load_npz(net.file("reference.npz"))
    return {"against_peer": largest_ratio(ours, peer), "against_reference": largest_ratio(ours, exact),
            "peer_against_reference": largest_ratio(peer, exact)}


def latency(net, floor, pace, probe):
    """Blocks of both on 1 and 2 threads, and of the peer's binding alone on the model that does nothing."""
    with ExitStack() as stack:
        sessions = {}
        for threads in THREADS:
            sessions[f"ours{threads}"] = stack.enter_context(net.ours(threads))
            sessions[f"peer{threads}"] = stack.enter_context(net.peer(threads))
        sessions["floor"] = stack.enter_context(floor.peer(1))
        blocks, peaks = alternate(sessions, pace, probe)
    return summary(blocks, peaks)


def summary(blocks, peaks):
    """Medians in ms, the ratio of each round, and how both sides scale to two threads."""
    floor = statistics.median(blocks["floor"])
    result = {"floor_ms": floor / 1e3, "blocks_us": blocks, "probe_gflops": peaks}
    for threads in THREADS:
        ours, peer = blocks[f"ours{threads}"], [us - floor for us in blocks[f"peer{threads}"]]
        result[f"threads{threads}"] = {
            "ours_ms": statistics.median(ours) / 1e3, "peer_ms": statistics.median(peer) / 1e3,
            "ratio": statistics.median(p / o for o, p in zip(ours, peer))}
    rounds = list(zip(*(blocks[f"{side}{t}"] for side in ("ours", "peer") for t in THREADS)))
    result["speedup"] = statistics.median(o1 / o2 for o1, o2, _, _ in rounds)
    result["probe_speedup"] = statistics.median(p[2] / p[1] for p in peaks)
    result["ratio2_to_best_peer"] = statistics.median((min(p1, p2) - floor) / o2 for _, o2, p1, p2 in rounds)
    return result


def batch_throughput(name, folder, batch, pace):
    """Pictures (or sequences) a second of both on 2 threads at this batch."""
    model = variants.with_batch(mill.alive.onnx.load(str(mill.generated(name))), batch)
    net = Net(f"{name}.batch{batch}", folder, model)
    with net.ours(2) as ours, net.peer(2) as peer:
        blocks, _ = alternate({"ours": ours, "peer": peer}, pace)
    return {"batch": batch, "ours_per_s": batch * 1e6 / statistics.median(blocks["ours"]),
            "peer_per_s": batch * 1e6 / statistics.median(blocks["peer"]),
            "ratio": statistics.median(p / o for o, p in zip(blocks["ours"], blocks["peer"]))}


def peak_bytes(session):
    with session:
        session.ask(f"run {MEMORY_RUNS} 0 600000")
        return session.ask("peak")["peak_kib"] * 1024


def memory(net, floor):
    """Peak resident bytes after 20 runs, less the same program's on the model that does nothing, less the weights."""
    weights = variants.weight_bytes(net.proto)
    rest = {side: peak_bytes(getattr(net, side)(1)) - peak_bytes(getattr(floor, side)(1)) - weights
            for side in ("ours", "peer")}
    return {"weights": weights, "params": params_bytes(net.package), "params_ratio": params_bytes(net.package) / weights,
            "ours_rest": rest["ours"], "peer_rest": rest["peer"], "ratio": rest["ours"] / max(rest["peer"], 1)}


def slope(name, folder, pace):
    """Time of one more copy of the net in a chain: what is left when the cost of a call is taken off both."""
    single = Net(name, folder)
    (source,) = single.arrays
    bound = mill.alive.onnx.load(str(mill.generated(name)))
    chained = Net(f"{name}.chain", folder, variants.chain(bound, CHAIN_COPIES))
    with single.ours(1) as ours1, single.peer(1) as peer1, chained.ours(1) as ours8, chained.peer(1) as peer8:
        blocks, _ = alternate({"ours1": ours1, "peer1": peer1, "ours8": ours8, "peer8": peer8}, pace)
    one_more = {side: [(long - short) / (CHAIN_COPIES - 1)
                       for short, long in zip(blocks[f"{side}1"], blocks[f"{side}8"])] for side in ("ours", "peer")}
    return {"input": source, "ours_us": statistics.median(one_more["ours"]),
            "peer_us": statistics.median(one_more["peer"]), "blocks_us": blocks,
            "ratio": statistics.median(p / o for o, p in zip(one_more["ours"], one_more["peer"]))}


def measure_net(name, folder, quick, probe):
    """All figures of one network as a dict."""
    pace = Pace(quick)
    net = Net(name, folder)
    ours, peer = net.answers()
    floor = net.identity(peer)
    result = {"compile_s": net.compile_s, "accuracy": accuracy(net, ours, peer), "memory": memory(net, floor),
              "latency": latency(net, floor, pace, probe)}
    result["batch8"] = batch_throughput(name, folder, 8, pace)
    if name == "mlp":
        result["slope"] = slope(name, folder, pace)
    return json.loads(json.dumps(result))
