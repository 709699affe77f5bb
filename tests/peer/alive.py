#!/usr/bin/env python3
"""Checks that a generated model is alive: alive.py MODEL.onnx...

A comparison of two compilers on a model whose outputs hardly depend on the input, or whose layers are all zero, proves
nothing. With two random inputs each output must differ by at least 10 % of its largest |value|, and no intermediate
tensor may be all zero or hold a NaN or infinity. Runs ONNX Runtime with every intermediate tensor as an output.
"""

import atexit
import functools
import json
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))

from line_program import LineProgram  # noqa: E402 (found through the line above)

DTYPES = {TensorProto.FLOAT: np.float32, TensorProto.INT64: np.int64}
MIN_DIFFERENCE = 0.10


@functools.cache
def peer():
    """One process of the reference runtime for all that this one asks of it. It is waited for, so that its time counts."""
    program = LineProgram(["node", os.path.join(HERE, "ort_run.js"), "--lines"], timeout=600)
    atexit.register(program.close)
    return program


def ort_run(model, inputs, outputs, *options):
    """Runs ort_run.js with these arguments; returns what it prints."""
    arguments = [str(model), str(inputs), str(outputs), *options]
    answer = peer().ask(json.dumps(arguments))
    if not answer.startswith("ok"):
        raise RuntimeError(f"ort_run.js {' '.join(arguments)}: {answer}")
    return answer.removeprefix("ok").strip()


def random_inputs(model, seed, batch=1):
    """Floats in [-1, 1); token ids below 30,000; masks and types of 0 and 1 with some of each."""
    rng = np.random.default_rng(seed)
    weights = {t.name for t in model.graph.initializer}
    made = {}
    for value in model.graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else batch for d in tensor.shape.dim]
        dtype = DTYPES[tensor.elem_type]
        if dtype == np.float32:
            made[value.name] = rng.random(shape, dtype=np.float32) * 2 - 1
        elif "mask" in value.name:
            mask = np.ones(shape, np.int64)
            for row in range(shape[0]):
                mask[row, rng.integers(shape[1] // 2, shape[1]):] = 0
            made[value.name] = mask
        elif "token_type" in value.name:
            made[value.name] = (np.arange(shape[1])[None, :] >= rng.integers(8, shape[1], (shape[0], 1))).astype(dtype)
        else:
            made[value.name] = rng.integers(0, 30000, shape, dtype=np.int64)
    return made


def with_all_outputs(model):
    """A copy of `model` whose every node output is a graph output."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    known = {o.name for o in copy.graph.output}
    for node in copy.graph.node:
        if node.op_type != "Constant":
            copy.graph.output.extend(onnx.ValueInfoProto(name=n) for n in node.output if n and n not in known)
    return copy


def layer_problems(stats):
    """What is wrong with the float tensors of one run, as a list of lines."""
    problems = []
    for name, s in stats.items():
        if s["type"] not in ("float32", "float64") or s["count"] == 0:
            continue
        if s["finite"] != s["count"]:
            problems.append(f"{name}: {s['count'] - s['finite']} of {s['count']} values are not finite")
        elif s["largest"] == 0:
            problems.append(f"{name}: all zero")
    return problems


def check(path, verbose=False):
    """Returns the list of problems of one model file; empty when it is alive."""
    model = onnx.load(path)
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        every = os.path.join(folder, "every.onnx")
        onnx.save(with_all_outputs(model), every)
        results = []
        for seed in (1, 2):
            feed, out = os.path.join(folder, f"in{seed}.npz"), os.path.join(folder, f"out{seed}.npz")
            np.savez(feed, **random_inputs(model, seed))
            ort_run(path, feed, out, "--threads", "2")
            with np.load(out) as archive:
                results.append({name: archive[name] for name in archive.files})
        stats = json.loads(ort_run(every, os.path.join(folder, "in1.npz"), "-", "--threads", "2", "--stats"))
        problems += layer_problems(stats)
        if verbose:
            for name, s in stats.items():
                print(f"  {name}: mean {s['mean']:.4g} std {s['std']:.4g} largest {s['largest']:.4g}")
    for name, one in results[0].items():
        two = results[1][name]
        ratio = float(np.abs(one - two).max() / max(np.abs(one).max(), np.abs(two).max(), 1e-30))
        print(f"{os.path.basename(path)}: {name}: difference {ratio:.3f} of the largest |value| "
              f"{np.abs(one).max():.4g}, std {one.std():.4g}")
        if ratio < MIN_DIFFERENCE:
            problems.append(f"{name}: two inputs differ by {ratio:.3f} of the largest value, needed {MIN_DIFFERENCE}")
    return problems


def main(argv):
    verbose = "-v" in argv
    failed = 0
    for path in [a for a in argv if a != "-v"]:
        for problem in check(path, verbose):
            print(f"{path}: {problem}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
