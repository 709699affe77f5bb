"""Cycles of lease and finish a second on SQLite and on a private PostgreSQL, both syncing what they commit."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/bin/bench_catalog"
BAR = 500
PROBES = 300

sys.path.insert(0, str(ROOT / "tests/tools"))

import postgres_server  # noqa: E402


def syncs_a_second(folder):
    """What the disk can give: appends of 4 KiB, each synced."""
    with open(Path(folder) / "probe", "wb", buffering=0) as file:
        start = time.monotonic()
        for _ in range(PROBES):
            file.write(b"\0" * 4096)
            os.fdatasync(file.fileno())
        return PROBES / (time.monotonic() - start)


def measure(place, workers, cycles):
    done = subprocess.run([str(PROGRAM), place, str(workers), str(cycles)], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def main(argv, results):
    parser = argparse.ArgumentParser(prog="run.py catalog", description=__doc__)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--cycles", type=int, default=2000)
    arguments = parser.parse_args(argv)
    if not PROGRAM.exists():
        print("error: build/bin/bench_catalog is not built: cmake --build build --target bench_catalog", file=sys.stderr)
        return 2
    figures = {"workers": arguments.workers, "cycles": arguments.cycles, "load_average": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as folder:
        figures["fdatasync_per_second"] = syncs_a_second(folder)
        figures["sqlite"] = measure(folder, arguments.workers, arguments.cycles)
    with postgres_server.PostgresServer(durable=True) as server:
        figures["postgresql"] = measure(server.url(), arguments.workers, arguments.cycles)
    results.mkdir(parents=True, exist_ok=True)
    (results / "catalog.json").write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))
    missed = [kind for kind in ("sqlite", "postgresql") if figures[kind]["cycles_per_second"] < BAR]
    for kind in missed:
        print(f"bar missed: {kind} makes fewer than {BAR} cycles a second")
    return 1 if missed else 0
