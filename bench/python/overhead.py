#!/usr/bin/env python3
"""What `Package.run` adds to the executor, and what an import costs: medians of interleaved runs.

    tests/python/venv/bin/python bench/python/overhead.py [--runs 4000] [--json FILE]

The executor alone is one call of the C interface with its inputs set; both are interleaved in one process, so that a busy
machine slows both, and read the same input, so that it is as warm in the caches for the one as for the other. Also with a
copy of the input, for a batch of 64 pictures, and what Python's own part takes by itself: again and again, and behind a run
of the executor, whose kernels have the caches for themselves meanwhile.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "api/python"))
os.environ.setdefault("TM_PROGRAM", str(ROOT / "build/bin/tensormill"))

import numpy as np  # noqa: E402

import tensormill as tm  # noqa: E402


def median_us(calls, runs):
    """The median of each of several interleaved calls, in microseconds."""
    times = {name: [] for name in calls}
    for round_number in range(runs + 100):
        for name, call in calls.items():
            start = time.perf_counter_ns()
            call()
            if round_number >= 100:
                times[name].append(time.perf_counter_ns() - start)
    return {name: sorted(found)[len(found) // 2] / 1e3 for name, found in times.items()}


def overhead(batch, runs):
    package = tm.compile(ROOT / "tests/models/digits.onnx", input_shapes={"image": [batch, 1, 28, 28]})
    x = tm.empty((batch, 1, 28, 28))
    x[:] = np.random.default_rng(0).random(x.shape, dtype=np.float32)
    space = np.zeros(x.size + 17, np.float32)
    askew = space[1:x.size + 1].reshape(x.shape)
    if askew.ctypes.data % 64 == 0:
        askew = space[2:x.size + 2].reshape(x.shape)
    askew[:] = x
    package.run(x)
    # The same executor, with the tensors of the run before: its buffers are as warm for the one as for the other.
    executor = package._free[-1]
    bare = executor._lib.tm_executor_run
    # A copy between them would leave one of the two a cold input.
    found = median_us({"executor": lambda: bare(executor._handle, 1, 0), "run": lambda: package.run(x, threads=1)}, runs)
    found |= median_us({"run_with_copy": lambda: package.run(askew, threads=1)}, runs)
    executor._call = lambda *_: 0
    found |= median_us({"python": lambda: package.run(x, threads=1)}, runs)
    found |= median_us({"between": lambda: bare(executor._handle, 1, 0), "python_behind_a_run": lambda: package.run(x, threads=1)}, runs)
    return {"batch": batch, **found, "added": found["run"] - found["executor"]}


# What a program waits for before its first line, and what it waits for with what it uses first.
IMPORTS = {"numpy": "import numpy", "tensormill": "import tensormill", "tensormill.load": "import tensormill; tensormill.load",
           "tensormill.Package": "import tensormill; tensormill.Package", "tensormill.Client": "import tensormill; tensormill.Client"}


def import_ms(code):
    """CPU time of a new interpreter that runs it, beside one that does nothing."""
    def cpu(code):
        before = os.times()
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "api/python")})
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    return 1e3 * (min(cpu(code) for _ in range(7)) - min(cpu("pass") for _ in range(7)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    report = {"runs_us": [overhead(1, options.runs), overhead(64, max(options.runs // 10, 50))],
              "import_ms": {what: import_ms(code) for what, code in IMPORTS.items()}}
    for row in report["runs_us"]:
        print("batch {batch}: executor {executor:.1f} us, run {run:.1f} us (adds {added:.1f}), with a copy of the input "
              "{run_with_copy:.1f} us; of Python {python:.1f} us, {python_behind_a_run:.1f} behind a run".format(**row))
    print("import: " + ", ".join(f"{what} {ms:.0f} ms" for what, ms in report["import_ms"].items()) + " of CPU time")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
