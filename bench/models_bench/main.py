"""Ours and ONNX Runtime on every network, in one run: bench models [--nets A,B] [--quick]."""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from . import bars, real, report
from .measure import measure_net, mill
from .sessions import ROOT, RUNNER, Pace, Session

RESULTS = ROOT / "bench/results"
NETS = ("resnet18", "resnet50", "resnet50v2", "mobilenetv2", "squeezenet11", "shufflenetv2", "minilm6", "mlp")


def parse(argv):
    parser = argparse.ArgumentParser(prog="bench models", description=__doc__)
    parser.add_argument("--nets", default=",".join([*NETS, *real.NETS]), help="names, separated by commas")
    parser.add_argument("--quick", action="store_true", help="shorter blocks, fewer rounds: for a first look")
    args = parser.parse_args(argv)
    args.nets = args.nets.split(",")
    unknown = [n for n in args.nets if n not in NETS and n not in real.NETS]
    if unknown:
        parser.error(f"no network named {', '.join(unknown)} (there are: {', '.join([*NETS, *real.NETS])})")
    args.real = [n for n in args.nets if n in real.NETS]
    args.nets = [n for n in args.nets if n in NETS]
    return args


def cpu_name():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((l.split(":", 1)[1].strip() for l in lines if l.startswith("model name")), "unknown CPU")


def commit():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def measure(args):
    nets = {}
    with tempfile.TemporaryDirectory() as folder, Session([RUNNER, "probe"]) as probe:
        for name in args.nets:
            print(f"-- {name}", flush=True)
            nets[name] = measure_net(name, folder, args.quick, probe)
            print("   " + " | ".join(report.row(name, nets[name])[1:]), flush=True)
    peaks = [p for net in nets.values() for p in net["latency"]["probe_gflops"]]
    return {"quick": args.quick, "rounds": Pace(args.quick).rounds, "cpu": cpu_name(), "commit": commit(),
            "peak1": statistics.median(p["1"] for p in peaks), "peak2": statistics.median(p["2"] for p in peaks),
            "nets": nets, "bars": bars.all_bars(nets)}


def measure_real(args):
    """The networks that people have; returns the number of bars that are missed."""
    with tempfile.TemporaryDirectory() as folder:
        rows = {name: real.measure(name, folder, args.quick) for name in args.real}
    RESULTS.mkdir(parents=True, exist_ok=True)
    stem = "real" if tuple(args.real) == tuple(real.NETS) and not args.quick else "real.part"
    (RESULTS / f"{stem}.json").write_text(json.dumps(rows, indent=1) + "\n")
    (RESULTS / f"{stem}.md").write_text(real.markdown(rows))
    print("\n" + real.markdown(rows))
    missed = [b["what"] for b in real.bars(rows) if not b["passed"]]
    print("".join(f"missed: {what}\n" for what in missed), end="")
    return len(missed)


def main(argv):
    args = parse(argv)
    for program in (RUNNER, ROOT / "build/bin/bench_reference", mill.PROGRAM):
        if not program.exists():
            print(f"error: {program.relative_to(ROOT)} is not built: run ./dev bench", file=sys.stderr)
            return 2
    missed_real = measure_real(args) if args.real else 0
    if not args.nets:
        return 1 if missed_real else 0
    run = measure(args)
    # Only a whole run may stand under the name that the README quotes.
    stem = "models" if tuple(args.nets) == NETS and not args.quick else "models.part"
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{stem}.json").write_text(json.dumps(run, indent=1) + "\n")
    (RESULTS / f"{stem}.md").write_text(report.markdown(run))
    (RESULTS / f"{stem}.svg").write_text(report.svg(run))
    print("\n" + report.markdown(run))
    print(f"written: bench/results/{stem}.json, .md, .svg")
    missed = [b["what"] for b in run["bars"] if not b["passed"]]
    print(f"{len(run['bars']) - len(missed)} of {len(run['bars'])} bars pass")
    return 1 if missed or missed_real else 0
