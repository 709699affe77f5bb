"""Whole networks, tuned against untuned: run.py tuner --only models; see bench/README.md, "Tuner"."""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from models_bench.measure import mill
from models_bench.sessions import ROOT, Pace, Session, alternate

NETS = ("resnet50", "mobilenetv2", "minilm6")
LEAST_MEAN = 1.05
NEVER_SLOWER = 0.98  # what two equal packages may differ by
PROOF_TRIALS = 2000
PROOF_GAIN = 1.03
PROOF_TASKS = 3  # the smallest spaces of each network, of so many points at most
PROOF_POINTS = 1000
PROOF_REPEATS = 5  # of the last comparison: two runs of one kernel of 10 us differ by 5 % with where its process has its pages
TARGET = "llvm -mcpu=native -num-cores={}"


def arguments_of(words):
    parser = argparse.ArgumentParser(prog="run.py tuner --only models", description=__doc__)
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--minutes", type=float, default=10, help="of search, for each network, in all runs together")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--table", type=Path, help="folder of records: a run with it continues the last one's search")
    parser.add_argument("--proof", action="store_true",
                        help=f"the default against the best of {PROOF_TRIALS} trials, and of all points of up to "
                             f"{PROOF_TASKS} tasks that have at most {PROOF_POINTS}")
    parser.add_argument("--tune-options", default="", help='more options of tune, such as "--flush-cache"')
    parser.add_argument("--quick", action="store_true", help="shorter blocks of runs")
    return parser.parse_args(words)


class Network:
    """A generated network, its inputs, and the words that commands take for it."""

    def __init__(self, name, options, folder):
        self.name, self.options, self.folder = name, options, folder
        self.model = mill.generated(name)
        self.inputs = mill.alive.random_inputs(mill.alive.onnx.load(str(self.model)), seed=1)
        self.words = [self.model, "--input-shapes", mill.shapes_option(self.inputs),
                      "--target", TARGET.format(options.threads)]

    def mill(self, *words):
        command = [str(word) for word in (mill.PROGRAM, *words)]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: stopped with {done.returncode}")
        return done.stdout

    def tune(self, records, *words):
        more = ["--threads", self.options.threads, *self.options.tune_options.split(), *words]
        return json.loads(self.mill("--json", "tune", *self.words, "-o", records, *more))

    def compile(self, package, *words):
        self.mill("compile", *self.words, "--verify", "none", "-o", package, *words)
        return package


def spent_seconds(records):
    """What the trials of earlier runs cost."""
    if not records.exists():
        return 0
    return sum(json.loads(line)["result"][2] for line in records.read_text().splitlines() if line.endswith("}"))


def end_to_end(network, records):
    """Blocks of runs in turn: the untuned time in ms, and untuned ÷ tuned."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        inputs = Path(folder) / "inputs.npz"
        np.savez(inputs, **network.inputs)
        packages = {"untuned": network.compile(Path(folder) / "untuned.tar"),
                    "tuned": network.compile(Path(folder) / "tuned.tar", "--tuning-records", records)}
        sessions = {name: stack.enter_context(Session.ours(package, inputs, network.options.threads))
                    for name, package in packages.items()}
        blocks, _ = alternate(sessions, Pace(network.options.quick))
    ratios = [before / after for before, after in zip(blocks["untuned"], blocks["tuned"])]
    return statistics.median(blocks["untuned"]) / 1e3, statistics.median(ratios)


def search(network):
    records = network.folder / f"{network.name}.json"
    left = network.options.minutes * 60 - spent_seconds(records)
    row = {"net": network.name}
    if left > 1:
        report = network.tune(records, "--time-budget", left, "--trials", 10 ** 6)
        row.update(trials=report["trials"], kernels_default_ms=report["default_ms"], kernels_best_ms=report["best_ms"],
                   network=report["network"])
    row["untuned_ms"], row["gain"] = end_to_end(network, records)
    return row


def proof(network):
    """How far the default is from the best that a long search finds, and an exhaustive one in small spaces."""
    records = network.folder / f"{network.name}-proof.json"
    listed = json.loads(network.mill("--json", "tune", *network.words, "--tasks", "list"))
    # Defaults that a table of an earlier program lacks are measured although it holds all trials.
    known = len(records.read_text().splitlines()) if records.exists() else 0
    report = network.tune(records, "--trials", max(PROOF_TRIALS, known + len(listed)), "--network-rounds", 0)
    row = {"net": network.name, "trials": report["trials"], "gain": report["default_ms"] / report["best_ms"],
           "tasks": []}
    # A layer's other algorithms, which the network does not call, have no share of its time.
    choices = sorted((task for task in listed if 1 < task["points"] <= PROOF_POINTS and task["calls"] > 0),
                     key=lambda task: task["points"])
    for task in choices[:PROOF_TASKS]:
        records = network.folder / f"{network.name}-task{task['task']}.json"
        # The first search measures all points, the others find them in the table and compare the finalists again.
        every = [network.tune(records, "--tasks", task["task"], "--tuner", "gridsearch", "--trials", 10 ** 6,
                              "--network-rounds", 0)
                 for _ in range(PROOF_REPEATS)]
        row["tasks"].append({"task": task["name"], "trials": every[0]["trials"],
                             "gain": statistics.median(one["default_ms"] / one["best_ms"] for one in every)})
    return row


def bars_of(rows, is_proof):
    """(what, figure, limit, passed)"""
    if not rows:
        return []
    if is_proof:
        found = [(row["net"], row["gain"]) for row in rows]
        found += [(f"{row['net']}, all points of {task['task']}", task["gain"])
                  for row in rows for task in row["tasks"]]
        return [(f"default / best, {what}", gain, f"≤ {PROOF_GAIN}", gain <= PROOF_GAIN) for what, gain in found]
    gains = [row["gain"] for row in rows]
    mean = math.exp(sum(map(math.log, gains)) / len(gains))
    return [("untuned / tuned end to end, geometric mean", mean, f"≥ {LEAST_MEAN}", mean >= LEAST_MEAN),
            ("untuned / tuned end to end, the least", min(gains), f"≥ {NEVER_SLOWER}", min(gains) >= NEVER_SLOWER)]


def main(words, results):
    options = arguments_of(words)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.table or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        rows = []
        for name in options.nets.split(","):
            network = Network(name, options, folder.resolve())
            rows.append(proof(network) if options.proof else search(network))
            print(json.dumps(rows[-1]), file=sys.stderr)
    bars = bars_of(rows, options.proof)
    name = "tuner-proof.json" if options.proof else "tuner-models.json"
    (results / name).write_text(json.dumps({"rows": rows, "bars": [bar[:3] for bar in bars]}, indent=1) + "\n")
    print("| bar | figure | limit | |\n|---|---|---|---|")
    for what, figure, limit, passed in bars:
        print(f"| {what} | {figure:.3f} | {limit} | {'pass' if passed else 'FAIL'} |")
    return 0 if all(passed for *_, passed in bars) else 1
