"""Single operators beside ONNX Runtime on one thread: bench ops [--only 'PATTERN,...'] [--rounds N] [--worst N] [--list]."""

import argparse
import fnmatch
import json
import statistics
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from models_bench import variants
from models_bench.measure import mill
from models_bench.sessions import ROOT, RUNNER, Session

from . import dense, moves

RESULTS = ROOT / "bench/results"
CASES = {**dense.CASES.table, **moves.CASES.table}
RUNS, MS = 5, 15


def compiled(make, folder):
    """(model, package, inputs) as files."""
    model = make()
    files = [Path(folder) / name for name in ("op.onnx", "op.tar", "op.npz")]
    files[0].write_bytes(model.proto().SerializeToString())
    np.savez(files[2], **model.feed)
    done = subprocess.run([mill.PROGRAM, "compile", files[0], *(["--input-shapes", mill.shapes_option(model.feed)] if model.feed else []), "-o", files[1]],
                          capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return files


def least(session, rounds):
    return [min(session.ask(f"run {RUNS} {MS} 3000")["us"]) for _ in range(rounds)]


def measure(name, rounds):
    """µs of both, the least of all runs: what else the machine does only adds to it. The binding's own time is taken off."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        model, package, inputs = compiled(CASES[name], folder)
        ours = stack.enter_context(Session.ours(package, inputs, 1))
        peer = stack.enter_context(Session.peer(model, inputs, 1))
        nothing = Path(folder) / "nothing.onnx"
        feed = mill.load_npz(inputs)
        floors = []
        if feed and all(a.dtype.kind != "U" for a in feed.values()):
            nothing.write_bytes(variants.identity(feed, {"nothing": np.zeros(1, np.float32)}).SerializeToString())
            floor = stack.enter_context(Session.peer(nothing, inputs, 1))
            floors = least(floor, 2)
        pairs = [(least(ours, 1)[0], least(peer, 1)[0]) for _ in range(rounds)]
    floor = min(floors, default=0)
    mine, theirs = min(p[0] for p in pairs), min(p[1] for p in pairs)
    return {"ours_us": mine, "peer_us": theirs, "floor_us": floor, "ratio": max(theirs - floor, 0.5) / mine,
            "median_ratio": statistics.median(t / o for o, t in pairs)}


def line(name, row):
    return f"{row['ratio']:7.2f}  {row['ours_us']:10.1f}  {row['peer_us'] - row['floor_us']:10.1f}  {name}"


def main(argv):
    parser = argparse.ArgumentParser(prog="bench ops", description=__doc__)
    parser.add_argument("--only", default="*", help="patterns of names, separated by commas")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--worst", type=int, default=20, help="how many of the slowest ratios stand at the end")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args(argv)
    names = [n for n in CASES if any(fnmatch.fnmatchcase(n, p) for p in args.only.split(","))]
    if args.list:
        print("\n".join(names))
        return 0
    for program in (RUNNER, mill.PROGRAM):
        if not program.exists():
            print(f"error: {program.relative_to(ROOT)} is not built: run ./dev bench")
            return 2
    rows, failed = {}, {}
    print("  ratio    ours, µs    ORT, µs")
    for name in names:
        try:
            rows[name] = measure(name, args.rounds)
            print(line(name, rows[name]), flush=True)
        except RuntimeError as error:
            failed[name] = str(error)
            print(f"      -  {name}: {error}", flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"ops{'' if args.only == '*' else '.part'}.json").write_text(json.dumps({"rows": rows, "failed": failed}, indent=1) + "\n")
    print(f"\n{len(rows)} measured, {len(failed)} not; {sum(r['ratio'] < 1 for r in rows.values())} slower than ONNX Runtime; the worst:")
    for name, row in sorted(rows.items(), key=lambda item: item[1]["ratio"])[:args.worst]:
        print(line(name, row))
    return 0
