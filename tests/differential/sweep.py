#!/usr/bin/env python3
"""Random models, each run by the compiler's own program and by ONNX Runtime, and their outputs compared.

    sweep.py [--seed N] [--count N] [--seconds N] [--only OP,OP] [--keep FOLDER]

A model is named OPERATOR:SEED; `sweep.py OPERATOR:SEED ...` runs these alone and prints the model. What differs is printed
as one line a model; the models and their inputs stay under --keep. Exit code 1 when something differs that known.txt does
not name.
"""

import argparse
import collections
import fnmatch
import itertools
import json
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np
from onnx import helper

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "conformance"), str(HERE.parent / "tools")]
import cases  # noqa: E402
import contrib  # noqa: E402,F401
import elementwise  # noqa: E402,F401
import forms  # noqa: E402,F401
import graphs  # noqa: E402,F401
import large  # noqa: E402,F401
import moves  # noqa: E402,F401
import spatial  # noqa: E402,F401
import text  # noqa: E402,F401
import values  # noqa: E402,F401
from builder import Builder, Skip  # noqa: E402
from conformance_test import PROGRAM  # noqa: E402
from line_program import LineProgram  # noqa: E402
from registry import SPECS  # noqa: E402

PEER = HERE.parent / "peer"
NEWEST_PEER_OPSET = 24
# Outcomes that are no finding.
SILENT = {"equal", "peer refuses", "both refuse", "refused free", "peer differs from itself"}


def draw(name, seed):
    """The model's builder, its opt level, and the dims that stay free (extent -> name, buckets)."""
    since, until, function = SPECS[name]
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    for _ in range(50):
        builder = Builder(rng, int(rng.integers(since, min(until, NEWEST_PEER_OPSET) + 1)))
        try:
            with np.errstate(all="ignore"):
                function(builder)
        except Skip:
            continue
        return builder, int(rng.choice([3, 3, 3, 2, 1, 0])), free_dims(builder, rng)
    raise Skip(name)


def free_dims(builder, rng):
    if builder.free:
        return {}, builder.buckets
    extents = sorted({e for array in builder.feed.values() for e in array.shape if e > 1})
    if not extents or rng.random() > 0.15:
        return {}, ""
    extent = int(rng.choice(extents))
    return {extent: "N"}, f"N={extent + int(rng.integers(0, 2))}"


def difference(actual, expected, builder):
    """Empty when equal in dtype, shape and, within the builder's tolerance, value."""
    if actual.dtype != expected.dtype and not actual.dtype.kind == expected.dtype.kind == "U":
        return f"dtype {actual.dtype}, expected {expected.dtype}"
    if actual.shape != expected.shape:
        return f"shape {list(actual.shape)}, expected {list(expected.shape)}"
    if not actual.size:
        return ""
    if expected.dtype.kind == "f":
        a, b = actual.astype(np.float64), expected.astype(np.float64)
        coarse = {2: 30.0, 4: 1.0, 8: 1e-2}[expected.dtype.itemsize]
        finite = np.isfinite(b)
        with np.errstate(all="ignore"):
            scale = np.max(np.abs(b[finite]), initial=0.0) if builder.relative_to_largest else np.abs(b)
            allowed = coarse * (builder.rtol * scale + builder.atol) + np.zeros_like(b)
            wrong = ~np.where(finite, np.abs(a - b) <= allowed, (a == b) | (np.isnan(a) & np.isnan(b)))
    elif expected.dtype.kind == "U":
        wrong = actual != expected
    else:
        distance = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
        wrong = (distance > builder.units) if builder.units else actual != expected
    if not np.any(wrong):
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(np.sum(wrong))} of {actual.size} differ: {actual[at]!r}, expected {expected[at]!r}, at {list(at)}"


def read(path):
    with np.load(path) as archive:
        return [archive[str(i)] for i in range(len(archive.files))]


class Sweep:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.own = LineProgram([PROGRAM], stderr=subprocess.DEVNULL)
        self.peer = LineProgram(["node", "ort_run.js", "--lines"], stderr=subprocess.DEVNULL, cwd=PEER)

    def close(self):
        self.own.close()
        self.peer.close()

    def ask_peer(self, model, feed, outputs, *options):
        return self.peer.ask(json.dumps([str(model), str(feed), str(outputs), "--threads", "1", "--by-position", *options]))

    def compare(self, builder, ours, theirs):
        if not theirs.startswith("ok"):
            return ("both refuse" if not ours.startswith("ok") else "peer refuses"), theirs
        if not ours.startswith("ok"):
            return "refused", ours.removeprefix("error ")
        actual, expected = read(self.folder / "ours.npz"), read(self.folder / "peer.npz")
        if len(actual) != len(expected):
            return "differs", f"{len(actual)} outputs, expected {len(expected)}"
        for i, (a, e) in enumerate(zip(actual, expected)):
            found = difference(a, np.zeros_like(e) if builder.sums_nothing else e, builder)
            if found:
                return "differs", f"output {i}: {found}"
        return "equal", ""

    def run(self, name, seed):
        """(outcome, detail, builder, how it was compiled)."""
        builder, level, (dims, buckets) = draw(name, seed)
        files = [self.folder / file for file in ("model.onnx", "in.npz", "ours.npz", "peer.npz")]
        for path in files[2:]:
            path.unlink(missing_ok=True)
        files[0].write_bytes(builder.model(dims).SerializeToString())
        cases.save(files[1], builder.feed)
        how = f"opset {builder.opset}, level {level}{', free ' + buckets if buckets else ''}"
        theirs = self.ask_peer(files[0], files[1], files[3])
        ours = self.own.ask(f"{files[0]} {files[1]} {files[2]} {level} {buckets}")
        outcome, detail = self.compare(builder, ours, theirs)
        if outcome == "refused" and buckets and not builder.free and "internal error" not in detail:
            # The bucket may be an extent that a node or the model does not take.
            again = self.own.ask(f"{files[0]} {files[1]} {files[2]} {level}")
            outcome = "refused free" if again.startswith("ok") else outcome
        if outcome == "differs":
            # What the peer's own graph passes change is no finding.
            plain = self.ask_peer(files[0], files[1], files[3], "--graph-opt", "disabled")
            if plain.startswith("ok") and self.compare(builder, ours, plain)[0] == "equal":
                outcome = "peer differs from itself"
        return outcome, detail, builder, how


def read_known():
    """(pattern of OPERATOR, pattern of what is said, reason)."""
    rows = [line.split("|") for line in (HERE / "known.txt").read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    return [tuple(part.strip() for part in row) for row in rows]


def is_known(known, name, outcome, detail):
    return any(fnmatch.fnmatchcase(name, op) and fnmatch.fnmatchcase(f"{outcome}: {detail}", text) for op, text, _ in known)


def run_many(jobs, keep=None, seconds=None, say=print):
    """Runs (name, seed) pairs; returns a count of the outcomes and the lines of what is new."""
    counts, found, known = collections.Counter(), [], read_known()
    deadline = time.monotonic() + seconds if seconds else None
    with tempfile.TemporaryDirectory() as folder:
        sweep = Sweep(folder)
        try:
            for name, seed in jobs:
                if deadline and time.monotonic() > deadline:
                    break
                try:
                    outcome, detail, builder, how = sweep.run(name, seed)
                except Skip:
                    counts["not drawn"] += 1
                    continue
                counts[outcome] += 1
                if outcome in SILENT or is_known(known, name, outcome, detail):
                    counts["known"] += outcome not in SILENT
                    continue
                line = f"{name}:{seed} ({how}): {outcome}: {detail}"
                found.append(line)
                say(line)
                if keep:
                    target = Path(keep) / f"{name}.{seed}"
                    target.mkdir(parents=True, exist_ok=True)
                    for path in Path(folder).iterdir():
                        (target / path.name).write_bytes(path.read_bytes())
        finally:
            sweep.close()
    return counts, found


def jobs_of(seed, models=None, only=None):
    """So many (name, seed) pairs, the operators in turn; without end when `models` is None."""
    names = sorted(name for name in SPECS if not only or any(fnmatch.fnmatchcase(name, o) for o in only))
    for i in itertools.count() if models is None else range(models):
        yield names[i % len(names)], seed * 100000 + i // len(names)


def show(name, seed):
    builder, level, (dims, buckets) = draw(name, seed)
    print(helper.printable_graph(builder.model(dims).graph))
    for kind, arrays in (("input", builder.feed), ("constant", builder.constants)):
        for key, array in arrays.items():
            print(kind, key, array.dtype, list(array.shape), array.ravel()[:12])


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="OPERATOR:SEED")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, help="of models; 1000 when no time is given")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--only")
    parser.add_argument("--keep")
    args = parser.parse_args(argv)
    jobs = [(m.split(":")[0], int(m.split(":")[1])) for m in args.models]
    for name, seed in jobs:
        show(name, seed)
    count = args.count or (None if args.seconds else 1000)
    jobs = jobs or jobs_of(args.seed, count, args.only.split(",") if args.only else None)
    counts, found = run_many(jobs, args.keep, args.seconds, say=lambda line: print(line, flush=True))
    print(", ".join(f"{number} {what}" for what, number in sorted(counts.items())))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
