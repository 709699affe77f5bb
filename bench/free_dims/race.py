"""Networks with free dims beside ONNX Runtime and beside packages of one shape, each at three odd shapes.

    python3 tests/fixtures/frameworks.py race bench/free_dims/race.py [--program build/bin/tensormill] [--rounds 3] [--runs 5] [--threads 1]
                                         [--no-fixed] [--cache .cache/free_dims] [NAME...]

One package is compiled without buckets for all shapes of a network. In each round ours, the package of one shape and ONNX Runtime run in
turns; a ratio is taken within a round, the median over the rounds stands. Answers are compared with ONNX Runtime's. Nothing else may run
meanwhile. Exits with 1 where a bar is missed: geometric mean of ONNX Runtime ÷ ours 1.2, none below 1.0; 0.85 of the package of one shape."""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import networks
import numpy as np
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
TOLERANCE = 1e-3


def compile_model(program, model, shapes, package):
    began = time.perf_counter()
    text = " ".join(f"{port}:[{','.join(map(str, shape))}]" for port, shape in shapes.items())
    subprocess.run([program, "compile", model, "--input-shapes", text, "-o", package], check=True, capture_output=True)
    return time.perf_counter() - began


def run_package(program, package, feed, options, outputs=None):
    words = [program, "run", package, "-i", feed, "--print-time", "--json", "--repeat", str(options.runs), "--number", "1", "--warmup", "3",
             "--threads", str(options.threads)]
    answer = json.loads(subprocess.run(words + (["-o", outputs] if outputs else []), check=True, capture_output=True, text=True).stdout)
    return answer.get("timing", answer)["median_ms"]


def peer_session(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def run_peer(session, inputs, runs):
    times = []
    for _ in range(3):
        session.run(None, inputs)
    for _ in range(runs):
        began = time.perf_counter()
        session.run(None, inputs)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3


def race(name, options, folder):
    model = options.cache / f"{name}.onnx"
    if not model.exists():
        networks.export(name, model)
    _, dims, shapes = networks.NETWORKS[name]
    free_s = compile_model(options.program, model, dims, folder / "free.tar")
    session, rows = peer_session(model, options.threads), []
    for shape in shapes:
        inputs = {port: networks.tensor_of(port, extents).numpy() for port, extents in shape.items()}
        np.savez(folder / "in.npz", **inputs)
        fixed_s = compile_model(options.program, model, shape, folder / "fixed.tar") if options.fixed else math.nan
        run_package(options.program, folder / "free.tar", folder / "in.npz", options, folder / "out.npz")
        wanted, got = session.run(None, inputs)[0], np.load(folder / "out.npz")["y"]
        error = float(np.max(np.abs(got - wanted)) / max(float(np.max(np.abs(wanted))), 1e-6))
        if not error <= TOLERANCE or got.shape != wanted.shape:
            sys.exit(f"{name} {shape}: differs from ONNX Runtime by {error}")
        ours, fixed, peer = [], [], []
        for _ in range(options.rounds):
            ours.append(run_package(options.program, folder / "free.tar", folder / "in.npz", options))
            if options.fixed:
                fixed.append(run_package(options.program, folder / "fixed.tar", folder / "in.npz", options))
            peer.append(run_peer(session, inputs, options.runs))
        ratio = statistics.median(b / a for a, b in zip(ours, peer))
        own = statistics.median(b / a for a, b in zip(ours, fixed)) if options.fixed else math.nan
        rows.append((ratio, own))
        print(f"{name:16s} {next(iter(shape.values()))!s:20s} ours {statistics.median(ours):8.2f} ms  ONNX Runtime {statistics.median(peer):8.2f} = {ratio:.2f}x"
              f"  own of one shape {own:.2f}x  compile {free_s:.1f} and {fixed_s:.1f} s = {free_s / fixed_s:.2f}x  error {error:.0e}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=ROOT / "build/bin/tensormill", type=Path)
    parser.add_argument("--cache", default=ROOT / ".cache/free_dims", type=Path)
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--runs", default=5, type=int)
    parser.add_argument("--threads", default=1, type=int)
    parser.add_argument("--no-fixed", dest="fixed", action="store_false")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for name in options.names or networks.NETWORKS for row in race(name, options, Path(folder))]
    mean, lowest = math.exp(statistics.fmean(math.log(ratio) for ratio, _ in rows)), min(ratio for ratio, _ in rows)
    own = math.exp(statistics.fmean(math.log(ratio) for _, ratio in rows)) if options.fixed else math.nan
    print(f"geometric mean {mean:.3f} (bar 1.2), lowest {lowest:.2f} (bar 1.0); own of one shape {own:.3f} (bar 0.85); {len(rows)} shapes")
    return 0 if mean >= 1.2 and lowest >= 1.0 and not own < 0.85 else 1


if __name__ == "__main__":
    sys.exit(main())
