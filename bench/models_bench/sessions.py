"""Both runtimes as processes that answer a line with a line, and blocks of runs that alternate between them."""

import json
import statistics
import subprocess
import time
from contextlib import AbstractContextManager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUNNER = ROOT / "build/bin/bench_runner"
PEER = ROOT / "bench/peer/ort_session.js"
DROPPED_RUNS = 3
IDLE_S = 0.05  # the peer's threads spin for a while after a run


class Session(AbstractContextManager):
    """One process; ask("run 20 500 3000") returns its answer as a dict."""

    def __init__(self, command):
        self.command = [str(c) for c in command]
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self.read()

    @classmethod
    def ours(cls, package, inputs, threads):
        return cls([RUNNER, package, inputs, threads])

    @classmethod
    def peer(cls, model, inputs, threads):
        return cls(["node", PEER, model, inputs, threads])

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(self.command)}: stopped with {self.process.wait()}")
        return json.loads(line)

    def ask(self, request):
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        return self.read()

    def __exit__(self, *exception):
        self.process.stdin.close()
        self.process.wait(timeout=30)
        self.process.stdout.close()


class Pace:
    """How long a block runs and how many rounds there are."""

    def __init__(self, quick):
        self.rounds = 3 if quick else 8
        self.runs, self.ms, self.max_ms = (8, 100, 1000) if quick else (20, 500, 5000)
        self.probe_s = 0.05 if quick else 0.2

    def block(self, session):
        """The median of one block in microseconds, after an idle moment and without the first runs."""
        time.sleep(IDLE_S)
        times = session.ask(f"run {self.runs + DROPPED_RUNS} {self.ms} {self.max_ms}")["us"]
        return statistics.median(times[min(DROPPED_RUNS, len(times) - 1):])


def probe_peak(probe, pace):
    """GFLOP/s of the FMA probe on 1 and 2 threads: {1: …, 2: …}."""
    return {threads: probe.ask(f"probe {threads} {pace.probe_s}")["gflops"] for threads in (1, 2)}


def alternate(sessions, pace, probe=None):
    """Blocks in turn over all sessions: {name: [median us of each block]}, and the probe's figures of each round.

    One round runs before and is not counted.
    """
    blocks, peaks = {name: [] for name in sessions}, []
    for session in sessions.values():
        session.ask("run 4 0 2000")
    for _ in range(pace.rounds):
        if probe:
            peaks.append(probe_peak(probe, pace))
        for name, session in sessions.items():
            blocks[name].append(pace.block(session))
    return blocks, peaks
